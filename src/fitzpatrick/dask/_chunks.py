"""What workers do with a chunk of rows: check and measure it, sum over it, predict and score.

Means and variances are merged by their differences (Chan, Golub and LeVeque 1979), which is as
accurate as the two passes that one machine makes.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import reduce
from typing import Any

import numpy as np
from scipy import sparse

from .._array import Array
from .._weights import check_any_weight, check_each_weight
from ..linear_model import _checks
from ..linear_model._design import Design, Scaling, bounds, design_of, moments, scaled
from ..linear_model._sums import Data, LocalSums
from ..linear_model._vectors import entries
from ..losses import Loss
from ._rounds import ChunkError


@contextmanager
def errors_of(index: int) -> Iterator[None]:
    """Name the chunk that an error is about."""
    try:
        yield
    except (TypeError, ValueError) as error:
        raise ChunkError(f"chunk {index}: {error}") from error


# Targets

ONE_COLUMN = "(n,)"
Checked = tuple[Array, dict[str, Any]]  # targets, and what a ChunkSummary says of them
TargetCheck = Callable[[Any, Array, Array | None, Loss], Checked]


def labels_of(y: Any, X: Array, weights: Array | None, _loss: Loss) -> Checked:
    y = _checks.label_column(y, X)
    labels, places = np.unique(y, return_inverse=True)
    _checks.check_classes(np.repeat(labels, 2))  # scikit-learn warns if most labels occur once
    totals = np.bincount(places, weights=weights).astype(np.float64)
    form = {"type of y": "text" if labels.dtype.kind in "UO" else "numbers"}
    return y, {"form": form, "labels": labels, "totals": totals}


def proportions_of(y: Any, X: Array, _weights: Array | None, loss: Loss) -> Checked:
    """Targets (n, k) of a chunk, in the domain of a loss."""
    y, rounding = _checks.exact_proportions(y, loss, X)
    rows = y.reshape(-1, 1) if y.ndim == 1 else y
    return rows, _facts(y.ndim, int(rows.shape[1]), rounding)


def numbers_of(y: Any, X: Array, _weights: Array | None, loss: Loss) -> Checked:
    """Targets (n, k) of a chunk, or integer labels from 0 on."""
    y, n_classes, rounding = _checks.check_targets(y, loss, X)
    return y, _facts(y.ndim, n_classes, rounding)


def _facts(ndim: int, n_classes: int, rounding: float) -> dict[str, Any]:
    form = {"shape of y": ONE_COLUMN if ndim == 1 else f"(n, {n_classes})"}
    return {"form": form, "n_classes": n_classes, "rounding": rounding}


# Rows


@dataclass(frozen=True, eq=False)
class Columns:
    """Weighted means, variances and bounds of columns in some rows."""

    n_samples: int
    weight: float
    mean: Array
    variance: Array
    low: Array
    high: Array

    @classmethod
    def of(cls, X: Array, weights: Array | None) -> "Columns":
        weight = float(X.shape[0] if weights is None else weights.sum())
        return cls(int(X.shape[0]), weight, *moments(X, weights), *bounds(X))

    def merge(self, other: "Columns") -> "Columns":
        weight = self.weight + other.weight
        share = other.weight / weight
        difference = other.mean - self.mean
        return Columns(
            self.n_samples + other.n_samples,
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
    """Checked rows."""

    index: int
    X: Array  # None in a chunk that has a design instead
    y: Array  # as the check of the data returns it
    weights: Array | None
    facts: dict[str, Any]  # of the targets, as their check returns them

    def counted(self) -> "Chunk | None":
        """The samples of positive weight; None if there are none."""
        if self.weights is None or self.weights.all():
            return self
        rows = np.flatnonzero(self.weights)
        if len(rows) == 0:
            return None
        return replace(self, X=self.X[rows], y=self.y[rows], weights=self.weights[rows])


@dataclass(frozen=True, eq=False)
class ChunkSummary:
    """What is known of some chunks."""

    chunk: int  # the first of them
    X: Array  # its features without their rows
    form: dict[str, Any]  # by a name for it; all chunks have the same
    largest_weight: float  # 0 without weights
    columns: Columns | None  # of samples of positive weight; None without any
    n_classes: int = 0  # columns of y, or for integer labels one more than the largest
    rounding: float = 0.0  # as exact_proportions returns it
    labels: Array = field(default_factory=lambda: np.empty(0))  # of a classifier, sorted
    totals: Array = field(default_factory=lambda: np.empty(0))  # weights of their samples

    @classmethod
    def of(cls, chunk: Chunk) -> "ChunkSummary":
        X, weights, counted = chunk.X, chunk.weights, chunk.counted()
        form = {"n_features of X": X.shape[1], "dtype of X": X.dtype}
        form |= {"is_sparse of X": sparse.issparse(X)} | chunk.facts["form"]
        largest_weight = 0.0 if weights is None else float(weights.max())
        columns = None if counted is None else Columns.of(counted.X, counted.weights)
        facts = chunk.facts | {"form": form}
        return cls(chunk.index, X[:0], largest_weight=largest_weight, columns=columns, **facts)

    def merge(self, other: "ChunkSummary") -> "ChunkSummary":
        """The summary of both; an error names the chunk that does not go with those before."""
        for name, here in self.form.items():
            if (there := other.form[name]) != here:
                raise ChunkError(
                    f"chunk {other.chunk}: {name} is {there}, and {here} in the chunks before; "
                    "give all chunks the same columns and one type"
                )
        columns = [part for part in (self.columns, other.columns) if part is not None]
        labels, places = np.unique(np.concatenate([self.labels, other.labels]), return_inverse=True)
        return replace(
            self,
            largest_weight=max(self.largest_weight, other.largest_weight),
            columns=merged(columns) if columns else None,
            n_classes=max(self.n_classes, other.n_classes),
            rounding=max(self.rounding, other.rounding),
            labels=labels,
            totals=np.bincount(places, np.concatenate([self.totals, other.totals])),
        )

    def check(self) -> None:
        """Raise if there are no samples that count, or sums of squares would overflow."""
        check_any_weight(self.columns is not None)
        assert self.columns is not None
        n_samples = self.columns.n_samples
        largest = np.maximum(-self.columns.low, self.columns.high).max()
        _checks.check_largest(float(largest), n_samples * self.X.shape[1], entries(self.X))
        _checks.check_largest_weight(self.largest_weight, n_samples)


def merged(parts: list[Any]) -> Any:
    return reduce(lambda one, other: one.merge(other), parts)


def check_rows(
    index: int, check: TargetCheck, loss: Loss, X: Any, y: Any, weights: Any = None
) -> Chunk | None:
    """The rows of a chunk; an error names the chunk and the row within it."""
    if X.shape[0] == y.shape[0] == 0:
        return None
    with errors_of(index):
        X = check_features(X)
        weights = None if weights is None else check_each_weight(np.asarray(weights), X)
        y, facts = check(y, X, weights, loss)
    return Chunk(index, X, y, weights, facts)


def check_features(X: Any) -> Array:
    """Features (n, d) as floats, dense or CSR; an error names the row."""
    X = _checks.check_features(X)
    return X.tocsr() if sparse.issparse(X) else X


def encode(classes: Array | None, class_weights: Array | None, chunk: Chunk) -> Chunk | None:
    """Labels as numbers, weights times class weights, no samples of weight 0."""
    y, weights = chunk.y, chunk.weights
    if classes is not None:
        y = np.searchsorted(classes, y)
    if class_weights is not None:
        by_class = class_weights[y]
        weights = by_class if weights is None else by_class * weights
    return replace(chunk, y=y, weights=weights).counted()


# Features as the solvers see them


def columns_of(chunk: Chunk) -> Columns:
    """The columns of a chunk without samples of weight 0."""
    return Columns.of(chunk.X, chunk.weights)


def of_scaled(
    function: Callable[[Array, Array | None], Array], chunk: Chunk, scaling: Scaling
) -> Array:
    """A function of the scaled features of a chunk and their weights."""
    return function(scaled(chunk.X, scaling), chunk.weights)


def stack(chunks: list[Chunk]) -> Chunk:
    weights = [chunk.weights for chunk in chunks if chunk.weights is not None]
    return replace(
        chunks[0],
        X=np.concatenate([chunk.X for chunk in chunks]),
        weights=np.concatenate(weights) if weights else None,
    )


def make_design(
    fit_intercept: bool, chunk: Chunk, transformation: tuple[Scaling, Array | None]
) -> tuple[Design, Chunk]:
    """The design of a chunk, scaled and rotated as all of them, and the chunk without features."""
    scaling, basis = transformation
    design = design_of(scaled(chunk.X, scaling), chunk.weights, scaling, basis, fit_intercept)
    return design, replace(chunk, X=None)


def weighted_spectrum(part: tuple[Design, Chunk]) -> Array:
    """The spectrum of a chunk times its weight, and the weight."""
    design, chunk = part
    weight = design.n_samples if chunk.weights is None else chunk.weights.sum()
    return np.append(weight * design.spectrum, weight)


def bind(
    loss: Loss, n_classes: int, binary: bool, n_threads: int, part: tuple[Design, Chunk]
) -> LocalSums:
    """Sums over a chunk, with the loss bound to its targets; an error names the chunk."""
    design, chunk = part
    data = Data(None, chunk.y, n_classes, chunk.weights, binary)
    with errors_of(chunk.index):
        return data.bind(design, loss, n_threads, chunk.index, keeps_buffers=False)


# Sums


def total(parts: Sequence[Array]) -> Array:
    return reduce(np.add, parts)


def total_evaluation(parts: list[tuple[float, Array | None]]) -> tuple[float, Array | None]:
    """The sum of evaluations; one without a gradient has overflowed, and so has the sum."""
    values, gradients = zip(*parts, strict=True)
    if any(gradient is None for gradient in gradients):
        return math.inf, None
    return sum(values), total(gradients)


# Predictions and scores

Statistic = Callable[[Any, Array, Any, Array | None], Columns]


def predict(X: Any, model: Any, method: str, empty: Array) -> Array:
    """The prediction for a chunk, which may have no rows."""
    return empty if X.shape[0] == 0 else np.asarray(getattr(model, method)(X))


def score(
    index: int, statistic: Statistic, X: Any, model: Any, y: Any, weights: Any = None
) -> Columns | None:
    """The statistic of a chunk; None if no sample counts."""
    if X.shape[0] == y.shape[0] == 0:
        return None
    with errors_of(index):
        X = check_features(X)
        if y.shape[0] != X.shape[0]:
            raise ValueError(f"X has {X.shape[0]} rows and y {y.shape[0]}")
        if weights is not None:
            weights = check_each_weight(np.asarray(weights), X)
            if not weights.any():
                return None
        return statistic(model, X, y, weights)


def hits(model: Any, X: Array, y: Any, weights: Array | None) -> Columns:
    """1 for samples of the class that a classifier predicts, else 0; the mean is the accuracy."""
    right = model.predict(X) == np.asarray(y).reshape(-1)
    return Columns.of(right.astype(np.float64)[:, None], weights)


def deviations(model: Any, X: Array, y: Any, weights: Array | None) -> Columns:
    """Targets and the squared residuals of a regressor, from which R² follows."""
    y = y.toarray() if sparse.issparse(y) else np.asarray(y, dtype=np.float64)
    y = y.reshape(len(y), -1)
    residual = np.square(y - model.predict(X).reshape(y.shape))
    return Columns.of(np.hstack([y, residual]), weights)


def r2(found: Columns) -> float:
    """R² averaged over the columns, as scikit-learn has it for targets that are constant."""
    k = len(found.mean) // 2
    spread, left = found.variance[:k], found.mean[k:]
    safe = np.where(spread > 0, spread, 1.0)
    return float(np.where(spread > 0, 1 - left / safe, np.where(left > 0, 0.0, 1.0)).mean())
