"""The losses on the simplex for classes in several processes: arguments, checks, and ``DTensor``.

Plain tensors come with a process group, each rank's with its own classes. A ``DTensor`` of scores
knows its group; the loss is a ``DTensor`` then, too.
"""

# ruff: noqa: A002  # ``input`` is PyTorch's name

from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.distributed import ProcessGroup
from torch.distributed.tensor import DTensor, Partial, Replicate, Shard
from torch.distributed.tensor.placement_types import Placement

from .._validation import as_tightness
from ..engines.triton.scale import Scale, working_dtype
from ..engines.triton.targets import Target
from ._arguments import (
    as_class_index,
    check_class_weight,
    check_labels,
    check_scores,
    check_weight_vector,
    class_dim,
    is_transformed,
    looks_at_values,
    output_dtype,
    rows_along,
)
from ._autograd import LossCall
from ._handles import regularizer_of
from ._losses import check_arguments, check_class_target, deliver, without_axis
from ._sharded import (
    ClassShard,
    check_group,
    check_no_kernels,
    describe,
    loss_of_shard,
    meet,
    telling_others,
)
from ._targets import divisor_of, weigh_labels


class _Options(NamedTuple):
    """The arguments of a loss beyond scores and target."""

    weight: Tensor | None
    ignore_index: int
    reduction: str
    label_smoothing: float
    dim: int | None
    engine: str | None
    validate: bool | None


@torch.compiler.disable  # type: ignore[untyped-decorator]  # PyTorch's is not annotated
def sharded_class_loss(
    omega: str,
    tightness: float,
    input: Tensor,
    target: Tensor,
    process_group: ProcessGroup | None,
    *options: Any,
) -> Tensor:
    """A loss on the simplex whose classes are in several processes."""
    if is_transformed():
        raise NotImplementedError(
            "with classes in several processes the losses are differentiated by backward() and "
            "torch.autograd.grad, not by torch.func or in forward mode; there, gather the scores "
            "in one process"
        )
    given = _Options(*options)
    if isinstance(input, DTensor):
        if process_group is not None:
            raise ValueError(
                "input is a DTensor, which knows its processes; leave process_group out, or pass "
                "input.to_local()"
            )
        return _dtensor_loss(omega, tightness, input, target, given)
    assert process_group is not None
    check_group(process_group)
    return _plain_loss(omega, tightness, input, target, given, process_group)


def _plain_loss(
    omega: str,
    tightness: float,
    input: Tensor,
    target: Tensor,
    given: _Options,
    group: ProcessGroup,
) -> Tensor:
    check_scores(input)  # without which there is no device to tell the others from
    look = looks_at_values(given.validate, input)
    with telling_others(group, input.device, look):
        check_arguments(input, target, given.reduction, given.label_smoothing, given.validate)
        check_no_kernels(given.engine)
        ignore_index = as_class_index(given.ignore_index)
        axis = class_dim(input, given.dim)
        check_class_target(input, target, axis, ignore_index)
        call = LossCall(omega, as_tightness(tightness), "reference", ignore_index)
        if given.weight is not None:
            check_weight_vector(given.weight, input)
    theta = rows_along(input, axis)
    options = regularizer_of(omega), *call[1:], given.reduction, float(given.label_smoothing)
    own = describe(theta.shape, theta.dtype, target, *options, given.weight, look=look)
    shard = meet(group, own, input.device, look=look)
    y, scale, nan_of_no_rows = _prepare(theta, target, axis, call, given, shard, look)
    is_summed = given.reduction != "none"
    out = loss_of_shard(theta, y, scale, call, shard, is_summed=is_summed)
    shape = without_axis(input.shape, axis)
    out = deliver(out, given.reduction, shape, output_dtype(input))
    return out if nan_of_no_rows is None else out + nan_of_no_rows.to(out.dtype)


