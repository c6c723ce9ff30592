r"""The objective of every model here, as a function of the parameters P of a design.

.. math:: f(P) = \sum_i w_i L(y_i, \theta_i) + \tfrac{\alpha}{2} \|P_{1:d}\|^2,
          \qquad \Theta = \mathrm{design}(P)

The intercept, the last row of P, is never penalized.
"""

import copy
import functools
import math
from dataclasses import dataclass
from typing import Self

import numpy as np

from .._array import Array, eps, namespace, to_numpy
from ._preconditioner import Blocks, Map, Memory, Spectral
from ._rows import RowCurvature, Rows, memory_order
from ._vectors import copy as copied
from ._vectors import inner, norm

MIN_CURVATURE = 1e-8  # a mean curvature below this counts as none
# Of the mean curvature, added to that of each class. Measured on delicious, as REACH.
KINK_CURVATURE_SHARE = 0.5
MAX_PAIRS, MAX_PAIR_BYTES = 20, 1 << 26  # Hessian products that the preconditioner remembers


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


class Objective:
    """f, its gradient and its Hessian products.

    Args:
        rows: the samples.
        alpha: strength of the penalty.
        has_kinks: whether the Hessian may jump.
        sees_kinks: whether there are means of it over steps that cross kinks.
    """

    def __init__(
        self, rows: Rows, alpha: float, *, has_kinks: bool = False, sees_kinks: bool = False
    ) -> None:
        self.rows = rows
        self.space = rows.space
        self.alpha = alpha
        self.has_kinks = has_kinks
        self.sees_kinks = sees_kinks
        self._memory = self._empty_memory()
        self._spectral: list[Spectral] = []  # the latest one
        self._blocks = Blocks()

    def with_alpha(self, alpha: float) -> Self:
        """The same with another penalty; both share the samples and what they learn."""
        other = copy.copy(self)
        other.alpha = alpha
        return other

    def afresh(self) -> Self:
        """The same without what has been learned of its curvature; both share the samples."""
        other = copy.copy(self)
        other._memory = self._empty_memory()
        other._spectral = []
        other._blocks = Blocks()
        return other

    def _empty_memory(self) -> Memory:
        pair_bytes = 16 * self.space.n_parameters * self.rows.n_scores
        size = min(MAX_PAIRS, max(1, MAX_PAIR_BYTES // pair_bytes))
        return Memory(size, self.space.n_penalized, self.space.place)

    def zero(self) -> Array:
        """The start of a fit."""
        n_scores = self.rows.n_scores
        shape = (self.space.n_parameters, n_scores)
        return self.space.place(np.zeros(shape, order=memory_order(n_scores)))

    def evaluate(self, parameters: Array) -> Point:
        """f and its gradient; where f overflows, ∞ and no gradient."""
        total, gradient = self.rows.evaluate(parameters)
        if gradient is None:
            no_gradient = namespace(parameters).full_like(parameters, math.nan)
            return Point(parameters, math.inf, no_gradient, self.alpha)
        penalized = parameters[: self.space.n_penalized, :]
        gradient[: self.space.n_penalized, :] += self.alpha * penalized
        value = total + self.alpha / 2 * inner(penalized, penalized)
        return Point(parameters, value, gradient, self.alpha)

    def move(self, point: Point) -> Point:
        """A point of another alpha as one of this, without a pass over the data."""
        more = self.alpha - point.alpha
        if more == 0:
            return point
        penalized = point.parameters[: self.space.n_penalized, :]
        gradient = copied(point.gradient)
        gradient[: self.space.n_penalized, :] += more * penalized
        value = point.value + more / 2 * inner(penalized, penalized)
        return Point(point.parameters, value, gradient, self.alpha)

    def predict(self, point: Point) -> Array:
        """Where the minimum may be: one step from a point, by M instead of the Hessian."""
        if not self._spectral:
            self._learn(self.rows.curvature(point.parameters))
        return point.parameters - self._inverse()(point.gradient)

    def curvature(self, point: Point, step: Array | None = None) -> tuple[Map, Map]:
        """V ↦ ∇²f(P) V, and R ↦ M⁻¹ R for a matrix M near the Hessian.

        At kinks the Hessian jumps, and says little of a step that crosses many. Its mean over the
        scores that steps like the last one reach says more, and tends to it as they grow short.
        """
        curvature = self.rows.curvature(point.parameters, step if self.sees_kinks else None)
        d = self.space.n_penalized

        def product(direction: Array) -> Array:
            self._blocks.products += 1
            out = curvature.product(direction)
            out[:d, :] += self.alpha * direction[:d, :]
            self._memory.add(direction, out, self.alpha)
            return out

        self._learn(curvature)
        if self._blocks.are_due(self.rows.block_cost, self.alpha):
            self._blocks.set(None, self.alpha)  # their memory is needed
            self._blocks.set(self._block_inverse(curvature), self.alpha)
        return product, self._inverse()

    def _learn(self, rows: RowCurvature) -> None:
        """M₀ from the curvature of the rows: of all classes together, or of each by itself."""
        n_scores, total_weight = self.rows.n_scores, self.rows.total_weight
        curvature, vectors = self._row_spectrum(rows)
        if curvature.max() <= MIN_CURVATURE * total_weight:  # on the flat part of a loss
            curvature, vectors = np.full(n_scores, total_weight), None
        # directions without curvature, as on the simplex, hold nothing but rounding errors
        least = self._negligible * curvature.max()
        self._spectral[:] = [
            Spectral(
                self.space.place(self.space.spectrum),
                self.space.n_penalized,
                self.space.place(np.maximum(curvature, least)),
                None if vectors is None else self.space.place(vectors),
            )
        ]

    def _row_spectrum(self, rows: RowCurvature) -> tuple[Array, Array | None]:
        """Eigenvalues and eigenvectors of C, or with many classes something simpler like C."""
        curvature = rows.of_classes()
        if curvature.ndim == 2:
            eigenvalues, vectors = np.linalg.eigh(curvature)
            return eigenvalues, vectors
        if curvature.ndim == 1:
            return curvature, None
        return np.full(self.rows.n_scores, max(float(curvature), 0.0)), None

    @property
    def _negligible(self) -> float:
        """Curvature relative to the largest, below which it may be rounding errors."""
        return math.sqrt(eps(self.space.like))

    def _inverse(self) -> Map:
        base = self._blocks.inverse_at(self.alpha) or self._spectral[0].inverse(self.alpha)
        return self._memory.inverse(base, self.alpha)

    def _block_inverse(self, rows: RowCurvature) -> Map | None:
        """M₀⁻¹ from the exact blocks of the classes.

        Where the entries of a row are coupled, what is the same for all classes changes nothing
        but the penalty, and is kept apart.
        """
        d = self.space.n_penalized
        # Directions without curvature are as in the spectral M₀; where there are kinks, curvature
        # may be beyond the next one, so that M would call steps short that are not.
        spectral = self._spectral[0]
        xp = namespace(spectral.curvature)
        if self.has_kinks:
            least = KINK_CURVATURE_SHARE * float(xp.mean(spectral.curvature))
        else:
            least = self._negligible * float(xp.max(spectral.curvature))
        ridge = spectral.spectrum * least
        ridge[:d] += self.alpha
        inverse = rows.block_inverse(ridge)
        if inverse is None or not rows.is_coupled:
            return inverse
        constant = np.full((self.space.n_parameters, 1), self.rows.total_weight)
        common = self.space.place(constant)
        if self.alpha > 0:
            common[:d, :] = self.alpha

        def apply(residual: Array) -> Array:
            mean = xp.mean(residual, axis=1, keepdims=True)
            z = inverse(residual - mean)
            return z - xp.mean(z, axis=1, keepdims=True) + mean / common

        return apply

    def scales(self, point: Point) -> Array:
        """Lengths of the parameters in which the curvature at a point is about one, (p, 1)."""
        self._learn(self.rows.curvature(point.parameters))
        mean = to_numpy(self._spectral[0].curvature).mean(keepdims=True)
        spectral = Spectral(self.space.spectrum, self.space.n_penalized, mean)
        return 1 / np.sqrt(spectral.diagonal(self.alpha))
