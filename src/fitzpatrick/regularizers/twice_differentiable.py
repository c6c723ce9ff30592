r"""Any twice differentiable regularizer, given by its value, gradient and Hessian.

At the tightness c the maximizer solves

.. math:: c\,\nabla^2\Omega(p)(p - y) + \nabla\Omega(p) = \theta

by Newton's method with backtracking, row by row. The loss is D + c (Q − D), with the divergence
:math:`D = D_\Omega(y, p)` and :math:`Q = \langle p - y, \nabla^2\Omega(p)(p - y)\rangle`.
"""

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from functools import partial

import numpy as np

from .._array import (
    Array,
    Map,
    class_indices,
    eps,
    inner,
    is_concrete,
    is_jax,
    may_stop_early,
    namespace,
)
from .._root import State, find_root_in_jax
from ..sets import ConvexSet, Reals
from ..sets._base import raise_unless
from ._base import PointSolution, Regularizer, Solution, family

_MAX_STEPS = 50
_HALVINGS = 12
# Nodes and weights of a Gauss-Legendre rule on [0, 1].
_LEGENDRE = zip(*np.polynomial.legendre.leggauss(5), strict=True)
_RULE = [(float(x + 1) / 2, float(weight) / 2) for x, weight in _LEGENDRE]


class NewtonStatus(Enum):
    """How a Newton iteration ended; the value is the sentence for the user."""

    CONVERGED = "Newton's method reached the precision of the data."
    STALLED = (
        "Newton's method did not converge: the residual is still {residual:.3g} after "
        f"{_MAX_STEPS} steps {{where}}. Check that the gradient and the Hessian belong to the "
        "value, that the function is strictly convex, and that the scores are in the range of its "
        "gradient."
    )


@dataclass(frozen=True, eq=False)
class TwiceDifferentiable(Regularizer):
    r"""A strictly convex, twice differentiable function given by callables.

    The three functions take an array of shape (…, k), with any leading axes, and belong to the
    array library of the data.

    - Link: the root of :math:`\nabla\Omega(p) = \theta`.
    - Fitzpatrick loss (paper, twice differentiable Ω):
      :math:`\langle y^\star - y, \nabla^2\Omega(y^\star)(y^\star - y)\rangle` with
      :math:`\nabla^2\Omega(y^\star)(y^\star - y) = \theta - \nabla\Omega(y^\star)`.

    A row that does not converge raises :class:`~fitzpatrick.sets.ConvergenceError`; where
    the call is being traced by a compiler, and cannot raise, the row is NaN.

    Args:
        function: y ↦ Ω(y), shape (…).
        gradient: y ↦ ∇Ω(y), shape (…, k).
        hessian: y ↦ ∇²Ω(y), shape (…, k, k), positive definite.
        domain: where Ω is defined, a set with an interior; iterates stay inside. For the simplex,
            write a :class:`SeparableRegularizer`.
        start: value of all entries of a point at which Ω is smooth, for the iteration to begin at.

    Example:
        Ω(y) = Σ cosh(y_i):

        >>> import numpy as np
        >>> omega = TwiceDifferentiable(
        ...     function=lambda y: np.cosh(y).sum(-1),
        ...     gradient=np.sinh,
        ...     hessian=lambda y: np.cosh(y)[..., None] * np.eye(y.shape[-1]),
        ... )
        >>> omega.link(np.sinh(np.asarray([0.5, -2.0])))
        array([ 0.5, -2. ])
    """

    function: Callable[[Array], Array]
    gradient: Callable[[Array], Array]
    hessian: Callable[[Array], Array]
    domain: ConvexSet = Reals()
    start: float = 0.0

    def __post_init__(self) -> None:
        if not self.domain.has_interior:
            raise ValueError(
                f"TwiceDifferentiable solves ∇Ω(p) = θ in the interior of its domain, and "
                f"{self.domain!r} has none; write Ω as a SeparableRegularizer, which has a "
                "multiplier for the sum of a row (docs/add_a_regularizer.md)"
            )

    @property
    def has_kinks(self) -> bool:
        return self.domain != Reals()

    def potential(self, y: Array) -> Array:
        return self.function(y)

    def potential_gradient(self, z: Array) -> Array:
        return self.gradient(z)

    def potential_curvature(self, z: Array, v: Array) -> Array:
        return inner(v, _apply(self.hessian(z), v))

    def potential_divergence(self, y: Array, z: Array) -> Array:
        # The definition cancels where y is near z. There the integral form of the remainder,
        # ∫ (1 − t) ⟨v, ∇²Ω(z + t v) v⟩ dt with v = y − z, is a sum of non-negative terms.
        xp = namespace(y)
        v = y - z
        above, below, slope = self.function(y), self.function(z), inner(v, self.gradient(z))
        direct = above - below - slope
        remainder = sum(w * (1 - t) * self.potential_curvature(z + t * v, v) for t, w in _RULE)
        scale = xp.abs(above) + xp.abs(below) + xp.abs(slope)
        return xp.where(direct > eps(y) ** 0.5 * scale, direct, remainder)

    def solve(self, y: Array, theta: Array, tightness: float) -> Solution:
        xp = namespace(theta)

        def residual(p: Array) -> Array:
            rest = self.gradient(p) - theta
            return rest if tightness == 0 else rest + tightness * _apply(self.hessian(p), p - y)

        jacobian = partial(_symmetric_jacobian, residual, self.domain)
        derivative = self.hessian if tightness == 0 else jacobian
        p = self._newton(residual, derivative, y, theta)
        loss = self.potential_divergence(y, p) if tightness != 1 else xp.zeros_like(theta[..., 0])
        if tightness > 0:
            loss = family(loss, tightness * self.potential_curvature(p, p - y), tightness)
        matrix = derivative(p)
        return PointSolution(
            y, p, lambda: loss, lambda v: xp.linalg.solve(matrix, v[..., None])[..., 0]
        )

    def _newton(self, residual: Map, jacobian: Map, start: Array, theta: Array) -> Array:
        """Root of ``residual`` by Newton steps, each the best of a geometric list of lengths."""
        xp = namespace(theta)
        first = xp.ones_like(theta)
        lengths = xp.stack([first * 0.5**j for j in range(_HALVINGS)])

        def size(p: Array) -> Array:
            norm = xp.linalg.vector_norm(residual(p), axis=-1)
            return xp.where(self.domain.contains(p) & xp.isfinite(norm), norm, xp.inf)

        def improve(state: State) -> State:
            """One step, and True where it led anywhere."""
            p, current, _ = state
            matrix = _regular(jacobian(p))
            step = xp.linalg.solve(matrix, residual(p)[..., None])[..., 0]
            trials = p - lengths * step
            sizes = size(trials)
            best = xp.min(sizes, axis=0)
            chosen = xp.argmin(sizes, axis=0, keepdims=True)[..., None]
            chosen = xp.broadcast_to(chosen, (1, *p.shape))
            better = best < current
            p = xp.where(better[..., None], xp.take_along_axis(trials, chosen, axis=0)[0], p)
            return p, xp.where(better, best, current), better

        p = xp.where(xp.isfinite(size(start))[..., None], start, xp.full_like(start, self.start))
        current = size(p)
        state: State = p, current, current == current
        if is_jax(theta) and not is_concrete(theta):
            p = find_root_in_jax(residual, improve, state, _MAX_STEPS, _divide)
            current = size(p)
        else:
            for _ in range(_MAX_STEPS):
                state = improve(state)
                if may_stop_early(p) and not bool(xp.any(state[2])):
                    break
            p, current, _ = state
        scale = 1 + xp.linalg.vector_norm(theta, axis=-1)
        scale = scale + xp.linalg.vector_norm(self.gradient(p), axis=-1)
        converged = xp.isfinite(scale) & (current <= 1e3 * eps(theta) * scale)
        if is_concrete(theta):
            # a NaN among the scores is the user's, and stays in its row
            known = converged | xp.any(xp.isnan(theta), axis=-1)
            raise_unless(known, current, NewtonStatus.STALLED)
        return xp.where(converged[..., None], p, xp.nan)


