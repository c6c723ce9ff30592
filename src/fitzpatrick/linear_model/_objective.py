r"""The objective of every model here, as a function of the parameters P of a design.

.. math:: f(P) = \sum_i w_i L(y_i, \theta_i) + \tfrac{\alpha}{2} \|P_{1:d}\|^2,
          \qquad \Theta = \mathrm{design}(P)

The intercept, the last row of P, is never penalized.
"""

import functools
import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from .._array import Array, namespace
from ._preconditioner import Map, Preconditioner
from ._sums import SampleSums, memory_order
from ._vectors import copy, inner, norm


@dataclass(frozen=True, eq=False)
class Point:
    """The objective of one alpha at one P."""

    parameters: Array
    value: float
    gradient: Array
    alpha: float

    @functools.cached_property
    def gradient_norm(self) -> float:
        return norm(self.gradient)


@dataclass(frozen=True, eq=False)
class Objective:
    """f, its gradient and its Hessian products."""

    sums: SampleSums
    preconditioner: Preconditioner  # objectives of several alphas share what it learns
    alpha: float = 0.0
    sees_kinks: bool = False  # True if there are means of the Hessian over steps that cross kinks

    def zero(self) -> Array:
        """The start of a fit."""
        n_scores = self.sums.n_scores
        shape = (self.sums.space.n_parameters, n_scores)
        return self.sums.space.place(np.zeros(shape, order=memory_order(n_scores)))

    def evaluate(self, parameters: Array) -> Point:
        """f and its gradient; where f overflows, ∞ and no gradient."""
        total, gradient = self.sums.evaluate(parameters)
        if gradient is None:
            no_gradient = namespace(parameters).full_like(parameters, math.nan)
            return Point(parameters, math.inf, no_gradient, self.alpha)
        return self.move(Point(parameters, total, gradient, 0.0))

    def move(self, point: Point) -> Point:
        """A point of another alpha as one of this, without a pass over the data."""
        if point.alpha == self.alpha:
            return point
        more, gradient = self.alpha - point.alpha, copy(point.gradient)
        penalized = point.parameters[: self.sums.space.n_penalized, :]
        gradient[: self.sums.space.n_penalized, :] += more * penalized
        value = point.value + more / 2 * inner(penalized, penalized)
        return Point(point.parameters, value, gradient, self.alpha)

    def predict(self, point: Point) -> Array:
        """Where the minimum may be: one step from a point, by M instead of the Hessian."""
        if self.preconditioner.curvature is None:
            self._linearize(point)
        return point.parameters - self.preconditioner.inverse(self.alpha)(point.gradient)

    def _linearize(self, point: Point, step: Array | None = None) -> Any:
        """The Hessians of the rows, from which the preconditioner learns."""
        hessian = self.sums.linearize(point.parameters, step)
        self.preconditioner.learn(self.sums.curvature_of_classes(hessian))
        return hessian

    def curvature(self, point: Point, step: Array | None = None) -> tuple[Map, Map]:
        """V ↦ ∇²f(P) V, and R ↦ M⁻¹ R for a matrix M near the Hessian.

        At kinks the Hessian jumps, and says little of a step that crosses many. Its mean over the
        scores that steps like the last one reach says more, and tends to it as they grow short.
        Both maps are valid until the next call.
        """
        hessian = self._linearize(point, step if self.sees_kinks else None)
        d = self.sums.space.n_penalized

        def product(direction: Array) -> Array:
            out = self.sums.product(hessian, direction)
            out[:d, :] += self.alpha * direction[:d, :]
            self.preconditioner.add(direction, out, self.alpha)
            return out

        self.preconditioner.renew_blocks(hessian, self.alpha)
        return product, self.preconditioner.inverse(self.alpha)

    def scales(self, point: Point) -> Array:
        """Lengths of the parameters in which the curvature at a point is about one, (p, 1)."""
        self._linearize(point)
        return self.preconditioner.scales(self.alpha)
