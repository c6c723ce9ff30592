"""One preparation of class losses: plain ones, those of a linear layer, and with shared classes.

Arguments are checked once, here, and become rows: labels (n,), proportions (n, k) or lists
(n, 2, m), how they are weighed, and what the engine is told. With classes in several processes the
ranks also agree on their arguments here, before anything else travels.
"""

from typing import TYPE_CHECKING, NamedTuple, SupportsIndex

import torch
from torch import Tensor

from .._validation import as_tightness
from . import _arguments as arguments
from ._engines import check_engine, choose_engine, entmax_alpha
from ._handles import LossCall, regularizer_of
from ._head import Layer
from ._sparse_targets import (
    ClassTarget,
    SparseTargets,
    check_lists,
    check_sparse_target,
    tensors_of,
)
from ._targets import Weighing, working_dtype
from ._transform import Scaling

if TYPE_CHECKING:  # PyTorch may come without it
    from torch.distributed import ProcessGroup


class ClassOptions(NamedTuple):
    """The options of class losses; a plain loss has an axis, and a head the last ones."""

    weight: Tensor | None = None
    ignore_index: SupportsIndex = -100
    reduction: str = "mean"
    label_smoothing: float = 0.0
    engine: str | None = None
    validate: bool | None = None
    process_group: "ProcessGroup | None" = None
    return_stats: bool = False
    dim: SupportsIndex | None = None
    row_groups: tuple["ProcessGroup", ...] = ()  # of a DTensor, with other rows
    transform: Scaling | None = None  # of scores that are not transformed yet
    chunk_size: SupportsIndex | None = None
    accumulate_dtype: torch.dtype | None = None


class ClassRows(NamedTuple):
    """A class loss that is ready to be computed.

    The target is labels (n,), proportions (n, k) or lists (n, 2, m); k counts the classes of this
    process, while lists and labels number the classes of all. ``axis`` has the classes in the
    scores, and losses without a reduction have ``shape``. All tensors are ordinary if ``is_eager``.
    """

    call: LossCall
    target: Tensor
    weighing: Weighing
    axis: int
    shape: tuple[int, ...]
    is_eager: bool


def prepare(
    omega: str, tightness: float, scores: Tensor | Layer, target: ClassTarget, options: ClassOptions
) -> ClassRows:
    """Check the arguments of a class loss, of scores or of the layer that would compute them.

    The ranks that share a layer agree on more, and look at that even on a GPU.
    """
    weight, group = options.weight, options.process_group
    is_layer = isinstance(scores, Layer)
    x = scores.x if isinstance(scores, Layer) else scores
    if isinstance(target, Tensor) and target.layout is not torch.strided:
        target = SparseTargets.from_sparse(target)
    parts = x, *tensors_of(target), weight
    eager = arguments.is_eager(*[part for part in parts if isinstance(part, Tensor)])
    look = arguments.looks_at_values(options.validate, x, eager)

    def check() -> tuple[tuple[int, ...], int, LossCall, float]:
        if isinstance(scores, Layer):
            arguments.check_layer(*scores[:3])
            arguments.check_accumulate_dtype(options.accumulate_dtype, scores.weight.dtype)
        shape = tuple(scores.shape)
        axis = len(shape) - 1 if is_layer else arguments.class_dim(x, options.dim)
        smoothing = arguments.check_options(
            options.reduction, options.label_smoothing, options.validate
        )
        ignore_index = arguments.as_integer(
            options.ignore_index, "ignore_index must be a class index"
        )
        if isinstance(target, SparseTargets):
            check_sparse_target(target, x, shape, axis)
            _check_rest(target, omega, options, smoothing)
        else:
            arguments.check_target(target, x)
            arguments.check_class_target(target, shape, axis, ignore_index)
        if weight is not None:
            arguments.check_weight(weight, x)
        engine = options.engine
        if group is None:
            has_labels = isinstance(target, Tensor) and not target.is_floating_point()
            has_labels = has_labels and smoothing == 0
            engine = choose_engine(engine, x, omega, has_labels=has_labels)
        else:
            _check_shared(options)
            engine = "reference"
        call = LossCall(omega, as_tightness(tightness), engine, ignore_index)
        return shape, axis, call, smoothing

    shard = None
    if group is None:
        shape, axis, call, smoothing = check()
        n_classes: Tensor | int = shape[axis]
    else:
        from ._sharded import describe, meet, telling_others

        looks_at_sizes = look or is_layer
        with telling_others(group, x.device, looks_at_sizes):
            shape, axis, call, smoothing = check()
        agreed: list[object] = [regularizer_of(omega), *call[1:], options.reduction, smoothing]
        agreed += [weight, isinstance(target, SparseTargets), *(options.transform or ())]
        if is_layer:
            agreed += [arguments.as_chunk_size(options.chunk_size), arguments.product_dtype(x)]
            agreed += [x.requires_grad and torch.is_grad_enabled()]
        own = describe(shape, axis, x.dtype, tensors_of(target)[0], *agreed, look=look)
        shard = meet(group, own, x.device, look=looks_at_sizes)
        n_classes = shard.n_classes
    # how many classes all processes have together is known only where values are looked at
    most = None if isinstance(n_classes, Tensor) else n_classes
    if most == 0:
        raise ValueError(
            f"input must have at least one class, got shape {tuple(shape)}"
            + ("" if shard is None else " on every rank")
        )
    if weight is not None:
        arguments.check_class_weight(weight, most, look and smoothing > 0)
    if isinstance(target, SparseTargets):
        if look:
            check_lists(target, int(n_classes))
        by_kernel = eager and call.engine == "triton"
        rows = target.lists(most, working_dtype(x), by_kernel=by_kernel)
    elif target.is_floating_point():
        rows = arguments.rows_along(target, axis)
        if look and shard is None:
            arguments.check_rows(target, regularizer_of(omega).domain, axis)
        elif look and shard is not None:
            shard.check_proportions(rows)
    else:
        rows = target if target.dtype == torch.int64 else target.long()
        if look:
            arguments.check_labels(rows, int(n_classes), call.ignore_index)
        rows = rows if rows.ndim == 1 else rows.reshape(rows.numel())
    weighing = Weighing(
        weight, n_classes, call.ignore_index, options.reduction, smoothing, shard,
        options.row_groups,
    )  # fmt: skip
    return ClassRows(call, rows, weighing, axis, shape[:axis] + shape[axis + 1 :], eager)


def _check_rest(target: SparseTargets, omega: str, options: ClassOptions, smoothing: float) -> None:
    """Raise if there is a bucket together with an option that needs to know its classes."""
    if target.rest != "bucket":
        return
    reason = ""
    if entmax_alpha(omega) != 1:
        reason = "is for the logistic losses, whose entries without a target are one sum"
    elif options.weight is not None:
        reason = "does not say which classes the rest has, so that they have no weight"
    elif smoothing > 0:
        reason = "leaves no class without a target, so that label_smoothing means nothing"
    elif options.process_group is not None:
        reason = "needs all classes in one process"
    if reason:
        raise ValueError(f"rest='bucket' {reason}; use rest='renormalize'")


def _check_shared(options: ClassOptions) -> None:
    check_engine(options.engine)
    if options.engine == "triton":
        raise ValueError(
            'engine="triton" needs all classes in one process; with classes in several use '
            'engine="reference", or None'
        )
    if options.return_stats:
        raise NotImplementedError(
            "return_stats needs all classes in one process; leave it out, or gather the scores"
        )
