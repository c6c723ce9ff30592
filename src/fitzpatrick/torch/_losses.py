"""A loss of tensors, for the three kinds of regularizer.

- On a set whose vertices are classes, one loss per row, with the arguments of ``cross_entropy``.
- Entry by entry where the regularizer is a sum over entries, with the arguments of
  ``binary_cross_entropy_with_logits``.
- Elsewhere, one loss per row.

Each brings its arguments into rows, a target and a scale, which holds weights and reduction, and
leaves the rest to the operators.
"""

import math
from collections.abc import Callable
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from .._validation import as_tightness, check_order
from ..engines.triton.scale import Scale, working_dtype
from ..engines.triton.targets import Target
from ..regularizers import Regularizer, Tsallis
from ._arguments import (
    as_class_index,
    check_alphas,
    check_class_weight,
    check_labels,
    check_nothing_ignored,
    check_options,
    check_rows,
    check_scores,
    check_target,
    check_weight,
    class_dim,
    columns_along,
    expand_mask,
    expand_over_rows,
    expand_to,
    is_dtensor,
    is_plain,
    looks_at_values,
    output_dtype,
    rows_along,
)
from ._autograd import LossCall, few_labels, link_rows, loss_rows, training_entries
from ._engine import choose_engine, engine_module, entmax_alpha
from ._entmax import EntmaxCall, entmax_rows
from ._handles import handle_of, regularizer_of
from ._targets import divisor_of, weigh_labels, weigh_proportions

if TYPE_CHECKING:  # PyTorch may come without it
    from torch.distributed import ProcessGroup


def loss_of_kind(omega: Regularizer) -> Callable[..., Tensor]:
    """The function below that computes the losses of a regularizer."""
    if omega.domain.has_labels:
        return class_loss
    return entry_loss if omega.is_entrywise else row_loss


def supports_pos_weight(omega: Regularizer) -> bool:
    """Whether each target is a probability, which has a positive side to weigh."""
    bounds = omega.domain.coordinates
    return omega.is_entrywise and bounds is not None and bounds.bounds == (0.0, 1.0)


def check_arguments(
    input: Tensor,  # noqa: A002
    target: Tensor,
    reduction: str,
    label_smoothing: float,
    validate: bool | None,
) -> None:
    """Raise for what no loss could make sense of."""
    check_scores(input)
    check_target(target, input)
    check_options(reduction, label_smoothing, validate)


def without_axis(shape: torch.Size, axis: int) -> torch.Size:
    """A shape without one of its axes."""
    return shape[:axis] + shape[axis + 1 :]


def _check_same_shape(input: Tensor, target: Tensor, hint: str = "") -> None:  # noqa: A002
    if target.shape != input.shape:
        raise ValueError(
            f"target must have the shape of input, got {tuple(target.shape)} and "
            f"{tuple(input.shape)}{hint}"
        )


def _call(
    omega: str,
    tightness: float,
    engine: str | None,
    input: Tensor,  # noqa: A002
    ignore_index: int = -1,
    *,
    has_labels: bool = False,
) -> LossCall:
    c = as_tightness(tightness)
    engine = choose_engine(engine, input, omega, has_labels=has_labels)
    return LossCall(omega, c, engine, ignore_index)


def _reduce(
    rows: tuple[Tensor, Target, Scale],
    call: LossCall,
    reduction: str,
    shape: torch.Size,
    dtype: torch.dtype,
) -> Tensor:
    """The reduced loss of rows that carry the reduction's scale already."""
    out = loss_rows(*rows, call, is_summed=reduction != "none")
    return deliver(out, reduction, shape, dtype)


def deliver(out: Tensor, reduction: str, shape: torch.Size, dtype: torch.dtype) -> Tensor:
    """A loss that is reduced already, or the losses of rows in their shape, in a dtype."""
    if reduction == "none":
        out = out.reshape(shape)
    if reduction == "mean" and math.prod(shape) == 0:
        out = out * math.nan  # the mean of nothing, as PyTorch has it
    return out if out.dtype == dtype else out.to(dtype)


