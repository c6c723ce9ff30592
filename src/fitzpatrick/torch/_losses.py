"""A loss of tensors, for the three kinds of regularizer.

- On a set whose vertices are classes, one loss per row, with the arguments of ``cross_entropy``, or
  of ``linear_cross_entropy`` for the scores of a linear layer.
- Entry by entry if the regularizer is a sum over entries, with the arguments of
  ``binary_cross_entropy_with_logits``.
- Elsewhere, one loss per row.

Each brings its arguments into rows, a target and a scale, which holds weights and reduction, and
leaves the rest to the engines.
"""

# ruff: noqa: A001, A002  # ``input`` is PyTorch's name

import inspect
import math
from collections.abc import Callable
from typing import Any, SupportsIndex

import torch
from torch import Tensor

from .._validation import as_tightness
from ..regularizers import Regularizer
from . import _arguments as arguments
from . import _graphs as graphs
from ._autograd import few_labels, loss_rows, training_entries
from ._engines import choose_engine
from ._handles import LossCall, regularizer_of
from ._head import HeadCall, Layer, head_loss
from ._prepare import ClassOptions, prepare
from ._sparse_targets import ClassTarget
from ._stats import StatsRequest, as_stats
from ._targets import Scale, divisor_of, working_dtype
from ._transform import Scaling, as_scaling


def loss_of_kind(omega: Regularizer) -> Callable[..., Tensor]:
    if omega.domain.has_labels:
        return class_loss
    return entry_loss if omega.is_entrywise else row_loss


def option_defaults(function: Callable[..., Tensor]) -> dict[str, Any]:
    parameters = inspect.signature(function).parameters.values()
    defaults = {p.name: p.default for p in parameters if p.default is not p.empty}
    if function is linear_class_loss:
        defaults = option_defaults(class_loss) | defaults
        del defaults["dim"], defaults["linear_bias"]  # a parameter of the module
    return defaults


def supports_pos_weight(omega: Regularizer) -> bool:
    """True if each target is a probability, which has a positive side to weigh."""
    bounds = omega.domain.coordinates
    return omega.is_entrywise and bounds is not None and bounds.bounds == (0.0, 1.0)


def _deliver(out: Tensor, reduction: str, shape: tuple[int, ...], dtype: torch.dtype) -> Tensor:
    """A loss that is reduced already, or the losses of rows in their shape, in a dtype."""
    if reduction == "none":
        out = out.reshape(shape)
    if reduction == "mean" and math.prod(shape) == 0:
        out = out * math.nan  # the mean of nothing, as PyTorch has it
    return out.to(dtype)


def class_loss(
    omega: str,
    tightness: float,
    input: Tensor,
    target: ClassTarget,
    weight: Tensor | None = None,
    ignore_index: int = -100,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
    *,
    dim: int | None = None,
    engine: str | None = None,
    validate: bool | None = None,
    process_group: Any = None,
    temperature: float = 1.0,
    logit_scale: float | Tensor = 1.0,
    softcap: float | None = None,
    return_stats: bool = False,
) -> Tensor:
    """A loss on the simplex, for class indices, proportions or lists of classes."""
    # asked first, in few words, since small batches pay for each of them
    is_number = type(logit_scale) is float and logit_scale == 1.0
    transform = None
    if not (is_number and softcap is None and temperature == 1.0):
        arguments.check_scores(input)
        transform = as_scaling(temperature, logit_scale, softcap)
        has_kernel = (input.is_cuda or engine == "triton") and not arguments.is_dtensor(input)
        if transform is not None and not has_kernel and process_group is None:
            input, transform = transform.apply(input), None
    is_usual = weight is None and dim is None and engine is None and process_group is None
    is_hard = type(label_smoothing) is float and label_smoothing == 0 and not return_stats
    is_hard = is_hard and transform is None
    if is_usual and is_hard and (validate is None or type(validate) is bool):
        loss = few_labels(input, target, omega, tightness, ignore_index, reduction)
        if loss is not None:
            return loss
    options = ClassOptions(
        weight=weight,
        ignore_index=ignore_index,
        reduction=reduction,
        label_smoothing=label_smoothing,
        engine=engine,
        validate=validate,
        process_group=process_group,
        return_stats=return_stats,
        dim=dim,
        transform=transform,
    )
    is_shared = process_group is not None or arguments.is_dtensor(input)
    compute: Any = _shared_class_loss if is_shared else _class_loss
    out: Tensor = compute(omega, tightness, input, target, options)
    return out


