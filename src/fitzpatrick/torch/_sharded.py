"""Losses whose classes are spread over the processes of a ``torch.distributed`` group.

Plain tensors come with a process group, each rank's with its own classes. A ``DTensor`` of scores
knows its group; the loss is a ``DTensor`` then, too.

Each process has the scores of some classes, next to one another and in the order of the ranks. What
a loss needs of whole rows, sums and a maximum, is reduced over the group: a few numbers a row,
never the scores. The formulas are the core's, ``solve_shard`` of a regularizer.

The loss is the same number on every rank, and each rank has the gradient in its own scores. So the
upstream gradient is the same on all ranks, too, and is not summed over them.
"""

# ruff: noqa: A002  # ``input`` is PyTorch's name

import dataclasses
import math
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import torch
import torch.distributed as distributed
from torch import Tensor
from torch.autograd import Function
from torch.distributed import ProcessGroup, ReduceOp
from torch.distributed.tensor import DTensor, Partial, Replicate
from torch.distributed.tensor import Shard as ShardPlacement
from torch.distributed.tensor.placement_types import Placement

from .._array import Array
from ..regularizers._base import Shard
from ..sets._base import membership_tolerance
from . import _reference as reference
from ._arguments import class_dim
from ._autograd import Gradients, apply, computed_loss, no_target_derivative, refuse_derivative
from ._handles import LossCall, regularizer_of
from ._prepare import ClassOptions
from ._sparse_targets import ClassTarget, SparseTargets
from ._targets import PADDING, Scale, Smoothed, Target, parts_of, rows_of_lists, working_dtype

ONE_DERIVATIVE = (
    "with classes in several processes the losses are differentiated once; for second derivatives "
    "gather the scores in one process"
)


def check_group(group: object) -> None:
    if not distributed.is_initialized():
        raise RuntimeError(
            "process_group is given, but torch.distributed is not initialized; call "
            "torch.distributed.init_process_group() first, on every rank"
        )
    if group == distributed.GroupMember.NON_GROUP_MEMBER:
        raise ValueError(
            f"rank {distributed.get_rank()} is not a member of process_group; call the loss on its "
            "members alone, or make the group with this rank among them"
        )
    if not isinstance(group, ProcessGroup):
        raise TypeError(
            "process_group must be a torch.distributed.ProcessGroup, got "
            f"{type(group).__name__}; a device mesh has one, mesh.get_group()"
        )


def all_reduce(numbers: Tensor, operation: str, group: ProcessGroup) -> Tensor:
    """The numbers of all ranks put together, the same on every rank."""
    out = numbers.clone(memory_format=torch.contiguous_format)
    try:
        if out.numel():
            distributed.all_reduce(out, getattr(ReduceOp, operation), group=group)
    except RuntimeError as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise RuntimeError(
            "a collective of process_group failed: another rank exited, raised an error, or did "
            f"not call the loss before the timeout; see its output ({reason})"
        ) from error
    return out


