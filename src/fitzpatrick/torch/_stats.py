"""By-products of a loss: numbers of the same scores for evaluation and policy gradients."""

from typing import Any, NamedTuple

import torch
from torch import Tensor

from ._targets import PADDING, working_dtype

# This many scores are looked at once, in working precision.
_MAX_SCORES = 1 << 25


class RowStats(NamedTuple):
    """Numbers of each row, in the shape of losses without a reduction, without derivatives.

    They are of the scores that the loss sees, capped and scaled. A head computes none for rows that
    count for nothing: all numbers of theirs are 0.

    Attributes:
        log_sum_exp: log Σ e^θ over the classes.
        entropy: of the soft argmax of the scores.
        target_score: the score of the label, or ⟨target, θ⟩; 0 in rows that count for nothing.
            Less ``log_sum_exp`` it is the label's log-probability.
        is_correct: True if no class has a higher score than the label, or than the class with the
            largest target; False in rows that count for nothing.
    """

    log_sum_exp: Tensor
    entropy: Tensor
    target_score: Tensor
    is_correct: Tensor

    def reshape(self, shape: tuple[int, ...]) -> "RowStats":
        """The numbers of rows in another shape."""
        return RowStats(*(x.reshape(shape) for x in self))


class StatsRequest:
    """The target that numbers are asked about, as it was given, and the answer of an engine."""

    def __init__(self, target: Tensor) -> None:
        self.target = target
        self.answer: Any = None  # (n, 4), a column for each field of RowStats


def as_stats(numbers: Tensor, shape: tuple[int, ...]) -> RowStats:
    """Numbers (n, 4) of rows that have a shape."""
    log_sum_exp, entropy, score, is_correct = numbers.reshape(*shape, 4).unbind(-1)
    return RowStats(log_sum_exp, entropy, score, is_correct > 0)


def _own_targets(target: Tensor, k: int, ignore_index: int) -> tuple[Tensor | None, Tensor]:
    """Classes of labels or of lists, (n, m), and their targets, 0 where there is no class.

    Rows (n, k) are the targets of all classes.
    """
    if target.ndim == 2:
        return None, target
    if target.ndim == 1:
        is_class = (target != ignore_index) & (target >= 0) & (target < k)
        return torch.where(is_class, target, 0)[:, None], is_class[:, None].double()
    classes, values = target[:, 0].long(), target[:, 1]
    is_class = (classes > PADDING) & (classes < k).all(-1, keepdim=True)
    return torch.where(is_class, classes, 0), values.masked_fill(~is_class, 0.0)


def clear_uncounted_(numbers: Tensor, target: Tensor, k: int, ignore_index: int) -> Tensor:
    """Numbers (n, 4) of compiled rows, where rows that count for nothing have no target."""
    _, y = _own_targets(target, k, ignore_index)
    numbers[:, 2:].masked_fill_(~(y > 0).any(-1, keepdim=True), 0.0)
    return numbers


def _numbers_of_chunk(theta: Tensor, target: Tensor, ignore_index: int) -> Tensor:
    x = theta.to(working_dtype(theta))
    top = x.amax(-1, keepdim=True)
    shifted = x - top
    e = shifted.exp()
    total = e.sum(-1, keepdim=True)
    mean = (e * shifted.masked_fill(e == 0, 0.0)).sum(-1, keepdim=True) / total
    classes, y = _own_targets(target, theta.shape[1], ignore_index)
    own, y = x if classes is None else x.gather(-1, classes), y.to(x.dtype)
    score = torch.where(y > 0, own * y, 0.0).sum(-1, keepdim=True)
    best = own.gather(-1, y.argmax(-1, keepdim=True))
    is_correct = (best >= top) & (y > 0).any(-1, keepdim=True)
    log_sum_exp = torch.where(top.isinf(), top, top + total.log())
    return torch.cat([log_sum_exp, total.log() - mean, score, is_correct], -1)


@torch.no_grad()
def numbers_of(theta: Tensor, target: Tensor, ignore_index: int) -> Tensor:
    """The numbers (n, 4) of scores (n, k) at labels (n,), rows (n, k) or lists (n, 2, m)."""
    step = len(theta) if torch.compiler.is_compiling() else max(_MAX_SCORES // theta.shape[1], 1)
    pairs = zip(torch.split(theta.detach(), step), torch.split(target, step), strict=True)
    return torch.cat([_numbers_of_chunk(*pair, ignore_index) for pair in pairs])