def _divide(slope: Map, excess: Array) -> Array:
    """Solve slope(x) = excess, by the columns of the matrix that the slope is."""
    xp = namespace(excess)
    zero = xp.zeros_like(excess)
    columns = [slope(zero + (class_indices(excess) == j)) for j in range(excess.shape[-1])]
    return xp.linalg.solve(xp.stack(columns, axis=-1), excess[..., None])[..., 0]


def _apply(matrix: Array, v: Array) -> Array:
    return (matrix @ v[..., None])[..., 0]


def _regular(matrix: Array) -> Array:
    """The matrix with its diagonal raised by a rounding error, so that it has an inverse."""
    xp = namespace(matrix)
    is_diagonal = class_indices(matrix) == class_indices(matrix)[:, None]
    size = xp.max(xp.abs(matrix), axis=(-2, -1), keepdims=True)
    raised = xp.where(is_diagonal, matrix + eps(matrix) * (1e-8 + size), matrix)
    # rows without an answer must not stop the others: NumPy refuses a singular or infinite matrix
    return xp.where(xp.isfinite(size), raised, xp.astype(is_diagonal, matrix.dtype))


def _symmetric_jacobian(residual: Map, domain: ConvexSet, p: Array) -> Array:
    """Jacobian by central differences inside the domain, all columns in one call."""
    xp = namespace(p)
    k = p.shape[-1]
    size = 1 + xp.max(xp.abs(p), axis=-1, keepdims=True)
    coordinates = domain.coordinates
    if coordinates is not None:  # a function may bend as sharply as a bound is near
        lowest, highest = coordinates.bounds
        distance = xp.minimum(p - lowest, highest - p)
        size = xp.where(distance > 0, xp.minimum(size, distance), size)
    step = eps(p) ** (1 / 3) * size
    unit = xp.stack(
        [xp.astype(class_indices(p) == j, p.dtype) + xp.zeros_like(p) for j in range(k)]
    )
    upper, lower = p + step * unit, p - step * unit
    if coordinates is not None:  # at a bound, half of the way back is inside
        upper, lower = ((p + coordinates.project(x)) / 2 for x in (upper, lower))
    width = xp.sum(upper - lower, axis=-1, keepdims=True)
    columns = (residual(upper) - residual(lower)) / width
    jacobian = xp.moveaxis(columns, 0, -1)
    return (jacobian + xp.matrix_transpose(jacobian)) / 2
