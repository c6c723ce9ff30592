"""How the targets of a chunk are checked, and what is known of those of all chunks."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from .._array import Array
from ..linear_model._targets import check_classes, check_numbers, exact_proportions, label_column
from ..losses import Loss


class TargetSummary(ABC):
    """What is known of the targets of some chunks."""

    @abstractmethod
    def merge(self, other: Self) -> Self:
        """That of both; a ValueError says why they do not go together."""


class TargetCheck(ABC):
    """How the targets of a chunk are checked."""

    @abstractmethod
    def __call__(
        self, y: Any, X: Array, weights: Array | None, loss: Loss
    ) -> tuple[Array, TargetSummary]:
        """Targets that belong to the rows of X, and what is known of them."""


@dataclass(frozen=True, eq=False)
class ClassTotals(TargetSummary):
    """The labels, sorted, and the total weight of the samples of each."""

    labels: Array
    totals: Array

    def merge(self, other: "ClassTotals") -> "ClassTotals":
        kinds = {self.labels.dtype.kind, other.labels.dtype.kind}
        if len(kinds & {"U", "O"}) < len(kinds) and kinds & {"U", "O"}:
            raise ValueError(
                f"y is of dtype {other.labels.dtype}, and of {self.labels.dtype} in the chunks "
                "before; convert it to one type"
            )
        both = np.concatenate([self.labels, other.labels])
        labels, places = np.unique(both, return_inverse=True)
        totals = np.bincount(places, weights=np.concatenate([self.totals, other.totals]))
        return ClassTotals(labels, totals)


class LabelCheck(TargetCheck):
    """Class labels."""

    def __call__(
        self, y: Any, X: Array, weights: Array | None, loss: Loss
    ) -> tuple[Array, ClassTotals]:
        y = label_column(y, X)
        labels, places = np.unique(y, return_inverse=True)
        check_classes(np.repeat(labels, 2))  # scikit-learn warns if most labels occur once
        totals = np.bincount(places, weights=weights).astype(np.float64)
        return y, ClassTotals(labels, totals)


@dataclass(frozen=True, eq=False)
class TargetColumns(TargetSummary):
    """The form of targets, and how far their sums were from one.

    Args:
        n_classes: columns, or for integer labels one more than the largest.
        ndim: 1 for one number per sample.
        rounding: as :func:`exact_proportions` returns it.
    """

    n_classes: int
    ndim: int
    rounding: float = 0.0

    def merge(self, other: "TargetColumns") -> "TargetColumns":
        differ = self.ndim == 2 and self.n_classes != other.n_classes
        if self.ndim != other.ndim or differ:
            raise ValueError(
                f"y has {other.n_classes} columns, and {self.n_classes} in the chunks before; "
                "give all chunks the same columns"
            )
        n_classes = max(self.n_classes, other.n_classes)
        return TargetColumns(n_classes, self.ndim, max(self.rounding, other.rounding))


class ProportionCheck(TargetCheck):
    """Proportions, and other targets in the domain of a loss."""

    def __call__(
        self, y: Any, X: Array, weights: Array | None, loss: Loss
    ) -> tuple[Array, TargetColumns]:
        y, rounding = exact_proportions(y, loss, X)
        n_columns = 1 if y.ndim == 1 else int(y.shape[1])
        return y.reshape(-1, 1) if y.ndim == 1 else y, TargetColumns(n_columns, y.ndim, rounding)


class NumberCheck(ProportionCheck):
    """Proportions, or integer labels from 0 on."""

    def __call__(
        self, y: Any, X: Array, weights: Array | None, loss: Loss
    ) -> tuple[Array, TargetColumns]:
        y = check_numbers(y)
        if y.ndim == 2:
            return super().__call__(y, X, weights, loss)
        return label_column(y, X), TargetColumns(int(y.max()) + 1, 1)
