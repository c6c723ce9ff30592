r"""Targets that list the classes of a row: a teacher's top k, crowd votes, several labels.

Rows of the targets that engines see are one tensor, lists (n, 2, m): the numbers of the classes and
their values (see :mod:`._targets`). Everything that a user may pass becomes that here, checked.
"""

# ruff: noqa: A002  # ``input`` is PyTorch's name

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.utils import _pytree

from ..sets._base import membership_tolerance
from ._arguments import check_target
from ._engines import launcher
from ._targets import PADDING, REST, rows_of_lists

RESTS = (None, "renormalize", "bucket")
_SPARSE = (torch.sparse_coo, torch.sparse_csr)
# Class numbers up to here are exact in float32.
_MAX_SINGLE = 1 << 24


@dataclass(frozen=True, eq=False)
class SparseTargets:
    r"""Targets of rows that have few classes each: numbers of classes, and what each of them has.

    They go wherever a loss on the simplex, or a head, takes proportions, and cost what class
    indices cost: all other classes have the target 0 and are never written down.

    Args:
        indices: integers of shape (…, m), where … is the shape of class indices. Negative ones are
            padding, and their values are ignored. A row of padding alone counts for nothing, and a
            mean does not count it, as with ``ignore_index``. No class may be listed twice.
        values: floating-point numbers of the same shape, which sum to one in each row, unless
            ``rest`` says what is missing.
        rest: what becomes of the part r = 1 − Σ values that the list leaves out.
            ``"renormalize"`` divides the values by their sum. ``"bucket"``, for the logistic
            losses, takes all other classes for one whose target is r and whose score is their
            log-sum-exp: the loss over m + 1 classes. None allows no rest.
        log_values: True if ``values`` holds logarithms, such as a teacher's log-probabilities;
            those that are renormalized may be off by a constant.

    Example:
        >>> import torch
        >>> from fitzpatrick.torch import SparseTargets, functional as F
        >>> top = SparseTargets(torch.tensor([[2, 0], [1, -1]]), torch.tensor([[0.7, 0.3], [1, 0]]))
        >>> round(F.fitzpatrick_logistic_loss(torch.zeros(2, 3), top).item(), 4)
        0.3319
        >>> top.to_dense(3)
        tensor([[0.3000, 0.0000, 0.7000],
                [0.0000, 1.0000, 0.0000]])
    """

    indices: Tensor
    values: Tensor
    rest: str | None = None
    log_values: bool = False

    def __post_init__(self) -> None:
        if self.rest not in RESTS:
            raise ValueError(f"rest must be 'renormalize', 'bucket' or None, got {self.rest!r}")

    @classmethod
    def from_sparse(cls, matrix: Tensor, rest: str | None = None) -> "SparseTargets":
        """The entries of a sparse COO or CSR tensor (n, k); duplicates are summed."""
        layout = getattr(matrix, "layout", None)
        if layout not in _SPARSE or matrix.ndim != 2:
            got = f"{layout} of shape {tuple(matrix.shape)}" if layout else type(matrix).__name__
            raise TypeError(
                f"a sparse target must be a COO or CSR tensor of shape (n, k), got {got}"
            )
        if torch.compiler.is_compiling():
            raise TypeError(
                "how many entries a sparse tensor has in a row is not known to torch.compile; "
                "make a SparseTargets of it outside of the compiled function"
            )
        entries = matrix.detach().to_sparse(2).coalesce()
        row, column = entries.indices()
        counts = torch.bincount(row, minlength=matrix.shape[0])
        first = counts.cumsum(0) - counts
        shape = matrix.shape[0], int(counts.max()) if counts.numel() else 0
        place = torch.arange(len(row), device=row.device) - first[row]
        indices = row.new_full(shape, PADDING)
        indices[row, place] = column
        values = entries.values().new_zeros(shape)
        values[row, place] = entries.values()
        return cls(indices, values, rest)

    def to_dense(self, num_classes: int) -> Tensor:
        """Proportions of shape (…, num_classes), with a rest that was not put into a bucket."""
        lists = self.lists(num_classes, self.values.dtype)
        rows = rows_of_lists(lists, num_classes, self.values.dtype)
        return rows.reshape(*self.indices.shape[:-1], num_classes)

    def to(self, device: torch.device | str | int, non_blocking: bool = False) -> "SparseTargets":
        """These targets on a device."""
        indices = self.indices.to(device, non_blocking=non_blocking)
        return self.with_tensors(indices, self.values.to(device, non_blocking=non_blocking))

    def pin_memory(self) -> "SparseTargets":
        """These targets in pinned memory, as a ``DataLoader`` wants them."""
        return self.with_tensors(self.indices.pin_memory(), self.values.pin_memory())

    def with_tensors(self, indices: Tensor, values: Tensor) -> "SparseTargets":
        """Other indices and values that mean what these mean."""
        return SparseTargets(indices, values, self.rest, self.log_values)

    def proportions(self, dtype: torch.dtype) -> Tensor:
        """The values as they enter a loss, 0 in padding, in a dtype."""
        nothing = -math.inf if self.log_values else 0.0
        values = self.values.to(dtype).masked_fill(self.indices < 0, nothing)
        if self.log_values:
            if self.rest == "renormalize":  # a row without classes counts for nothing
                return torch.softmax(values, -1).masked_fill(self.indices < 0, 0.0)
            return values.exp()
        if self.rest == "renormalize":
            return values / values.sum(-1, keepdim=True).masked_fill(
                (self.indices < 0).all(-1, keepdim=True), 1.0
            )
        return values

    def lists(
        self, num_classes: int | None, dtype: torch.dtype, *, by_kernel: bool = False
    ) -> Tensor:
        """The targets as lists (n, 2, m), in a dtype that has the digits of a class number.

        ``num_classes`` is None where it is not known yet. Classes out of range stay there. Plain
        tensors may be given to a kernel.
        """
        dtype = torch.float64 if num_classes is None or num_classes > _MAX_SINGLE else dtype
        m = self.indices.shape[-1]
        may_list_all = self.rest == "bucket" and num_classes is not None and m >= num_classes
        if by_kernel and self.indices.numel() and not may_list_all:
            tensors = (x.reshape(-1, m) for x in (self.indices, self.values))
            lists: Tensor = launcher().launch_lists(
                *tensors, num_classes, self.rest, self.log_values, dtype
            )
            return lists
        values = self.proportions(dtype)
        indices = self.indices.long().clamp(PADDING, num_classes).to(dtype)
        if m == 0:
            indices = torch.nn.functional.pad(indices, (0, 1), value=PADDING)
            values = torch.nn.functional.pad(values, (0, 1))
        if self.rest == "bucket":
            left = (1 - values.sum(-1, keepdim=True, dtype=torch.float64)).clamp(min=0)
            if may_list_all:  # where no class is left, a rounding error would have a loss of ∞
                is_whole = (self.indices >= 0).sum(-1, keepdim=True) == num_classes
                left = left.masked_fill(is_whole & (left <= sum_tolerance(self.values)), 0.0)
            is_empty = (self.indices < 0).all(-1, keepdim=True)
            place = indices.new_full(left.shape, REST).masked_fill(is_empty, PADDING)
            indices = torch.cat([indices, place], -1)
            values = torch.cat([values, left.to(dtype).masked_fill(is_empty, 0.0)], -1)
        n, m = math.prod(indices.shape[:-1]), indices.shape[-1]
        return torch.stack([indices, values], -2).reshape(n, 2, m)


