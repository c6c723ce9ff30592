"""Targets as rows, and what multiplies the losses of the rows: plain PyTorch, for every engine.

A scale is a vector with a number for each row, or, if all rows count alike, a whole number that
divides each of them (``torch.jit.trace`` makes tensors of these), or None for one over the number
of labels that count. The latter two cost a GPU nothing to make.

A target is labels (n,), rows (n, k), smoothed labels, or lists (n, 2, m) of class numbers and their
values. In a list the number :data:`PADDING` stands for no class, with the value 0, and
:data:`REST` for all classes that are not listed, taken together.
"""

from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch import Tensor

if TYPE_CHECKING:  # PyTorch may come without torch.distributed
    from torch.distributed import ProcessGroup

    from ._sharded import ClassShard

Scale = Tensor | int | None
PADDING, REST = -1, -2


class Smoothed(NamedTuple):
    """Rows of targets: ``base``, (k,) or (1,), times the row's share, and its own at the label."""

    labels: Tensor
    base: Tensor
    share: Tensor
    own: Tensor

    def rows(self, k: int) -> Tensor:
        even = (self.base * self.share[:, None]).expand(-1, k)
        return even.scatter_add(-1, self.labels[:, None], self.own[:, None])


# labels (n,), rows (n, k), lists (n, 2, m), or smoothed labels
Target = Tensor | Smoothed


def listed_rows(lists: Tensor) -> Tensor:
    """Which rows of lists have a class, (n,); the others count for nothing."""
    return (lists[:, 0] != PADDING).any(-1)


def rows_of_lists(lists: Tensor, k: int, dtype: torch.dtype) -> Tensor:
    """Lists without a rest as rows (n, k); NaN if a class is out of range."""
    classes, values = lists[:, 0].long(), lists[:, 1].to(dtype)
    is_outside = classes >= k
    # what is not a class goes into one more column
    column = classes.masked_fill((classes < 0) | is_outside, k)
    rows = values.new_zeros((len(lists), k + 1)).scatter_add(-1, column, values)
    return rows[:, :k].masked_fill(is_outside.any(-1, keepdim=True), torch.nan)


def parts_of(target: Target) -> tuple[Tensor, ...]:
    return target if isinstance(target, Smoothed) else (target,)


def target_of(parts: tuple[Tensor, ...]) -> Target:
    return parts[0] if len(parts) == 1 else Smoothed(*parts)


def as_rows(target: Target, k: int) -> Tensor:
    """Labels (n,), rows (n, k) or lists; smoothed labels become rows."""
    return target.rows(k) if isinstance(target, Smoothed) else target


def working_dtype(theta: Tensor) -> torch.dtype:
    """The dtype of the arithmetic with these scores: float64 for float64, else float32."""
    return torch.float64 if theta.dtype == torch.float64 else torch.float32


def scale_vector(scale: Scale, theta: Tensor, target: Tensor, ignore_index: int) -> Tensor:
    if isinstance(scale, Tensor) and scale.ndim == 1:
        return scale
    n, dtype = target.shape[0], working_dtype(theta)
    if target.ndim == 3:  # rows without a class count for nothing
        counts = listed_rows(target).to(dtype)
        return counts / (counts.sum() if scale is None else scale)
    if scale is None:
        # infinite if no label counts: 0 · ∞ makes the loss NaN, as in PyTorch
        return (target != ignore_index).sum(dtype=dtype).reciprocal().expand(n)
    return (torch.ones((1,), dtype=dtype, device=theta.device) / scale).expand(n)


def divisor_of(n: int, reduction: str) -> int:
    return n if reduction == "mean" and n else 1


def smooth(
    labels: Tensor, k: Tensor | int, weight: Tensor | None, smoothing: float, dtype: torch.dtype
) -> tuple[Smoothed, Tensor]:
    """Smoothed labels, and their weights.

    With class weights w, q becomes w∘q / ⟨w, q⟩ with the weight ⟨w, q⟩, as in ``cross_entropy``:
    Σ w_c q_c (−log p_c) is ⟨w, q⟩ times the cross-entropy of that distribution.
    """
    rest = smoothing / k
    if weight is None:
        ones = torch.ones_like(labels, dtype=dtype)
        base = ones.new_ones((1,)) * rest
        return Smoothed(labels, base, ones, (1 - smoothing) * ones), ones
    base = weight.to(dtype) * rest
    own = weight.to(dtype)[labels] * (1 - smoothing)
    total = base.sum() + own
    return Smoothed(labels, base, 1 / total, own / total), total


