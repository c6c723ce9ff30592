r"""Any twice differentiable regulariser, given by its value, gradient and Hessian.

The link solves :math:`\nabla\Omega(p) = \theta` and the Fitzpatrick maximiser

.. math:: \nabla^2\Omega(p)(p - y) + \nabla\Omega(p) = \theta,

both by Newton's method with backtracking, row by row. Then
:math:`L_F = \langle p - y, \nabla^2\Omega(p)(p - y)\rangle`.
"""

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum

from .._array import Array, eps, inner, is_concrete, may_stop_early, namespace
from ..sets import ConvexSet, Reals
from ._base import Regularizer, Solution

_MAX_STEPS = 50
_HALVINGS = 12


class NewtonStatus(Enum):
    """How a Newton iteration ended; the value is the sentence for the user."""

    CONVERGED = "Newton's method reached the precision of the data."
    STALLED = (
        "Newton's method did not converge: the residual is still {residual:.3g} after "
        f"{_MAX_STEPS} steps {{where}}. Check that the gradient and the Hessian belong to the "
        "value, that the function is strictly convex, and that the scores are in the range of its "
        "gradient."
    )


class ConvergenceError(RuntimeError):
    """A row has no answer; ``status`` says why."""

    def __init__(self, status: NewtonStatus, message: str) -> None:
        super().__init__(message)
        self.status = status


@dataclass(frozen=True, eq=False)
class SmoothSolution(Solution):
    """The maximiser p, the Jacobian of its equation there, and the loss."""

    y: Array
    p: Array
    jacobian: Array
    loss: Array

    @property
    def y_star(self) -> Array:
        return self.p

    def value(self) -> Array:
        return self.loss

    def hessian_product(self, v: Array) -> Array:
        return namespace(v).linalg.solve(self.jacobian, v[..., None])[..., 0]


@dataclass(frozen=True, eq=False)
class TwiceDifferentiable(Regularizer):
    r"""A strictly convex, twice differentiable function given by callables.

    The three functions take an array of shape (…, k), with any leading axes, and belong to the
    array library of the data.

    - Link: the root of :math:`\nabla\Omega(p) = \theta`.
    - Fitzpatrick loss (paper, twice differentiable Ω):
      :math:`\langle y^\star - y, \nabla^2\Omega(y^\star)(y^\star - y)\rangle` with
      :math:`\nabla^2\Omega(y^\star)(y^\star - y) = \theta - \nabla\Omega(y^\star)`.

    A row whose iteration does not converge raises :class:`ConvergenceError`; where the call is
    being traced by a compiler, and cannot raise, the row is NaN.

    Args:
        function: y ↦ Ω(y), shape (…).
        gradient: y ↦ ∇Ω(y), shape (…, k).
        hessian: y ↦ ∇²Ω(y), shape (…, k, k), positive definite.
        domain: where Ω is defined; iterates stay inside.

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

    def potential(self, y: Array) -> Array:
        return self.function(y)

    def potential_gradient(self, z: Array) -> Array:
        return self.gradient(z)

    def potential_curvature(self, z: Array, v: Array) -> Array:
        return inner(v, _apply(self.hessian(z), v))

    def potential_divergence(self, y: Array, z: Array) -> Array:
        return self.function(y) - self.function(z) - inner(y - z, self.gradient(z))

    def solve_fenchel_young(self, y: Array, theta: Array) -> Solution:
        p = self._newton(lambda p: self.gradient(p) - theta, self.hessian, y, theta)
        return SmoothSolution(y, p, self.hessian(p), self.potential_divergence(y, p))

    def solve_fitzpatrick(self, y: Array, theta: Array) -> Solution:
        def residual(p: Array) -> Array:
            return _apply(self.hessian(p), p - y) + self.gradient(p) - theta

        def jacobian(p: Array) -> Array:
            return _symmetric_jacobian(residual, p)

        p = self._newton(residual, jacobian, y, theta)
        return SmoothSolution(y, p, jacobian(p), self.potential_curvature(p, p - y))

    def _newton(
        self,
        residual: Callable[[Array], Array],
        jacobian: Callable[[Array], Array],
        start: Array,
        theta: Array,
    ) -> Array:
        """Root of ``residual`` by Newton steps, each the best of a geometric list of lengths."""
        xp = namespace(theta)
        lengths = xp.asarray([0.5**j for j in range(_HALVINGS)], dtype=theta.dtype)
        lengths = xp.reshape(lengths, (_HALVINGS,) + (1,) * theta.ndim)

        def size(p: Array) -> Array:
            norm = xp.linalg.vector_norm(residual(p), axis=-1)
            return xp.where(self.domain.contains(p) & xp.isfinite(norm), norm, xp.inf)

        p, current = start, size(start)
        for _ in range(_MAX_STEPS):
            step = xp.linalg.solve(jacobian(p), residual(p)[..., None])[..., 0]
            trials = p - lengths * step
            sizes = size(trials)
            best = xp.min(sizes, axis=0)
            chosen = xp.argmin(sizes, axis=0, keepdims=True)[..., None]
            order = xp.reshape(xp.arange(_HALVINGS, dtype=chosen.dtype), lengths.shape)
            candidate = xp.sum(xp.where(order == chosen, trials, xp.zeros_like(trials)), axis=0)
            better = best < current
            p = xp.where(better[..., None], candidate, p)
            current = xp.where(better, best, current)
            if may_stop_early(p) and not xp.any(better):
                break
        scale = 1 + xp.linalg.vector_norm(theta, axis=-1)
        scale = scale + xp.linalg.vector_norm(self.gradient(p), axis=-1)
        converged = current <= 1e3 * eps(theta) * scale
        if is_concrete(theta):
            _raise_unless(converged, current)
        return xp.where(converged[..., None], p, xp.nan)


def _apply(matrix: Array, v: Array) -> Array:
    return (matrix @ v[..., None])[..., 0]


def _symmetric_jacobian(residual: Callable[[Array], Array], p: Array) -> Array:
    """Jacobian by central differences, all columns in one call, made symmetric."""
    xp = namespace(p)
    k = p.shape[-1]
    step = eps(p) ** (1 / 3) * (1 + xp.max(xp.abs(p), axis=-1, keepdims=True))
    unit = xp.reshape(xp.eye(k, dtype=p.dtype), (k,) + (1,) * (p.ndim - 1) + (k,))
    columns = (residual(p + step * unit) - residual(p - step * unit)) / (2 * step)
    jacobian = xp.moveaxis(columns, 0, -1)
    return (jacobian + xp.matrix_transpose(jacobian)) / 2


def _raise_unless(converged: Array, residual: Array) -> None:
    xp = namespace(converged)
    if bool(xp.all(converged)):
        return
    worst = float(xp.max(xp.where(converged, xp.zeros_like(residual), residual)))
    failed = int(xp.sum(xp.astype(~converged, xp.int64)))
    where = f"in {failed} of {converged.size if converged.ndim else 1} rows"
    raise ConvergenceError(
        NewtonStatus.STALLED, NewtonStatus.STALLED.value.format(residual=worst, where=where)
    )
