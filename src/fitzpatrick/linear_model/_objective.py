r"""The objective of every model here, as a function of the parameters P of a design.

.. math:: f(P) = \sum_i w_i L(y_i, \theta_i) + \tfrac{\alpha}{2} \|P_{1:d}\|^2,
          \qquad \Theta = \mathrm{design}(P)

The intercept, the last row of P, is never penalised.
"""

import copy
from collections.abc import Callable
from dataclasses import dataclass
from typing import Self

import numpy as np

from .._array import Array
from ._design import Design
from ._rows import Rows


@dataclass(frozen=True, eq=False)
class Point:
    """The objective at one P, with the scores kept for the curvature there."""

    parameters: Array
    value: float
    gradient: Array
    theta: Array

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
    """

    def __init__(
        self, design: Design, rows: Rows, weights: Array | None, alpha: float, n_scores: int
    ) -> None:
        self.design = design
        self.rows = rows
        self.weights = weights
        self.alpha = alpha
        self.n_scores = n_scores
        self._column = None if weights is None else weights[:, None].astype(design.dtype)
        shape = (design.n_samples, n_scores)
        self._values = np.empty(design.n_samples, dtype=design.dtype)
        self._residual = np.empty(shape, dtype=design.dtype)
        self._tangent = np.empty(shape, dtype=design.dtype)

    def with_alpha(self, alpha: float) -> Self:
        """The same with another penalty; both share their buffers."""
        other = copy.copy(self)
        other.alpha = alpha
        return other

    def zero(self) -> Array:
        """The start of a fit."""
        return np.zeros((self.design.n_parameters, self.n_scores))

    def evaluate(self, parameters: Array) -> Point:
        """f and its gradient."""
        theta = np.empty_like(self._residual)
        self.design.scores(parameters, out=theta)
        values, residual = self.rows.value_and_gradient(theta, (self._values, self._residual))
        if self.weights is None:
            total = values.sum(dtype=np.float64)
        else:
            total = self.weights @ values
            residual *= self._column
        gradient = self.design.adjoint(residual)
        penalized = parameters[: self.design.n_features]
        gradient[: self.design.n_features] += self.alpha * penalized
        value = float(total) + self.alpha / 2 * float(np.vdot(penalized, penalized))
        return Point(parameters, value, gradient, theta)

    def hessian_operator(self, point: Point) -> Callable[[Array], Array]:
        """V ↦ ∇²f(P) V."""
        curvature = self.rows.hessian_operator(point.theta)
        d = self.design.n_features

        def product(direction: Array) -> Array:
            tangent = self.design.scores(direction, out=self._tangent)
            tangent = curvature(tangent, tangent)
            if self._column is not None:
                tangent *= self._column
            out = self.design.adjoint(tangent)
            out[:d] += self.alpha * direction[:d]
            return out

        return product

    def preconditioner(self, point: Point) -> Callable[[Array], Array]:
        """R ↦ M⁻¹ R for a matrix M near the Hessian."""
        return lambda residual: residual