def class_loss(
    omega: str,
    tightness: float,
    input: Tensor,  # noqa: A002
    target: Tensor,
    weight: Tensor | None = None,
    ignore_index: int = -100,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
    *,
    dim: int | None = None,
    engine: str | None = None,
    validate: bool | None = None,
    process_group: "ProcessGroup | None" = None,
) -> Tensor:
    """A loss on the simplex, for class indices or proportions."""
    is_usual = weight is None and dim is None and engine is None and process_group is None
    is_hard = type(label_smoothing) is float and label_smoothing == 0
    if is_usual and is_hard and (validate is None or type(validate) is bool):
        loss = _few_labels(omega, tightness, input, target, ignore_index, reduction)
        if loss is not None:
            return loss
    if process_group is not None or is_dtensor(input):
        from ._sharded_losses import sharded_class_loss  # PyTorch may come without distributed

        options = weight, ignore_index, reduction, label_smoothing, dim, engine, validate
        sharded: Tensor = sharded_class_loss(
            omega, tightness, input, target, process_group, *options
        )
        return sharded
    check_arguments(input, target, reduction, label_smoothing, validate)
    ignore_index = as_class_index(ignore_index)
    axis = class_dim(input, dim)
    k = input.shape[axis]
    if k == 0:
        raise ValueError(f"input must have at least one class, got shape {tuple(input.shape)}")
    look = looks_at_values(validate, input)
    if weight is not None:
        check_class_weight(weight, input, k, look and label_smoothing > 0)
    has_labels = not target.is_floating_point() and label_smoothing == 0
    call = _call(omega, tightness, engine, input, ignore_index, has_labels=has_labels)
    shape = without_axis(input.shape, axis)
    theta = rows_along(input, axis) if target.is_floating_point() else columns_along(input, axis)
    nan_of_no_rows = None
    y: Target
    scale: Scale
    check_class_target(input, target, axis, ignore_index)
    if target.is_floating_point():
        y = rows_along(target, axis)
        if look:
            check_rows(y, regularizer_of(omega).domain)
        divisor = divisor_of(theta.shape[0], reduction)
        y, scale = weigh_proportions(y, weight, label_smoothing, divisor, working_dtype(theta))
    else:
        labels = target if target.dtype == torch.int64 else target.long()
        if look:
            check_labels(labels, k, ignore_index)
        labels = labels if labels.ndim == 1 else labels.reshape(labels.numel())
        if weight is None and label_smoothing == 0:
            y, scale = labels, None if reduction == "mean" else 1
        else:
            y, scale, nan_of_no_rows = weigh_labels(
                labels, k, weight, ignore_index, reduction, label_smoothing, working_dtype(theta)
            )
    out = _reduce((theta, y, scale), call, reduction, shape, output_dtype(input))
    return out if nan_of_no_rows is None else out + nan_of_no_rows.to(out.dtype)


def check_class_target(
    input: Tensor,  # noqa: A002
    target: Tensor,
    axis: int,
    ignore_index: int,
) -> None:
    """Raise unless the target's shape is right for class indices, or for proportions."""
    if target.is_floating_point():
        _check_same_shape(input, target, "; class indices are integers: convert them with .long()")
        check_nothing_ignored(ignore_index)
        return
    shape = without_axis(input.shape, axis)
    if target.shape != shape:
        one_hot = "; one-hot rows are proportions: convert them with .float()"
        hint = one_hot if target.shape == input.shape else ""
        raise ValueError(
            f"class indices must have shape {tuple(shape)} to go with input of shape "
            f"{tuple(input.shape)} and classes in axis {axis}, got {tuple(target.shape)}{hint}"
        )


