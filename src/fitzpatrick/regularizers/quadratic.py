r"""A quadratic form, :math:`\Omega(y) = \tfrac12 \langle y, A y\rangle` on all of ℝᵏ.

At the tightness c the maximizer is :math:`y^\star = (c\,y + A^{-1}\theta)/(1 + c)`, and with the
residual :math:`r = A^{-1}\theta - y` the loss is :math:`\langle r, A r\rangle / (2 + 2c)`.
"""

from dataclasses import dataclass

from .._array import Array, as_real, inner, is_concrete, namespace
from ..sets import Reals
from ._base import PointSolution, Regularizer, Solution


@dataclass(frozen=True, eq=False)
class Quadratic(Regularizer):
    r"""Quadratic regularizer :math:`\tfrac12\langle y, A y\rangle` with A positive definite.

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
    domain = Reals()
    has_kinks = False
    order_is_tightness = True

    def __post_init__(self) -> None:
        matrix = as_real(self.A, "A")
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

    def _unapply(self, x: Array) -> Array:
        """A⁻¹ x along the last axis."""
        return namespace(x).linalg.solve(self._matrix(x), x[..., None])[..., 0]

    def potential(self, y: Array) -> Array:
        return self.potential_curvature(y, y) / 2

    def potential_gradient(self, z: Array) -> Array:
        return z @ self._matrix(z)

    def potential_curvature(self, z: Array, v: Array) -> Array:
        image = v @ namespace(v).linalg.cholesky(self._matrix(v))  # Uᵀ v with A = U Uᵀ
        return inner(image, image)

    def potential_divergence(self, y: Array, z: Array) -> Array:
        return self.potential_curvature(z, y - z) / 2

    def solve(self, y: Array, theta: Array, tightness: float) -> Solution:
        scale, link = 1 + tightness, self._unapply(theta)
        p, gradient = tightness / scale * y + link / scale, (link - y) / scale
        return PointSolution(
            y,
            p,
            lambda: scale * self.potential(gradient),
            lambda v: self._unapply(v) / scale,
            own_gradient=gradient,
        )
