"""Losses of a linear layer: the arguments of ``linear_cross_entropy``, brought into rows."""

import math
from typing import TYPE_CHECKING, SupportsIndex

import torch
from torch import Tensor

from .._validation import as_tightness
from ._arguments import (
    as_chunk_size,
    as_class_index,
    check_accumulate_dtype,
    check_class_weight,
    check_features,
    check_labels,
    check_layer,
    check_nothing_ignored,
    check_options,
    check_rows,
    check_target,
    check_weight_vector,
    is_autocast,
    looks_at_values,
)
from ._engine import choose_engine
from ._handles import regularizer_of
from ._head import HeadCall, Layer, head_loss

if TYPE_CHECKING:  # PyTorch may come without it
    from torch.distributed import ProcessGroup


def linear_class_loss(
    omega: str,
    tightness: float,
    input: Tensor,  # noqa: A002
    linear_weight: Tensor,
    target: Tensor,
    *,
    linear_bias: Tensor | None = None,
    weight: Tensor | None = None,
    ignore_index: int = -100,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
    chunk_size: SupportsIndex | None = None,
    accumulate_dtype: torch.dtype | None = None,
    engine: str | None = None,
    validate: bool | None = None,
    process_group: "ProcessGroup | None" = None,
) -> Tensor:
    """A loss on the simplex of the scores that a linear layer would compute."""
    check_features(input)
    if process_group is not None and torch.compiler.is_compiling():
        loss: Tensor = _uncompiled_loss(
            omega, tightness, input, linear_weight, target, linear_bias=linear_bias, weight=weight,
            ignore_index=ignore_index, reduction=reduction, label_smoothing=label_smoothing,
            chunk_size=chunk_size, accumulate_dtype=accumulate_dtype, engine=engine,
            validate=validate, process_group=process_group,
        )  # fmt: skip
        return loss
    look = looks_at_values(validate, input)
    shapes = input, linear_weight, linear_bias, target, accumulate_dtype
    options = reduction, label_smoothing, validate
    shard = None
    if process_group is None:
        ignore_index = _check(*shapes, *options, ignore_index)
    else:
        from ._sharded import check_group, check_no_kernels, describe, meet, telling_others

        check_group(process_group)
        with telling_others(process_group, input.device, look=True):
            check_no_kernels(engine)
            ignore_index = _check(*shapes, *options, ignore_index)
            c, rows_of_chunk = as_tightness(tightness), as_chunk_size(chunk_size)
            if weight is not None:
                check_weight_vector(weight, input)
        engine = "reference"
        scores = math.prod(input.shape[:-1]), linear_weight.shape[0]
        agreed = regularizer_of(omega), c, ignore_index, reduction, float(label_smoothing)
        needs_grad = input.requires_grad and torch.is_grad_enabled()
        details = weight, rows_of_chunk, needs_grad, _product_dtype(input)
        own = describe(scores, input.dtype, target, *agreed, *details, look=look)
        # the ranks have to agree on chunks, so that sizes are looked at on a GPU, too
        shard = meet(process_group, own, input.device, look=True)
    k, shape = linear_weight.shape[0], input.shape[:-1]
    n_classes = k if shard is None else int(shard.n_classes)
    if weight is not None:
        check_class_weight(weight, input, n_classes, look and label_smoothing > 0)
        if weight.requires_grad:
            raise ValueError(
                "a linear loss is differentiated in input, linear_weight and linear_bias, not in "
                "weight; pass weight.detach()"
            )
    n = math.prod(shape)
    if target.is_floating_point():
        rows = target.reshape(n, k)
        if look and shard is None:
            check_rows(rows, regularizer_of(omega).domain)
        elif look and shard is not None:
            shard.check_proportions(rows)
    else:
        rows = target.long().reshape(n)
        if look:
            check_labels(target.long(), n_classes, ignore_index)
    has_labels = rows.ndim == 1 and label_smoothing == 0
    dtype = output_dtype = _product_dtype(input)
    if is_autocast(input) and dtype.itemsize == 2:
        output_dtype = torch.float32
    call = HeadCall(
        omega=omega,
        tightness=as_tightness(tightness),
        engine=choose_engine(engine, input, omega, has_labels=has_labels),
        ignore_index=ignore_index,
        reduction=reduction,
        label_smoothing=float(label_smoothing),
        chunk_size=as_chunk_size(chunk_size) or 0,
        accumulate_dtype=accumulate_dtype,
        dtype=dtype,
        output_dtype=output_dtype,
    )
    layer = Layer(input.reshape(n, input.shape[-1]), linear_weight, linear_bias)
    loss = head_loss(layer, rows, weight, call, shard)
    return loss.reshape(shape) if reduction == "none" else loss


# Compilers would trace the reductions one by one.
_uncompiled_loss = torch.compiler.disable(linear_class_loss)  # type: ignore[no-untyped-call]


def _product_dtype(input: Tensor) -> torch.dtype:  # noqa: A002
    """That of the matrix products; autocast leaves float64 alone."""
    if is_autocast(input) and input.dtype != torch.float64:
        return torch.get_autocast_dtype(input.device.type)
    return input.dtype


def _check(
    input: Tensor,  # noqa: A002
    linear_weight: Tensor,
    linear_bias: Tensor | None,
    target: Tensor,
    accumulate_dtype: torch.dtype | None,
    reduction: str,
    label_smoothing: float,
    validate: bool | None,
    ignore_index: int,
) -> int:
    """Raise for shapes and options that are wrong by themselves; ``ignore_index`` as an integer."""
    check_layer(input, linear_weight, linear_bias)
    check_target(target, input)
    check_options(reduction, label_smoothing, validate)
    check_accumulate_dtype(accumulate_dtype, linear_weight.dtype)
    ignore_index = as_class_index(ignore_index)
    k, shape = linear_weight.shape[0], input.shape[:-1]
    if target.is_floating_point():
        _check_shape(
            target,
            (*shape, k),
            input,
            "proportions",
            "class indices are integers: convert them with .long()",
        )
        check_nothing_ignored(ignore_index)
    else:
        _check_shape(
            target,
            shape,
            input,
            "class indices",
            "proportions are floats: convert them with .float()",
        )
    return ignore_index


def _check_shape(
    target: Tensor, shape: tuple[int, ...], features: Tensor, content: str, other: str
) -> None:
    if target.shape != shape:
        raise ValueError(
            f"target holds {content}, which must have shape {tuple(shape)} to go with input of "
            f"shape {tuple(features.shape)}, got {tuple(target.shape)}; {other}"
        )
