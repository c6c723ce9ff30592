"""Predictions and scores of chunks, on workers."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np
from scipy import sparse

from .._array import Array
from .._weights import check_each_weight
from ._chunks import check_features
from ._rounds import ChunkError
from ._statistics import Columns


def predict_chunk(X: Any, model: Any, method: str, empty: Array) -> Array:
    """The prediction for a chunk, which may have no rows."""
    return empty if X.shape[0] == 0 else np.asarray(getattr(model, method)(X))


@dataclass(frozen=True, eq=False)
class Mean:
    """Weighted means over samples."""

    weight: float
    mean: Array

    def merge(self, other: "Mean") -> "Mean":
        """That of both."""
        weight = self.weight + other.weight
        return Mean(weight, self.mean + other.weight / weight * (other.mean - self.mean))


@dataclass(frozen=True, eq=False)
class Deviations:
    """Targets, and mean squares of what a model leaves of them, column by column."""

    targets: Columns
    residual: Mean

    def merge(self, other: "Deviations") -> "Deviations":
        """Those of both."""
        return Deviations(self.targets.merge(other.targets), self.residual.merge(other.residual))


Statistic = Callable[[Any, Array, Any, Array | None], Any]


def score_chunk(
    index: int, statistic: Statistic, model: Any, X: Any, y: Any, weights: Any = None
) -> Any:
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


def merge_statistics(parts: list[Any]) -> Any:
    """That of all chunks in which samples count."""
    found = [part for part in parts if part is not None]
    return reduce(lambda one, other: one.merge(other), found) if found else None


@dataclass(frozen=True, eq=False)
class Score:
    """A score of an estimator, by chunks.

    Args:
        statistic: of a chunk; those of all chunks are merged.
        finish: the score from the merged statistic; None where no sample counts.
    """

    statistic: Statistic
    finish: Callable[[Any], Array]


def accuracy(model: Any, X: Array, y: Any, weights: Array | None) -> Mean:
    """How many samples are of the class that a classifier predicts."""
    right = model.predict(X) == np.asarray(y).reshape(-1)
    return mean_of(right.astype(np.float64), weights)


def accuracy_of(model: Any, X: Array, y: Array, sample_weight: Array | None) -> float:
    """The share of samples whose class a classifier predicts."""
    return float(accuracy(model, X, y, sample_weight).mean)


def deviations(model: Any, X: Array, y: Any, weights: Array | None) -> Deviations:
    """What R² is made of."""
    y = y.toarray() if sparse.issparse(y) else np.asarray(y, dtype=np.float64)
    y = y.reshape(len(y), -1)
    residual = np.square(y - model.predict(X).reshape(y.shape))
    return Deviations(Columns.of(y, weights), mean_of(residual, weights))


def mean_of(values: Array, weights: Array | None) -> Mean:
    """The weighted mean over the first axis."""
    weight = len(values) if weights is None else weights.sum()
    return Mean(float(weight), np.average(values, axis=0, weights=weights))


def finish_mean(found: Mean | None) -> Array:
    """The mean, or NaN without samples."""
    return np.asarray(np.nan if found is None else found.mean)


def finish_r2(found: Deviations | None) -> Array:
    """R² averaged over the columns, as scikit-learn has it for targets that are constant."""
    if found is None:
        return np.asarray(np.nan)
    left, spread = found.residual.mean, found.targets.variance
    safe = np.where(spread > 0, spread, 1.0)
    r2 = np.where(spread > 0, 1 - left / safe, np.where(left > 0, 0.0, 1.0))
    return np.asarray(r2.mean())


ACCURACY = Score(accuracy, finish_mean)
R2 = Score(deviations, finish_r2)
