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
    from ._sharded import ClassShard

Scale = Tensor | int | None
PADDING, REST = -1, -2


class Smoothed(NamedTuple):
    """Rows of targets: the vector ``base`` times the row's share, and its own at the label.

    ``labels``, ``share`` and ``own`` have shape (n,); ``base`` has shape (k,), or (1,) if it is the
    same for all classes.
    """

    labels: Tensor
    base: Tensor
    share: Tensor
    own: Tensor

    def rows(self, k: int) -> Tensor:
        """The targets, shape (n, k)."""
        even = (self.base * self.share[:, None]).expand(-1, k)
        return even.scatter_add(-1, self.labels[:, None], self.own[:, None])


# labels (n,), rows (n, k), lists (n, 2, m), or smoothed labels
Target = Tensor | Smoothed


def is_lists(target: Target) -> bool:
    """True if a target lists the classes of its rows."""
    return isinstance(target, Tensor) and target.ndim == 3


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
    """The tensors of a target; the first one has a number or a row for each row."""
    return target if isinstance(target, Smoothed) else (target,)


def target_of(parts: tuple[Tensor, ...]) -> Target:
    """The target that :func:`parts_of` took apart."""
    return parts[0] if len(parts) == 1 else Smoothed(*parts)


def as_rows(target: Target, k: int) -> Tensor:
    """Labels (n,), rows (n, k) or lists; smoothed labels become rows."""
    return target.rows(k) if isinstance(target, Smoothed) else target


def working_dtype_of(dtype: torch.dtype) -> torch.dtype:
    """The dtype of the arithmetic: float64 for float64, else float32."""
    return torch.float64 if dtype == torch.float64 else torch.float32


def working_dtype(theta: Tensor) -> torch.dtype:
    """The dtype of the arithmetic with these scores."""
    return working_dtype_of(theta.dtype)


def scale_vector(scale: Scale, theta: Tensor, target: Tensor, ignore_index: int) -> Tensor:
    """The scale of each row, shape (n,)."""
    if isinstance(scale, Tensor) and scale.ndim == 1:
        return scale
    n, dtype = target.shape[0], working_dtype(theta)
    if scale is None:
        # infinite if no label counts: 0 · ∞ makes the loss NaN, as in PyTorch
        return (target != ignore_index).sum(dtype=dtype).reciprocal().expand(n)
    return (torch.ones((1,), dtype=dtype, device=theta.device) / scale).expand(n)


def divisor_of(n: int, reduction: str) -> int:
    """What divides each of n rows that count alike."""
    return n if reduction == "mean" and n else 1


def smooth(
    labels: Tensor,
    k: Tensor | int,
    weight: Tensor | None,
    label_smoothing: float,
    dtype: torch.dtype,
) -> tuple[Smoothed, Tensor]:
    """Smoothed labels, and their weights.

    With class weights w, q becomes w∘q / ⟨w, q⟩ with the weight ⟨w, q⟩. That is how
    ``cross_entropy`` weighs them: Σ w_c q_c (−log p_c) is ⟨w, q⟩ times the cross-entropy of that
    distribution.
    """
    rest = label_smoothing / k
    if weight is None:
        ones = torch.ones_like(labels, dtype=dtype)
        base = ones.new_ones((1,)) * rest
        return Smoothed(labels, base, ones, (1 - label_smoothing) * ones), ones
    base = weight.to(dtype) * rest
    own = weight.to(dtype)[labels] * (1 - label_smoothing)
    total = base.sum() + own
    return Smoothed(labels, base, 1 / total, own / total), total


