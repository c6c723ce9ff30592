r"""A matrix M near the Hessian of the objective, whose inverse is cheap.

.. math:: M_0 = C \otimes \mathrm{diag}(\mathrm{spectrum}) + \alpha, \qquad
          C = \sum_i w_i \nabla^2 L_i

is the Hessian if the curvature of a row did not depend on its features. Hessian products that have
been computed improve it: for each pair of a direction s and H s, one BFGS update makes M agree with
the Hessian along s. The pairs serve every alpha, since the penalty adds a multiple of s to H s.
"""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from .._array import Array, namespace, to_numpy
from ._vectors import flat, reshape

Map = Callable[[Array], Array]

BLOCKS_LAST = 4  # times what they cost
MIN_DIAGONAL = 1e-12  # of a diagonal, relative to its largest entry: directions without curvature


@dataclass(frozen=True, eq=False)
class Spectral:
    """M₀.

    Args:
        spectrum: mean square of the column that each parameter multiplies, shape (p,).
        n_penalized: how many of the parameters alpha falls on.
        curvature: eigenvalues of C, shape (k,), or the diagonal that stands for C.
        vectors: its eigenvectors in columns, or None for the identity.
    """

    spectrum: Array
    n_penalized: int
    curvature: Array
    vectors: Array | None = None

    def diagonal(self, alpha: float) -> Array:
        """spectrum × curvature + alpha, shape (p, k), kept above zero."""
        diagonal = self.spectrum[:, None] * self.curvature
        diagonal[: self.n_penalized, :] += alpha
        xp = namespace(diagonal)
        largest = float(xp.max(diagonal))
        return diagonal + 1.0 if largest <= 0 else xp.clip(diagonal, min=MIN_DIAGONAL * largest)

    def inverse(self, alpha: float) -> Map:
        """R ↦ M₀⁻¹ R."""
        diagonal = self.diagonal(alpha)
        vectors = self.vectors
        if vectors is None:
            return lambda residual: residual / diagonal
        return lambda residual: (residual @ vectors / diagonal) @ vectors.T


@dataclass
class Blocks:
    """M₀ from exact blocks, one per class, where it was worth its price.

    They serve for as long as some times that price: old ones are nearly as good as new ones.

    Attributes:
        products: Hessian products since they were made.
    """

    products: int = 0
    _alpha: float = 0.0
    _inverse: Map | None = None

    def are_due(self, cost: float, alpha: float) -> bool:
        """Whether to make them for a penalty, at a cost in Hessian products."""
        return self.products > (cost if self.inverse_at(alpha) is None else BLOCKS_LAST * cost)

    def inverse_at(self, alpha: float) -> Map | None:
        """R ↦ M₀⁻¹ R for a penalty, where there are blocks for it."""
        return self._inverse if self._alpha == alpha else None

    def set(self, inverse: Map | None, alpha: float) -> None:
        """Use these for a penalty from now on."""
        self.products, self._alpha, self._inverse = 0, alpha, inverse


class Memory:
    """The latest pairs (s, H s), for any alpha.

    Args:
        size: how many pairs are kept.
        n_penalized: how many rows of a parameter array alpha falls on.
        place: takes a NumPy array to where parameters are.
    """

    def __init__(self, size: int, n_penalized: int, place: Map = lambda array: array) -> None:
        self._place = place
        self._pairs: deque[tuple[Array, Array, float]] = deque(maxlen=size)
        self._n_penalized = n_penalized

    def add(self, direction: Array, product: Array, alpha: float) -> None:
        """Keep a direction and its product with the Hessian at alpha, for inverses to come."""
        self._pairs.append((direction, product, alpha))

    def inverse(self, base: Map, alpha: float) -> Map:
        r"""R ↦ M⁻¹ R, in terms of the inverse of M₀.

        With the pairs in the rows of S and Y, L the upper triangle of :math:`S Y^\top` and D its
        diagonal, the two loops of L-BFGS are

        .. math:: a = L^{-1} S r, \quad z = M_0^{-1} (r - Y^\top a), \quad
                  M^{-1} r = z + S^\top L^{-\top} (D a - Y z).
        """
        if not self._pairs:
            return base
        s, y = self._rows(alpha)
        products = to_numpy(s @ y.T)  # a few numbers: NumPy is the fastest at them
        curved = np.flatnonzero(np.diagonal(products) > 0)
        if curved.size == 0:
            return base
        if curved.size < len(products):  # rounding errors, or directions without curvature
            s, y = (namespace(a).stack([a[i, :] for i in curved.tolist()]) for a in (s, y))
        triangle = np.triu(products[np.ix_(curved, curved)])
        diagonal = self._place(np.diagonal(triangle).copy())
        inverse = self._place(np.linalg.inv(triangle))

        def apply(residual: Array) -> Array:
            row = flat(residual)
            a = inverse @ (s @ row)
            z = flat(base(reshape(row - a @ y, residual.shape)))
            z = z + (inverse.T @ (diagonal * a - y @ z)) @ s
            return reshape(z, residual.shape)

        return apply

    def _rows(self, alpha: float) -> tuple[Array, Array]:
        """S and Y at alpha, one pair a row, the oldest first."""
        directions, products, alphas = zip(*self._pairs, strict=True)
        xp = namespace(*directions)
        s, y = (xp.stack([flat(array) for array in arrays]) for arrays in (directions, products))
        end = self._n_penalized * directions[0].shape[1]
        y[:, :end] += self._place(alpha - np.asarray(alphas))[:, None] * s[:, :end]
        return s, y
