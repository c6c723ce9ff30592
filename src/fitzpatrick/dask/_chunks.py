"""What workers do with a chunk of rows: check and measure it, sum over it, predict and score.

Means and variances are merged by their differences (Chan, Golub and LeVeque 1979), which is as
accurate as the two passes that one machine makes.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils import check_array

from .. import engines
from .._array import Array
from .._validation import check_sparse
from .._weights import check_each_weight
from ..engines import HessianOperator
from ..linear_model._checks import (
    check_classes,
    check_finite,
    check_largest,
    check_largest_weight,
    check_numbers,
    check_squares,
    exact_proportions,
    label_column,
    largest_entry,
    merge_duplicates,
)
from ..linear_model._design import (
    Design,
    Scaling,
    bounds,
    dense_design,
    moments,
    scaled,
    sparse_design,
)
from ..linear_model._preconditioner import gram, principal_directions
from ..linear_model._sums import BinaryLoss, LocalSums
from ..losses import Loss
from ._rounds import ChunkError

# Targets


@dataclass(frozen=True, eq=False)
class ClassTotals:
    """The labels of some chunks, sorted, and the total weight of the samples of each."""

    labels: Array
    totals: Array

    def merge(self, other: "ClassTotals") -> "ClassTotals":
        """Those of both; a ValueError says why they do not go together."""
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


@dataclass(frozen=True, eq=False)
class TargetColumns:
    """The form of the targets of some chunks, and how far their sums were from one.

    Args:
        n_classes: columns, or for integer labels one more than the largest.
        ndim: 1 for one number per sample.
        rounding: as :func:`exact_proportions` returns it.
    """

    n_classes: int
    ndim: int
    rounding: float = 0.0

    def merge(self, other: "TargetColumns") -> "TargetColumns":
        """That of both; a ValueError says why they do not go together."""
        differ = self.ndim == 2 and self.n_classes != other.n_classes
        if self.ndim != other.ndim or differ:
            raise ValueError(
                f"y has {other.n_classes} columns, and {self.n_classes} in the chunks before; "
                "give all chunks the same columns"
            )
        n_classes = max(self.n_classes, other.n_classes)
        return TargetColumns(n_classes, self.ndim, max(self.rounding, other.rounding))


TargetSummary = ClassTotals | TargetColumns
TargetCheck = Callable[[Any, Array, Array | None, Loss], tuple[Array, TargetSummary]]


def labels_of(
    y: Any,
    X: Array,
    weights: Array | None,
    loss: Loss,  # noqa: ARG001  # as every check takes it
) -> tuple[Array, ClassTotals]:
    """Class labels of a chunk, and what is known of them."""
    y = label_column(y, X)
    labels, places = np.unique(y, return_inverse=True)
    check_classes(np.repeat(labels, 2))  # scikit-learn warns if most labels occur once
    totals = np.bincount(places, weights=weights).astype(np.float64)
    return y, ClassTotals(labels, totals)


def proportions_of(
    y: Any,
    X: Array,
    weights: Array | None,  # noqa: ARG001  # as every check takes it
    loss: Loss,
) -> tuple[Array, TargetColumns]:
    """Targets (n, k) of a chunk, in the domain of a loss, and what is known of them."""
    y, rounding = exact_proportions(y, loss, X)
    n_columns = 1 if y.ndim == 1 else int(y.shape[1])
    return y.reshape(-1, 1) if y.ndim == 1 else y, TargetColumns(n_columns, y.ndim, rounding)


def numbers_of(y: Any, X: Array, weights: Array | None, loss: Loss) -> tuple[Array, TargetColumns]:
    """Proportions of a chunk, or integer labels from 0 on, and what is known of them."""
    y = check_numbers(y)
    if y.ndim == 2:
        return proportions_of(y, X, weights, loss)
    return label_column(y, X), TargetColumns(int(y.max()) + 1, 1)


# Rows


@dataclass(frozen=True, eq=False)
class Columns:
    """Weighted means, variances and bounds of columns in some rows."""

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


@dataclass(frozen=True, eq=False)
class Chunk:
    """Checked rows.

    Args:
        index: the number of the chunk.
        X: features, dense or sparse; None once a design has been made of them.
        y: targets as the check of the data returns them.
        weights: None for ones.
        targets: what is known of the targets.
    """

    index: int
    X: Array
    y: Array
    weights: Array | None
    targets: TargetSummary


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
        largest_weight: that of a sample; 0 without weights.
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
    largest_weight: float
    counts: dict[int, int]
    targets: TargetSummary
    columns: Columns | None

    @classmethod
    def of(cls, measure: bool, chunk: Chunk) -> "Summary":
        """The summary of one chunk; features are measured if asked for."""
        X, weights = chunk.X, chunk.weights
        entries = X.data if sparse.issparse(X) else X
        rows = slice(None) if weights is None or weights.all() else np.flatnonzero(weights)
        count = X.shape[0] if isinstance(rows, slice) else len(rows)
        columns = None
        if measure and count > 0:
            columns = Columns.of(X[rows], None if weights is None else weights[rows])
        return cls(
            chunk.index,
            int(X.shape[1]),
            entries.dtype,
            sparse.issparse(X),
            largest_entry(X),
            int(entries.size),
            0.0 if weights is None else float(weights.max()),
            {chunk.index: int(count)},
            chunk.targets,
            columns,
        )

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
            targets = self.targets.merge(other.targets)  # type: ignore[arg-type]  # of one check
        except ValueError as error:
            raise ChunkError(f"chunk {other.chunk}: {error}") from error
        columns = [part for part in (self.columns, other.columns) if part is not None]
        return replace(
            self,
            largest=max(self.largest, other.largest),
            size=self.size + other.size,
            largest_weight=max(self.largest_weight, other.largest_weight),
            counts=self.counts | other.counts,
            targets=targets,
            columns=reduce(Columns.merge, columns) if columns else None,
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
        check_largest_weight(self.largest_weight, max(self.n_samples, 1))


def merged(parts: list[Any]) -> Any:
    """What is known of several chunks."""
    return reduce(lambda one, other: one.merge(other), parts)


def check_rows(
    index: int, check: TargetCheck, loss: Loss, X: Any, y: Any, weights: Any = None
) -> Chunk | None:
    """The rows of a chunk; an error names the chunk and the row within it."""
    if X.shape[0] == 0 and len(y) == 0:
        return None
    try:
        X = check_features(X)
        check_squares(X)
        weights = None if weights is None else check_each_weight(np.asarray(weights), X)
        y, targets = check(y, X, weights, loss)
    except (TypeError, ValueError) as error:
        raise ChunkError(f"chunk {index}: {error}") from error
    return Chunk(index, X, y, weights, targets)


def check_features(X: Any) -> Array:
    """Features (n, d) as floats, dense or sparse; an error names the row."""
    check_sparse(X, "X")
    X = check_array(
        X,
        input_name="X",
        accept_sparse=("csr", "csc"),
        dtype=(np.float64, np.float32),
        order="C",
        ensure_all_finite=False,
    )
    check_finite(X, "X", "drop the row or fill the gap")
    return merge_duplicates(X.tocsr() if sparse.issparse(X) else X)


def encode(classes: Array | None, class_weights: Array | None, chunk: Chunk) -> Chunk | None:
    """Labels as numbers, weights with those of the classes, no samples of weight 0."""
    y, weights = chunk.y, chunk.weights
    if classes is not None:
        y = np.searchsorted(classes, y)
    if class_weights is not None:
        by_class = class_weights[y]
        weights = by_class if weights is None else by_class * weights
    if weights is None or weights.all():
        return replace(chunk, y=y, weights=weights)
    rows = np.flatnonzero(weights)
    if len(rows) == 0:
        return None
    return replace(chunk, X=chunk.X[rows], y=y[rows], weights=weights[rows])


# Features as the solvers see them


def gram_of(chunk: Chunk, scaling: Scaling) -> Array:
    """The Gram matrix of scaled features."""
    return gram(scaled(chunk.X, scaling), chunk.weights)


def stack(chunks: list[Chunk]) -> Chunk:
    """Several chunks as one."""
    weights = [chunk.weights for chunk in chunks if chunk.weights is not None]
    return replace(
        chunks[0],
        X=np.concatenate([chunk.X for chunk in chunks]),
        weights=np.concatenate(weights) if weights else None,
    )


def directions_of(chunk: Chunk, scaling: Scaling) -> Array:
    """The principal directions of scaled features."""
    return principal_directions(scaled(chunk.X, scaling), chunk.weights)


def make_design(
    fit_intercept: bool, chunk: Chunk, transformation: tuple[Scaling, Array | None]
) -> Design:
    """The design of a chunk, scaled and rotated as all of them."""
    scaling, basis = transformation
    if sparse.issparse(chunk.X):
        return sparse_design(chunk.X, chunk.weights, scaling, fit_intercept)
    matrix = scaled(chunk.X, scaling)
    return dense_design(matrix, chunk.weights, scaling, fit_intercept, basis)


def without_features(chunk: Chunk) -> Chunk:
    """Targets and weights alone."""
    return replace(chunk, X=None)


def weighted_spectrum(design: Design, chunk: Chunk) -> Array:
    """The spectrum of a chunk times its weight, and the weight."""
    weight = design.n_samples if chunk.weights is None else chunk.weights.sum()
    return np.append(weight * design.spectrum, weight)


def bind(
    first: int,
    loss: Loss,
    n_classes: int,
    binary: bool,
    n_threads: int,
    design: Design,
    chunk: Chunk,
) -> LocalSums:
    """Sums over a chunk, with the loss bound to its targets; an error names the chunk."""
    try:
        bound = engines.bind(
            loss.regularizer, loss.tightness, chunk.y, n_classes, design.like.dtype, n_threads
        )
    except (TypeError, ValueError) as error:
        raise ChunkError(f"chunk {chunk.index}: {error}") from error
    n_scores = 1 if binary else n_classes
    return LocalSums(design, BinaryLoss(bound) if binary else bound, chunk.weights, n_scores, first)


def is_ready(sums: LocalSums) -> bool:
    """Says that sums are there."""
    return sums.n_samples > 0


# Sums


def scores(sums: LocalSums, parameters: Array) -> Array:
    """Θ of a chunk."""
    return sums.design.scores(parameters, out=sums.empty_scores())


def evaluate(sums: LocalSums, theta: Array) -> tuple[float, Array | None]:
    """The sum of the losses of a chunk, and its gradient."""
    return sums.evaluate_at(theta, (sums.empty_values(), sums.empty_scores()))


def hessian(sums: LocalSums, theta: Array, step: Array | None = None) -> HessianOperator:
    """The Hessians of the rows of a chunk, or their means over steps like the given one."""
    return sums.hessian_at(theta, step, sums.empty_scores())


def curvature(sums: LocalSums, operator: HessianOperator) -> Array:
    """The curvature of the classes in a chunk."""
    return sums.curvature_at(operator, sums.empty_scores())


def product(sums: LocalSums, operator: HessianOperator, direction: Array) -> Array:
    """The Hessian product of a chunk."""
    return sums.product_at(operator, direction, sums.empty_scores())


def total(parts: list[Array]) -> Array:
    """The sum of arrays."""
    if len(parts) < 2:
        return parts[0]
    result = parts[0] + parts[1]
    for part in parts[2:]:
        result += part
    return result


def total_evaluation(parts: list[tuple[float, Array | None]]) -> tuple[float, Array | None]:
    """The sum of evaluations; one without a gradient has overflowed, and so has the sum."""
    gradients = [gradient for _, gradient in parts if gradient is not None]
    value = sum(value for value, _ in parts)
    return value, total(gradients) if len(gradients) == len(parts) else None


# Predictions and scores

Statistic = Callable[[Any, Array, Any, Array | None], list[Columns]]


def predict(X: Any, model: Any, method: str, empty: Array) -> Array:
    """The prediction for a chunk, which may have no rows."""
    return empty if X.shape[0] == 0 else np.asarray(getattr(model, method)(X))


def score(
    index: int, statistic: Statistic, X: Any, model: Any, y: Any, weights: Any = None
) -> list[Columns] | None:
    """The statistic of a chunk; None where no sample counts."""
    if X.shape[0] == 0 and len(y) == 0:
        return None
    try:
        X = check_features(X)
        if y.shape[0] != X.shape[0]:
            raise ValueError(f"X has {X.shape[0]} rows and y {y.shape[0]}")
        if weights is not None:
            weights = check_each_weight(np.asarray(weights), X)
            if not weights.any():
                return None
        return statistic(model, X, y, weights)
    except (TypeError, ValueError) as error:
        raise ChunkError(f"chunk {index}: {error}") from error


def merged_statistics(parts: list[list[Columns]]) -> list[Columns]:
    """Each number of a statistic over all chunks in which samples count."""
    return [merged(list(column)) for column in zip(*parts, strict=True)]


def hits(model: Any, X: Array, y: Any, weights: Array | None) -> list[Columns]:
    """Whether samples are of the class that a classifier predicts; the mean is the accuracy."""
    right = model.predict(X) == np.asarray(y).reshape(-1)
    return [Columns.of(right.astype(np.float64)[:, None], weights)]


def deviations(model: Any, X: Array, y: Any, weights: Array | None) -> list[Columns]:
    """Targets, and squares of what a regressor leaves of them: what R² is made of."""
    y = y.toarray() if sparse.issparse(y) else np.asarray(y, dtype=np.float64)
    y = y.reshape(len(y), -1)
    residual = np.square(y - model.predict(X).reshape(y.shape))
    return [Columns.of(y, weights), Columns.of(residual, weights)]


def accuracy(found: list[Columns]) -> float:
    """The share of samples whose class a classifier predicts."""
    return float(found[0].mean[0])


def r2(found: list[Columns]) -> float:
    """R² averaged over the columns, as scikit-learn has it for targets that are constant."""
    spread, left = found[0].variance, found[1].mean
    safe = np.where(spread > 0, spread, 1.0)
    return float(np.where(spread > 0, 1 - left / safe, np.where(left > 0, 0.0, 1.0)).mean())
