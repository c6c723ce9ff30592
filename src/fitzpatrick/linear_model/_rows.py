"""Sums over the samples, as functions of the parameters P: all that a solver asks of the data.

A solver sees the samples as :class:`Rows`, wherever they live. :class:`Samples` are some of them in
memory. Their sums add up, so that each part of the data can be summed where it is.
"""

import functools
import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Literal

import numpy as np

from .._array import Array, is_numpy, namespace, to_numpy
from ..engines import BoundLoss, HessianOperator
from ._blocks import block_cost, block_inverse
from ._design import Design, ParameterSpace
from ._preconditioner import Map
from ._vectors import cast

# Classes up to which the curvature of all rows is computed in full: from the slopes of the entries
# where the Hessian has them, else by one Hessian product for each class.
MAX_CLASSES_BY_ENTRIES, MAX_CLASSES_BY_PRODUCTS = 64, 8
MAX_COLUMN_MAJOR_CLASSES = 32
# Of a step, in root mean squares of what the one before did to the scores of a row. On delicious 4
# takes fewer iterations than 2, and 8 more Hessian products; on scene they are alike.
REACH = 4.0
SIGNS_PER_STEP = 8  # of the bit generator: one of its 64-bit numbers is eight signs


class RowCurvature(ABC):
    """The Hessians of the rows at one P."""

    @abstractmethod
    def product(self, direction: Array) -> Array:
        """V ↦ Σ w_i x_i (∇²L_i) x_iᵀ V, shape (p, k); the caller may change it."""

    @abstractmethod
    def of_classes(self) -> Array:
        """C = Σ w_i ∇²L_i in NumPy, or with many classes something simpler.

        That is (k, k) in full, its diagonal (k,), or trace(C)/k as a number.
        """

    def block_inverse(self, ridge: Array) -> Map | None:
        """The inverse of the exact blocks of the classes with a ridge; None where there is none."""
        return None

    @property
    def is_coupled(self) -> bool:
        """Whether the entries of a row are, in the blocks."""
        return False


class Rows(ABC):
    """The samples of a fit.

    Attributes:
        space: what the parameters stand for.
        n_scores: k.
        n_samples: n.
        total_weight: Σ w_i.
        block_cost: what the exact blocks cost in Hessian products.
    """

    space: ParameterSpace
    n_scores: int
    n_samples: int
    total_weight: float
    block_cost: float = math.inf

    @abstractmethod
    def evaluate(self, parameters: Array) -> tuple[float, Array | None]:
        """Σ w_i L_i and its gradient (p, k), which the caller may change; None if it overflows."""

    @abstractmethod
    def curvature(self, parameters: Array, step: Array | None = None) -> RowCurvature:
        """The Hessians of the rows at P, or their means over steps like the given one."""


def memory_order(n_scores: int) -> Literal["C", "F"]:
    """That of scores and parameters: products with few columns are faster if these are contiguous.

    Example:
        >>> memory_order(10), memory_order(1000)
        ('F', 'C')
    """
    return "F" if n_scores <= MAX_COLUMN_MAJOR_CLASSES else "C"


