"""A loss of tensors, for the three kinds of domain.

- On the simplex, one loss per row of classes, with the arguments of ``cross_entropy``.
- Entry by entry where the regulariser is a sum over a product set, with the arguments of
  ``binary_cross_entropy_with_logits``.
- On any other set, one loss per row.

Each brings its arguments into rows, a target and one scale per row, which holds weights and
reduction, and leaves the rest to the operators.
"""

import math
from enum import Enum

import torch
from torch import Tensor

from ..losses import Loss
from ..regularizers import SquaredNorm
from ..regularizers._base import SeparableRegularizer
from ..sets import Box, ProductSet, Simplex
from ._arguments import (
    check_labels,
    check_reduction,
    check_rows,
    check_scores,
    check_target,
    class_dim,
    looks_at_values,
    output_dtype,
    rows_along,
)
from ._autograd import loss_rows, loss_sum
from ._engine import choose_engine
from ._handles import loss_of

__all__ = ["Kind", "class_loss", "entry_loss", "kind_of", "row_loss"]


class Kind(Enum):
    """How the entries of a target belong together."""

    CLASSES = "a distribution over classes"
    ENTRIES = "one number per entry"
    ROWS = "a vector of the domain"


def kind_of(loss: Loss) -> Kind:
    """The kind of the domain of ``loss``."""
    omega = loss.regularizer
    if isinstance(omega.domain, Simplex):
        return Kind.CLASSES
    separable = isinstance(omega, (SeparableRegularizer, SquaredNorm))
    if separable and isinstance(omega.domain, ProductSet):
        return Kind.ENTRIES
    return Kind.ROWS


def has_coins(loss: Loss) -> bool:
    """Whether the targets are probabilities of their own, which have a positive side to weigh."""
    return loss.regularizer.domain == Box(0.0, 1.0)


def _working(input: Tensor) -> torch.dtype:  # noqa: A002
    return torch.float64 if input.dtype == torch.float64 else torch.float32


def _check_same_shape(input: Tensor, target: Tensor, hint: str = "") -> None:  # noqa: A002
    if target.shape != input.shape:
        raise ValueError(
            f"target must have the shape of input, got {tuple(target.shape)} and "
            f"{tuple(input.shape)}{hint}"
        )


def _reduce(
    rows: tuple[Tensor, Tensor, Tensor, str, str, int],
    reduction: str,
    shape: torch.Size,
    dtype: torch.dtype,
) -> Tensor:
    """The reduced loss of rows that carry the reduction's scale already."""
    if reduction == "none":
        return loss_rows(*rows).reshape(shape).to(dtype)
    total = loss_sum(*rows)
    if reduction == "mean" and rows[0].shape[0] == 0:
        total = total * math.nan  # the mean of nothing, as PyTorch has it
    return total if total.dtype == dtype else total.to(dtype)


def class_loss(
    handle: str,
    input: Tensor,  # noqa: A002
    target: Tensor,
    weight: Tensor | None = None,
    ignore_index: int = -100,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
    dim: int | None = None,
    engine: str | None = None,
    validate: bool | None = None,
) -> Tensor:
    """A loss on the simplex, for class indices or proportions."""
    check_scores(input)
    check_target(target, input)
    check_reduction(reduction)
    axis = class_dim(input, dim)
    k = input.shape[axis]
    if k == 0:
        raise ValueError(f"input must have at least one class, got shape {tuple(input.shape)}")
    if not 0.0 <= label_smoothing <= 1.0:
        raise ValueError(f"label_smoothing must be between 0 and 1, got {label_smoothing}")
    if weight is not None and tuple(weight.shape) != (k,):
        raise ValueError(f"weight must have one entry per class, ({k},), got {tuple(weight.shape)}")
    engine = choose_engine(engine, input, handle)
    shape = input.shape[:axis] + input.shape[axis + 1 :]
    theta = rows_along(input, axis)
    look = looks_at_values(validate, input)
    if target.is_floating_point():
        _check_same_shape(input, target, "; class indices are integers: convert them with .long()")
        y = rows_along(target, axis)
        if look:
            check_rows(y, loss_of(handle).regularizer.domain)
        y, scale = _proportions(theta, y, weight, reduction, label_smoothing)
        ignore_index = -1
    else:
        if target.shape != shape:
            raise ValueError(
                f"class indices must have shape {tuple(shape)} to go with input of shape "
                f"{tuple(input.shape)} and classes in axis {axis}, got {tuple(target.shape)}"
            )
        if look:
            check_labels(target, k, ignore_index)
        y, scale = _labels(theta, _flat(target), weight, ignore_index, reduction, label_smoothing)
    rows = theta, y, scale, handle, engine, ignore_index
    return _reduce(rows, reduction, shape, output_dtype(input))


def _flat(labels: Tensor) -> Tensor:
    """Class indices as one list of int64; itself where it is one."""
    if labels.ndim != 1:
        labels = labels.reshape(-1)
    return labels if labels.dtype == torch.int64 else labels.long()


def _proportions(
    theta: Tensor, y: Tensor, weight: Tensor | None, reduction: str, label_smoothing: float
) -> tuple[Tensor, Tensor]:
    """Smoothed proportions; a row weighs ⟨weight, y⟩ and the mean is over rows."""
    dtype = _working(theta)
    if label_smoothing > 0:
        y = y.to(dtype) * (1 - label_smoothing) + label_smoothing / y.shape[-1]
    n = theta.shape[0]
    factor = 1 / n if reduction == "mean" and n else 1.0
    if weight is None:
        return y, torch.full((1,), factor, dtype=dtype, device=theta.device).expand(n)
    return y, (y.to(dtype) @ weight.to(dtype)) * factor


