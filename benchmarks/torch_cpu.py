"""PyTorch losses and links on a CPU, forward and backward, compared with other libraries.

The script uses one thread and float32, with a batch of many classes (512 × 4096), a batch of a
small classifier (64 × 10), and attention (8 × 8 × 64 × 64, along the last axis). Losses of labels
and proportions are compared with PyTorch's ``cross_entropy``, links with its ``softmax``, and both
with the package entmax, if it is installed. Contenders take turns, and ratios are ratios of
medians. The results of losses are stored in a JSON file.
Run: python benchmarks/torch_cpu.py
"""

import argparse
import functools
import math
from collections.abc import Callable, Iterator
from typing import Any

import torch
from _machine import RESULTS, write_record
from _timing import Contender, race
from threadpoolctl import threadpool_limits
from torch import Tensor

from fitzpatrick.losses import ends
from fitzpatrick.torch import functional

try:
    import entmax
except ImportError:
    entmax = None

REPEATS = 15
NAMES = ("logistic", "sparsemax", "entmax15")
SHAPES = ((512, 4096), (64, 10), (8, 8, 64, 64))
# number of calls in a measurable run
SCORES_A_RUN = 1 << 17

Function = Callable[..., Tensor]


def loss_step(loss: Function, scores: Tensor, target: Tensor, calls: int) -> None:
    """Gradients of a mean loss, whose classes are in the last axis."""
    for _ in range(calls):
        fresh = scores.detach().requires_grad_()
        loss(fresh, target).backward()  # type: ignore[no-untyped-call]


def link_step(link: Function, scores: Tensor, upstream: Tensor, calls: int) -> None:
    """Gradients of predictions along the last axis."""
    for _ in range(calls):
        fresh = scores.detach().requires_grad_()
        link(fresh, -1).backward(upstream)  # type: ignore[no-untyped-call]


def losses(with_entmax: bool) -> dict[str, Function]:
    """The peer first."""
    found: dict[str, Function] = {"cross_entropy": torch.nn.functional.cross_entropy}
    if with_entmax and entmax is not None:
        found["entmax.sparsemax"] = lambda x, y: entmax.sparsemax_loss(x, y).mean()
        found["entmax.entmax15"] = lambda x, y: entmax.entmax15_loss(x, y).mean()
    for name in (end for pair in NAMES for end in ends(pair)):
        found[name] = functional.loss_function(name)
    return found


def links() -> dict[str, Function]:
    """The peer first."""
    found: dict[str, Function] = {"softmax": torch.softmax}
    if entmax is not None:
        found |= {"entmax.sparsemax": entmax.sparsemax, "entmax.entmax15": entmax.entmax15}
    return found | {name: functional.link_function(name) for name in NAMES}


def measure(shape: tuple[int, ...]) -> Iterator[dict[str, Any]]:
    """A line for each loss and form of the targets; links are only printed."""
    generator = torch.Generator().manual_seed(0)
    scores = torch.randn(shape, generator=generator)
    rows = scores.reshape(-1, shape[-1])
    labels = torch.randint(shape[-1], (len(rows),), generator=generator)
    proportions = torch.softmax(2 * torch.randn(rows.shape, generator=generator), -1)
    upstream = torch.randn(shape, generator=generator)
    calls = math.ceil(SCORES_A_RUN / scores.numel())
    for kind, step, functions, arguments in (
        ("labels", loss_step, losses(True), (rows, labels)),
        ("proportions", loss_step, losses(False), (rows, proportions)),
        ("link", link_step, links(), (scores, upstream)),
    ):
        contenders = [
            Contender(name, functools.partial(step, function, *arguments, calls))
            for name, function in functions.items()
        ]
        timings = race(contenders, REPEATS)
        peer = next(iter(functions))
        for name, timing in timings.items():
            ratio = timing.median / timings[peer].median
            ratios = f"{ratio:6.2f} x {peer}"
            rival = f"entmax.{name.removeprefix('fitzpatrick_')}"
            if rival in timings:
                ratios += f", {timing.median / timings[rival].median:5.2f} x {rival}"
            times = [1e3 * s / calls for s in (timing.median, *timing.quartiles)]
            size = " x ".join(map(str, shape))
            print(f"{size:16s} {kind:11s} {name:22s} {1e3 * times[0]:9.1f} us  {ratios}")
            if kind != "link" and len(shape) == 2 and not name.startswith("entmax."):
                yield {
                    "rows": shape[0],
                    "classes": shape[1],
                    "targets": kind,
                    "loss": name,
                    "ratio": round(ratio, 3),
                    "median_ms": round(times[0], 4),
                    "quartiles_ms": [round(time, 4) for time in times[1:]],
                }


def main() -> None:
    argparse.ArgumentParser(description=__doc__.partition("\n")[0]).parse_args()
    torch.set_num_threads(1)
    with threadpool_limits(1):
        lines = [line for shape in SHAPES for line in measure(shape)]
    write_record(RESULTS / "torch_cpu.json", dtype="float32", threads=1, lines=lines)


if __name__ == "__main__":
    main()
