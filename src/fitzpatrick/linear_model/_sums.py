"""Sums over the samples, as functions of the parameters P: all that a solver asks of the data.

A solver sees the samples as :class:`SampleSums`, wherever they live. :class:`LocalSums` are over
samples in memory or on one device. Sums over parts of the data add up, so that each part can be
summed where it is.
"""

import functools
import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from .. import engines
from .._array import Array, as_library, is_foreign, is_numpy, namespace, to_numpy
from ..engines import BoundLoss, HessianOperator
from ..engines.bound import CoreHessian
from ..losses import Loss
from ._checks import FitSettings, check_largest_weight
from ._design import Design, ParameterSpace, make_design
from ._preconditioner import Map, block_cost, block_inverse
from ._threads import limited_blas
from ._vectors import cast

# Classes up to which the curvature of all rows is computed in full: from the slopes of the entries
# where the Hessian has them, else by one Hessian product for each class.
MAX_CLASSES_BY_ENTRIES, MAX_CLASSES_BY_PRODUCTS = 64, 8
MAX_COLUMN_MAJOR_CLASSES = 32
# Of a step, in root mean squares of what the one before did to the scores of a row. On delicious 4
# takes fewer iterations than 2, and 8 more Hessian products; on scene they are alike.
REACH = 4.0


class SampleSums(ABC):
    """Sums over the samples of a fit."""

    space: ParameterSpace  # what the parameters stand for
    n_scores: int  # k
    n_samples: int  # n
    total_weight: float  # Σ w_i
    block_cost: float = math.inf  # of the exact blocks, in Hessian products

    @abstractmethod
    def evaluate(self, parameters: Array) -> tuple[float, Array | None]:
        """Σ w_i L_i and its gradient (p, k), which is None if the sum overflows."""

    @abstractmethod
    def linearize(self, parameters: Array, step: Array | None = None) -> Any:
        """The Hessians of the rows at P, or their means over steps like the given one."""

    @abstractmethod
    def product(self, hessian: Any, direction: Array) -> Array:
        """V ↦ Σ w_i x_i (∇²L_i) x_iᵀ V, shape (p, k); the caller may change it."""

    @abstractmethod
    def curvature_of_classes(self, hessian: Any) -> Array:
        """C = Σ w_i ∇²L_i in NumPy, or with many classes something simpler.

        That is (k, k) in full, its diagonal (k,), or trace(C)/k as a number.
        """

    def block_inverse(self, hessian: Any, ridge: Array) -> Map | None:
        """The inverse of the exact blocks of the classes with a ridge, if there is one."""
        return None


def memory_order(n_scores: int) -> Literal["C", "F"]:
    """That of scores and parameters: few columns are multiplied faster if they are contiguous."""
    return "F" if n_scores <= MAX_COLUMN_MAJOR_CLASSES else "C"


def _inverse(total: Array) -> Array:
    """1 / ⟨d_i, 1⟩ as a column; 1 for rows without curvature, where d = 0."""
    xp = namespace(total)
    return (1 / xp.where(total > 0, total, xp.ones_like(total)))[:, None]


def with_zero_score(score: Array) -> Array:
    """θ = (0, s), shape (n, 2), for scores of shape (n, 1).

    Losses on the simplex do not change when a constant is added to all scores of a row, so that one
    score says as much as two; the penalty then falls on one row of coefficients, as in logistic
    regression.
    """
    xp = namespace(score)
    return xp.concat([xp.zeros_like(score.T), score.T], axis=0).T  # with contiguous columns


def _pair_product(pair: HessianOperator, v: Array) -> Array:
    return pair(with_zero_score(v))[:, 1:]


class BinaryLoss:
    """A loss of two classes as a function of one score."""

    def __init__(self, pair: BoundLoss, *, keeps_buffers: bool = True) -> None:
        self._pair = pair
        self._keeps_buffers = keeps_buffers
        self._buffers: tuple[Array, Array] | None = None

    def _scores(self, theta: Array) -> tuple[Array, Array]:
        """(0, s) in a buffer that serves every call, and a buffer of the same shape."""
        if self._buffers is not None:
            self._buffers[0][:, 1:] = theta
            return self._buffers
        scores = with_zero_score(theta)
        buffers = scores, namespace(scores).empty_like(scores)
        if self._keeps_buffers:
            self._buffers = buffers
        return buffers

    def value_and_gradient(self, theta: Array, out: tuple[Array, Array]) -> tuple[Array, Array]:
        values, gradient = out
        scores, both = self._scores(theta)
        values, both = self._pair.value_and_gradient(scores, (values, both))
        gradient[...] = both[:, 1:]
        return values, gradient

    def hessian_operator(self, theta: Array, reach: Array | None = None) -> HessianOperator:
        # a step of s moves both scores by half of it, around their mean
        reach = None if reach is None else reach / 2
        pair, d = self._pair.hessian_operator(self._scores(theta)[0], reach), None
        if pair.d is not None and pair.total is not None:
            d = pair.d[:, :1] * pair.d[:, 1:] * _inverse(pair.total)
        return CoreHessian(d, None, functools.partial(_pair_product, pair))