@dataclass(frozen=True, eq=False)
class ClassShard(Shard):
    """The classes of this process.

    Attributes:
        group: the processes that share the classes.
        n_classes: how many all of them have; like ``offset`` a tensor, unless values are looked at.
    """

    group: ProcessGroup
    position: int
    offset: Tensor | int
    n_classes: Tensor | int

    @property
    def n_shards(self) -> int:
        return distributed.get_world_size(self.group)

    def sum(self, numbers: Array) -> Tensor:
        return all_reduce(numbers, "SUM", self.group)

    def max(self, numbers: Array) -> Tensor:
        # what a maximum does with NaN is up to the backend
        numbers = torch.where(torch.isnan(numbers), torch.inf, numbers)
        return all_reduce(numbers, "MAX", self.group)

    def own_part(self, vector: Tensor, size: int) -> Tensor:
        """The entries of a vector over all classes that belong to this process's."""
        return vector[self.offset + torch.arange(size, device=vector.device)]

    def rows(self, smoothed: Smoothed, size: int) -> Tensor:
        """Smoothed labels as the target's entries at these classes, shape (n, size)."""
        base = smoothed.base
        if base.shape[0] > 1:
            base = self.own_part(base, size)
        even = (base * smoothed.share[:, None]).expand(-1, size)
        places = torch.arange(size, device=even.device)
        is_label = places == (smoothed.labels - self.offset)[:, None]
        return even + torch.where(is_label, smoothed.own[:, None], 0.0)

    def rows_of_lists(self, lists: Tensor, size: int, dtype: torch.dtype) -> Tensor:
        """Lists of all classes as rows of these classes, shape (n, size)."""
        classes = lists[:, 0]
        place = classes - self.offset
        is_own = (classes >= 0) & (place >= 0) & (place < size)
        own = torch.stack([place.masked_fill(~is_own, PADDING), lists[:, 1] * is_own], 1)
        is_outside = (classes >= self.n_classes).any(-1, keepdim=True)
        return rows_of_lists(own, size, dtype).masked_fill(is_outside, torch.nan)

    def check_proportions(self, y: Tensor) -> None:
        """Raise on every rank with the first row whose proportions do not add up over all."""
        tolerance = membership_tolerance(y)
        y = y.to(working_dtype(y))
        is_negative = (~(y >= 0)).any(-1)
        own = torch.stack([y.sum(-1), is_negative.to(y.dtype)], dim=-1)
        total, negative = self.sum(own).unbind(-1)
        outside = (negative > 0) | ~((total - 1).abs() <= tolerance)
        if not bool(outside.any()):
            return
        row = int(outside.nonzero()[0])
        reason = (
            "has an entry that is negative or NaN, but proportions are non-negative"
            if negative[row] > 0
            else f"sums to {float(total[row]):.10g} over all ranks, not 1; divide it by its sum"
        )
        raise ValueError(f"target row {row} {reason}")

    def own_weight(self, weight: Tensor, size: int) -> Tensor:
        if weight.requires_grad and torch.is_grad_enabled():
            raise NotImplementedError(
                "with classes in several processes the weight of proportions is not "
                "differentiated; pass weight.detach()"
            )
        return self.own_part(weight, size)

    def compute(
        self, theta: Tensor, target: Target, scale: Scale, call: LossCall, dtype: torch.dtype
    ) -> tuple[Tensor, Tensor]:
        """The scaled losses of the rows, (n,), and their gradients in these scores, in a dtype.

        As of an engine: θ has shape (n, k) with the k classes of this process, labels count all
        classes, and rows of targets have the entries of these classes.
        """
        n, size = theta.shape
        if isinstance(target, Smoothed):
            target = self.rows(target, size)
        elif target.ndim == 3:
            target = self.rows_of_lists(target, size, working_dtype(theta))
        if size:
            return _compute(theta, target, scale, call, dtype, self)
        # a masked class, beyond all, stands for those that this process does not have
        masked = theta.new_full((n, 1), -torch.inf)
        y = target if target.ndim == 1 else target.new_zeros(masked.shape)
        beyond = dataclasses.replace(self, offset=self.n_classes)
        value, _ = _compute(masked, y, scale, call, dtype, beyond)
        return value, theta.new_empty(theta.shape, dtype=dtype)


# What must be the same on all ranks, by its place in what :func:`describe` returns.
_AGREED = {
    1: "the number of rows",
    2: "the dtype of the scores",
    3: "the loss, its options, the class weights or the kind of the target",
    4: "the class indices",
}
_WRONG = [1, 0, 0, 0, 0, 0]


def _checksum(values: Tensor) -> int:
    return zlib.crc32(values.detach().double().cpu().numpy().tobytes())


def _summary(option: object, look: bool) -> str:
    """Text that is the same on all ranks for the same option; of values, where they are looked at.

    An object without a text of its own shows its address, which no other process has.
    """
    if isinstance(option, Tensor):
        values = _checksum(option) if look else 0
        return f"{option.dtype} {tuple(option.shape)} {option.requires_grad} {values}"
    kind = type(option)
    text = "" if kind.__repr__ is object.__repr__ else repr(option)
    return f"{kind.__module__}.{kind.__qualname__} {text}"


def describe(
    shape: tuple[int, ...],
    axis: int,
    dtype: torch.dtype,
    target: Tensor,
    *options: object,
    look: bool,
) -> list[int]:
    """What a process tells the others of right arguments, before anything else travels.

    That none is wrong, what must agree, and, at the end, how many classes it has.
    """
    is_labels = not target.is_floating_point()
    text = "; ".join(_summary(option, look) for option in (*options, is_labels, look))
    checksum = _checksum(target) if is_labels and look else 0
    texts = [zlib.crc32(x.encode()) for x in (str(dtype), text)]
    return [0, math.prod(shape[:axis] + shape[axis + 1 :]), *texts, checksum, shape[axis]]


@contextmanager
def telling_others(group: ProcessGroup, device: torch.device, look: bool) -> Iterator[None]:
    """Tell the other ranks where the arguments of this one are wrong, if values are looked at."""
    try:
        yield
    except (TypeError, ValueError):
        if look:
            meet(group, _WRONG, device, look=True)
        raise