def _labels(
    theta: Tensor,
    labels: Tensor,
    weight: Tensor | None,
    ignore_index: int,
    reduction: str,
    label_smoothing: float,
) -> tuple[Tensor, Tensor]:
    """Labels, or their smoothed distribution, and their scale; the mean is over total weight."""
    n, k = theta.shape
    dtype = _working(theta)
    if weight is None and label_smoothing == 0:
        # the kernel skips ignored rows, so that one number serves all
        if reduction != "mean":
            return labels, torch.ones(1, dtype=dtype, device=theta.device).expand(n)
        total = (labels != ignore_index).sum(dtype=dtype)
        return labels, total.reciprocal().expand(n)
    counts = labels != ignore_index
    inside = counts & (labels >= 0) & (labels < k)
    index = labels.masked_fill(~inside, 0)
    scale = torch.ones(1, dtype=dtype, device=theta.device).expand(n)
    if weight is not None:
        scale = weight.to(dtype)[index]
    scale = scale.masked_fill(~counts, 0.0)
    total = scale.sum()
    if label_smoothing > 0:
        labels, tilt = _smooth(theta, index, weight, label_smoothing)
        scale = tilt.masked_fill(~counts, 0.0).masked_fill(counts & ~inside, torch.nan)
    return labels, scale / total if reduction == "mean" else scale


def _smooth(
    theta: Tensor, index: Tensor, weight: Tensor | None, label_smoothing: float
) -> tuple[Tensor, Tensor]:
    """Smoothed labels; with class weights w, q becomes w∘q / ⟨w, q⟩ with the weight ⟨w, q⟩.

    That is how ``cross_entropy`` weighs them: Σ w_c q_c (−log p_c) is ⟨w, q⟩ times the
    cross-entropy of that distribution.
    """
    k = theta.shape[-1]
    dtype = _working(theta)
    q = torch.full(theta.shape, label_smoothing / k, dtype=dtype, device=theta.device)
    q = q.scatter_add(-1, index[:, None], torch.full_like(q[:, :1], 1 - label_smoothing))
    if weight is None:
        return q, torch.ones_like(q[:, 0])
    q = q * weight.to(dtype)
    total = q.sum(-1)
    return q / total[:, None], total


def entry_loss(
    handle: str,
    input: Tensor,  # noqa: A002
    target: Tensor,
    weight: Tensor | None = None,
    reduction: str = "mean",
    pos_weight: Tensor | None = None,
    engine: str | None = None,
    validate: bool | None = None,
) -> Tensor:
    """A loss that is a sum over entries, each with a target of its own."""
    check_scores(input)
    check_target(target, input)
    check_reduction(reduction)
    _check_same_shape(input, target)
    domain = loss_of(handle).regularizer.domain
    engine = choose_engine(engine, input, handle)
    dtype = _working(input)
    y = target.reshape(-1, 1)
    if looks_at_values(validate, input):
        check_rows(target.reshape(-1, target.shape[-1]) if target.ndim else y, domain)
    n = y.shape[0]
    scale = torch.full((1,), 1 / n if reduction == "mean" and n else 1.0, dtype=dtype)
    scale = scale.to(input.device).expand(n)
    if weight is not None:
        scale = scale * _spread(weight, input, "weight").to(dtype)
    y = y.to(dtype)
    if pos_weight is not None:
        # w·y log p + (1−y) log(1−p) is c times the loss at w·y/c, with c = w·y + 1 − y
        positive = _spread(pos_weight, input, "pos_weight").to(dtype)[:, None] * y
        total = positive + (1 - y)
        y = positive / total
        scale = scale * total[:, 0]
    rows = input.reshape(-1, 1), y, scale, handle, engine, -1
    return _reduce(rows, reduction, input.shape, output_dtype(input))


def _spread(weight: Tensor, input: Tensor, name: str) -> Tensor:  # noqa: A002
    try:
        return weight.expand(input.shape).reshape(-1)
    except RuntimeError as error:
        raise ValueError(
            f"{name} of shape {tuple(weight.shape)} cannot be broadcast to input of shape "
            f"{tuple(input.shape)}"
        ) from error


def row_loss(
    handle: str,
    input: Tensor,  # noqa: A002
    target: Tensor,
    reduction: str = "mean",
    dim: int = -1,
    engine: str | None = None,
    validate: bool | None = None,
) -> Tensor:
    """A loss of vectors along ``dim``, for any set."""
    check_scores(input)
    check_target(target, input)
    check_reduction(reduction)
    _check_same_shape(input, target)
    axis = class_dim(input, dim)
    engine = choose_engine(engine, input, handle)
    shape = input.shape[:axis] + input.shape[axis + 1 :]
    theta = rows_along(input, axis)
    y = rows_along(target.to(_working(input)), axis)
    if looks_at_values(validate, input):
        check_rows(y, loss_of(handle).regularizer.domain)
    n = theta.shape[0]
    factor = 1 / n if reduction == "mean" and n else 1.0
    scale = torch.full((1,), factor, dtype=_working(input), device=input.device).expand(n)
    rows = theta, y, scale, handle, engine, -1
    return _reduce(rows, reduction, shape, output_dtype(input))
