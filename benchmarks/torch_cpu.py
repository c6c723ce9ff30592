"""PyTorch losses on a CPU, forward and backward, against ``cross_entropy`` in the same run.

One thread, float32 scores; they take turns, and ratios are of medians. A JSON file keeps the run.
Run: python benchmarks/torch_cpu.py
"""

import functools
import json
from collections.abc import Callable
from pathlib import Path

import torch
from _machine import describe
from _timing import Contender, race
from threadpoolctl import threadpool_limits

from fitzpatrick.torch import functional

RESULTS = Path(__file__).parent / "results" / "torch_cpu.json"
ROWS, CLASSES, REPEATS = 512, 4096, 9
NAMES = ("logistic", "sparsemax", "entmax15")
PEER = "cross_entropy"


def step(
    loss: Callable[..., torch.Tensor], scores: torch.Tensor, target: torch.Tensor
) -> torch.Tensor | None:
    """The gradient of one loss in fresh scores."""
    scores = scores.detach().requires_grad_()
    loss(scores, target).backward()  # type: ignore[no-untyped-call]
    return scores.grad


def main() -> None:
    generator = torch.Generator().manual_seed(0)
    scores = torch.randn(ROWS, CLASSES, generator=generator)
    labels = torch.randint(CLASSES, (ROWS,), generator=generator)
    proportions = torch.softmax(2 * torch.randn(ROWS, CLASSES, generator=generator), -1)
    losses = {PEER: torch.nn.functional.cross_entropy}
    for name in (name for base in NAMES for name in (base, f"fitzpatrick_{base}")):
        losses[name] = getattr(functional, f"{name}_loss")
    torch.set_num_threads(1)
    lines = []
    with threadpool_limits(1):
        for kind, target in (("labels", labels), ("proportions", proportions)):
            timings = race(
                [
                    Contender(name, functools.partial(step, loss, scores, target))
                    for name, loss in losses.items()
                ],
                REPEATS,
            )
            for name, timing in timings.items():
                ratio = timing.median / timings[PEER].median
                low, high = timing.quartiles
                print(f"{kind:12s} {name:24s} {ratio:6.2f} x {PEER} ({1e3 * timing.median:.2f} ms)")
                lines.append(
                    {
                        "targets": kind,
                        "loss": name,
                        "ratio": round(ratio, 3),
                        "median_ms": round(1e3 * timing.median, 3),
                        "quartiles_ms": [round(1e3 * low, 3), round(1e3 * high, 3)],
                    }
                )
    shape = {"rows": ROWS, "classes": CLASSES, "dtype": "float32", "threads": 1}
    RESULTS.write_text(
        json.dumps({"machine": describe(), **shape, "lines": lines}, indent=2) + "\n"
    )


if __name__ == "__main__":
    main()