@dataclass(eq=False)
class LocalSums(SampleSums):
    """Sums over samples in memory or on one device, all or a part of the data.

    On parts, workers call the methods that do without P.
    """

    design: Design
    loss: BoundLoss | BinaryLoss  # bound to the targets
    weights: Array | None  # None for ones
    n_scores: int
    seed: int = 0  # of random signs; parts that are added up have different ones
    keeps_buffers: bool = True  # False for parts, which workers keep and send

    def __post_init__(self) -> None:
        self.space = self.design
        self.n_samples = self.design.n_samples
        self.total_weight = float(self.n_samples if self.weights is None else self.weights.sum())
        self.block_cost = block_cost(self.design.matrix, self.n_scores)
        self._parameters: Array | None = None  # whose scores the first buffer holds
        self._buffers: dict[str, Array] = {}

    @functools.cached_property
    def _weights(self) -> Array | None:
        return None if self.weights is None else self.space.place(self.weights)

    @functools.cached_property
    def _column(self) -> Array | None:
        weights = self._weights
        return None if weights is None else cast(weights[:, None], self.space.like.dtype)

    def _buffer(self, use: str) -> Array:
        """An array for numbers of the rows."""
        if use in self._buffers:
            return self._buffers[use]
        like = self.space.like
        shape = (self.n_samples,) if use == "values" else (self.n_samples, self.n_scores)
        if is_numpy(like):
            buffer = np.empty(shape, dtype=like.dtype, order=memory_order(self.n_scores))
        else:
            buffer = namespace(like).empty(shape, dtype=like.dtype, device=like.device)
        if self.keeps_buffers:
            self._buffers[use] = buffer
        return buffer

    def scores_at(self, parameters: Array) -> Array:
        return self.design.scores(parameters, self._buffer("scores"))

    def evaluate(self, parameters: Array) -> tuple[float, Array | None]:
        self._parameters = parameters
        return self.evaluate_at(self.scores_at(parameters))

    def evaluate_at(self, theta: Array) -> tuple[float, Array | None]:
        buffers = self._buffer("values"), self._buffer("gradients")
        values, residual = self.loss.value_and_gradient(theta, buffers)
        total = float(self._sum(values))
        if not math.isfinite(total):
            return math.inf, None
        return total, self._adjoint(residual)

    def _adjoint(self, rows: Array) -> Array:
        """Σ w_i x_i r_iᵀ, for rows r that may be changed."""
        if self._column is not None:
            rows *= self._column
        return self.design.adjoint(rows)

    def linearize(self, parameters: Array, step: Array | None = None) -> HessianOperator:
        at_last = self._parameters is parameters
        self._parameters = parameters
        theta = self._buffer("scores") if at_last else self.scores_at(parameters)
        return self.hessian_at(theta, step)

    def hessian_at(self, theta: Array, step: Array | None = None) -> HessianOperator:
        """The Hessian of the loss at θ, or its mean over scores as far away as a step leads."""
        if step is None:
            return self.loss.hessian_operator(theta)
        change = self.design.scores(step, self._buffer("tangents"))
        xp = namespace(change)
        reach = REACH * xp.sqrt(xp.mean(change * change, axis=1))
        return self.loss.hessian_operator(theta, reach)

    def product(self, hessian: HessianOperator, direction: Array) -> Array:
        tangent = self.design.scores(direction, self._buffer("tangents"))
        return self._adjoint(hessian(tangent, tangent))

    def curvature_of_classes(self, hessian: HessianOperator) -> Array:
        if hessian.d is not None:
            if self.n_scores > MAX_CLASSES_BY_ENTRIES:
                return self._sum(self._diagonal(hessian))
            return self._curvature_by_entries(hessian)
        if self.n_scores > MAX_CLASSES_BY_PRODUCTS:
            return np.asarray(self._mean_curvature(hessian))
        return self._curvature_by_products(hessian)

    def block_inverse(self, hessian: HessianOperator, ridge: Array) -> Map | None:
        if hessian.d is None:
            return None
        diagonal = self._diagonal(hessian)
        weights = diagonal if self._column is None else diagonal * self._column
        return block_inverse(self.design.matrix, weights, ridge)

    def _curvature_by_entries(self, hessian: HessianOperator) -> Array:
        """C = Σ w_i (diag(d_i) − d_i d_iᵀ / ⟨d_i, 1⟩)."""
        d: Array = hessian.d
        full = np.diag(self._sum(d))
        if hessian.total is not None:
            share = _inverse(hessian.total)
            full -= to_numpy(d.T @ (d * (share if self._column is None else share * self._column)))
        return full

    def _diagonal(self, hessian: HessianOperator) -> Array:
        """The diagonals of the rows' Hessians, (n, k)."""
        d: Array = hessian.d
        return d if hessian.total is None else d - d * d * _inverse(hessian.total)

    def _curvature_by_products(self, hessian: HessianOperator) -> Array:
        """C, column by column."""
        full, tangent = np.empty((self.n_scores, self.n_scores)), self._buffer("tangents")
        for j in range(self.n_scores):
            tangent[...] = 0
            tangent[:, j] = 1
            full[:, j] = self._sum(hessian(tangent, tangent))
        return (full + full.T) / 2

    def _mean_curvature(self, hessian: HessianOperator) -> float:
        """The mean eigenvalue of C, trace(C)/k, from one product with random signs."""
        tangent = self._buffer("tangents")
        tangent[...] = self._signs
        product = hessian(tangent, tangent)
        product *= self._signs
        return float(self._sum(product).mean())

    @functools.cached_property
    def _signs(self) -> Array:
        shape = self.n_samples, self.n_scores
        signs = 2 * np.random.default_rng(self.seed).integers(0, 2, size=shape, dtype=np.int8) - 1
        return cast(self.space.place(signs), self.space.like.dtype)

    def _sum(self, values: Array) -> Array:
        """Weighted sum over the samples, in NumPy."""
        xp = namespace(values)
        if self._weights is not None:
            return to_numpy(self._weights @ cast(values, xp.float64))
        return to_numpy(xp.sum(values, axis=0, dtype=xp.float64))


