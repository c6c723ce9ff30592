"""What the chunks of a data set have in common, merged from what each of them shows.

Means and variances are merged by their differences (Chan, Golub and LeVeque 1979), which is as
accurate as the two passes that one machine makes.
"""

from dataclasses import dataclass, replace
from functools import reduce
from typing import Any

import numpy as np

from .._array import Array
from ..linear_model._checks import check_largest, check_largest_weight, largest_entry
from ..linear_model._design import Scaling, bounds, is_constant, moments, standardization
from ._rounds import ChunkError
from ._targets import TargetSummary


@dataclass(frozen=True, eq=False)
class Columns:
    """Weighted means, variances and bounds of the features in some rows."""

    weight: float
    mean: Array
    variance: Array
    low: Array
    high: Array

    @classmethod
    def of(cls, X: Array, weights: Array | None) -> "Columns":
        """Those of rows in memory."""
        weight = float(X.shape[0] if weights is None else weights.sum())
        return cls(weight, *moments(X, weights), *bounds(X))

    def merge(self, other: "Columns") -> "Columns":
        """Those of both."""
        weight = self.weight + other.weight
        share = other.weight / weight
        difference = other.mean - self.mean
        return Columns(
            weight,
            self.mean + share * difference,
            (1 - share) * self.variance
            + share * other.variance
            + share * (1 - share) * np.square(difference),
            np.minimum(self.low, other.low),
            np.maximum(self.high, other.high),
        )

    def scaling(self, *, standardize: bool, precision: float) -> Scaling:
        """Shift and scale of the features."""
        if not standardize:
            return Scaling(self.mean, np.ones_like(self.mean))
        constant = is_constant(self.low, self.high, precision)
        return standardization(self.mean, self.variance, constant)


@dataclass(frozen=True, eq=False)
class Summary:
    """Some chunks of a data set.

    Attributes:
        chunk: the first of them.
        n_features: d.
        dtype: that of X.
        is_sparse: whether X is.
        largest: the largest absolute value in X.
        size: how many entries X holds.
        largest_weight: that of a sample; None where there are no weights.
        counts: samples of positive weight in each chunk.
        targets: what is known of the targets.
        columns: what is known of the features in samples of positive weight; None without any.
    """

    chunk: int
    n_features: int
    dtype: Any
    is_sparse: bool
    largest: float
    size: int
    largest_weight: float | None
    counts: dict[int, int]
    targets: TargetSummary
    columns: Columns | None

    def merge(self, other: "Summary") -> "Summary":
        """That of both; an error names the chunk that does not go with those before."""
        for name in ("n_features", "dtype", "is_sparse"):
            here, there = getattr(self, name), getattr(other, name)
            if here != there:
                raise ChunkError(
                    f"chunk {other.chunk}: {name} of X is {there}, and {here} in the chunks "
                    "before; give all chunks the same columns and one type"
                )
        try:
            targets = self.targets.merge(other.targets)
        except ValueError as error:
            raise ChunkError(f"chunk {other.chunk}: {error}") from error
        return replace(
            self,
            largest=max(self.largest, other.largest),
            size=self.size + other.size,
            largest_weight=None
            if self.largest_weight is None or other.largest_weight is None
            else max(self.largest_weight, other.largest_weight),
            counts=self.counts | other.counts,
            targets=targets,
            columns=merge_columns([self.columns, other.columns]),
        )

    @property
    def n_samples(self) -> int:
        """Samples of positive weight."""
        return sum(self.counts.values())

    @property
    def like(self) -> Array:
        """An array of the dtype of X."""
        return np.empty(0, dtype=self.dtype)

    def check(self) -> None:
        """Raise where sums of squares would overflow."""
        check_largest(self.largest, self.size, self.like)
        if self.largest_weight is not None:
            check_largest_weight(self.largest_weight, self.n_samples)


def summarize_rows(
    index: int, X: Array, weights: Array | None, targets: TargetSummary, *, measure: bool
) -> Summary:
    """The summary of one chunk; features are measured if asked for."""
    entries = X.data if hasattr(X, "nnz") else X
    rows = slice(None) if weights is None or weights.all() else np.flatnonzero(weights)
    count = X.shape[0] if isinstance(rows, slice) else len(rows)
    columns = None
    if measure and count > 0:
        columns = Columns.of(X[rows], None if weights is None else weights[rows])
    return Summary(
        index,
        int(X.shape[1]),
        entries.dtype,
        hasattr(X, "nnz"),
        largest_entry(X),
        int(entries.size),
        None if weights is None else float(weights.max()),
        {index: int(count)},
        targets,
        columns,
    )


def merge_summaries(parts: list[Summary | None]) -> Summary | None:
    """That of all chunks that have rows."""
    found = [part for part in parts if part is not None]
    return reduce(Summary.merge, found) if found else None


def merge_columns(parts: list[Columns | None]) -> Columns | None:
    """Those of all chunks that have rows."""
    found = [part for part in parts if part is not None]
    return reduce(Columns.merge, found) if found else None
