"""The reference engine: the formulas of the core, row by row, on whatever device the scores are.

On a CPU the package's engine for NumPy arrays computes them, where it has the loss. Every function
takes scores θ of shape (n, k), a target (labels of shape (n,), or rows of shape (n, k)) and a scale
of shape (n,) that multiplies a row's loss and its derivatives. Arithmetic is in float32 where the
scores are half precision. A row with the label ``ignore_index`` or the scale 0 contributes nothing,
whatever its scores; a label out of range makes its row NaN, since a device cannot raise.
"""

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ParamSpec, TypeVar

import numpy as np
import torch
from torch import Tensor

from .._array import Array, Namespace, working_precision
from ..losses import Loss
from ..regularizers import Solution
from ..sets import Simplex
from ._blocks import BlockSolution, solve_blocks
from ._handles import loss_of

__all__ = [
    "any_target",
    "gradient",
    "hessian_product",
    "link",
    "scale_rows_",
    "value",
    "value_and_gradient",
]

P = ParamSpec("P")
R = TypeVar("R")


def _exact(function: Callable[P, R]) -> Callable[P, R]:
    """Compute as the formulas say: without autocast's half precision, or NumPy's warnings of ∞."""

    @functools.wraps(function)
    def wrapper(*args: P.args, **kwargs: P.kwargs) -> R:
        device = next(x.device.type for x in args if isinstance(x, Tensor))
        with np.errstate(all="ignore"):
            if not torch.is_autocast_enabled(device):
                return function(*args, **kwargs)
            with torch.autocast(device, enabled=False):
                return function(*args, **kwargs)

    return wrapper


@dataclass(frozen=True, eq=False)
class _CoreSolution:
    """The core's solution, with the methods of a :class:`BlockSolution`."""

    solution: Solution

    def value(self) -> Tensor:
        out: Tensor = self.solution.value()
        return out

    def value_and_gradient(self) -> tuple[Tensor, Tensor]:
        return self.value(), self.solution.gradient()

    def hessian_product(self, v: Tensor) -> Tensor:
        out: Tensor = self.solution.hessian_product(v)
        return out


def _solve_core(loss: Loss, target: Tensor, theta: Tensor) -> _CoreSolution:
    if target.ndim == 1:
        return _CoreSolution(loss.solve_labels(target, theta))
    return _CoreSolution(loss.solve(target.to(theta.dtype), theta))


class _Rows:
    """The rows of one call, which of them do not count or make no sense, and their solution.

    All arrays are of one library, PyTorch, or NumPy where its engine has the loss.
    """

    def __init__(
        self,
        xp: Namespace,
        solve: Callable[[Loss, Array, Array], BlockSolution | _CoreSolution | None],
        loss: Loss,
        ignore_index: int,
        theta: Array,
        target: Array,
        scale: Array,
    ) -> None:
        self.xp, self.scale = xp, scale
        self.off, self.outside = scale == 0, None
        if target.ndim == 1:
            ignored = target == ignore_index
            self.outside = ((target < 0) | (target >= theta.shape[-1])) & ~ignored
            self.off = self.off | ignored
            target = xp.where(ignored | self.outside, 0, target)
        self.solution = solve(loss, target, theta)

    def value(self, value: Array) -> Tensor:
        """Values of the solution, scaled."""
        if self.outside is not None:
            value = self.xp.where(self.outside, math.nan, value)
        # the scale of a mean over nothing is infinite: 0 · ∞ is NaN
        out = self.xp.where(self.off, 0.0, value) * self.scale
        return out if self.xp is torch else torch.from_numpy(out)

    def derivative(self, rows: Array, dtype: torch.dtype) -> Tensor:
        """Rows of a gradient or of a Hessian product, scaled; ``rows`` may be overwritten."""
        if self.xp is torch:
            rows = rows * self.scale[:, None]  # a product of the core may be its own argument
        elif len(rows) and (self.scale.strides[0] or self.scale[0] != 1):
            rows *= self.scale[:, None]
        if self.outside is not None:
            rows[self.outside] = math.nan
        rows[self.off] = 0.0
        out = rows if self.xp is torch else torch.from_numpy(rows)
        return out.to(dtype).contiguous()


def _rows(
    theta: Tensor, target: Tensor, scale: Tensor, loss: str, ignore_index: int
) -> tuple[_Rows, Any]:
    """The rows and their solution."""
    theta, target = working_precision(theta), working_precision(target)
    tensors, rest = (theta, target, scale.to(theta.dtype)), (loss_of(loss), ignore_index)
    if theta.is_cpu:
        rows = _Rows(np, solve_blocks, *rest, *(x.numpy(force=True) for x in tensors))
        if rows.solution is not None:
            return rows, rows.solution
    rows = _Rows(torch, _solve_core, *rest, *tensors)
    return rows, rows.solution


@_exact
def value(theta: Tensor, target: Tensor, scale: Tensor, loss: str, ignore_index: int) -> Tensor:
    """Losses of the rows, shape (n,), in working precision."""
    rows, solution = _rows(theta, target, scale, loss, ignore_index)
    return rows.value(solution.value())


def gradient(theta: Tensor, target: Tensor, scale: Tensor, loss: str, ignore_index: int) -> Tensor:
    """Gradients of the rows in θ, shape (n, k), in the dtype of θ."""
    return value_and_gradient(theta, target, scale, loss, ignore_index)[1]


@_exact
def value_and_gradient(
    theta: Tensor, target: Tensor, scale: Tensor, loss: str, ignore_index: int
) -> tuple[Tensor, Tensor]:
    """Both, for the price of one solution."""
    rows, solution = _rows(theta, target, scale, loss, ignore_index)
    values, derivative = solution.value_and_gradient()
    return rows.value(values), rows.derivative(derivative, theta.dtype)


@_exact
def hessian_product(
    theta: Tensor, target: Tensor, scale: Tensor, v: Tensor, loss: str, ignore_index: int
) -> Tensor:
    """Hessians of the rows in θ, applied to the rows of v, shape (n, k)."""
    rows, solution = _rows(theta, target, scale, loss, ignore_index)
    v = v.to(working_precision(theta).dtype)
    product = solution.hessian_product(v if rows.xp is torch else v.numpy(force=True))
    return rows.derivative(product, theta.dtype)


@_exact
def link(theta: Tensor, loss: str) -> Tensor:
    """ŷ(θ) = ∇Ω*(θ), shape (n, k)."""
    pair, working = loss_of(loss), working_precision(theta)
    if theta.is_cpu:
        arrays = (x.numpy(force=True) for x in (any_target(working, loss), working))
        blocks = solve_blocks(pair, *arrays)
        if blocks is not None:
            return torch.from_numpy(blocks.y_star()).to(theta.dtype)
    out: Tensor = pair.regularizer.solve_link(working)
    return out.to(theta.dtype).contiguous()


def any_target(theta: Tensor, loss: str) -> Tensor:
    """Some target, for what does not depend on it: the first class, or zeros."""
    if isinstance(loss_of(loss).regularizer.domain, Simplex):
        return torch.zeros_like(theta[:, 0], dtype=torch.int64)
    return torch.zeros_like(theta)


def scale_rows_(rows: Tensor, factors: Tensor) -> None:
    """Multiply the rows by their factors, or all by one, in place."""
    if factors.ndim:
        rows.mul_(factors[:, None])
    elif not rows.is_cpu or factors.item() != 1:
        rows.mul_(factors)