def take_rows(X: Array, rows: Array) -> Array:
    if is_foreign(X):
        return namespace(X).take(X, as_library(rows, X), axis=0)
    return X[rows]


class TrainingData(ABC):
    """Checked inputs of a fit, wherever they are."""

    n_classes: int  # k
    binary: bool  # True if two classes share one row of coefficients

    @property
    def n_scores(self) -> int:
        """Rows of coef_."""
        return 1 if self.binary else self.n_classes

    @abstractmethod
    def sums(self, settings: FitSettings) -> SampleSums:
        """Sums over the samples that count, for settings that differ in the loss alone."""


@dataclass(eq=False)
class Data(TrainingData):
    """Checked inputs of a fit, in memory or on a device."""

    X: Array  # dense, of any array library, or sparse
    targets: Array  # (n, k) in NumPy or CSR, or integer labels (n,)
    n_classes: int
    weights: Array | None  # None for ones
    binary: bool
    _counted: "tuple[Data, Design] | None" = None  # samples of positive weight

    def __post_init__(self) -> None:
        if self.weights is not None:
            check_largest_weight(float(self.weights.max()), len(self.weights))

    def take(self, rows: Array) -> "Data":
        weights = None if self.weights is None else self.weights[rows]
        X = take_rows(self.X, rows)
        return Data(X, self.targets[rows], self.n_classes, weights, self.binary)

    def sums(self, settings: FitSettings) -> LocalSums:
        if self._counted is None:
            data = self
            if self.weights is not None and not self.weights.all():
                data = self.take(np.flatnonzero(self.weights))
            options = {"fit_intercept": settings.fit_intercept, "standardize": settings.standardize}
            with limited_blas(settings.n_threads):
                design = make_design(data.X, data.weights, n_scores=self.n_scores, **options)
            self._counted = data, design
        data, design = self._counted
        return data.bind(design, settings.loss, settings.n_threads)

    def bind(
        self,
        design: Design,
        loss: Loss,
        n_threads: int | None,
        seed: int = 0,
        *,
        keeps_buffers: bool = True,
    ) -> LocalSums:
        """Sums over these samples, with a loss bound to their targets."""
        given = loss.regularizer, loss.tightness, self.targets, self.n_classes, design.like
        bound = engines.bind_like(*given, n_threads)
        of_rows = BinaryLoss(bound, keeps_buffers=keeps_buffers) if self.binary else bound
        return LocalSums(design, of_rows, self.weights, self.n_scores, seed, keeps_buffers)
