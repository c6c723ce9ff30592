"""PyTorch losses on a CPU, forward and backward, against ``cross_entropy`` in the same run.

One thread, float32 scores, a large batch and a small one; the losses take turns, and ratios are of
medians. A JSON file keeps the run.
Run: python benchmarks/torch_cpu.py
"""

import functools
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from _machine import describe
from _timing import Contender, race
from threadpoolctl import threadpool_limits

from fitzpatrick.losses import ends
from fitzpatrick.torch import functional

RESULTS = Path(__file__).parent / "results" / "torch_cpu.json"
REPEATS = 9
LINKS = ("logistic", "sparsemax", "entmax15")
PEER = "cross_entropy"


@dataclass(frozen=True)
class Shape:
    """A batch of scores, and how many calls make a run that a clock can measure."""

    rows: int
    classes: int
    calls: int


SHAPES = (Shape(512, 4096, calls=1), Shape(64, 10, calls=200))


def step(
    loss: Callable[..., torch.Tensor], scores: torch.Tensor, target: torch.Tensor, calls: int
) -> torch.Tensor | None:
    """The gradient of one loss in fresh scores."""
    for _ in range(calls):
        scores = scores.detach().requires_grad_()
        loss(scores, target).backward()  # type: ignore[no-untyped-call]
    return scores.grad


def measure(shape: Shape) -> Iterator[dict[str, Any]]:
    """A line for each loss and form of the targets."""
    generator = torch.Generator().manual_seed(0)
    size = shape.rows, shape.classes
    scores = torch.randn(size, generator=generator)
    labels = torch.randint(shape.classes, (shape.rows,), generator=generator)
    proportions = torch.softmax(2 * torch.randn(size, generator=generator), -1)
    losses = {PEER: torch.nn.functional.cross_entropy}
    for name in (name for link in LINKS for name in ends(link)):
        losses[name] = functional.loss_function(name)
    for kind, target in (("labels", labels), ("proportions", proportions)):
        contenders = [
            Contender(name, functools.partial(step, loss, scores, target, shape.calls))
            for name, loss in losses.items()
        ]
        timings = race(contenders, REPEATS)
        for name, timing in timings.items():
            ratio = timing.median / timings[PEER].median
            median, low, high = (
                1e3 * seconds / shape.calls for seconds in (timing.median, *timing.quartiles)
            )
            print(
                f"{shape.rows} x {shape.classes} {kind:12s} {name:24s} "
                f"{ratio:6.2f} x {PEER} ({median:.3f} ms)"
            )
            yield {
                "rows": shape.rows,
                "classes": shape.classes,
                "targets": kind,
                "loss": name,
                "ratio": round(ratio, 3),
                "median_ms": round(median, 4),
                "quartiles_ms": [round(low, 4), round(high, 4)],
            }


def main() -> None:
    torch.set_num_threads(1)
    with threadpool_limits(1):
        lines = [line for shape in SHAPES for line in measure(shape)]
    record = {"machine": describe(), "dtype": "float32", "threads": 1, "lines": lines}
    RESULTS.write_text(json.dumps(record, indent=2) + "\n")


if __name__ == "__main__":
    main()
