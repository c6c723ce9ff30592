"""The reference engine: the formulas of the core, row by row, on whatever device the scores are.

On a CPU the package's engine for NumPy arrays computes them, where it has the loss: it works in
blocks that stay in cache and stops iterating where a block has converged. Every function takes
scores θ of shape (n, k), a target (labels of shape (n,), or rows of shape (n, k)) and a scale that
multiplies a row's loss and its derivatives. Arithmetic is in float32 where the scores are half
precision. A row with the label ``ignore_index`` or the scale 0 contributes nothing, whatever its
scores; a label out of range makes its row NaN, since a device cannot raise.
"""

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar, cast

import numpy as np
import torch
from torch import Tensor

from .._array import Array
from ..engines import BoundLoss, CoreLoss, DenseTargets, Labels
from ..engines.triton.scale import Scale
from ..losses import Loss
from ..regularizers.tsallis import entmax_link
from ._compiled import bind_rows, compute_few_links
from ._handles import loss_of, regularizer_of

F = TypeVar("F", bound=Callable[..., Any])


def exact(function: F) -> F:
    """Compute as the formulas say: without autocast's half precision, or NumPy's warnings of ∞."""

    @functools.wraps(function)
    def wrapper(theta: Tensor, *args: Any) -> Any:
        device = theta.device.type
        with np.errstate(all="ignore"):
            if not torch.is_autocast_enabled(device):
                return function(theta, *args)
            with torch.autocast(device, enabled=False):
                return function(theta, *args)

    return cast(F, wrapper)


def widen(x: Tensor) -> Tensor:
    """``x`` itself, or in float32 where it is half precision."""
    return x.float() if x.dtype in (torch.float16, torch.bfloat16) else x


