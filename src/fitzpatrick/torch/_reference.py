"""The reference engine: the formulas of the core, row by row, on whatever device the scores are.

Every function takes scores θ of shape (n, k), a target (labels of shape (n,), or rows of shape
(n, k)) and a scale of shape (n,) that multiplies a row's loss and its derivatives. Arithmetic is in
float32 where the scores are half precision. A row with the label ``ignore_index`` or the scale 0
contributes nothing, whatever its scores; a label out of range makes its row NaN, since a device
cannot raise.
"""

import torch
from torch import Tensor

from .._array import working_precision
from ..regularizers import Solution
from ._handles import loss_of

__all__ = ["gradient", "hessian_product", "link", "value", "value_and_gradient"]


class _Rows:
    """The solved rows, and which of them do not count or make no sense."""

    def __init__(
        self, theta: Tensor, target: Tensor, scale: Tensor, loss: str, ignore_index: int
    ) -> None:
        self.dtype = theta.dtype
        theta = working_precision(theta)
        self.scale = scale.to(theta.dtype)
        self.off = scale == 0
        self.outside = torch.zeros_like(self.off)
        if target.is_floating_point():
            self.y = target.to(theta.dtype)
        else:
            ignored = target == ignore_index
            self.off = self.off | ignored
            self.outside = ((target < 0) | (target >= theta.shape[-1])) & ~ignored
            inside = target.masked_fill(ignored | self.outside, 0)
            self.y = torch.zeros_like(theta, memory_format=torch.contiguous_format)
            self.y.scatter_(-1, inside[:, None], 1.0)
        self.solution: Solution = loss_of(loss).solve(self.y, theta)

    def value(self) -> Tensor:
        out: Tensor = self.solution.value()
        out = out.masked_fill(self.outside, torch.nan).masked_fill(self.off, 0.0)
        return out * self.scale  # the scale of a mean over nothing is infinite: 0 · ∞ is NaN

    def gradient(self) -> Tensor:
        return self._scaled(self.solution.y_star - self.y)

    def hessian_product(self, v: Tensor) -> Tensor:
        return self._scaled(self.solution.hessian_product(v.to(self.y.dtype)))

    def _scaled(self, rows: Tensor) -> Tensor:
        rows = (rows * self.scale[:, None]).masked_fill(self.outside[:, None], torch.nan)
        return rows.masked_fill(self.off[:, None], 0.0).to(self.dtype).contiguous()


def value(theta: Tensor, target: Tensor, scale: Tensor, loss: str, ignore_index: int) -> Tensor:
    """Losses of the rows, shape (n,), in working precision."""
    return _Rows(theta, target, scale, loss, ignore_index).value()


def gradient(theta: Tensor, target: Tensor, scale: Tensor, loss: str, ignore_index: int) -> Tensor:
    """Gradients of the rows in θ, shape (n, k), in the dtype of θ."""
    return _Rows(theta, target, scale, loss, ignore_index).gradient()


def value_and_gradient(
    theta: Tensor, target: Tensor, scale: Tensor, loss: str, ignore_index: int
) -> tuple[Tensor, Tensor]:
    """Both, for the price of one solution."""
    rows = _Rows(theta, target, scale, loss, ignore_index)
    return rows.value(), rows.gradient()


def hessian_product(
    theta: Tensor, target: Tensor, scale: Tensor, v: Tensor, loss: str, ignore_index: int
) -> Tensor:
    """Hessians of the rows in θ, applied to the rows of v, shape (n, k)."""
    return _Rows(theta, target, scale, loss, ignore_index).hessian_product(v)


def link(theta: Tensor, loss: str) -> Tensor:
    """ŷ(θ) = ∇Ω*(θ), shape (n, k)."""
    out: Tensor = loss_of(loss).regularizer.solve_link(working_precision(theta))
    return out.to(theta.dtype).contiguous()
