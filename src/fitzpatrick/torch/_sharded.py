"""Losses whose classes are spread over the processes of a ``torch.distributed`` group.

Each process has the scores of some classes, next to one another and in the order of the ranks. What
a loss needs of whole rows, sums and a maximum, is reduced over the group: a few numbers a row,
never the scores. The formulas are the core's, ``solve_shard`` of a regularizer.

The loss is the same number on every rank, and a rank's gradient is that in its own scores. So the
gradient of the loss that comes in is the same on all ranks, too, and is not summed over them.
"""

import dataclasses
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NoReturn

import torch
import torch.distributed as distributed
from torch import Tensor
from torch.autograd import Function
from torch.distributed import ProcessGroup, ReduceOp

from .._array import Array
from ..engines import BoundLoss, HessianOperator
from ..engines._bound import Out
from ..engines.triton.scale import Scale, working_dtype
from ..engines.triton.targets import Smoothed, Target
from ..losses import Loss
from ..regularizers._base import Shard
from ..sets._base import membership_tolerance
from . import _reference as reference
from ._autograd import LossCall, apply, no_target_derivative, once_differentiated
from ._engine import check_engine
from ._handles import loss_of

ONE_DERIVATIVE = (
    "with classes in several processes the losses are differentiated once; for second derivatives "
    "gather the scores in one process"
)


def check_group(group: object) -> None:
    """Raise unless this process belongs to a group that can be used."""
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


def check_no_kernels(engine: str | None) -> None:
    """Raise where an engine is asked for that takes whole rows."""
    check_engine(engine)
    if engine == "triton":
        raise ValueError(
            'engine="triton" needs all classes in one process; with classes in several use '
            'engine="reference", or None'
        )


def _all_reduce_(numbers: Tensor, operation: Any, group: ProcessGroup) -> None:
    """Put the numbers of all ranks together, in place."""
    try:
        distributed.all_reduce(numbers, operation, group=group)
    except RuntimeError as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise RuntimeError(
            "the processes of process_group lost one another: one of them has ended, raised an "
            "error, or did not call the loss within the group's timeout; see their output "
            f"({reason})"
        ) from error


@dataclass(frozen=True, eq=False)
class ClassShard(Shard):
    """The classes of this process.

    Attributes:
        group: the processes that share the classes.
        n_classes: how many all of them have; a tensor, as ``offset``, where nobody has looked.
    """

    group: ProcessGroup
    position: int
    offset: Tensor | int
    n_classes: Tensor | int

    @property
    def n_shards(self) -> int:
        """How many processes share the classes."""
        return distributed.get_world_size(self.group)

    def sum(self, numbers: Array) -> Tensor:
        return self.reduce(numbers, ReduceOp.SUM)

    def max(self, numbers: Array) -> Tensor:
        # what a maximum does with NaN is up to the backend
        return self.reduce(torch.where(torch.isnan(numbers), torch.inf, numbers), ReduceOp.MAX)

    def reduce(self, numbers: Tensor, operation: Any) -> Tensor:
        """All of the group's numbers put together, the same on every rank."""
        out = numbers.clone(memory_format=torch.contiguous_format)
        if out.numel():
            _all_reduce_(out, operation, self.group)
        return out

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

    def weigh_proportions(
        self,
        y: Tensor,
        weight: Tensor | None,
        label_smoothing: float,
        divisor: int,
        dtype: torch.dtype,
    ) -> tuple[Tensor, Scale]:
        """Smoothed proportions of these classes; a row weighs ⟨weight, y⟩ over all classes."""
        if label_smoothing > 0:
            y = y.to(dtype) * (1 - label_smoothing) + label_smoothing / self.n_classes
        if weight is None:
            return y, divisor
        if weight.requires_grad and torch.is_grad_enabled():
            raise NotImplementedError(
                "with classes in several processes the weight of proportions is not "
                "differentiated; pass weight.detach()"
            )
        own = (y.to(dtype) * self.own_part(weight.to(dtype), y.shape[1])).sum(-1, keepdim=True)
        return y, self.sum(own)[:, 0] / divisor

    def value_and_gradient(
        self, theta: Tensor, target: Target, scale: Scale, call: LossCall, dtype: torch.dtype
    ) -> tuple[Tensor, Tensor]:
        """The scaled losses of the rows, (n,), and their gradients in these scores, in a dtype.

        As an engine's: θ has shape (n, k) with the k classes of this process, labels count all
        classes, and rows of targets have the entries of these classes.
        """
        size = theta.shape[1]
        if isinstance(target, Smoothed):
            target = self.rows(target, size)
        if size == 0:
            return self._without_classes(theta, target, scale, call, dtype)
        return _value_and_gradient(theta, target, scale, call, dtype, self)

    def _without_classes(
        self, theta: Tensor, target: Tensor, scale: Scale, call: LossCall, dtype: torch.dtype
    ) -> tuple[Tensor, Tensor]:
        """The same where this process has no classes: a masked one, beyond all, stands for them."""
        masked = theta.new_full((theta.shape[0], 1), -torch.inf)
        y = target if target.ndim == 1 else target.new_zeros(masked.shape)
        beyond = dataclasses.replace(self, offset=self.n_classes)
        value, _ = _value_and_gradient(masked, y, scale, call, dtype, beyond)
        return value, theta.new_empty(theta.shape, dtype=dtype)


