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

    @classmethod
    def zeros(cls, n: int, like: Tensor) -> "RowStats":
        """Numbers of n rows to be written over, in the working precision of some scores."""
        dtypes = *[working_dtype(like)] * 3, torch.bool
        return cls(*(like.new_zeros(n, dtype=dtype) for dtype in dtypes))


class StatsRequest:
    """The target that numbers are asked about, as it was given, and the answer of an engine."""

    def __init__(self, target: Tensor) -> None:
        self.target = target
        self.answer: Any = None  # a RowStats


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


def stats_of_numbers(numbers: Tensor, target: Tensor, k: int, ignore_index: int) -> RowStats:
    """The numbers (n, 4) of compiled rows, with zeros for rows that count for nothing."""
    _, y = _own_targets(target, k, ignore_index)
    counts = (y > 0).any(-1)
    log_sum_exp, entropy, score, is_correct = numbers.unbind(-1)
    score = torch.where(counts, score, 0.0)
    return RowStats(log_sum_exp, entropy, score, counts & (is_correct > 0))


def stats_of_chunk(theta: Tensor, target: Tensor, ignore_index: int) -> RowStats:
    """The numbers of scores (n, k) at labels (n,), rows (n, k) or lists (n, 2, m)."""
    x = theta.to(working_dtype(theta))
    top = x.amax(-1, keepdim=True)
    shifted = x - top
    e = shifted.exp()
    total = e.sum(-1)
    mean = (e * shifted.masked_fill(e == 0, 0.0)).sum(-1) / total
    classes, y = _own_targets(target, theta.shape[1], ignore_index)
    own, y = x if classes is None else x.gather(-1, classes), y.to(x.dtype)
    score = torch.where(y > 0, own * y, 0.0).sum(-1)
    best = own.gather(-1, y.argmax(-1, keepdim=True))
    is_correct = ((best >= top) & (y > 0).any(-1, keepdim=True))[:, 0]
    top = top[:, 0]
    log_sum_exp = torch.where(top.isinf(), top, top + total.log())
    return RowStats(log_sum_exp, total.log() - mean, score, is_correct)


@torch.no_grad()
def stats_of(theta: Tensor, target: Tensor, ignore_index: int) -> RowStats:
    """As :func:`stats_of_chunk`, some rows at a time."""
    step = len(theta) if torch.compiler.is_compiling() else max(_MAX_SCORES // theta.shape[1], 1)
    pairs = zip(torch.split(theta.detach(), step), torch.split(target, step), strict=True)
    parts = [stats_of_chunk(*pair, ignore_index) for pair in pairs]
    return RowStats(*(torch.cat(column) for column in zip(*parts, strict=True)))
