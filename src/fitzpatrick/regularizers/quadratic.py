r"""A quadratic form, :math:`\Omega(y) = \tfrac12 \langle y, A y\rangle` on all of ℝᵏ.

The Fitzpatrick maximiser is :math:`y^\star = (y + A^{-1}\theta)/2`, and with the residual
:math:`r = A^{-1}\theta - y` the losses are :math:`\tfrac12\langle r, A r\rangle` and half of that.
"""

from dataclasses import dataclass

import numpy as np

from .._array import Array, inner, is_concrete, namespace
from ..sets import ConvexSet, Reals
from ._base import Regularizer, Solution


@dataclass(frozen=True, eq=False)
class QuadraticSolution(Solution):
    """p = c y + (1 − c) A⁻¹θ with c = 0 (Fenchel-Young) or ½ (Fitzpatrick)."""

    owner: "Quadratic"
    y: Array
    theta: Array
    mix: float

    @property
    def y_star(self) -> Array:
        return self.mix * self.y + (1 - self.mix) * self.owner.unapply(self.theta)

    def value(self) -> Array:
        factor = self.owner.factor(self.y)
        # ‖Uᵀ r‖²/2 with A = U Uᵀ
        image = (self.owner.unapply(self.theta) - self.y) @ factor
        return (1 - self.mix) * inner(image, image) / 2

    def hessian_product(self, v: Array) -> Array:
        return (1 - self.mix) * self.owner.unapply(v)


@dataclass(frozen=True, eq=False)
class Quadratic(Regularizer):
    r"""Quadratic regulariser :math:`\tfrac12\langle y, A y\rangle` with A positive definite.

    - Link: :math:`A^{-1}\theta`.
    - Fenchel-Young loss: the Mahalanobis form :math:`\tfrac12\langle r, A r\rangle`,
      :math:`r = A^{-1}\theta - y`.
    - Fitzpatrick loss (paper, squared loss): half of it, with
      :math:`y^\star = (y + A^{-1}\theta)/2`.

    Args:
        A: symmetric positive definite matrix, (k, k), of the array library of the data.

    Example:
        >>> import numpy as np
        >>> Quadratic(np.diag([1.0, 4.0])).link(np.asarray([1.0, 2.0]))
        array([1. , 0.5])
    """

    A: Array

    def __post_init__(self) -> None:
        matrix = np.asarray(self.A, dtype=float) if isinstance(self.A, (list, tuple)) else self.A
        if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
            raise ValueError(f"A must be a square matrix, got shape {tuple(matrix.shape)}")
        object.__setattr__(self, "A", matrix)
        if not is_concrete(matrix):
            return
        xp = namespace(matrix)
        scale = float(xp.max(xp.abs(matrix)))
        asymmetry = float(xp.max(xp.abs(matrix - matrix.T)))
        if not asymmetry <= 1e-6 * scale:
            raise ValueError(f"A must be symmetric, A - A.T reaches {asymmetry:.3g}")
        smallest = float(xp.min(xp.linalg.eigvalsh(matrix)))
        if not smallest > 0:
            raise ValueError(f"A must be positive definite, its least eigenvalue is {smallest:.3g}")

    @property
    def domain(self) -> ConvexSet:
        return Reals()

    def _matrix(self, like: Array) -> Array:
        k = self.A.shape[0]
        if like.shape[-1] != k:
            raise ValueError(f"A is {k} x {k}, but the rows have {like.shape[-1]} entries")
        if namespace(like) is not namespace(self.A):
            raise TypeError(
                "A and the data must come from one array library, "
                f"got {type(self.A).__name__} and {type(like).__name__}"
            )
        return namespace(like).astype(self.A, like.dtype, copy=False)

    def factor(self, like: Array) -> Array:
        """U with A = U Uᵀ."""
        return namespace(like).linalg.cholesky(self._matrix(like))

    def unapply(self, x: Array) -> Array:
        """A⁻¹ x along the last axis."""
        return namespace(x).linalg.solve(self._matrix(x), x[..., None])[..., 0]

    def potential(self, y: Array) -> Array:
        return self.potential_curvature(y, y) / 2

    def potential_gradient(self, z: Array) -> Array:
        return z @ self._matrix(z)

    def potential_curvature(self, z: Array, v: Array) -> Array:
        image = v @ self.factor(v)
        return inner(image, image)

    def potential_divergence(self, y: Array, z: Array) -> Array:
        return self.potential_curvature(z, y - z) / 2

    def solve_fenchel_young(self, y: Array, theta: Array) -> Solution:
        return QuadraticSolution(self, y, theta, mix=0.0)

    def solve_fitzpatrick(self, y: Array, theta: Array) -> Solution:
        return QuadraticSolution(self, y, theta, mix=0.5)