def _few_labels(
    omega: str,
    tightness: float,
    input: Tensor,  # noqa: A002
    target: Tensor,
    ignore_index: int,
    reduction: str,
) -> Tensor | None:
    """The loss of a small plain batch on a CPU, by the shortest way; None where there is none.

    It assumes hard labels and no weights, and nothing else: whatever it does not recognize, be it
    wrong or only rare, goes the general way, which checks it.
    """
    if torch.compiler.is_compiling() or not is_plain(input, target):
        return None
    if not (input.is_cpu and target.is_cpu and target.dtype is torch.int64):
        return None
    if input.dtype is not torch.float32 and input.dtype is not torch.float64:
        return None
    if input.ndim != 2 or target.shape != input.shape[:1] or reduction not in ("mean", "sum"):
        return None
    if type(ignore_index) is not int or ignore_index >= 0:
        return None
    if type(tightness) is not float or not 0 <= tightness < math.inf:
        return None
    return few_labels(input, target, omega, tightness, ignore_index, reduction == "mean")


def entry_loss(
    omega: str,
    tightness: float,
    input: Tensor,  # noqa: A002
    target: Tensor,
    weight: Tensor | None = None,
    reduction: str = "mean",
    pos_weight: Tensor | None = None,
    *,
    engine: str | None = None,
    validate: bool | None = None,
) -> Tensor:
    """A loss that is a sum over entries, each with a target of its own."""
    check_arguments(input, target, reduction, 0.0, validate)
    _check_same_shape(input, target)
    call = _call(omega, tightness, engine, input)
    if looks_at_values(validate, input) and target.numel():
        vectors = target.reshape(-1, target.shape[-1] if target.ndim else 1)
        check_rows(vectors, regularizer_of(omega).domain)
    if pos_weight is not None and not supports_pos_weight(regularizer_of(omega)):
        raise TypeError(
            "pos_weight is for targets between 0 and 1, this loss has the domain "
            f"{regularizer_of(omega).domain!r}; use weight"
        )
    weight = None if weight is None else _spread(weight, input, "weight")
    pos_weight = None if pos_weight is None else _spread(pos_weight, input, "pos_weight")

    def by_rows(theta: Tensor) -> Tensor:
        rows = _entry_rows(theta, target, weight, pos_weight, divisor_of(theta.numel(), reduction))
        return _reduce(rows, call, reduction, input.shape, output_dtype(input))

    if call.engine == "triton" and input.numel():
        loss = training_entries(input, target, weight, pos_weight, call, reduction, by_rows)
        if loss is not None:
            return loss.to(output_dtype(input))
    return by_rows(input)


def _entry_rows(
    theta: Tensor,
    target: Tensor,
    weight: Tensor | None,
    pos_weight: Tensor | None,
    divisor: int,
) -> tuple[Tensor, Tensor, Scale]:
    """Entries as rows of one, with their scale."""
    dtype = working_dtype(theta)
    y = target.reshape(target.numel(), 1).to(dtype)
    scale: Tensor | int = divisor
    if weight is not None:
        scale = weight.reshape(theta.numel()).to(dtype) / divisor
    if pos_weight is not None:
        # w·y log p + (1−y) log(1−p) is c times the loss at w·y/c, with c = w·y + 1 − y
        positive = pos_weight.reshape(theta.numel(), 1).to(dtype) * y
        total = positive + (1 - y)
        y = positive / total
        scale = total[:, 0] / divisor if weight is None else total[:, 0] * scale
    return theta.reshape(theta.numel(), 1), y, scale


def _spread(weight: Tensor, input: Tensor, name: str) -> Tensor:  # noqa: A002
    check_weight(weight, input, name)
    return expand_to(weight, input, name)


