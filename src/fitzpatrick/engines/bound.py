"""A loss bound to its targets: one interface for every engine, and the core behind it."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from .._array import Array, coupled_product, quiet, row_sum
from ..regularizers import Regularizer, Solution

Out = tuple[Array, Array] | None


class HessianOperator(ABC):
    """The Hessian of the loss in θ at one θ, applied to the rows of any number of arrays.

    It is diag(d) in every row, less ddᵀ/⟨d, 1⟩ where the entries of a row are coupled.

    Attributes:
        d: (n, k), or None if the Hessian has no such form.
        total: ⟨d, 1⟩ of each row, (n,), or None if the entries are not coupled or d is None.
    """

    d: Array | None
    total: Array | None

    @abstractmethod
    def __call__(self, v: Array, out: Array | None = None) -> Array:
        """Hessian times v, shape (n, k), into ``out`` if given; ``out`` may be ``v`` itself."""


class BoundLoss(ABC):
    """A loss at fixed targets, for scores of shape (n, k), unchecked.

    Scores may be in any memory order. Buffers given as ``out`` must not overlap them.
    """

    @abstractmethod
    def value(self, theta: Array) -> Array:
        """The loss of each row, (n,)."""

    @abstractmethod
    def value_and_gradient(self, theta: Array, out: Out = None) -> tuple[Array, Array]:
        """The loss of each row, (n,), and its gradient in θ, (n, k), into ``out`` if given."""

    def gradient(self, theta: Array) -> Array:
        """The gradient alone."""
        return self.value_and_gradient(theta)[1]

    @abstractmethod
    def y_star(self, theta: Array) -> Array:
        """The maximizer, (n, k)."""

    @abstractmethod
    def hessian_operator(self, theta: Array, reach: Array | None = None) -> HessianOperator:
        """The Hessian at θ: its entries are computed here, once.

        Args:
            theta: scores (n, k).
            reach: how far the scores of each row are going to move, shape (n,). If the regularizer
                has a ``mean_slope``, d is its mean over the scores within reach, where the Hessian
                may jump.
        """

    def hessian_product(self, theta: Array, v: Array, out: Array | None = None) -> Array:
        """One Hessian product; for several at one θ, :meth:`hessian_operator` is faster."""
        return self.hessian_operator(theta)(v, out)


@dataclass(frozen=True, eq=False)
class CoreHessian(HessianOperator):
    """Whole arrays; ``product`` is for Hessians of no special form."""

    d: Array | None
    total: Array | None
    product: Callable[[Array], Array]

    @quiet
    def __call__(self, v: Array, out: Array | None = None) -> Array:
        if self.d is None:
            return _deliver(self.product(v), out)
        return _deliver(self.d * v if self.total is None else coupled_product(self.d, v), out)


@dataclass(frozen=True, eq=False)
class CoreLoss(BoundLoss):
    """The core on all rows at once: any regularizer, and arrays of any library.

    Attributes:
        y: labels (n,) or targets (n, k), of the library of the scores and in their dtype.
    """

    omega: Regularizer
    tightness: float
    y: Array

    def solve(self, theta: Array) -> Solution:
        if self.y.ndim < theta.ndim:
            return self.omega.solve_labels(self.y, theta, self.tightness)
        return self.omega.solve(self.y, theta, self.tightness)

    @quiet
    def value(self, theta: Array) -> Array:
        return self.solve(theta).value()

    @quiet
    def value_and_gradient(self, theta: Array, out: Out = None) -> tuple[Array, Array]:
        solution = self.solve(theta)
        value, gradient = (None, None) if out is None else out
        return _deliver(solution.value(), value), _deliver(solution.gradient(), gradient)

    @quiet
    def gradient(self, theta: Array) -> Array:
        return self.solve(theta).gradient()

    @quiet
    def y_star(self, theta: Array) -> Array:
        return self.solve(theta).y_star

    @quiet
    def hessian_operator(self, theta: Array, reach: Array | None = None) -> HessianOperator:
        solution = self.solve(theta)
        omega: Any = self.omega
        if reach is not None and omega.has_mean_slope:
            p = solution.y_star
            y = p - solution.gradient()
            d = omega.mean_slope(p, y, self.tightness, theta, reach[:, None])
        else:
            d = solution.slope()
        is_coupled = d is not None and omega.is_coupled
        return CoreHessian(d, row_sum(d)[..., 0] if is_coupled else None, solution.hessian_product)


def _deliver(result: Array, out: Array | None) -> Array:
    if out is None:
        return result
    out[...] = result
    return out
