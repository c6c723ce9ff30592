"""PyTorch losses and links on a CPU at small and middling sizes, against peers of the same run.

Forward and backward, one thread, float32: a batch of a small classifier (64 × 10), attention
(8 × 8 × 64 × 64, along the last axis) and a batch of many classes (512 × 4096). Losses at labels
are compared with PyTorch's ``cross_entropy`` and entmax's losses, links with PyTorch's ``softmax``
and entmax's links; without the package entmax its columns are left out. Contenders take turns, and
ratios are of medians. Before, each runs often enough for compiled rows to be used.
Run: python benchmarks/cpu_small.py
"""

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from _timing import Contender, race
from threadpoolctl import threadpool_limits
from torch import Tensor
from torch.nn import functional as torch_functional

from fitzpatrick.losses import ends
from fitzpatrick.torch import functional

try:
    import entmax
except ImportError:
    entmax = None

REPEATS = 15
NAMES = ("logistic", "sparsemax", "entmax15")
SHAPES = ((64, 10), (8, 8, 64, 64), (512, 4096))
# of all sizes, what a run takes to be measurable, and what makes compiled rows pay
SCORES_A_RUN, SCORES_BEFORE = 1 << 17, 1 << 19

Function = Callable[..., Tensor]


@dataclass(frozen=True)
class Problem:
    """Scores along the last axis, labels, and a gradient of the predictions."""

    scores: Tensor
    labels: Tensor
    upstream: Tensor

    @property
    def calls(self) -> int:
        """How many calls make a run."""
        return math.ceil(SCORES_A_RUN / self.scores.numel())

    def loss_step(self, loss: Function, calls: int) -> None:
        """Gradients of a mean loss, whose classes are in the last axis."""
        for _ in range(calls):
            scores = self.scores.detach().requires_grad_()
            rows = scores.reshape(-1, scores.shape[-1])
            loss(rows, self.labels).backward()  # type: ignore[no-untyped-call]

    def link_step(self, link: Function, calls: int) -> None:
        """Gradients of predictions along the last axis."""
        for _ in range(calls):
            scores = self.scores.detach().requires_grad_()
            link(scores, -1).backward(self.upstream)  # type: ignore[no-untyped-call]


def make_problem(shape: tuple[int, ...]) -> Problem:
    generator = torch.Generator().manual_seed(0)
    scores = 2 * torch.randn(shape, generator=generator)
    labels = torch.randint(shape[-1], (scores[..., 0].numel(),), generator=generator)
    return Problem(scores, labels, torch.randn(shape, generator=generator))


def losses() -> dict[str, Function]:
    """The peer first."""
    found: dict[str, Function] = {"cross_entropy": torch_functional.cross_entropy}
    if entmax is not None:
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


def main() -> None:
    for shape in SHAPES:
        problem = make_problem(shape)
        warm_up = math.ceil(SCORES_BEFORE / problem.scores.numel())
        for kind, step, functions in (
            ("loss", problem.loss_step, losses()),
            ("link", problem.link_step, links()),
        ):
            for function in functions.values():
                step(function, warm_up)
            contenders = [
                Contender(name, functools.partial(step, function, problem.calls))
                for name, function in functions.items()
            ]
            timings = race(contenders, REPEATS)
            peer = next(iter(functions))
            for name, timing in timings.items():
                ratios = f"{timing.median / timings[peer].median:6.2f} x {peer}"
                rival = f"entmax.{name.removeprefix('fitzpatrick_')}"
                if rival in timings and rival != name:
                    ratios += f", {timing.median / timings[rival].median:5.2f} x {rival}"
                size = " x ".join(map(str, shape))
                time = 1e6 * timing.median / problem.calls
                print(f"{size:16s} {kind} {name:22s} {time:9.1f} us  {ratios}")


if __name__ == "__main__":
    torch.set_num_threads(1)
    with threadpool_limits(1):
        main()
