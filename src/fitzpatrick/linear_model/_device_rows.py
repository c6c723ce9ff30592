"""Losses bound to dense targets on a PyTorch device: by a kernel on a GPU, or by the core."""

from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

import torch

from .._array import Array
from ..losses import Loss, ends, get_loss
from ..regularizers import Solution
from ._rows import EntryHessian, Product, Rows


def bind_rows(loss: Loss, targets: Array, dtype: Any, device: torch.device) -> Rows:
    """By a kernel where there is one, else by the core."""
    y = torch.as_tensor(targets.astype(dtype, copy=False), device=device)
    if device.type == "cuda" and find_spec("triton") is not None:
        for name in CURVATURES:
            if loss == get_loss(name):
                return KernelRows(name, y)
    return DeviceRows(loss, y)


class Latest:
    """A function of scores that is often asked twice, and knows its last answer."""

    def __init__(self, function: Callable[[Array], Any]) -> None:
        self._function = function
        self._known: tuple[Array, int, Any] | None = None

    def __call__(self, theta: Array) -> Any:
        if self._known is not None:
            scores, version, answer = self._known
            if scores is theta and version == theta._version:  # nobody has written to it since
                return answer
        self._known = None  # its memory is needed
        answer = self._function(theta)
        self._known = theta, theta._version, answer
        return answer


class DeviceRows:
    """A loss bound to targets, by the core."""

    def __init__(self, loss: Loss, y: Array) -> None:
        self._y = y
        self._is_coupled = loss.regularizer.is_coupled
        self._solve: Callable[[Array], Solution] = Latest(lambda theta: loss.solve(y, theta))

    def value_and_gradient(self, theta: Array, out: tuple[Array, Array]) -> tuple[Array, Array]:
        solution = self._solve(theta)
        return solution.value(), torch.sub(solution.y_star, self._y, out=out[1])

    def hessian_operator(self, theta: Array) -> Product:
        solution = self._solve(theta)
        d = solution.slope()
        if d is None:
            return lambda v, out: out.copy_(solution.hessian_product(v))
        return DeviceHessian(d, self._is_coupled)


class KernelRows:
    """A loss of that name on the simplex bound to targets, by one kernel of the Triton engine.

    The kernel knows the maximiser y*, and the curvature of an entry follows from that and y.
    """

    def __init__(self, name: str, y: Array) -> None:
        from ..engines.triton import launch  # triton may not be there

        omega, tightness = ends(name)[0], get_loss(name).tightness
        self._y = y
        self._curvature = CURVATURES[name]
        self._solve: Callable[[Array], tuple[Array, Array]] = Latest(
            lambda theta: launch.value_and_gradient(theta, y, 1, omega, tightness, -1)
        )

    def value_and_gradient(self, theta: Array, out: tuple[Array, Array]) -> tuple[Array, Array]:
        values, gradient = self._solve(theta)
        return values, out[1].copy_(gradient)

    def hessian_operator(self, theta: Array) -> Product:
        y_star = (self._solve(theta)[1] + self._y).clamp_(min=0)  # but for rounding errors
        return DeviceHessian(self._curvature(y_star, self._y), coupled=True)


# d of an entry from its maximiser and its target
CURVATURES: dict[str, Callable[[Array, Array], Array]] = {
    "logistic": lambda p, _: p,
    "fitzpatrick_logistic": lambda p, y: torch.where(p > 0, p * p / (p + y), 0.0),
    "sparsemax": lambda p, _: (p > 0).to(p.dtype),
    "fitzpatrick_sparsemax": lambda p, _: (p > 0).to(p.dtype) / 2,
}


class DeviceHessian(EntryHessian):
    """The Hessians of the rows, with what does not depend on v computed once."""

    def __init__(self, d: Array, coupled: bool) -> None:
        self.d = d
        self.total = d.sum(dim=1) if coupled else None
        self._mean = None if self.total is None else d / self.total.unsqueeze(1)

    def __call__(self, v: Array, out: Array) -> Array:
        if self._mean is None:
            return torch.mul(self.d, v, out=out)
        shift = torch.linalg.vecdot(self._mean, v).unsqueeze(1)
        return torch.sub(v, shift, out=out).mul_(self.d)
