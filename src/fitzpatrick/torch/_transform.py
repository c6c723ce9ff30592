"""What happens to scores before a loss: a cap, a scale and a temperature.

A loss sees s · cap · tanh(θ/cap) with s = logit_scale/temperature. Classes that are masked, with
the score −∞, stay masked.
"""

import math
from typing import TYPE_CHECKING, NamedTuple

import torch
from torch import Tensor

from ._arguments import as_float
from ._targets import working_dtype

if TYPE_CHECKING:  # PyTorch may come without it
    from torch.distributed import ProcessGroup


def _as_positive(value: float, name: str) -> float:
    number = as_float(value, name)
    if not 0 < number < math.inf:
        raise ValueError(f"{name} must be a positive number, got {value!r}")
    return number


class Scaling(NamedTuple):
    """A cap of scores, 0 for none, and a factor after it, None for 1."""

    factor: Tensor | float | None
    cap: float

    def with_shared_derivative(
        self, group: "ProcessGroup | None", device: torch.device
    ) -> "Scaling":
        """The scaling where each process of a group has some of the classes.

        The derivative in a learned factor is a sum over all of them, on the device of the scores.
        """
        if group is None or not isinstance(self.factor, Tensor):
            return self
        from ._sharded import with_summed_derivative

        return self._replace(factor=with_summed_derivative(self.factor.to(device), group))

    def detach(self) -> "Scaling":
        factor = self.factor
        return self._replace(factor=factor.detach()) if isinstance(factor, Tensor) else self

    def apply(self, scores: Tensor) -> Tensor:
        """The scores that a loss sees, differentiable."""
        factor, cap = self
        if not (cap or isinstance(factor, Tensor)):
            return scores if factor is None else (scores * factor).to(scores.dtype)
        # masked classes stay out of the factor's derivative, and so does NaN in an ignored row
        is_left = ~(scores > -math.inf)
        x = scores.masked_fill(is_left, 0.0)
        x = torch.tanh(x / cap) * cap if cap else x
        x = x if factor is None else (x * factor).to(x.dtype)
        return torch.where(is_left, scores, x)

    def apply_(self, scores: Tensor) -> Tensor:
        """Change scores in place; returns what :meth:`pull_back_` needs, in float32 or float64.

        That is the capped scores over their cap, or the scores if there is no cap.
        """
        wide = scores.to(working_dtype(scores))
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


def as_scaling(
    temperature: float = 1.0, logit_scale: float | Tensor = 1.0, softcap: float | None = None
) -> Scaling | None:
    """What these options do to scores, or None; raise unless all are positive numbers.

    A tensor is looked at by its shape.
    """
    temperature = _as_positive(temperature, "temperature")
    cap = 0.0 if softcap is None else _as_positive(softcap, "softcap")
    factor: Tensor | float | None
    if isinstance(logit_scale, Tensor):
        if logit_scale.numel() != 1:
            raise ValueError(
                f"logit_scale must be one number, got a tensor of shape {tuple(logit_scale.shape)}"
            )
        factor = logit_scale.reshape(()) / temperature
    else:
        scale = _as_positive(logit_scale, "logit_scale")
        factor = None if scale == temperature else scale / temperature
    return Scaling(factor, cap) if cap or factor is not None else None
