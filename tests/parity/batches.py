"""The stored points as batches: one call evaluates many of them, in one form of targets."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

import fitzpatrick as fp
from fitzpatrick.regularizers import Indicator, Regularizer, SquaredNorm, Tsallis
from fitzpatrick.sets import Box, L1Ball, L2Ball, Orthant
from tests.helpers import FLOOR_IN_EPS, eps
from tests.reference import Points, load, recipe

REGULARIZERS: dict[str, Regularizer] = {
    **fp.losses.regularizers_by_name(),
    "sparsemap_l2_ball": SquaredNorm(L2Ball()),
    "sparsemap_l1_ball": SquaredNorm(L1Ball()),
    "sparsemap_orthant": SquaredNorm(Orthant()),
    "perceptron_cube": Indicator(Box()),
    "perceptron_l2_ball": Indicator(L2Ball()),
    "perceptron_l1_ball": Indicator(L1Ball()),
    **{f"tsallis_{alpha}": Tsallis(alpha) for alpha in recipe.TSALLIS_ALPHAS},
}
TIGHTNESSES = tuple(sorted({*recipe.ENDS, *recipe.OTHERS, *recipe.MANY}))
# The size that rows of up to 8 classes are padded to, by classes that are masked.
PADDED = 8
# The sizes that are compared without padding as well.
WHOLE = (1, 3, 40)


@dataclass(frozen=True)
class Batch:
    """Rows of one size, their targets in one form, and what the exact results are."""

    name: str
    tightness: float
    dtype: str
    form: str
    points: Points

    @property
    def omega(self) -> Regularizer:
        return REGULARIZERS[self.name]

    @functools.cached_property
    def y(self) -> Any:
        """Labels, a CSR array with stored zeros, or dense rows."""
        y = self.points.y
        if self.form == "labels":
            return y.argmax(axis=1)
        return with_stored_zeros(y) if self.form == "csr" else y

    @property
    def theta(self) -> np.ndarray:
        return self.points.theta

    @property
    def v(self) -> np.ndarray:
        """Rows to apply the Hessian to."""
        n, k = self.theta.shape
        return np.cos(1 + np.arange(n * k)).reshape(n, k).astype(self.dtype)

    @property
    def floor(self) -> np.ndarray:
        """The absolute error that is promised for each row."""
        scale = np.max(np.abs(self.points.y), axis=-1, initial=1)
        if recipe.regularizer_of(self.name).domain in ("l1_ball", "l2_ball"):
            # a target on the sphere is rounded itself, and the loss is its distance from the
            # sphere times the score; beyond c = 2 the error of each of the k entries of y* counts
            # (1 + c) times its distance from y
            theta = np.where(np.isfinite(self.theta), self.theta, 0)
            scale = np.maximum(scale, np.max(np.abs(theta), axis=-1, initial=0))
            if self.tightness > 2:
                scale = np.maximum(scale, 1 + self.tightness) * self.theta.shape[1]
        return FLOOR_IN_EPS * eps(self.dtype) * scale.astype(np.float64)

    def with_rows(self, rows: Any) -> Batch:
        """Some of the rows."""
        points = Points(*(array[rows] for array in self.points))
        return Batch(self.name, self.tightness, self.dtype, self.form, points)


def with_stored_zeros(y: np.ndarray) -> sparse.csr_array:
    """A CSR array that stores every other zero, and its indices in falling order."""
    stored = (y != 0) | (np.add.outer(np.arange(len(y)), np.arange(y.shape[1])) % 2 == 0)
    rows, columns = np.nonzero(stored[:, ::-1])
    columns = y.shape[1] - 1 - columns
    indptr = np.concatenate([[0], np.cumsum(stored.sum(axis=1))])
    return sparse.csr_array((y[rows, columns], columns, indptr), shape=y.shape)


def read(name: str, tightness: float, dtype: str) -> dict[int, Points]:
    """All stored rows of a loss by their size."""
    regularizer = recipe.regularizer_of(name)
    case, found = regularizer.case(tightness), {}
    groups: list[Points] = []
    if regularizer.is_perceptron or tightness in (*recipe.ENDS, *recipe.OTHERS):
        groups += load(case, dtype)
    if not regularizer.is_perceptron and tightness in recipe.MANY:
        groups += load(case, dtype, is_few=True)
    for points in groups:
        k = points.y.shape[1]
        found[k] = concatenated([found[k], points]) if k in found else points
    return found


def concatenated(groups: list[Points]) -> Points:
    return Points(*(np.concatenate(arrays) for arrays in zip(*groups, strict=True)))


def padded(name: str, points: Points) -> Points:
    """The rows with as many classes more as PADDED asks for, which are masked."""
    more = [(0, 0), (0, PADDED - points.y.shape[1])]
    domain = recipe.regularizer_of(name).domain
    score = -np.inf if domain in ("simplex", "cube", "counts") else 0.0
    unique = ~np.isnan(points.y_star).any(axis=1, keepdims=True)
    y_star = np.where(unique, np.pad(points.y_star, more), np.nan)
    return Points(
        np.pad(points.y, more),
        np.pad(points.theta, more, constant_values=score),
        points.value,
        y_star,
    )


def batches(
    name: str, tightness: float, dtype: str, form: str, rows: int | None = None
) -> list[Batch]:
    """All stored rows that have this form: one batch of padded rows, and those of some sizes.

    ``rows`` asks for that many of the padded rows alone.
    """
    groups = read(name, tightness, dtype)
    if form == "labels":
        groups = {k: only_labels(points) for k, points in groups.items()}
    one = concatenated([padded(name, points) for k, points in groups.items() if k <= PADDED])
    if rows is not None:
        # about as many as asked for, the same number for every loss, and from every kind
        picked = np.linspace(0, len(one.value) - 1, rows).round().astype(int)
        groups = {PADDED: Points(*(array[picked] for array in one))}
    else:
        groups = {PADDED: one, **{k: groups[k] for k in WHOLE if k in groups}}
    return [Batch(name, tightness, dtype, form, points) for points in groups.values()]


def only_labels(points: Points) -> Points:
    """The rows whose target is a class."""
    rows = np.sum(points.y != 0, axis=1) == 1
    return Points(*(array[rows] for array in points))
