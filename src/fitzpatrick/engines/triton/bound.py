"""A loss bound to targets on a GPU, by the kernels of this engine."""

from typing import Any

import torch

from ..._array import Array
from ...regularizers import Regularizer
from ..bound import BoundLoss, HessianOperator, Out
from . import launch


class KernelHessian(HessianOperator):
    """The Hessians of the rows, with what does not depend on v computed once."""

    def __init__(self, d: Array) -> None:
        self.d, self.total = d, d.sum(dim=1)
        self._mean = d / self.total.unsqueeze(1)

    def __call__(self, v: Array, out: Array | None = None) -> Array:
        shift = torch.linalg.vecdot(self._mean, v).unsqueeze(1)
        product: Array = torch.sub(v, shift, out=out)
        return product.mul_(self.d)


class KernelLoss(BoundLoss):
    """A loss bound to targets (n, k).

    The kernel gives values and the gradient y* − y; the Hessian follows from y* and y. Solvers ask
    for both at the same scores: the latest answer is kept.
    """

    def __init__(self, omega: Regularizer, tightness: float, y: Array, kernel: str) -> None:
        self._omega: Any = omega  # separable, as all that have a kernel
        self._tightness = tightness
        self._y, self._kernel = y, kernel
        self._latest: tuple[Array, int, tuple[Array, Array]] | None = None

    def _solve(self, theta: Array) -> tuple[Array, Array]:
        if self._latest is not None:
            scores, version, answer = self._latest
            if scores is theta and version == theta._version:  # its values have not changed
                return answer
        self._latest = None  # its memory is needed
        answer = launch.launch_loss(theta, self._y, 1, self._kernel, self._tightness, -1)
        self._latest = theta, theta._version, answer
        return answer

    def value(self, theta: Array) -> Array:
        return self._solve(theta)[0]

    def value_and_gradient(self, theta: Array, out: Out = None) -> tuple[Array, Array]:
        values, residual = self._solve(theta)
        return values, residual.clone() if out is None else out[1].copy_(residual)

    def y_star(self, theta: Array) -> Array:
        return (self._solve(theta)[1] + self._y).clamp_(min=0)  # below it by rounding errors

    def hessian_operator(self, theta: Array, reach: Array | None = None) -> HessianOperator:
        given = self.y_star(theta), self._y, self._tightness
        if reach is None or not self._omega.has_mean_slope:
            return KernelHessian(self._omega.slope(*given))
        return KernelHessian(self._omega.mean_slope(*given, theta, reach.unsqueeze(1)))
