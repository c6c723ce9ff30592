r"""The objective of every model here, as a function of the parameters P of a design.

.. math:: f(P) = \sum_i w_i L(y_i, \theta_i) + \tfrac{\alpha}{2} \|P_{1:d}\|^2,
          \qquad \Theta = \mathrm{design}(P)

The intercept, the last row of P, is never penalised.
"""

import copy
import functools
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, Self

import numpy as np

from .._array import Array, namespace
from ._design import Design
from ._rows import Product, Rows

Map = Callable[[Array], Array]

_MAX_EXACT = 8  # classes up to which the curvature of all rows is worth its k products
_FEW = 32
_FLAT = 1e-8  # mean curvature below this is none
_SMALLEST = 1e-12  # of a diagonal, relative to its largest entry: directions without curvature


@dataclass(frozen=True, eq=False)
class Point:
    """The objective at one P."""

    parameters: Array
    value: float
    gradient: Array

    @property
    def gradient_norm(self) -> float:
        return float(np.linalg.norm(self.gradient))


class Objective:
    """f, its gradient and its Hessian products.

    Args:
        design: the features.
        rows: the loss at the targets.
        weights: w, or None for ones.
        alpha: strength of the penalty.
        n_scores: k.
        has_kinks: whether the Hessian jumps, which Newton steps may stall at.
    """

    def __init__(
        self,
        design: Design,
        rows: Rows,
        weights: Array | None,
        alpha: float,
        n_scores: int,
        has_kinks: bool = False,
    ) -> None:
        self.has_kinks = has_kinks
        self.design = design
        self.rows = rows
        self.weights = weights
        self.alpha = alpha
        self.n_scores = n_scores
        self._weights = None if weights is None else design.place(weights)
        self._column = (
            None if weights is None else design.place(weights[:, None].astype(design.dtype))
        )
        # products with few columns are faster if these are contiguous
        self._order: Literal["C", "F"] = "F" if n_scores <= _FEW else "C"
        shape = (design.n_samples, n_scores)
        self._latest: Point | None = None
        self._theta, self._residual, self._tangent = (
            design.place(np.empty(shape, dtype=design.dtype, order=self._order)) for _ in range(3)
        )
        self._values = design.place(np.empty(design.n_samples, dtype=design.dtype))

    def with_alpha(self, alpha: float) -> Self:
        """The same with another penalty; both share their buffers."""
        other = copy.copy(self)
        other.alpha = alpha
        other._latest = None
        return other

    def zero(self) -> Array:
        """The start of a fit."""
        return np.zeros((self.design.n_parameters, self.n_scores), order=self._order)

    def evaluate(self, parameters: Array) -> Point:
        """f and its gradient."""
        theta = self.design.scores(parameters, out=self._theta)
        values, residual = self.rows.value_and_gradient(theta, (self._values, self._residual))
        total = self._sum(values)
        if self._column is not None:
            residual *= self._column
        gradient = self.design.adjoint(residual)
        penalized = parameters[: self.design.n_penalized]
        gradient[: self.design.n_penalized] += self.alpha * penalized
        value = float(total) + self.alpha / 2 * float(np.vdot(penalized, penalized))
        self._latest = Point(parameters, value, gradient)
        return self._latest

    def _row_curvature(self, point: Point) -> Product:
        """Hessians of the rows; the scores are still there if the point is the latest one."""
        if point is not self._latest:
            self.design.scores(point.parameters, out=self._theta)
            self._latest = point
        return self.rows.hessian_operator(self._theta)

    def curvature(self, point: Point) -> tuple[Map, Map]:
        """V ↦ ∇²f(P) V, and R ↦ M⁻¹ R for a matrix M near the Hessian."""
        rows = self._row_curvature(point)
        d = self.design.n_penalized

        def product(direction: Array) -> Array:
            tangent = self.design.scores(direction, out=self._tangent)
            tangent = rows(tangent, tangent)
            if self._column is not None:
                tangent *= self._column
            out = self.design.adjoint(tangent)
            out[:d] += self.alpha * direction[:d]
            return out

        return product, self._preconditioner(rows)

    def _preconditioner(self, rows: Product) -> Map:
        r"""M = C ⊗ diag(spectrum) + alpha, where C = Σ w_i ∇²L_i is the curvature of all rows.

        That is the Hessian if the curvature of a row did not depend on its features. With many
        classes C is replaced by its mean eigenvalue.
        """
        if self.n_scores > _MAX_EXACT:
            return self._divide(self._nominal(self._mean_curvature(rows)))
        eigenvalues, q = np.linalg.eigh(self._total_curvature(rows))
        # directions without curvature, as on the simplex, hold nothing but rounding errors
        least = math.sqrt(np.finfo(self.design.dtype).eps) * eigenvalues.max()
        divide = self._divide(self._nominal(np.maximum(eigenvalues, least)))
        return lambda residual: divide(residual @ q) @ q.T

    def _nominal(self, curvature: Array | float) -> Array | float:
        """The curvature, or 1 per sample where there is none: on the flat part of a loss."""
        total = self.design.n_samples if self.weights is None else self.weights.sum()
        return curvature if np.max(curvature) > _FLAT * total else total

    def _divide(self, curvature: Array | float) -> Map:
        diagonal = self.diagonal(curvature)
        return lambda residual: residual / diagonal

    def diagonal(self, curvature: Array | float) -> Array:
        """spectrum × curvature + alpha, shape (p, k) or (p, 1), kept above zero."""
        diagonal = np.outer(self.design.spectrum, curvature)
        diagonal[: self.design.n_penalized] += self.alpha
        largest = diagonal.max()
        return np.maximum(diagonal, _SMALLEST * largest) if largest > 0 else diagonal + 1.0

    def _total_curvature(self, rows: Product) -> Array:
        """C, column by column."""
        total = np.empty((self.n_scores, self.n_scores))
        for j in range(self.n_scores):
            self._tangent[...] = 0
            self._tangent[:, j] = 1
            total[:, j] = self._sum(rows(self._tangent, self._tangent))
        return (total + total.T) / 2

    def _mean_curvature(self, rows: Product) -> float:
        """The mean eigenvalue of C, trace(C)/k, from one product with random signs."""
        self._tangent[...] = self._signs
        product = rows(self._tangent, self._tangent)
        product *= self._signs
        return float(max(self._sum(product).mean(), 0.0))

    @functools.cached_property
    def _signs(self) -> Array:
        signs = np.random.default_rng(0).integers(0, 2, size=self._tangent.shape, dtype=np.int8)
        return self.design.place(2 * signs - 1)

    def _sum(self, rows: Array) -> Array:
        """Weighted sum over the samples."""
        if self._weights is not None:
            return self.design.fetch(self._weights @ rows)
        xp = namespace(rows)
        return self.design.fetch(xp.sum(rows, axis=0, dtype=xp.float64))

    def scales(self, point: Point) -> Array:
        """Lengths of the parameters in which the curvature at a point is about one, (p, 1)."""
        curvature = self._nominal(self._mean_curvature(self._row_curvature(point)))
        return 1 / np.sqrt(self.diagonal(curvature))