def _prepare(
    theta: Tensor,
    target: Tensor,
    axis: int,
    call: LossCall,
    given: _Options,
    shard: ClassShard,
    look: bool,
) -> tuple[Target, Scale, Tensor | None]:
    """The target, what multiplies the rows, and what is added to the loss."""
    weight, dtype = given.weight, working_dtype(theta)
    if isinstance(shard.n_classes, int):
        if shard.n_classes == 0:
            raise ValueError("input must have at least one class on some rank, got none")
        if weight is not None:
            negative_is_wrong = look and given.label_smoothing > 0
            check_class_weight(weight, theta, shard.n_classes, negative_is_wrong)
    if target.is_floating_point():
        y = rows_along(target, axis)
        if look:
            shard.check_proportions(y)
        divisor = divisor_of(theta.shape[0], given.reduction)
        smoothing = given.label_smoothing
        return *shard.weigh_proportions(y, weight, smoothing, divisor, dtype), None
    labels = target.long()
    if look:
        check_labels(labels, int(shard.n_classes), call.ignore_index)
    labels = labels.reshape(labels.numel())
    if weight is None and given.label_smoothing == 0:
        return labels, None if given.reduction == "mean" else 1, None
    return weigh_labels(
        labels,
        shard.n_classes,
        weight,
        call.ignore_index,
        given.reduction,
        given.label_smoothing,
        dtype,
    )


def _dtensor_loss(
    omega: str, tightness: float, input: DTensor, target: Tensor, given: _Options
) -> Tensor:
    """The loss of scores that a device mesh shares along the classes, as a ``DTensor``."""
    axis = class_dim(input, given.dim)
    mesh, placements = input.device_mesh, input.placements
    place = _class_place(placements, axis, input.ndim)
    other_shards = [i for i, p in enumerate(placements) if i != place and p.is_shard()]
    if other_shards and given.reduction == "mean":
        raise ValueError(
            "reduction='mean' needs all rows in the processes that share the classes, but input is "
            f"also sharded along rows, {placements}; use 'sum' and divide by the number of rows"
        )
    row_placements = [_row_placement(p, axis) for p in placements]
    if not isinstance(target, Tensor):
        raise TypeError(f"target must be a tensor, got {type(target).__name__}")
    is_proportions = target.is_floating_point()
    target = _local_target(target, input, is_proportions, row_placements)
    weight = given.weight
    if isinstance(weight, DTensor):
        if not all(p.is_replicate() for p in weight.placements):
            raise ValueError(f"weight must be replicated, got placements {weight.placements}")
        weight = weight.to_local()
    local = given._replace(weight=weight, dim=axis)
    group = mesh.get_group(place)
    loss = _plain_loss(omega, tightness, input.to_local(), target, local, group)
    if given.reduction != "none":
        row_placements = [Partial("sum") if p.is_shard() else p for p in row_placements]
    return DTensor.from_local(loss, mesh, row_placements, run_check=False)


def _class_place(placements: tuple[Placement, ...], axis: int, ndim: int) -> int:
    """The axis of the mesh along which the classes are sharded."""
    places = [i for i, p in enumerate(placements) if p.is_shard(axis) or p.is_shard(axis - ndim)]
    is_known = all(type(p) in (Shard, Replicate) for p in placements)
    if len(places) != 1 or not is_known:
        raise ValueError(
            f"input must be sharded along its classes, Shard({axis}), in exactly one axis of the "
            f"mesh, and sharded along rows or replicated in the others, got {placements}; "
            f"redistribute it, or pass its full_tensor()"
        )
    return places[0]


def _row_placement(placement: Placement, axis: int) -> Placement:
    """How a tensor without the axis of the classes lies in the mesh."""
    if not isinstance(placement, Shard) or placement.dim == axis:
        return Replicate()
    return Shard(placement.dim - int(placement.dim > axis))


def _local_target(
    target: Tensor, input: DTensor, is_proportions: bool, row_placements: list[Placement]
) -> Tensor:
    """What this process has of a target: of all classes where it holds class indices."""
    wanted = list(input.placements) if is_proportions else row_placements
    if isinstance(target, DTensor):
        if list(target.placements) != wanted:
            raise ValueError(
                f"target must have the placements {wanted} to go with input, got "
                f"{list(target.placements)}; redistribute it"
            )
        return target.to_local()
    is_whole = all(p.is_replicate() for p in wanted)
    if not is_whole:
        raise ValueError(
            f"target must be a DTensor with the placements {wanted} to go with input; make it with "
            "distribute_tensor, or DTensor.from_local"
        )
    return target
