"""What happens to scores before a loss: a cap, a scale and a temperature.

A loss sees s · cap · tanh(θ/cap) with s = logit_scale/temperature. Classes that are masked, with
the score −∞, stay masked.
"""

import math
from typing import NamedTuple

import torch
from torch import Tensor

from ._arguments import as_float


def _as_positive(value: float, name: str) -> float:
    number = as_float(value, name)
    if not 0 < number < math.inf:
        raise ValueError(f"{name} must be a positive number, got {value!r}")
    return number


class Transform(NamedTuple):
    """The options of a loss that change its scores."""

    temperature: float = 1.0
    logit_scale: float | Tensor = 1.0
    softcap: float | None = None

    @property
    def is_identity(self) -> bool:
        """True if scores stay as they are."""
        is_scaled = isinstance(self.logit_scale, Tensor) or self.logit_scale != 1.0
        return self.softcap is None and not is_scaled and self.temperature == 1.0

    def check(self) -> "Transform":
        """Itself; raise unless all are positive numbers. A tensor is looked at by its shape."""
        _as_positive(self.temperature, "temperature")
        if self.softcap is not None:
            _as_positive(self.softcap, "softcap")
        if not isinstance(self.logit_scale, Tensor):
            _as_positive(self.logit_scale, "logit_scale")
        elif self.logit_scale.numel() != 1:
            raise ValueError(
                "logit_scale must be one number, got a tensor of shape "
                f"{tuple(self.logit_scale.shape)}"
            )
        return self

    @property
    def factor(self) -> float | Tensor:
        """What multiplies the scores."""
        scale = self.logit_scale
        scale = scale.reshape(()) if isinstance(scale, Tensor) else scale
        return scale / self.temperature

    @property
    def in_kernel(self) -> "KernelTransform":
        """What a kernel is told."""
        factor = self.factor
        if isinstance(factor, Tensor):
            return KernelTransform(factor.detach(), self.softcap or 0.0)
        return KernelTransform(None if factor == 1 else factor, self.softcap or 0.0)

    @property
    def cap(self) -> float:
        """The cap of scores that are multiplied already; 0 without one."""
        if self.softcap is None:
            return 0.0
        if isinstance(self.logit_scale, Tensor):
            raise NotImplementedError(
                "a head with softcap takes a number as logit_scale, not a tensor; pass "
                "logit_scale.item(), or use the loss of the scores"
            )
        return self.softcap * float(self.factor)

    def scale(self, x: Tensor) -> Tensor:
        """``x`` times the factor, in its own dtype."""
        factor = self.factor
        return x if isinstance(factor, float) and factor == 1 else (x * factor).to(x.dtype)

    def apply(self, scores: Tensor) -> Tensor:
        """The scores that a loss sees, differentiable."""
        if self.softcap is None and not isinstance(self.factor, Tensor):
            return self.scale(scores)
        # masked classes stay out of the factor's derivative, too
        is_masked = scores == -math.inf
        x = scores.masked_fill(is_masked, 0.0)
        x = x if self.softcap is None else torch.tanh(x / self.softcap) * self.softcap
        return torch.where(is_masked, scores, self.scale(x))


class KernelTransform(NamedTuple):
    """A factor of scores, or None, and a cap before it, or 0, inside of a kernel."""

    factor: Tensor | float | None
    cap: float


def cap_(scores: Tensor, cap: float) -> Tensor:
    """Cap scores in place; returns the derivatives of what they become, in float32 or float64."""
    wide = scores if scores.dtype == torch.float64 else scores.float()
    ratio = torch.tanh(wide / cap)
    scores.copy_(torch.where(wide == -math.inf, wide, ratio * cap))
    return 1 - ratio * ratio
