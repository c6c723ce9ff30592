"""Two classes on the simplex by one score s, which stands for θ = (0, s).

Losses on the simplex do not change when a constant is added to all scores of a row, so that nothing
is lost; the penalty then falls on one row of coefficients, as in logistic regression.
"""

import numpy as np

from .._array import Array
from ..engines import BoundLoss, HessianOperator


def with_zero_score(score: Array) -> Array:
    """θ = (0, s), shape (n, 2), for scores of shape (n, 1)."""
    theta = np.zeros((score.shape[0], 2), dtype=score.dtype, order="F")
    theta[:, 1:] = score
    return theta


class BinaryHessian(HessianOperator):
    """The second derivative in s of every row, in terms of the Hessian in θ."""

    def __init__(self, pair: HessianOperator) -> None:
        self._pair = pair
        self.d = self.total = None
        if pair.d is not None and pair.total is not None:
            safe = np.where(pair.total > 0, pair.total, 1)
            self.d = (pair.d[:, 0] * pair.d[:, 1] / safe)[:, None]

    def __call__(self, v: Array, out: Array | None = None) -> Array:
        if self.d is not None:
            return np.multiply(self.d, v, out=out)
        product = self._pair(with_zero_score(v))[:, 1:]
        if out is None:
            return product
        out[...] = product
        return out


class BinaryLoss(BoundLoss):
    """A loss of two classes as a function of one score."""

    def __init__(self, pair: BoundLoss) -> None:
        self._pair = pair
        self._buffers: tuple[Array, Array] | None = None

    def _scores(self, theta: Array) -> tuple[Array, Array]:
        """(0, s) in a buffer that serves every call, and a buffer of the same shape."""
        if self._buffers is None:
            scores = with_zero_score(theta)
            self._buffers = scores, np.empty_like(scores)
        self._buffers[0][:, 1:] = theta
        return self._buffers

    def value(self, theta: Array) -> Array:
        return self._pair.value(self._scores(theta)[0])

    def y_star(self, theta: Array) -> Array:
        return self._pair.y_star(self._scores(theta)[0])[:, 1:]

    def value_and_gradient(
        self, theta: Array, out: tuple[Array, Array] | None = None
    ) -> tuple[Array, Array]:
        values, gradient = out or (np.empty(len(theta), theta.dtype), np.empty_like(theta))
        scores, both = self._scores(theta)
        self._pair.value_and_gradient(scores, (values, both))
        gradient[...] = both[:, 1:]
        return values, gradient

    def hessian_operator(self, theta: Array) -> HessianOperator:
        return BinaryHessian(self._pair.hessian_operator(self._scores(theta)[0]))