@dataclass(frozen=True, eq=False)
class _ScaledLoss:
    """A loss at its targets, the scores, and what multiplies the rows.

    All arrays are of one library: NumPy's on a CPU, where its engine has the loss, else PyTorch's.

    Attributes:
        bound: the loss, at classes that exist.
        theta: scores in working precision, (n, k).
        factor: a number for each row, (n,), or one for all.
        is_ignored: which rows count for nothing, (n,); None where all count.
        is_outside: which rows have a label that is no class, (n,); None where none has.
    """

    bound: BoundLoss
    theta: Array
    factor: Array | float
    is_ignored: Array | None
    is_outside: Array | None

    def value(self) -> Tensor:
        return self._scale_values(self.bound.value(self.theta))

    def value_and_gradient(self, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
        out = None
        if isinstance(self.theta, np.ndarray):  # in rows, whatever the order of θ
            out = np.empty(len(self.theta), self.theta.dtype), self._empty()
        values, gradient = self.bound.value_and_gradient(self.theta, out)
        return self._scale_values(values), self._scale_rows(gradient, dtype)

    def hessian_product(self, v: Tensor, dtype: torch.dtype) -> Tensor:
        v = v.to(torch.float64 if dtype == torch.float64 else torch.float32)
        is_numpy = isinstance(self.theta, np.ndarray)
        direction, out = (v.numpy(force=True), self._empty()) if is_numpy else (v, None)
        return self._scale_rows(self.bound.hessian_product(self.theta, direction, out), dtype)

    def _empty(self) -> Array:
        return np.empty(self.theta.shape, self.theta.dtype)

    def _scale_values(self, values: Array) -> Tensor:
        xp = np if isinstance(values, np.ndarray) else torch
        if self.is_outside is not None:
            values = xp.where(self.is_outside, math.nan, values)
        if self.is_ignored is not None:
            values = xp.where(self.is_ignored, 0.0, values)
        # the factor of a mean over nothing is infinite: 0 · ∞ is NaN
        values = values * self.factor
        return torch.from_numpy(values) if xp is np else values

    def _scale_rows(self, rows: Array, dtype: torch.dtype) -> Tensor:
        """Rows of a gradient or of a Hessian product; NumPy's are buffers of this class."""
        factor = self.factor
        if not isinstance(factor, float) and factor.ndim:
            factor = factor[:, None]
        if not isinstance(rows, np.ndarray):
            rows = rows * factor  # a product of the core may be its own argument
        elif not (isinstance(factor, float) and factor == 1):
            rows *= factor
        if self.is_outside is not None:
            rows[self.is_outside] = math.nan
        if self.is_ignored is not None:
            rows[self.is_ignored] = 0.0
        if isinstance(rows, np.ndarray):
            out = torch.from_numpy(rows)
            return out if out.dtype == dtype else out.to(dtype)
        tensor: Tensor = rows.to(dtype)
        return tensor.contiguous()


def _bind(
    theta: Tensor, target: Tensor, scale: Scale, omega: str, tightness: float, ignore_index: int
) -> _ScaledLoss:
    """Bind a loss to its targets, by whoever computes it."""
    loss = loss_of(omega, tightness)
    theta, target = widen(theta), widen(target)
    if theta.is_cpu and loss.regularizer.is_row_wise:
        y = target.numpy(force=True)
        if y.ndim == 1 or not loss.regularizer.domain.has_labels or y.sum(axis=-1).all():
            return _bind_numpy(theta.numpy(force=True), y, scale, omega, loss, ignore_index)
        # a row of no proportions at all, which nobody checked, is none of the engine's rows
    bind = functools.partial(CoreLoss, loss)
    return bind_tensors(theta, target, scale, ignore_index, theta.shape[-1], bind)


def _bind_numpy(
    theta: Array, y: Array, scale: Scale, omega: str, loss: Loss, ignore_index: int
) -> _ScaledLoss:
    n, k = theta.shape
    is_ignored = is_outside = None
    targets: Labels | DenseTargets
    if y.ndim == 1:
        # as unsigned numbers negative labels are out of range, too
        is_inside = n == 0 or y.astype(np.int64, copy=False).view(np.uint64).max() < k
        if not is_inside or 0 <= ignore_index < k:
            is_ignored = y == ignore_index
            is_outside = ((y < 0) | (y >= k)) & ~is_ignored
            y = np.where(is_ignored | is_outside, 0, y)
        targets = Labels((n, k), theta.dtype, y)
    else:
        targets = DenseTargets((n, k), theta.dtype, y)
    factor: Array | float
    if isinstance(scale, Tensor):
        factor = widen(scale).numpy(force=True).astype(theta.dtype, copy=False)
        if n and not factor.strides[0] and factor[0] != 0:
            factor = float(factor[0])  # one number, expanded
        else:
            is_zero = factor == 0
            is_ignored = is_zero if is_ignored is None else is_zero | is_ignored
    else:
        count = scale
        if count is None:
            count = n if is_ignored is None else n - np.count_nonzero(is_ignored)
        factor = 1 / count if count else math.inf
    return _ScaledLoss(bind_rows(omega, loss, targets), theta, factor, is_ignored, is_outside)


def bind_tensors(
    theta: Tensor,
    y: Tensor,
    scale: Scale,
    ignore_index: int,
    n_classes: Tensor | int,
    bind: Callable[[Tensor], BoundLoss],
) -> _ScaledLoss:
    """Bind what ``bind`` makes of the targets, in the dtype of θ, to tensors on any device."""
    is_ignored = is_outside = None
    if y.ndim == 1:
        is_ignored = y == ignore_index
        is_outside = ((y < 0) | (y >= n_classes)) & ~is_ignored
        y = torch.where(is_ignored | is_outside, 0, y)
    else:
        y = y.to(theta.dtype)
    factor: Array | float
    if isinstance(scale, Tensor):
        factor = scale.to(theta.dtype)
        is_ignored = factor == 0 if is_ignored is None else (factor == 0) | is_ignored
    elif scale is not None:
        factor = 1 / scale
    else:
        count = theta.shape[0] if is_ignored is None else (~is_ignored).sum()
        factor = torch.as_tensor(count, device=theta.device).to(theta.dtype).reciprocal()
    return _ScaledLoss(bind(y), theta, factor, is_ignored, is_outside)


@exact
def value(
    theta: Tensor, target: Tensor, scale: Scale, omega: str, tightness: float, ignore_index: int
) -> Tensor:
    """Losses of the rows, shape (n,), in working precision."""
    return _bind(theta, target, scale, omega, tightness, ignore_index).value()


def gradient(
    theta: Tensor, target: Tensor, scale: Scale, omega: str, tightness: float, ignore_index: int
) -> Tensor:
    """Gradients of the rows in θ, shape (n, k), in the dtype of θ."""
    return value_and_gradient(theta, target, scale, omega, tightness, ignore_index)[1]


@exact
def value_and_gradient(
    theta: Tensor, target: Tensor, scale: Scale, omega: str, tightness: float, ignore_index: int
) -> tuple[Tensor, Tensor]:
    """Both, for the price of one solution."""
    loss = _bind(theta, target, scale, omega, tightness, ignore_index)
    return loss.value_and_gradient(theta.dtype)


# an engine may write the gradients over the scores here; this one does not
value_and_gradient_ = value_and_gradient


@exact
def hessian_product(
    theta: Tensor,
    target: Tensor,
    scale: Scale,
    v: Tensor,
    omega: str,
    tightness: float,
    ignore_index: int,
) -> Tensor:
    """Hessians of the rows in θ, applied to the rows of v, shape (n, k)."""
    loss = _bind(theta, target, scale, omega, tightness, ignore_index)
    return loss.hessian_product(v, theta.dtype)


def link(theta: Tensor, omega: str) -> Tensor:
    """ŷ(θ) = ∇Ω*(θ), shape (n, k): the maximizer of the Fenchel-Young loss at any target."""
    is_plain = theta.is_cpu and theta.dtype in (torch.float32, torch.float64)
    out = None
    if is_plain and regularizer_of(omega).domain.has_labels:
        out = compute_few_links(theta, omega)
    return _any_link(theta, omega) if out is None else out


@exact
def _any_link(theta: Tensor, omega: str) -> Tensor:
    regularizer, scores = regularizer_of(omega), widen(theta)
    if not (theta.is_cpu and regularizer.is_row_wise):
        out: Tensor = regularizer.solve_link(scores)
        return out.to(theta.dtype).contiguous()
    x = scores.numpy(force=True)
    n, k = x.shape
    targets: Labels | DenseTargets
    if regularizer.domain.has_labels:
        targets = Labels((n, k), x.dtype, np.zeros(n, np.intp))
    else:
        targets = DenseTargets((n, k), x.dtype, np.zeros_like(x))
    rows = torch.from_numpy(bind_rows(omega, loss_of(omega, 0.0), targets).y_star(x))
    return rows.to(theta.dtype).contiguous()


@exact
def entmax(theta: Tensor, alpha: Tensor) -> Tensor:
    """α-entmax of rows, shape (n, k), with one α for each, (n, 1)."""
    scores = widen(theta)
    out: Tensor = entmax_link(scores, alpha.to(scores.dtype))
    return out.to(theta.dtype)


def any_target(theta: Tensor, omega: str) -> Tensor:
    """Some target, for what does not depend on it: the first class, or zeros."""
    if regularizer_of(omega).domain.has_labels:
        return torch.zeros_like(theta[:, 0], dtype=torch.int64)
    return torch.zeros_like(theta)


def scale_rows_(rows: Tensor, factors: Tensor) -> None:
    """Multiply the rows by their factors, or all by one, in place."""
    if factors.ndim:
        rows.mul_(factors[:, None])
    elif not rows.is_cpu or factors.item() != 1:
        rows.mul_(factors)
