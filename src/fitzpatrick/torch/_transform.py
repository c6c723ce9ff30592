"""What happens to scores before a loss: a cap, a scale and a temperature.

A loss sees s · cap · tanh(θ/cap) with s = logit_scale/temperature. Classes that are masked, with
the score −∞, stay masked.
"""

import math
from typing import TYPE_CHECKING, NamedTuple

import torch
from torch import Tensor

from ._arguments import as_float

if TYPE_CHECKING:  # PyTorch may come without it
    from torch.distributed import ProcessGroup


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

    def with_shared_derivative(
        self, group: "ProcessGroup | None", device: torch.device
    ) -> "Transform":
        """These options where each process of a group has some of the classes.

        The derivative in a learned scale is a sum over all of them, on the device of the scores.
        """
        if group is None or not isinstance(self.logit_scale, Tensor):
            return self
        from ._sharded import with_summed_derivative

        return self._replace(logit_scale=with_summed_derivative(self.logit_scale.to(device), group))

    @property
    def in_kernel(self) -> "KernelTransform":
        """What a kernel is told."""
        factor = self.factor
        if isinstance(factor, Tensor):
            return KernelTransform(factor.detach(), self.softcap or 0.0)
        return KernelTransform(None if factor == 1 else factor, self.softcap or 0.0)

    def scale(self, x: Tensor) -> Tensor:
        """``x`` times the factor, in its own dtype."""
        factor = self.factor
        return x if isinstance(factor, float) and factor == 1 else (x * factor).to(x.dtype)

    def apply(self, scores: Tensor) -> Tensor:
        """The scores that a loss sees, differentiable."""
        if self.softcap is None and not isinstance(self.factor, Tensor):
            return self.scale(scores)
        # masked classes stay out of the factor's derivative, and so does NaN in an ignored row
        is_left = ~(scores > -math.inf)
        x = scores.masked_fill(is_left, 0.0)
        x = x if self.softcap is None else torch.tanh(x / self.softcap) * self.softcap
        return torch.where(is_left, scores, self.scale(x))


class KernelTransform(NamedTuple):
    """A factor of scores, or None, and a cap before it, or 0, where nothing is differentiated."""

    factor: Tensor | float | None
    cap: float

    def apply_(self, scores: Tensor) -> Tensor:
        """Change scores in place; returns what :meth:`pull_back_` needs, in float32 or float64.

        That is the capped scores over their cap, or the scores if there is no cap.
        """
        wide = scores.to(torch.float64 if scores.dtype == torch.float64 else torch.float32)
        kept = torch.tanh(wide / self.cap) if self.cap else wide.clone()
        seen = self._capped(kept) if self.factor is None else self._capped(kept) * self.factor
        scores.copy_(torch.where(wide == -math.inf, wide, seen))
        return kept

    def pull_back_(self, gradient: Tensor, kept: Tensor) -> Tensor | None:
        """The gradient of the scores in place; returns the derivative in the factor."""
        # neither masked classes nor ignored rows, whose gradient is zero, make it NaN
        kept = torch.where(kept.isfinite(), kept, 0.0)
        by_factor = None if self.factor is None else (gradient * self._capped(kept)).sum()
        if self.cap:
            gradient.mul_(1 - kept * kept)
        if self.factor is not None:
            gradient.mul_(self.factor)
        return by_factor

    def _capped(self, kept: Tensor) -> Tensor:
        return kept * self.cap if self.cap else kept
