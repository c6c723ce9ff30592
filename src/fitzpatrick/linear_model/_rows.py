"""The loss at the targets, row by row: what the objective sums."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Protocol

import numpy as np

from .._array import Array
from ..engines._row_blocks import BlockHessian

Product = Callable[[Array, Array], Array]


class EntryHessian(ABC):
    """Hessians diag(d) − d dᵀ/⟨d, 1⟩ of the rows, or diag(d) where the entries are not coupled.

    Attributes:
        d: curvature of every entry, (n, k).
        total: its row sums (n,), or None for rows that are not coupled.
    """

    d: Array
    total: Array | None

    @abstractmethod
    def __call__(self, v: Array, out: Array) -> Array:
        """The product of each row, into ``out``."""


Entrywise = BlockHessian | EntryHessian


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
        self._buffers: tuple[Array, Array] | None = None

    @staticmethod
    def pair(score: Array) -> Array:
        """θ = (0, s), shape (n, 2)."""
        theta = np.zeros((score.shape[0], 2), dtype=score.dtype, order="F")
        theta[:, 1:] = score
        return theta

    def _pair(self, score: Array) -> tuple[Array, Array]:
        """The same in a buffer that is used for every score, and another one."""
        if self._buffers is None:
            theta = self.pair(score)
            self._buffers = theta, np.empty_like(theta)
        self._buffers[0][:, 1:] = score
        return self._buffers

    def value_and_gradient(self, theta: Array, out: tuple[Array, Array]) -> tuple[Array, Array]:
        values, gradient = out
        pair, both = self._pair(theta)
        self._rows.value_and_gradient(pair, (values, both))
        gradient[...] = both[:, 1:]
        return out

    def hessian_operator(self, theta: Array) -> Product:
        operator = self._rows.hessian_operator(self._pair(theta)[0])

        def product(v: Array, out: Array) -> Array:
            pair, both = self._pair(v)
            out[...] = operator(pair, both)[:, 1:]
            return out

        return product