def _class_loss(
    omega: str, tightness: float, input: Tensor, target: ClassTarget, options: ClassOptions
) -> Any:
    arguments.check_scores(input)  # without which there is no device
    rows = prepare(omega, tightness, input, target, options)
    axis, is_summed = rows.axis, options.reduction != "none"
    shard = rows.weighing.shard
    is_rows = rows.target.ndim > 1 or shard is not None
    theta = arguments.rows_along(input, axis) if is_rows else arguments.columns_along(input, axis)
    y, scale, nan_of_no_rows = rows.weighing.weigh_all(rows.target, working_dtype(theta))
    stats = StatsRequest(rows.target) if options.return_stats else None
    if shard is None:
        out = loss_rows(
            theta, y, scale, rows.call, is_summed=is_summed, is_eager=rows.is_eager, stats=stats,
            transform=options.transform,
        )  # fmt: skip
    else:
        from ._sharded import loss_of_shard

        out = loss_of_shard(theta, y, scale, rows.call, shard, is_summed=is_summed)
    out = out if is_summed else out.reshape(rows.shape)
    out = out if nan_of_no_rows is None else out + nan_of_no_rows
    out = out.to(arguments.output_dtype(input))
    return out if stats is None else (out, as_stats(stats.answer, rows.shape))


# Compilers would trace the reductions one by one.
@graphs.untraced
def _shared_class_loss(
    omega: str, tightness: float, input: Any, target: ClassTarget, options: ClassOptions
) -> Any:
    from ._sharded import check_group, from_dtensors  # which need torch.distributed

    if arguments.is_transformed():
        raise NotImplementedError(
            "with classes in several processes the losses are differentiated by backward() and "
            "torch.autograd.grad, not by torch.func or in forward mode; there, gather the scores "
            "in one process"
        )
    if not arguments.is_dtensor(input):
        check_group(options.process_group)
        if options.transform is not None:
            shared = options.transform.with_shared_derivative(options.process_group, input.device)
            input = shared.apply(input)
        return _class_loss(omega, tightness, input, target, options)
    scores, target, options, as_dtensor = from_dtensors(input, target, options)
    return as_dtensor(_class_loss(omega, tightness, scores, target, options))


def linear_class_loss(
    omega: str,
    tightness: float,
    input: Tensor,
    linear_weight: Tensor,
    target: ClassTarget,
    *,
    linear_bias: Tensor | None = None,
    chunk_size: SupportsIndex | None = None,
    accumulate_dtype: torch.dtype | None = None,
    temperature: float = 1.0,
    logit_scale: float | Tensor = 1.0,
    softcap: float | None = None,
    **options: Any,
) -> Tensor:
    """A loss on the simplex of the scores that a linear layer would compute.

    The other options are :class:`ClassOptions`.
    """
    arguments.check_features(input)
    given = ClassOptions(
        **options,
        transform=as_scaling(temperature, logit_scale, softcap),
        chunk_size=chunk_size,
        accumulate_dtype=accumulate_dtype,
    )
    compute: Any = _linear_class_loss if given.process_group is None else _shared_linear_loss
    layer = Layer(input, linear_weight, linear_bias)
    loss: Tensor = compute(omega, tightness, layer, target, given)
    return loss


def _linear_class_loss(
    omega: str, tightness: float, layer: Layer, target: ClassTarget, options: ClassOptions
) -> Any:
    input, weight, transform = layer.x, options.weight, options.transform
    is_whole = options.process_group is None
    if not is_whole:
        from ._sharded import check_group

        check_group(options.process_group)
    rows = prepare(omega, tightness, layer, target, options)
    if weight is not None and weight.requires_grad:
        raise ValueError(
            "a linear loss is differentiated in input, linear_weight and linear_bias, not in "
            "weight; pass weight.detach()"
        )
    if transform is not None:
        transform = transform.with_shared_derivative(options.process_group, input.device)
    layer, cap = layer.scaled_by(transform, is_whole=is_whole)
    options = options._replace(label_smoothing=rows.weighing.label_smoothing)
    call = _head_call(rows.call, input, options, cap)
    eager = rows.is_eager and arguments.is_eager(*layer[1:])
    flat = layer.flat()
    stats = None
    if options.return_stats:
        stats = flat.x.new_zeros((len(flat.x), 4), dtype=working_dtype(flat.x))
    shard = rows.weighing.shard
    loss = head_loss(flat, [rows.target], weight, call, shard, is_eager=eager, stats=stats)
    loss = loss.reshape(rows.shape) if options.reduction == "none" else loss
    return loss if stats is None else (loss, as_stats(stats, rows.shape))


def _head_call(call: LossCall, input: Tensor, options: ClassOptions, *caps: float) -> HeadCall:
    dtype = arguments.product_dtype(input)
    dtypes = options.accumulate_dtype, dtype, arguments.output_dtype(input, dtype)
    size = arguments.as_chunk_size(options.chunk_size) or 0
    return HeadCall(*call, options.reduction, options.label_smoothing, size, *dtypes, *caps)


# Compilers would trace the reductions one by one.
_shared_linear_loss = graphs.untraced(_linear_class_loss)