def row_loss(
    omega: str,
    tightness: float,
    input: Tensor,  # noqa: A002
    target: Tensor,
    reduction: str = "mean",
    *,
    dim: int = -1,
    engine: str | None = None,
    validate: bool | None = None,
) -> Tensor:
    """A loss of vectors along ``dim``, for any set."""
    check_arguments(input, target, reduction, 0.0, validate)
    _check_same_shape(input, target)
    axis = class_dim(input, dim)
    if input.shape[axis] == 0:
        raise ValueError(f"vectors must have at least one entry, got shape {tuple(input.shape)}")
    call = _call(omega, tightness, engine, input)
    theta = rows_along(input, axis)
    y = rows_along(target.to(working_dtype(input)), axis)
    if looks_at_values(validate, input):
        check_rows(y, regularizer_of(omega).domain)
    rows = theta, y, divisor_of(theta.shape[0], reduction)
    return _reduce(rows, call, reduction, without_axis(input.shape, axis), output_dtype(input))


def link(
    omega: str,
    input: Tensor,  # noqa: A002
    dim: int | None = -1,
    *,
    mask: Tensor | None = None,
    engine: str | None = None,
) -> Tensor:
    """The link of a regularizer along an axis."""
    check_scores(input)
    alpha = entmax_alpha(omega)
    if alpha is not None:
        return _entmax(input, None, EntmaxCall(omega, alpha, ""), dim, mask, engine)
    if mask is not None:
        raise TypeError(f"mask is for links on the simplex, not for {regularizer_of(omega)!r}")
    if input.ndim == 0 and regularizer_of(omega).is_entrywise:
        return link(omega, input.reshape(1), dim).reshape(())
    axis = class_dim(input, dim)
    if input.numel() == 0:
        return input.clone()
    if input.ndim == 2 and axis == 1:
        return link_rows(input, omega)
    moved = input.movedim(axis, -1)
    rows = link_rows(rows_along(input, axis), omega)
    return rows.reshape(moved.shape).movedim(-1, axis)


def entmax(
    input: Tensor,  # noqa: A002
    alpha: float | Tensor,
    dim: int | None = -1,
    *,
    mask: Tensor | None = None,
    engine: str | None = None,
) -> Tensor:
    """α-entmax along an axis, for one α or a tensor of them."""
    check_scores(input)
    if not isinstance(alpha, Tensor):
        handle = handle_of(Tsallis(check_order(alpha)))
        return link(handle, input, dim, mask=mask, engine=engine)
    axis = class_dim(input, dim)
    check_alphas(alpha, input)
    rows = expand_over_rows(alpha, input, axis, "alpha").reshape(-1)
    return _entmax(input, rows, EntmaxCall("", 0.0, ""), dim, mask, engine)


def _entmax(
    input: Tensor,  # noqa: A002
    alpha: Tensor | None,
    call: EntmaxCall,
    dim: int | None,
    mask: Tensor | None,
    engine: str | None,
) -> Tensor:
    axis = class_dim(input, dim)
    if mask is not None:
        mask = expand_mask(mask, input)
    if input.numel() == 0:
        return input.clone()
    engine = choose_engine(engine, input, call.omega or "sparsemax")
    call = EntmaxCall(call.omega, call.alpha, engine)
    if engine == "triton" and call.alpha == 1.0 and mask is None:
        with torch.autocast(input.device.type, enabled=False):
            return torch.softmax(input, axis)
    theta = columns_along(input, axis) if engine == "triton" else rows_along(input, axis)
    if theta.ndim == 3 and (
        torch.compiler.is_compiling()
        or not is_plain(input)
        or not engine_module(engine).takes_columns(*theta.shape[1:])
    ):
        theta = rows_along(input, axis)
    is_rows = theta.ndim == 2
    if mask is not None:
        mask = mask.movedim(axis, -1) if is_rows else mask.reshape(theta.shape)
    p = entmax_rows(theta, alpha, mask, call)
    if theta is input:
        return p
    if not is_rows:
        return p.reshape(input.shape)
    return p.reshape(input.movedim(axis, -1).shape).movedim(-1, axis)