def meet(group: ProcessGroup, own: list[int], device: torch.device, *, look: bool) -> ClassShard:
    """Find this process's place among the classes, from one small reduction over all ranks.

    Where values are looked at, raise on every rank if the arguments of one are wrong, or if they do
    not agree. Elsewhere the answer stays on the device, and the host does not wait for it.
    """
    rank = distributed.get_rank(group)
    table = [[0] * len(own) for _ in range(distributed.get_world_size(group))]
    table[rank] = own
    gathered = all_reduce(torch.tensor(table, device=device), "SUM", group)
    if not look:
        parts = gathered[:, -1]
        # a share of all classes is to have the digits of the scores
        return ClassShard(group, rank, parts[:rank].sum(), parts.sum().double())
    rows = gathered.tolist()
    wrong = [i for i, row in enumerate(rows) if row[0]]
    if wrong and own is not _WRONG:
        raise ValueError(
            f"the arguments of rank {wrong[0]} of process_group are wrong; see its own error"
        )
    for place, what in _AGREED.items():
        found = {row[place]: i for i, row in reversed(list(enumerate(rows)))}
        if len(found) > 1 and not wrong:
            (one, first), (other, second) = sorted(found.items(), key=lambda item: item[1])[:2]
            numbers_found = f" ({one} and {other})" if place == 1 else ""
            raise ValueError(
                f"ranks {first} and {second} of process_group differ in {what}{numbers_found}; all "
                "ranks must pass the same rows and options, each with the scores of its own classes"
            )
    sizes = [row[-1] for row in rows]
    return ClassShard(group, rank, sum(sizes[:rank]), sum(sizes))


@reference.exact
def _compute(
    theta: Tensor,
    target: Tensor,
    scale: Scale,
    call: LossCall,
    dtype: torch.dtype,
    shard: ClassShard,
) -> tuple[Tensor, Tensor]:
    omega: Any = regularizer_of(call.omega)

    def bind(y: Tensor) -> Any:
        solve = omega.solve_shard_labels if y.ndim == 1 else omega.solve_shard
        return SimpleNamespace(
            value_and_gradient=lambda theta: solve(y, theta, call.tightness, shard)
        )

    wide, n_classes = reference.widen(theta), shard.n_classes
    rows = reference.bind_tensors(wide, target, scale, call.ignore_index, n_classes, bind)
    return rows.value_and_gradient(dtype)


def _pull_back(tensors: Any, _: Any, upstream: Tensor, __: Any) -> Gradients:
    """The backward pass, in which no rank talks to another; the gradient is there already."""
    theta, gradient = tensors
    factors = upstream[:, None] if upstream.ndim else upstream
    rows = (gradient * factors).to(theta.dtype)
    if torch.is_grad_enabled():
        rows = refuse_derivative(rows, ONE_DERIVATIVE, theta, upstream)
    return (rows,)


def loss_of_shard(
    theta: Tensor,
    target: Target,
    scale: Scale,
    call: LossCall,
    shard: ClassShard,
    *,
    is_summed: bool,
) -> Tensor:
    """scale · L(y, θ) of each row, shape (n,), or their sum; differentiable once in θ.

    And in a scale that is a tensor, as the core's losses are.
    """
    if torch.is_grad_enabled() and any(part.requires_grad for part in parts_of(target)):
        no_target_derivative()
    learned = None
    if isinstance(scale, Tensor) and scale.requires_grad and torch.is_grad_enabled():
        learned, scale = scale, 1
    # in float16 a gradient that waits for the loss scale would underflow
    dtype = torch.float32 if theta.dtype == torch.float16 else theta.dtype
    rows, gradient = shard.compute(theta.detach(), target, scale, call, dtype)
    if learned is None:
        loss = rows.sum() if is_summed else rows
        return computed_loss(loss, _pull_back, None, theta, gradient)
    rows = computed_loss(rows, _pull_back, None, theta, gradient)
    # ignored rows and masked labels, which a weight of zero is to leave out
    is_left_out = (learned == 0) & ~torch.isfinite(rows)
    weighted = torch.where(is_left_out, 0.0, rows) * learned
    return weighted.sum() if is_summed else weighted


class _SummedDerivative(Function):
    """A number that all ranks have; each of them contributes to its derivative."""

    @staticmethod
    def forward(ctx: Any, number: Tensor, group: ProcessGroup) -> Tensor:
        ctx.group = group
        return number.view_as(number)

    @staticmethod
    def backward(ctx: Any, upstream: Tensor) -> Gradients:
        summed = all_reduce(upstream.detach(), "SUM", ctx.group)
        return refuse_derivative(summed, ONE_DERIVATIVE, upstream), None


