r"""The objective of every model here, as a function of the parameters P of a design.

.. math:: f(P) = \sum_i w_i L(y_i, \theta_i) + \tfrac{\alpha}{2} \|P_{1:d}\|^2,
          \qquad \Theta = \mathrm{design}(P)

The intercept, the last row of P, is never penalized.
"""

import copy
import functools
import math
from dataclasses import dataclass
from typing import Literal, Self

import numpy as np

from .._array import Array, eps, is_numpy, namespace, to_numpy
from ..engines import BoundLoss, HessianOperator
from ._blocks import block_cost, block_inverse
from ._design import Design
from ._preconditioner import Blocks, Map, Memory, Spectral
from ._vectors import cast, inner, norm
from ._vectors import copy as copied

# Classes up to which the curvature of all rows is computed in full: from the slopes of the entries
# where the Hessian has them, else by one Hessian product for each class.
MAX_CLASSES_BY_ENTRIES, MAX_CLASSES_BY_PRODUCTS = 64, 8
MAX_COLUMN_MAJOR_CLASSES = 32
MIN_CURVATURE = 1e-8  # a mean curvature below this counts as none
KINK_CURVATURE_SHARE = 0.1  # of the mean curvature, added to that of each class
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


class _Workspace:
    """Arrays of the shape of the scores, and what is known from the latest work with them."""

    def __init__(self, design: Design, n_scores: int, order: Literal["C", "F"]) -> None:
        n, like = design.n_samples, design.like
        self.theta, self.residual, self.tangent = (
            _empty((n, n_scores), like, order) for _ in range(3)
        )
        self.values = _empty((n,), like, order)
        self.parameters: Array | None = None  # whose scores theta holds


def _empty(shape: tuple[int, ...], like: Array, order: Literal["C", "F"]) -> Array:
    if is_numpy(like):
        return np.empty(shape, dtype=like.dtype, order=order)
    return namespace(like).empty(shape, dtype=like.dtype, device=like.device)


