"""A teacher's top k as the target on a CPU, forward and backward, against the loss at labels.

One thread, float32, 512 × 32,768 scores and 64 classes a row; contenders take turns, and ratios are
of medians. Run: python benchmarks/cpu_sparse_targets.py
"""

import functools

import torch
from _machine import describe
from _timing import Contender, race
from torch import Tensor

from fitzpatrick.torch import SparseTargets, functional

SHAPE, LISTED, REPEATS = (512, 32768), 64, 9
NAMES = ["fitzpatrick_logistic", "logistic", "fitzpatrick_sparsemax", "fitzpatrick_entmax15"]


def step(name: str, scores: Tensor, target: Tensor | SparseTargets) -> None:
    """Forward and backward."""
    loss: Tensor = getattr(functional, f"{name}_loss")(scores, target)
    torch.autograd.grad(loss, scores)


def main() -> None:
    """Print ratios."""
    torch.set_num_threads(1)
    print(describe())
    generator = torch.Generator().manual_seed(0)
    scores = torch.randn(SHAPE, generator=generator).requires_grad_()
    labels = torch.randint(SHAPE[1], SHAPE[:1], generator=generator)
    top = torch.log_softmax(scores.detach() * 2, -1).topk(LISTED)
    target = SparseTargets(top.indices, top.values, "renormalize", log_values=True)
    for name in NAMES:
        one = Contender("labels", functools.partial(step, name, scores, labels))
        other = Contender("lists", functools.partial(step, name, scores, target))
        times = race([one, other], REPEATS)
        ratio = times["lists"].median / times["labels"].median
        print(f"{name:<24}{times['labels'].median * 1e3:8.1f} ms at labels{ratio:7.2f} × at lists")


if __name__ == "__main__":
    main()