def with_summed_derivative(number: Tensor, group: ProcessGroup) -> Tensor:
    return apply(_SummedDerivative, number, group)


def from_dtensors(
    input: DTensor, target: ClassTarget, given: ClassOptions
) -> tuple[Tensor, ClassTarget, ClassOptions, Callable[[Tensor], DTensor]]:
    """The local parts of scores that a device mesh shares, along classes or rows, and of the rest.

    The last result makes a ``DTensor`` of the loss.
    """
    if given.process_group is not None:
        raise ValueError(
            "input is a DTensor, which knows its processes; leave process_group out, or pass "
            "input.to_local()"
        )
    if given.return_stats:
        raise NotImplementedError("return_stats is for plain tensors; pass input.to_local()")
    mesh, placements, axis = input.device_mesh, input.placements, class_dim(input, given.dim)
    class_places = _class_places(input, axis)
    if len(class_places) > 1:
        raise ValueError(
            f"input must be sharded along its classes, Shard({axis}), in one axis of the mesh at "
            f"most, got {placements}; redistribute it, or pass its full_tensor()"
        )
    row_placements = [_row_placement(p, axis, input.ndim) for p in placements]
    if isinstance(target, SparseTargets):
        indices = _local_target(target.indices, row_placements)
        target = target.with_tensors(indices, _local_target(target.values, row_placements))
    elif isinstance(target, Tensor):
        wanted = list(placements) if target.is_floating_point() else row_placements
        target = _local_target(target, wanted)
    else:
        raise TypeError(f"target must be a tensor, got {type(target).__name__}")
    weight = given.weight
    if isinstance(weight, DTensor):
        if not all(p.is_replicate() for p in weight.placements):
            raise ValueError(f"weight must be replicated, got placements {weight.placements}")
        weight = weight.to_local()
    group = mesh.get_group(class_places[0]) if class_places else None
    row_groups = tuple(mesh.get_group(i) for i, p in enumerate(row_placements) if p.is_shard())
    local = given._replace(weight=weight, dim=axis, process_group=group, row_groups=row_groups)
    shape, out = input.shape[:axis] + input.shape[axis + 1 :], row_placements
    if given.reduction != "none":
        shape, out = shape[:0], [Partial("sum") if p.is_shard() else p for p in row_placements]
    return input.to_local(), target, local, lambda loss: _as_dtensor(loss, mesh, out, shape)


def link_of_dtensor(input: DTensor, axis: int, link: Callable[[Tensor], Tensor]) -> Tensor:
    if _class_places(input, axis):
        raise ValueError(
            "a link needs all classes of a row in one process, got the placements "
            f"{input.placements}; redistribute input along its rows, or pass its full_tensor()"
        )
    return _as_dtensor(link(input.to_local()), input.device_mesh, input.placements, input.shape)


def _as_dtensor(x: Tensor, mesh: Any, placements: Any, shape: torch.Size) -> DTensor:
    stride = torch.empty(shape, device="meta").stride()
    return DTensor.from_local(x, mesh, placements, run_check=False, shape=shape, stride=stride)


def _class_places(input: DTensor, axis: int) -> list[int]:
    """The axes of the mesh along which the classes are sharded."""
    placements, ndim = input.placements, input.ndim
    if not all(type(p) in (ShardPlacement, Replicate) for p in placements):
        raise ValueError(
            f"input must be sharded or replicated in each axis of the mesh, got {placements}; "
            "redistribute it, or pass its full_tensor()"
        )
    return [i for i, p in enumerate(placements) if p.is_shard(axis) or p.is_shard(axis - ndim)]


def _row_placement(placement: Placement, axis: int, ndim: int) -> Placement:
    """How a tensor without the axis of the classes lies in the mesh."""
    if not isinstance(placement, ShardPlacement) or placement.dim % ndim == axis:
        return Replicate()
    return ShardPlacement(placement.dim % ndim - int(placement.dim % ndim > axis))


def _local_target(target: Tensor, wanted: list[Placement]) -> Tensor:
    """What this process has of a target: of all classes if it holds class indices."""
    if not isinstance(target, DTensor):
        if not all(p.is_replicate() for p in wanted):
            raise ValueError(
                f"target must be a DTensor with the placements {wanted} to go with input; make it "
                "with distribute_tensor, or DTensor.from_local"
            )
        return target
    pairs = zip(target.placements, wanted, strict=True)
    if not all(have == want or have.is_replicate() for have, want in pairs):
        raise ValueError(
            f"target must have the placements {wanted} to go with input, or be replicated, got "
            f"{list(target.placements)}; redistribute it"
        )
    return target.redistribute(placements=wanted).to_local()
