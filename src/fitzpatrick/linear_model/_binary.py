"""Two classes on the simplex by one score s, which stands for θ = (0, s).

Losses on the simplex do not change when a constant is added to all scores of a row, so that nothing
is lost; the penalty then falls on one row of coefficients, as in logistic regression.
"""

from .._array import Array, namespace
from ..engines import BoundLoss, HessianOperator


def with_zero_score(score: Array) -> Array:
    """θ = (0, s), shape (n, 2), for scores of shape (n, 1)."""
    xp = namespace(score)
    return xp.concat([xp.zeros_like(score.T), score.T], axis=0).T  # with contiguous columns


class BinaryHessian(HessianOperator):
    """The second derivative in s of every row, in terms of the Hessian in θ."""

    def __init__(self, pair: HessianOperator) -> None:
        self._pair = pair
        self.d = self.total = None
        if pair.d is not None and pair.total is not None:
            xp = namespace(pair.total)
            safe = xp.where(pair.total > 0, pair.total, xp.ones_like(pair.total))
            self.d = (pair.d[:, 0] * pair.d[:, 1] / safe)[:, None]

    def __call__(self, v: Array, out: Array | None = None) -> Array:
        product = self._pair(with_zero_score(v))[:, 1:] if self.d is None else self.d * v
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
            self._buffers = scores, namespace(scores).empty_like(scores)
        self._buffers[0][:, 1:] = theta
        return self._buffers

    def value(self, theta: Array) -> Array:
        return self._pair.value(self._scores(theta)[0])

    def y_star(self, theta: Array) -> Array:
        return self._pair.y_star(self._scores(theta)[0])[:, 1:]

    def value_and_gradient(
        self, theta: Array, out: tuple[Array, Array] | None = None
    ) -> tuple[Array, Array]:
        xp = namespace(theta)
        values, gradient = out or (xp.empty_like(theta[:, 0]), xp.empty_like(theta))
        scores, both = self._scores(theta)
        values, both = self._pair.value_and_gradient(scores, (values, both))
        gradient[...] = both[:, 1:]
        return values, gradient

    def hessian_operator(self, theta: Array, reach: Array | None = None) -> HessianOperator:
        if reach is not None:
            reach = reach / 2  # a step of s moves both scores by half of it, around their mean
        return BinaryHessian(self._pair.hessian_operator(self._scores(theta)[0], reach))