class Weighing(NamedTuple):
    """How the rows of a class loss count.

    ``weight`` and ``n_classes`` are of all classes: of ``shard`` and of the other processes.
    ``row_groups`` are processes that have other rows of the batch.
    """

    weight: Tensor | None
    n_classes: Tensor | int
    ignore_index: int
    reduction: str
    label_smoothing: float
    shard: "ClassShard | None" = None
    row_groups: tuple["ProcessGroup", ...] = ()

    def weigh_all(self, target: Tensor, dtype: torch.dtype) -> tuple[Target, Scale, Tensor | None]:
        """The smoothed target, its scale, and what is added to the loss.

        The latter is NaN if a mean is over nothing, and else zero or None. As a factor it would
        reach the gradient, which is zero there, as in PyTorch.
        """
        is_hard = target.ndim == 1 or (target.ndim == 3 and self.shard is None)
        is_hard = is_hard and self.weight is None and self.label_smoothing == 0
        if is_hard and not self.row_groups and target.shape[0]:
            return target, None if self.reduction == "mean" else 1, None
        divisor = self.divisor(target, dtype)
        return *self.weigh(target, dtype, divisor), nan_of_nothing(divisor, target)

    def divisor(self, target: Tensor, dtype: torch.dtype) -> Tensor | int:
        """What the sum over rows is divided by: total weight of labels, or the number of rows."""
        if self.reduction != "mean":
            return 1
        if target.ndim == 2 and not self.row_groups:
            return target.shape[0]
        total = self._counts(target).sum(dtype=dtype)
        if target.ndim == 1 and self.weight is not None:
            total = self._label_weights(target, self.weight, dtype).sum()
        for group in self.row_groups:
            from ._sharded import all_reduce

            if total.requires_grad and torch.is_grad_enabled():
                raise NotImplementedError(
                    "with rows in several processes the weight of a mean is not differentiated; "
                    "pass weight.detach()"
                )
            total = all_reduce(total, "SUM", group)
        return total

    def weigh(
        self, target: Tensor, dtype: torch.dtype, divisor: Tensor | int
    ) -> tuple[Target, Scale]:
        """The smoothed target of some rows, and its scale."""
        weighers = self._weigh_labels, self._weigh_proportions, self._weigh_lists
        y, weights = weighers[target.ndim - 1](target, dtype)
        if isinstance(divisor, int):
            divisor = divisor or 1  # of no rows
            return y, divisor if weights is None else weights / divisor
        # rows that do not count have the scale 0, whatever the divisor; the others NaN if it is 0
        counts = self._counts(target)
        weights = counts.to(dtype) if weights is None else weights
        return y, torch.where(counts, weights / divisor + (divisor / divisor - 1), 0.0)

    def _counts(self, target: Tensor) -> Tensor:
        if target.ndim == 1:
            return target != self.ignore_index
        if target.ndim == 3:
            return listed_rows(target)
        return torch.ones(target.shape[:1], dtype=torch.bool, device=target.device)

    def _label_weights(self, labels: Tensor, weight: Tensor, dtype: torch.dtype) -> Tensor:
        """Weights of the classes of labels; 0 for those that count for nothing."""
        inside = (labels >= 0) & (labels < self.n_classes)
        weights = weight.to(dtype)[labels.masked_fill(~inside, 0)]
        return weights.masked_fill(~self._counts(labels), 0.0)

    def _weigh_labels(self, labels: Tensor, dtype: torch.dtype) -> tuple[Target, Tensor | None]:
        smoothing, weight = self.label_smoothing, self.weight
        if smoothing == 0:
            return labels, None if weight is None else self._label_weights(labels, weight, dtype)
        counts = self._counts(labels)
        inside = counts & (labels >= 0) & (labels < self.n_classes)
        index = labels.masked_fill(~inside, 0)
        y, weights = smooth(index, self.n_classes, weight, smoothing, dtype)
        return y, weights.masked_fill(~inside, torch.nan).masked_fill(~counts, 0.0)

    def _weigh_proportions(self, y: Tensor, dtype: torch.dtype) -> tuple[Target, Tensor | None]:
        """A row weighs ⟨weight, y⟩."""
        smoothing, weight = self.label_smoothing, self.weight
        if smoothing > 0:
            y = y.to(dtype) * (1 - smoothing) + smoothing / self.n_classes
        if weight is None:
            return y, None
        if self.shard is not None:
            weight = self.shard.own_weight(weight, y.shape[1])
        # not a matrix product, which autocast would compute in half precision
        total = (y.to(dtype) * weight.to(dtype)).sum(-1)
        return y, total if self.shard is None else self.shard.sum(total)

    def _weigh_lists(self, lists: Tensor, dtype: torch.dtype) -> tuple[Target, Tensor]:
        """As proportions, where rows without a class count for nothing."""
        scale, smoothing = listed_rows(lists).to(dtype), self.label_smoothing
        if self.weight is not None:
            weight = self.weight.to(dtype)
            # a class out of range makes its row NaN by itself
            own = weight[lists[:, 0].long().clamp(0, len(weight) - 1)]
            total = (own * lists[:, 1].to(dtype)).sum(-1)
            scale = scale * (total * (1 - smoothing) + weight.mean() * smoothing)
        if smoothing == 0:
            return lists, scale
        if self.shard is not None:
            raise NotImplementedError(
                "label_smoothing of SparseTargets needs all classes in one process; leave it out, "
                "or pass proportions"
            )
        k: Any = self.n_classes
        scale = scale.masked_fill((lists[:, 0] >= k).any(-1), torch.nan)
        # smoothed proportions leave no class out
        return rows_of_lists(lists, k, dtype).mul_(1 - smoothing).add_(smoothing / k), scale


def nan_of_nothing(divisor: Tensor | int, like: Tensor) -> Tensor | None:
    """NaN if a mean is over nothing, to be added to the loss, and else zero or None."""
    if isinstance(divisor, Tensor):
        return (divisor / divisor - 1).detach()
    return None if divisor else torch.full((), torch.nan, device=like.device)