def _flatten(targets: SparseTargets) -> tuple[list[Tensor], Any]:
    return [targets.indices, targets.values], (targets.rest, targets.log_values)


# vmap and other transforms of torch.func look for tensors in trees of Python objects.
_pytree.register_pytree_node(
    SparseTargets,
    _flatten,
    lambda parts, options: SparseTargets(*parts, *options),
    serialized_type_name="fitzpatrick.torch.SparseTargets",
)

# What a class loss takes as its target.
ClassTarget = Tensor | SparseTargets


def tensors_of(target: ClassTarget) -> tuple[Any, ...]:
    return (target.indices, target.values) if isinstance(target, SparseTargets) else (target,)


def check_sparse_target(
    target: SparseTargets, input: Tensor, shape: tuple[int, ...], axis: int
) -> None:
    indices, values = target.indices, target.values
    for part in (indices, values):
        check_target(part, input)
    if indices.is_floating_point() or not values.is_floating_point():
        raise TypeError(
            "SparseTargets has integer indices and floating-point values, got "
            f"{indices.dtype} and {values.dtype}"
        )
    if indices.shape != values.shape:
        raise ValueError(
            "indices and values of SparseTargets must have one shape, got "
            f"{tuple(indices.shape)} and {tuple(values.shape)}"
        )
    expected = (*shape[:axis], *shape[axis + 1 :])
    if indices.ndim == 0 or indices.shape[:-1] != expected:
        listed = ", ".join([*map(str, expected), "m"])
        raise ValueError(
            f"SparseTargets must have shape ({listed}), m classes for each row, to go with scores "
            f"of shape {tuple(shape)} and classes in axis {axis}, got {tuple(indices.shape)}"
        )