def distill(
    omega: str,
    tightness: float,
    student: Layer,
    teacher: Layer,
    of_student: Scaling | None,
    of_teacher: Scaling | None,
    **options: Any,
) -> Tensor:
    for layer in (student, teacher):
        arguments.check_features(layer.x)
        arguments.check_layer(*layer[:3])
    if not regularizer_of(omega).domain.has_labels:
        raise ValueError(
            f"distillation is for losses on the simplex, not for those of {regularizer_of(omega)!r}"
        )
    if student.shape != teacher.shape or student.x.device != teacher.x.device:
        raise ValueError(
            "student and teacher must have the same rows and classes on one device, got scores of "
            f"shape {student.shape} on {student.x.device} and {teacher.shape} on {teacher.x.device}"
        )
    given = ClassOptions(**options)
    arguments.check_options(given.reduction)
    arguments.check_accumulate_dtype(given.accumulate_dtype, student.weight.dtype)
    engine = choose_engine(given.engine, student.x, omega, has_labels=False)
    call = LossCall(omega, as_tightness(tightness), engine)
    eager = arguments.is_eager(*student, *teacher)
    scaled, cap = student.scaled_by(of_student)
    scaled_teacher, teacher_cap = teacher.scaled_by(of_teacher)
    rows = [x.detach() for x in scaled_teacher.flat() if x is not None]
    head = _head_call(call, student.x, given, cap, teacher_cap)
    loss = head_loss(scaled.flat(), rows, None, head, is_eager=eager)
    return loss.reshape(student.x.shape[:-1]) if given.reduction == "none" else loss


def _prepare_rows(
    omega: str,
    tightness: float,
    input: Tensor,
    target: Tensor,
    *weights: Tensor | None,
    axis: int,
    reduction: str,
    engine: str | None,
    validate: bool | None,
) -> tuple[LossCall, bool]:
    """Check a loss whose target has the shape of the scores; True if all tensors are ordinary."""
    arguments.check_target(target, input)
    arguments.check_options(reduction, validate=validate)
    arguments.check_same_shape(target, input.shape)
    eager = arguments.is_eager(input, target, *weights)
    engine = choose_engine(engine, input, omega, has_labels=False)
    call = LossCall(omega, as_tightness(tightness), engine)
    if arguments.looks_at_values(validate, input, eager):
        vectors = target if target.ndim else target[None]
        arguments.check_rows(vectors, regularizer_of(omega).domain, axis)
    return call, eager


def entry_loss(
    omega: str,
    tightness: float,
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    reduction: str = "mean",
    pos_weight: Tensor | None = None,
    *,
    engine: str | None = None,
    validate: bool | None = None,
) -> Tensor:
    """A loss that is a sum over entries, each with a target of its own."""
    arguments.check_scores(input)
    weight = None if weight is None else _spread(weight, input, "weight")
    pos_weight = None if pos_weight is None else _spread(pos_weight, input, "pos_weight")
    call, eager = _prepare_rows(
        omega, tightness, input, target, weight, pos_weight,
        axis=-1, reduction=reduction, engine=engine, validate=validate,
    )  # fmt: skip
    if pos_weight is not None and not supports_pos_weight(regularizer_of(omega)):
        raise TypeError(
            "pos_weight is for targets between 0 and 1, this loss has the domain "
            f"{regularizer_of(omega).domain!r}; use weight"
        )

    def by_rows(theta: Tensor) -> Tensor:
        rows = _entry_rows(theta, target, weight, pos_weight, divisor_of(theta.numel(), reduction))
        is_plain_call = eager and arguments.is_eager(theta)
        out = loss_rows(*rows, call, is_summed=reduction != "none", is_eager=is_plain_call)
        return _deliver(out, reduction, input.shape, arguments.output_dtype(input))

    if call.engine == "triton" and input.numel():
        loss = training_entries(input, target, weight, pos_weight, call, reduction, by_rows)
        if loss is not None:
            return loss.to(arguments.output_dtype(input))
    return by_rows(input)


def _entry_rows(
    theta: Tensor, target: Tensor, weight: Tensor | None, pos_weight: Tensor | None, divisor: int
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


def _spread(weight: Tensor, input: Tensor, name: str) -> Tensor:
    arguments.check_weight(weight, input, name)
    return arguments.expand_to(weight, input.shape, name)


def row_loss(
    omega: str,
    tightness: float,
    input: Tensor,
    target: Tensor,
    reduction: str = "mean",
    *,
    dim: int = -1,
    engine: str | None = None,
    validate: bool | None = None,
) -> Tensor:
    """A loss of vectors along ``dim``, for any set."""
    arguments.check_scores(input)
    axis = arguments.class_dim(input, dim)
    if input.shape[axis] == 0:
        raise ValueError(f"vectors must have at least one entry, got shape {tuple(input.shape)}")
    call, eager = _prepare_rows(
        omega, tightness, input, target,
        axis=axis, reduction=reduction, engine=engine, validate=validate,
    )  # fmt: skip
    theta = arguments.rows_along(input, axis)
    y = arguments.rows_along(target.to(working_dtype(input)), axis)
    divisor, is_summed = divisor_of(theta.shape[0], reduction), reduction != "none"
    out = loss_rows(theta, y, divisor, call, is_summed=is_summed, is_eager=eager)
    shape = input.shape[:axis] + input.shape[axis + 1 :]
    return _deliver(out, reduction, shape, arguments.output_dtype(input))
