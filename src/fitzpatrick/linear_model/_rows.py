"""The loss at the targets, row by row: what the objective sums."""

from collections.abc import Callable
from typing import Protocol

import numpy as np

from .._array import Array

Product = Callable[[Array, Array], Array]


class Rows(Protocol):
    """A loss bound to its targets, as :func:`fitzpatrick.engines.bind` returns it."""

    def value_and_gradient(self, theta: Array, out: tuple[Array, Array]) -> tuple[Array, Array]:
        """The loss of each row and its gradient in θ."""

    def hessian_operator(self, theta: Array) -> Product:
        """(v, out) ↦ Hessian of each row times v, with the curvature computed once."""


class BinaryRows:
    """Two classes on the simplex by one score s, which stands for θ = (0, s).

    Losses on the simplex do not change when a constant is added to all scores of a row, so that
    nothing is lost; the penalty then falls on one row of coefficients, as in logistic regression.
    """

    def __init__(self, rows: Rows) -> None:
        self._rows = rows

    @staticmethod
    def pair(score: Array) -> Array:
        """θ = (0, s), shape (n, 2)."""
        theta = np.zeros((score.shape[0], 2), dtype=score.dtype)
        theta[:, 1:] = score
        return theta

    def value_and_gradient(self, theta: Array, out: tuple[Array, Array]) -> tuple[Array, Array]:
        values, gradient = out
        theta = self.pair(theta)
        _, both = self._rows.value_and_gradient(theta, (values, np.empty_like(theta)))
        gradient[...] = both[:, 1:]
        return out

    def hessian_operator(self, theta: Array) -> Product:
        operator = self._rows.hessian_operator(self.pair(theta))

        def product(v: Array, out: Array) -> Array:
            both = self.pair(v)
            out[...] = operator(both, both)[:, 1:]
            return out

        return product
