"""What multiplies the losses of rows on the simplex: weights of classes, smoothing, the reduction.

The same for scores that are given and for those that a linear layer computes on the way.
"""

import torch
from torch import Tensor

from ..engines.triton.scale import Scale
from ..engines.triton.targets import Target, smooth


def divisor_of(n: int, reduction: str) -> int:
    """What divides each of n rows that count the same."""
    return n if reduction == "mean" and n else 1


def weigh_proportions(
    y: Tensor, weight: Tensor | None, label_smoothing: float, divisor: int, dtype: torch.dtype
) -> tuple[Tensor, Scale]:
    """Smoothed proportions; a row weighs ⟨weight, y⟩ and the mean is over rows."""
    if label_smoothing > 0:
        y = y.to(dtype) * (1 - label_smoothing) + label_smoothing / y.shape[-1]
    if weight is None:
        return y, divisor
    # not a matrix product, which autocast would compute in half precision
    return y, (y.to(dtype) * weight.to(dtype)).sum(-1) / divisor


def weigh_labels(
    labels: Tensor,
    k: Tensor | int,
    weight: Tensor | None,
    ignore_index: int,
    reduction: str,
    label_smoothing: float,
    dtype: torch.dtype,
) -> tuple[Target, Tensor, Tensor | None]:
    """Labels, or their smoothed distribution, and their scale; the mean is over total weight.

    The last result is to be added to the loss: NaN where the mean is over nothing, else zero. As a
    factor it would reach the gradient, which is zero there, as in PyTorch.
    """
    counts = labels != ignore_index
    inside = counts & (labels >= 0) & (labels < k)
    index = labels.masked_fill(~inside, 0)
    weights = torch.ones_like(labels, dtype=dtype) if weight is None else weight.to(dtype)[index]
    total = weights.masked_fill(~counts, 0.0).sum()
    y: Target = labels
    if label_smoothing > 0:
        y, weights = smooth(index, k, weight, label_smoothing, dtype)
        weights = weights.masked_fill(~inside, torch.nan)
    if reduction != "mean":
        return y, weights.masked_fill(~counts, 0.0), None
    nan_of_no_rows = total / total - 1
    scale = (weights / total + nan_of_no_rows).masked_fill(~counts, 0.0)
    return y, scale, nan_of_no_rows.detach()