class Objective:
    """f, its gradient and its Hessian products.

    Args:
        design: the features.
        loss: bound to the targets.
        weights: w, or None for ones.
        alpha: strength of the penalty.
        n_scores: k.
        has_kinks: whether the Hessian may jump.
    """

    def __init__(
        self,
        design: Design,
        loss: BoundLoss,
        weights: Array | None,
        alpha: float,
        n_scores: int,
        *,
        has_kinks: bool = False,
    ) -> None:
        self.has_kinks = has_kinks
        self.design = design
        self.loss = loss
        self.weights = weights
        self.alpha = alpha
        self.n_scores = n_scores
        self._weights = None if weights is None else design.place(weights)
        self._column = None
        if self._weights is not None:
            self._column = cast(self._weights[:, None], design.like.dtype)
        # products with few columns are faster if these are contiguous
        self._order: Literal["C", "F"] = "F" if n_scores <= MAX_COLUMN_MAJOR_CLASSES else "C"
        self._workspace = _Workspace(design, n_scores, self._order)
        self._memory = self._empty_memory()
        self._spectral: list[Spectral] = []  # the latest one
        self._blocks = Blocks()

    def with_alpha(self, alpha: float) -> Self:
        """The same with another penalty; both share their buffers and what they learn."""
        other = copy.copy(self)
        other.alpha = alpha
        return other

    def afresh(self) -> Self:
        """The same without what has been learned of its curvature; both share their buffers."""
        other = copy.copy(self)
        other._memory = self._empty_memory()
        other._spectral = []
        other._blocks = Blocks()
        return other

    def _empty_memory(self) -> Memory:
        pair_bytes = 16 * self.design.n_parameters * self.n_scores
        size = min(MAX_PAIRS, max(1, MAX_PAIR_BYTES // pair_bytes))
        return Memory(size, self.design.n_penalized, self.design.place)

    def zero(self) -> Array:
        """The start of a fit."""
        shape = (self.design.n_parameters, self.n_scores)
        return self.design.place(np.zeros(shape, order=self._order))

    @property
    def total_weight(self) -> float:
        """Σ w_i."""
        return float(self.design.n_samples if self.weights is None else self.weights.sum())

    def evaluate(self, parameters: Array) -> Point:
        """f and its gradient; where f overflows, ∞ and no gradient."""
        space = self._workspace
        theta = self.design.scores(parameters, out=space.theta)
        space.parameters = parameters
        values, residual = self.loss.value_and_gradient(theta, (space.values, space.residual))
        total = float(self._sum(values))
        if not math.isfinite(total):
            no_gradient = namespace(parameters).full_like(parameters, math.nan)
            return Point(parameters, math.inf, no_gradient, self.alpha)
        if self._column is not None:
            residual *= self._column
        gradient = self.design.adjoint(residual)
        penalized = parameters[: self.design.n_penalized, :]
        gradient[: self.design.n_penalized, :] += self.alpha * penalized
        value = total + self.alpha / 2 * inner(penalized, penalized)
        return Point(parameters, value, gradient, self.alpha)

    def move(self, point: Point) -> Point:
        """A point of another alpha as one of this, without a pass over the data."""
        more = self.alpha - point.alpha
        if more == 0:
            return point
        penalized = point.parameters[: self.design.n_penalized, :]
        gradient = copied(point.gradient)
        gradient[: self.design.n_penalized, :] += more * penalized
        value = point.value + more / 2 * inner(penalized, penalized)
        return Point(point.parameters, value, gradient, self.alpha)

    def predict(self, point: Point) -> Array:
        """Where the minimum may be: one step from a point, by M instead of the Hessian."""
        if not self._spectral:
            self._learn(self._row_hessians(point))
        return point.parameters - self._inverse()(point.gradient)

    def curvature(self, point: Point) -> tuple[Map, Map]:
        """V ↦ ∇²f(P) V, and R ↦ M⁻¹ R for a matrix M near the Hessian."""
        hessian = self._row_hessians(point)
        d = self.design.n_penalized
        buffer = self._workspace.tangent

        def product(direction: Array) -> Array:
            self._blocks.products += 1
            tangent = self.design.scores(direction, out=buffer)
            tangent = hessian(tangent, tangent)
            if self._column is not None:
                tangent *= self._column
            out = self.design.adjoint(tangent)
            out[:d, :] += self.alpha * direction[:d, :]
            self._memory.add(direction, out, self.alpha)
            return out

        self._learn(hessian)
        cost = block_cost(self.design.matrix, self.n_scores)
        if self._blocks.products > cost and hessian.d is not None:
            self._blocks.set(None, self.alpha)  # their memory is needed
            self._blocks.set(self._block_inverse(hessian), self.alpha)
        return product, self._inverse()

    def _row_hessians(self, point: Point) -> HessianOperator:
        """Hessians of the rows; the scores may still be there."""
        space = self._workspace
        if space.parameters is not point.parameters:
            self.design.scores(point.parameters, out=space.theta)
            space.parameters = point.parameters
        return self.loss.hessian_operator(space.theta)

    def _learn(self, hessian: HessianOperator) -> None:
        """M₀ from the curvature of the rows: of all classes together, or of each by itself."""
        curvature, vectors = self._row_spectrum(hessian)
        if curvature.max() <= MIN_CURVATURE * self.total_weight:  # on the flat part of a loss
            curvature, vectors = np.full(self.n_scores, self.total_weight), None
        # directions without curvature, as on the simplex, hold nothing but rounding errors
        least = self._negligible * curvature.max()
        self._spectral[:] = [
            Spectral(
                self.design.place(self.design.spectrum),
                self.design.n_penalized,
                self.design.place(np.maximum(curvature, least)),
                None if vectors is None else self.design.place(vectors),
            )
        ]

    @property
    def _negligible(self) -> float:
        """Curvature relative to the largest, below which it may be rounding errors."""
        return math.sqrt(eps(self.design.like))

    def _inverse(self) -> Map:
        base = self._blocks.inverse
        if base is None or self._blocks.alpha != self.alpha:
            base = self._spectral[0].inverse(self.alpha)
        return self._memory.inverse(base, self.alpha)

    def _block_inverse(self, hessian: HessianOperator) -> Map | None:
        """M₀⁻¹ from the exact blocks of the classes.

        Where the entries of a row are coupled, what is the same for all classes changes nothing
        but the penalty, and is kept apart.
        """
        d, weights = self.design.n_penalized, self._column
        curvature = self._diagonal(hessian)
        if weights is not None:
            curvature = curvature * weights
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
        inverse = block_inverse(self.design.matrix, curvature, ridge)
        if inverse is None or hessian.total is None:
            return inverse
        common = self.design.place(np.full((self.design.n_parameters, 1), self.total_weight))
        if self.alpha > 0:
            common[:d, :] = self.alpha

        def apply(residual: Array) -> Array:
            mean = xp.mean(residual, axis=1, keepdims=True)
            z = inverse(residual - mean)
            return z - xp.mean(z, axis=1, keepdims=True) + mean / common

        return apply

    def _row_spectrum(self, hessian: HessianOperator) -> tuple[Array, Array | None]:
        """Eigenvalues and eigenvectors of C, or with many classes something simpler like C."""
        if hessian.d is not None:
            if self.n_scores > MAX_CLASSES_BY_ENTRIES:
                return self._sum(self._diagonal(hessian)), None
            full = self._curvature_by_entries(hessian)
        elif self.n_scores > MAX_CLASSES_BY_PRODUCTS:
            return np.full(self.n_scores, self._mean_curvature(hessian)), None
        else:
            full = self._curvature_by_products(hessian)
        eigenvalues, vectors = np.linalg.eigh(full)
        return eigenvalues, vectors

    def _curvature_by_entries(self, hessian: HessianOperator) -> Array:
        """C = Σ w_i (diag(d_i) − d_i d_iᵀ / ⟨d_i, 1⟩)."""
        d: Array = hessian.d
        full = np.diag(self._sum(d))
        if hessian.total is not None:
            full -= to_numpy(d.T @ (d * self._share(hessian.total)))
        return full

    def _diagonal(self, hessian: HessianOperator) -> Array:
        """The diagonals of the rows' Hessians, (n, k)."""
        d: Array = hessian.d
        if hessian.total is None:
            return d
        return d - d * d * self._share(hessian.total, weighted=False)

    def _share(self, total: Array, *, weighted: bool = True) -> Array:
        """w_i / ⟨d_i, 1⟩ as a column; rows without curvature have d = 0, whatever this is."""
        xp = namespace(total)
        share = 1 / xp.where(total > 0, total, xp.ones_like(total))
        if weighted and self._column is not None:
            return share[:, None] * self._column
        return share[:, None]

    def _curvature_by_products(self, hessian: HessianOperator) -> Array:
        """C, column by column."""
        full = np.empty((self.n_scores, self.n_scores))
        tangent = self._workspace.tangent
        for j in range(self.n_scores):
            tangent[...] = 0
            tangent[:, j] = 1
            full[:, j] = self._sum(hessian(tangent, tangent))
        return (full + full.T) / 2

    def _mean_curvature(self, hessian: HessianOperator) -> float:
        """The mean eigenvalue of C, trace(C)/k, from one product with random signs."""
        tangent = self._workspace.tangent
        tangent[...] = self._signs
        product = hessian(tangent, tangent)
        product *= self._signs
        return max(float(self._sum(product).mean()), 0.0)

    @functools.cached_property
    def _signs(self) -> Array:
        shape = self._workspace.tangent.shape
        signs = np.random.default_rng(0).integers(0, 2, size=shape, dtype=np.int8)
        return cast(self.design.place(2 * signs - 1), self.design.like.dtype)

    def _sum(self, values: Array) -> Array:
        """Weighted sum over the samples, in NumPy."""
        xp = namespace(values)
        if self._weights is not None:
            return to_numpy(self._weights @ cast(values, xp.float64))
        return to_numpy(xp.sum(values, axis=0, dtype=xp.float64))

    def scales(self, point: Point) -> Array:
        """Lengths of the parameters in which the curvature at a point is about one, (p, 1)."""
        self._learn(self._row_hessians(point))
        mean = to_numpy(self._spectral[0].curvature).mean(keepdims=True)
        spectral = Spectral(self.design.spectrum, self.design.n_penalized, mean)
        return 1 / np.sqrt(spectral.diagonal(self.alpha))