class Weighing(NamedTuple):
    """How the rows of a class loss count.

    Attributes:
        weight: one number for each of all classes, or None.
        n_classes: how many classes there are, in all processes.
        ignore_index: the label of rows that count for nothing.
        reduction: "mean", "sum" or "none".
        label_smoothing: the share of each target that all classes have alike.
        shard: the classes of this process, or None if it has all.
    """

    weight: Tensor | None
    n_classes: Tensor | int
    ignore_index: int
    reduction: str
    label_smoothing: float
    shard: "ClassShard | None" = None

    def weigh(
        self, target: Tensor, dtype: torch.dtype, n: int
    ) -> tuple[Target, Scale, Tensor | None]:
        """The smoothed target of some of n rows, its scale, and what is added to the loss.

        The latter is NaN if a weighted mean is over nothing, and else zero or None. As a factor it
        would reach the gradient, which is zero there, as in PyTorch.
        """
        if target.ndim == 3:
            scale, nan_of_no_rows = self.weigh_lists(target, dtype)
            return self.smooth_lists(target, dtype), scale, nan_of_no_rows
        if target.is_floating_point():
            return *self._weigh_proportions(target, dtype, divisor_of(n, self.reduction)), None
        if self.weight is None and self.label_smoothing == 0:
            return target, None if self.reduction == "mean" else 1, None
        return self._weigh_labels(target, dtype)

    def _weigh_proportions(
        self, y: Tensor, dtype: torch.dtype, divisor: int
    ) -> tuple[Tensor, Scale]:
        """A row weighs ⟨weight, y⟩ and the mean is over rows."""
        smoothing, weight = self.label_smoothing, self.weight
        if smoothing > 0:
            y = y.to(dtype) * (1 - smoothing) + smoothing / self.n_classes
        if weight is None:
            return y, divisor
        if self.shard is not None:
            weight = self.shard.own_weight(weight, y.shape[1])
        # not a matrix product, which autocast would compute in half precision
        total = (y.to(dtype) * weight.to(dtype)).sum(-1)
        return y, (total if self.shard is None else self.shard.sum(total)) / divisor

    def weigh_lists(self, lists: Tensor, dtype: torch.dtype) -> tuple[Tensor, Tensor | None]:
        """The scale of lists, as that of proportions, and what is added to the loss.

        Rows without a class count for nothing, and the mean is over the others.
        """
        counts = listed_rows(lists)
        scale = counts.to(dtype)
        if self.weight is not None:
            weight = self.weight.to(dtype)
            # a class out of range makes its row NaN by itself
            own = weight[lists[:, 0].long().clamp(0, len(weight) - 1)]
            total = (own * lists[:, 1].to(dtype)).sum(-1)
            smoothing = self.label_smoothing
            scale = scale * (total * (1 - smoothing) + weight.mean() * smoothing)
        if self.reduction != "mean":
            return scale, None
        n_rows = counts.sum(dtype=dtype)
        nan_of_no_rows = n_rows / n_rows - 1
        return (scale / n_rows).masked_fill(~counts, 0.0), nan_of_no_rows

    def smooth_lists(self, lists: Tensor, dtype: torch.dtype) -> Tensor:
        """Lists as they are, or rows of smoothed proportions, which leave no class out."""
        smoothing = self.label_smoothing
        if smoothing == 0:
            return lists
        if self.shard is not None:
            raise NotImplementedError(
                "label_smoothing of SparseTargets needs all classes in one process; leave it out, "
                "or pass proportions"
            )
        k: Any = self.n_classes
        rows = rows_of_lists(lists, k, dtype)
        return rows.mul_(1 - smoothing).add_(smoothing / k)

    def _weigh_labels(
        self, labels: Tensor, dtype: torch.dtype
    ) -> tuple[Target, Tensor, Tensor | None]:
        """The mean is over total weight."""
        weight = self.weight
        counts = labels != self.ignore_index
        inside = counts & (labels >= 0) & (labels < self.n_classes)
        index = labels.masked_fill(~inside, 0)
        ones = torch.ones_like(labels, dtype=dtype)
        weights = ones if weight is None else weight.to(dtype)[index]
        total = weights.masked_fill(~counts, 0.0).sum()
        y: Target = labels
        if self.label_smoothing > 0:
            y, weights = smooth(index, self.n_classes, weight, self.label_smoothing, dtype)
            weights = weights.masked_fill(~inside, torch.nan)
        if self.reduction != "mean":
            return y, weights.masked_fill(~counts, 0.0), None
        nan_of_no_rows = total / total - 1
        scale = (weights / total + nan_of_no_rows).masked_fill(~counts, 0.0)
        return y, scale, nan_of_no_rows.detach()