@dataclass(frozen=True)
class Description:
    """What a process tells the others of its arguments, before anything else travels.

    Attributes:
        n_rows: how many rows it has.
        n_classes: how many classes it has.
        dtype: of the scores.
        options: all else that must agree, as text.
        checksum: of the class indices; 0 for proportions.
        is_wrong: whether its own arguments are wrong.
    """

    n_rows: int = 0
    n_classes: int = 0
    dtype: torch.dtype | None = None
    options: str = ""
    checksum: int = 0
    is_wrong: bool = False

    def numbers(self) -> list[int]:
        """All of it, in the order of :data:`_AGREED`, and the number of classes at the end."""
        texts = [zlib.crc32(text.encode()) for text in (str(self.dtype), self.options)]
        return [int(self.is_wrong), self.n_rows, *texts, self.checksum, self.n_classes]


# What must be the same on all ranks, in the order of Description.numbers.
_AGREED = {
    1: "the number of rows",
    2: "the dtype of the scores",
    3: "the loss, its options, the class weights or the kind of the target",
    4: "the class indices",
}


def _checksum(labels: Tensor) -> int:
    """A number that other labels, or another order of them, are unlikely to have."""
    places = torch.arange(1, labels.numel() + 1, device=labels.device)
    return int((labels.reshape(-1).long() * (places * 2654435761 % 4294967291)).sum())


def _summary(option: object, look: bool) -> str:
    """Text that is the same on all ranks for the same option; of values, where they are looked at.

    An object without a text of its own shows its address, which no other process has.
    """
    if isinstance(option, Tensor):
        values = zlib.crc32(option.detach().double().cpu().numpy().tobytes()) if look else 0
        return f"{option.dtype} {tuple(option.shape)} {option.requires_grad} {values}"
    kind = type(option)
    text = "" if kind.__repr__ is object.__repr__ else repr(option)
    return f"{kind.__module__}.{kind.__qualname__} {text}"


def describe(
    shape: tuple[int, ...], dtype: torch.dtype, target: Tensor, *options: object, look: bool
) -> Description:
    """The description of scores (n, k), a target and options that nothing is wrong with."""
    is_labels = not target.is_floating_point()
    return Description(
        n_rows=shape[0],
        n_classes=shape[1],
        dtype=dtype,
        options="; ".join(_summary(option, look) for option in (*options, is_labels, look)),
        checksum=_checksum(target) if is_labels and look else 0,
    )


@contextmanager
def telling_others(group: ProcessGroup, device: torch.device, look: bool) -> Iterator[None]:
    """Tell the other ranks where the arguments of this one are wrong, if values are looked at."""
    try:
        yield
    except (TypeError, ValueError):
        if look:
            meet(group, Description(is_wrong=True), device, look=True)
        raise