def sum_tolerance(values: Tensor) -> float:
    return membership_tolerance(values) * max(1.0, math.sqrt(values.shape[-1]))


def check_lists(target: SparseTargets, num_classes: int) -> None:
    """Raise with the first row whose classes or values are wrong."""
    indices, values, is_log = target.indices.long(), target.values, target.log_values
    is_class = indices >= 0

    def refuse(wrong: Tensor, describe: Callable[[tuple[int, ...]], str]) -> None:
        if bool(wrong.any()):
            at = tuple(int(i) for i in wrong.nonzero()[0])
            place = at[: indices.ndim - 1]
            row = f" row {place[0] if len(place) == 1 else place}" if place else ""
            raise ValueError(f"target{row} {describe(at)}")

    refuse(
        indices >= num_classes,
        lambda at: (
            f"lists the class {int(indices[at])}, but there are {num_classes} classes, 0 to "
            f"{num_classes - 1}; negative numbers are padding"
        ),
    )
    ordered = indices.sort(-1).values
    refuse(
        (ordered[..., 1:] == ordered[..., :-1]) & (ordered[..., 1:] >= 0),
        lambda at: (
            f"lists the class {int(ordered[at])} twice; list it once, with the sum of its values"
        ),
    )
    tolerance = membership_tolerance(values)
    is_shifted = is_log and target.rest == "renormalize"  # such as logarithms at a temperature
    if is_shifted:
        is_wrong, expected = values == math.inf, "logarithms, which may be off by a constant"
    elif is_log:
        is_wrong, expected = values > tolerance, "logarithms of numbers from 0 to 1"
    else:
        is_wrong = ~(values >= 0) | (values > 1 + tolerance)
        expected = "from 0 to 1; log_values=True takes logarithms"
    refuse(
        is_class & (is_wrong | values.isnan()),
        lambda at: (
            f"has the value {float(values[at]):.10g} for the class {int(indices[at])}, but values "
            f"are {expected}"
        ),
    )
    if is_shifted:
        total = (is_class & (values > -math.inf)).any(-1).double()
    else:
        total = SparseTargets(indices, values, None, is_log).proportions(torch.float64).sum(-1)
    tolerance = sum_tolerance(values)
    is_wrong = total > 1 + tolerance
    if target.rest is None:
        is_wrong |= total < 1 - tolerance
    elif target.rest == "renormalize":
        is_wrong |= total == 0

    def describe_sum(at: tuple[int, ...]) -> str:
        hint = "give it a positive value"
        if total[at] > 0:
            hint = "subtract its log-sum-exp" if is_log else "divide it by its sum"
        if total[at] < 1 and target.rest is None:
            hint += ", or say what the others have with rest='renormalize' or rest='bucket'"
        expected = "not 1" if target.rest is None else "not to a number between 0 and 1"
        return f"sums to {float(total[at]):.6g}, {expected}; {hint}"

    refuse(is_class.any(-1) & is_wrong, describe_sum)