@dataclass(frozen=True, eq=False)
class Samples:
    """Samples in memory, all or a part: a design, a loss bound to their targets, weights.

    Args:
        design: the features.
        loss: bound to the targets.
        weights: w, or None for ones.
        n_scores: k.
        first: how many samples come before these in the data.
    """

    design: Design
    loss: BoundLoss
    weights: Array | None
    n_scores: int
    first: int = 0

    @functools.cached_property
    def _weights(self) -> Array | None:
        return None if self.weights is None else self.design.place(self.weights)

    @functools.cached_property
    def _column(self) -> Array | None:
        return None if self._weights is None else cast(self._weights[:, None], self._dtype)

    @property
    def _dtype(self) -> object:
        return self.design.like.dtype

    @property
    def total_weight(self) -> float:
        """Σ w_i."""
        return float(self.design.n_samples if self.weights is None else self.weights.sum())

    def empty_scores(self) -> Array:
        """A buffer (n, k)."""
        return self._empty((self.design.n_samples, self.n_scores))

    def empty_values(self) -> Array:
        """A buffer (n,)."""
        return self._empty((self.design.n_samples,))

    def _empty(self, shape: tuple[int, ...]) -> Array:
        like = self.design.like
        if is_numpy(like):
            return np.empty(shape, dtype=like.dtype, order=memory_order(self.n_scores))
        return namespace(like).empty(shape, dtype=like.dtype, device=like.device)

    def evaluate(self, theta: Array, out: tuple[Array, Array]) -> tuple[float, Array | None]:
        """Σ w_i L_i and its gradient in P; ``out`` is for values and gradients of the rows."""
        values, residual = self.loss.value_and_gradient(theta, out)
        total = float(self._sum(values))
        if not math.isfinite(total):
            return math.inf, None
        if self._column is not None:
            residual *= self._column
        return total, self.design.adjoint(residual)

    def hessian(self, theta: Array, step: Array | None, buffer: Array) -> HessianOperator:
        """The Hessian of the loss at θ, or its mean over scores as far away as a step leads."""
        if step is None:
            return self.loss.hessian_operator(theta)
        change = self.design.scores(step, out=buffer)
        xp = namespace(change)
        reach = REACH * xp.sqrt(xp.mean(change * change, axis=1))
        return self.loss.hessian_operator(theta, reach)

    def product(self, hessian: HessianOperator, direction: Array, buffer: Array) -> Array:
        """Σ w_i x_i (∇²L_i) x_iᵀ V, shape (p, k)."""
        tangent = self.design.scores(direction, out=buffer)
        tangent = hessian(tangent, tangent)
        if self._column is not None:
            tangent *= self._column
        return self.design.adjoint(tangent)

    def curvature_of_classes(self, hessian: HessianOperator, buffer: Array) -> Array:
        """C in full, its diagonal, or trace(C)/k, by the number of classes."""
        if hessian.d is not None:
            if self.n_scores > MAX_CLASSES_BY_ENTRIES:
                return self._sum(self.diagonal(hessian))
            return self._curvature_by_entries(hessian)
        if self.n_scores > MAX_CLASSES_BY_PRODUCTS:
            return np.asarray(self._mean_curvature(hessian, buffer))
        return self._curvature_by_products(hessian, buffer)

    def _curvature_by_entries(self, hessian: HessianOperator) -> Array:
        """C = Σ w_i (diag(d_i) − d_i d_iᵀ / ⟨d_i, 1⟩)."""
        d: Array = hessian.d
        full = np.diag(self._sum(d))
        if hessian.total is not None:
            full -= to_numpy(d.T @ (d * self._share(hessian.total)))
        return full

    def diagonal(self, hessian: HessianOperator) -> Array:
        """The diagonals of the rows' Hessians, (n, k)."""
        d: Array = hessian.d
        if hessian.total is None:
            return d
        return d - d * d * self._share(hessian.total, weighted=False)

    def weighted_diagonal(self, hessian: HessianOperator) -> Array:
        """The same times the weights."""
        diagonal = self.diagonal(hessian)
        return diagonal if self._column is None else diagonal * self._column

    def _share(self, total: Array, *, weighted: bool = True) -> Array:
        """w_i / ⟨d_i, 1⟩ as a column; rows without curvature have d = 0, whatever this is."""
        xp = namespace(total)
        share = 1 / xp.where(total > 0, total, xp.ones_like(total))
        if weighted and self._column is not None:
            return share[:, None] * self._column
        return share[:, None]

    def _curvature_by_products(self, hessian: HessianOperator, tangent: Array) -> Array:
        """C, column by column."""
        full = np.empty((self.n_scores, self.n_scores))
        for j in range(self.n_scores):
            tangent[...] = 0
            tangent[:, j] = 1
            full[:, j] = self._sum(hessian(tangent, tangent))
        return (full + full.T) / 2

    def _mean_curvature(self, hessian: HessianOperator, tangent: Array) -> float:
        """The mean eigenvalue of C, trace(C)/k, from one product with random signs."""
        tangent[...] = self._signs
        product = hessian(tangent, tangent)
        product *= self._signs
        return float(self._sum(product).mean())

    @functools.cached_property
    def _signs(self) -> Array:
        """Random signs (n, k); a part of the data has those that it has in the whole."""
        steps, drawn = divmod(self.first * self.n_scores, SIGNS_PER_STEP)
        generator = np.random.PCG64(0)
        generator.advance(steps)
        size = drawn + self.design.n_samples * self.n_scores
        signs = np.random.Generator(generator).integers(0, 2, size=size, dtype=np.int8)[drawn:]
        return cast(self.design.place(2 * signs.reshape(-1, self.n_scores) - 1), self._dtype)

    def _sum(self, values: Array) -> Array:
        """Weighted sum over the samples, in NumPy."""
        xp = namespace(values)
        if self._weights is not None:
            return to_numpy(self._weights @ cast(values, xp.float64))
        return to_numpy(xp.sum(values, axis=0, dtype=xp.float64))


class LocalRows(Rows):
    """All samples in memory or on one device, with buffers for their scores."""

    def __init__(self, samples: Samples) -> None:
        self.samples = samples
        self.space = samples.design
        self.n_scores = samples.n_scores
        self.n_samples = samples.design.n_samples
        self.total_weight = samples.total_weight
        self.theta, self.residual, self.tangent = (samples.empty_scores() for _ in range(3))
        self._values = samples.empty_values()
        self._parameters: Array | None = None  # whose scores theta holds

    @property
    def block_cost(self) -> float:  # type: ignore[override]  # a number for each size
        return block_cost(self.samples.design.matrix, self.n_scores)

    def _score(self, parameters: Array) -> None:
        self.samples.design.scores(parameters, out=self.theta)
        self._parameters = parameters

    def evaluate(self, parameters: Array) -> tuple[float, Array | None]:
        self._score(parameters)
        return self.samples.evaluate(self.theta, (self._values, self.residual))

    def curvature(self, parameters: Array, step: Array | None = None) -> "LocalCurvature":
        if self._parameters is not parameters:  # else the scores are still there
            self._score(parameters)
        return LocalCurvature(self, self.samples.hessian(self.theta, step, self.tangent))


@dataclass(frozen=True, eq=False)
class LocalCurvature(RowCurvature):
    """The Hessians of rows in memory."""

    rows: LocalRows
    hessian: HessianOperator

    def product(self, direction: Array) -> Array:
        return self.rows.samples.product(self.hessian, direction, self.rows.tangent)

    def of_classes(self) -> Array:
        return self.rows.samples.curvature_of_classes(self.hessian, self.rows.tangent)

    def block_inverse(self, ridge: Array) -> Map | None:
        if self.hessian.d is None:
            return None
        samples = self.rows.samples
        weights = samples.weighted_diagonal(self.hessian)
        return block_inverse(samples.design.matrix, weights, ridge)

    @property
    def is_coupled(self) -> bool:
        return self.hessian.total is not None