def meet(group: ProcessGroup, own: Description, device: torch.device, *, look: bool) -> ClassShard:
    """Find this process's place among the classes, from one small reduction over all ranks.

    Where values are looked at, raise on every rank if the arguments of one are wrong, or if they do
    not agree. Elsewhere the answer stays on the device, and nobody waits for it.
    """
    rank = distributed.get_rank(group)
    numbers = own.numbers()
    table = [[0] * len(numbers) for _ in range(distributed.get_world_size(group))]
    table[rank] = numbers
    gathered = torch.tensor(table, dtype=torch.int64, device=device)
    _all_reduce_(gathered, ReduceOp.SUM, group)
    if not look:
        parts = gathered[:, -1]
        # a share of all classes is to have the digits of the scores
        return ClassShard(group, rank, parts[:rank].sum(), parts.sum().double())
    rows = gathered.tolist()
    wrong = [i for i, row in enumerate(rows) if row[0]]
    if wrong and not own.is_wrong:
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


@dataclass(frozen=True, eq=False)
class ShardedLoss(BoundLoss):
    """A loss at the targets of this process's classes, or at labels that count all classes."""

    loss: Loss
    y: Tensor
    shard: ClassShard

    def value_and_gradient(self, theta: Array, out: Out = None) -> tuple[Array, Array]:
        omega = self.loss.regularizer
        solve = omega.solve_shard_labels if self.y.ndim == 1 else omega.solve_shard
        return solve(self.y, theta, self.loss.tightness, self.shard)

    def value(self, theta: Array) -> Array:
        return self.value_and_gradient(theta)[0]

    def y_star(self, theta: Array) -> NoReturn:
        raise NotImplementedError("the maximizer of a sharded loss is its gradient plus the target")

    def hessian_operator(self, theta: Array, reach: Array | None = None) -> HessianOperator:
        raise NotImplementedError(ONE_DERIVATIVE)


@reference.exact
def _value_and_gradient(
    theta: Tensor,
    target: Tensor,
    scale: Scale,
    call: LossCall,
    dtype: torch.dtype,
    shard: ClassShard,
) -> tuple[Tensor, Tensor]:
    bound = reference.bind_tensors(
        reference.widen(theta),
        target,
        scale,
        call.ignore_index,
        shard.n_classes,
        lambda y: ShardedLoss(loss_of(call.omega, call.tightness), y, shard),
    )
    return bound.value_and_gradient(dtype)


class _ShardedRows(Function):
    """The losses of the rows, or their sum; the gradient comes with them."""

    @staticmethod
    def forward(
        ctx: Any,
        theta: Tensor,
        given: tuple[Target, Scale, LossCall],
        shard: ClassShard,
        is_summed: bool,
    ) -> Tensor:
        # in float16 a gradient that waits for the loss scale would underflow
        dtype = torch.float32 if theta.dtype == torch.float16 else theta.dtype
        value, gradient = shard.value_and_gradient(theta, *given, dtype)
        ctx.save_for_backward(theta, gradient)
        return value.sum() if is_summed else value

    @staticmethod
    def backward(ctx: Any, upstream: Tensor) -> tuple[Tensor | None, ...]:
        theta, gradient = ctx.saved_tensors
        factors = upstream[:, None] if upstream.ndim else upstream
        rows = (gradient * factors).to(theta.dtype)
        if torch.is_grad_enabled():
            rows = once_differentiated(rows, ONE_DERIVATIVE, theta, upstream)
        return rows, None, None, None


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
    parts = target if isinstance(target, Smoothed) else (target,)
    if torch.is_grad_enabled() and any(part.requires_grad for part in parts):
        no_target_derivative()
    weight = scale if isinstance(scale, Tensor) and scale.requires_grad else None
    if weight is not None and torch.is_grad_enabled():
        rows = apply(_ShardedRows, theta, (target, 1, call), shard, False)
        # ignored rows and masked labels, which a weight of zero is to leave out
        is_left_out = (weight == 0) & ~torch.isfinite(rows)
        weighted = torch.where(is_left_out, 0.0, rows) * weight
        return weighted.sum() if is_summed else weighted
    return apply(_ShardedRows, theta, (target, scale, call), shard, is_summed)
