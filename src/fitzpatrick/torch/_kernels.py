"""The Triton engine under the names of losses: each is a regularizer at a tightness."""

from torch import Tensor

from ..engines.triton import launch
from ..engines.triton.launch import scale_rows_, takes_columns
from ..engines.triton.scale import Scale
from ..engines.triton.targets import Target
from ..losses import ends
from ._handles import loss_of

__all__ = ["gradient", "scale_rows_", "takes_columns", "value", "value_and_gradient"]


def value(theta: Tensor, target: Target, scale: Scale, loss: str, ignore_index: int) -> Tensor:
    """Losses of the rows, shape (n,), in working precision."""
    return launch.value(theta, target, scale, *_family(loss), ignore_index)


def gradient(theta: Tensor, target: Target, scale: Scale, loss: str, ignore_index: int) -> Tensor:
    """Gradients of the rows in θ, in the shape and dtype of θ."""
    return launch.gradient(theta, target, scale, *_family(loss), ignore_index)


def value_and_gradient(
    theta: Tensor, target: Target, scale: Scale, loss: str, ignore_index: int
) -> tuple[Tensor, Tensor]:
    """Both, in one kernel."""
    return launch.value_and_gradient(theta, target, scale, *_family(loss), ignore_index)


def _family(loss: str) -> tuple[str, float]:
    return ends(loss)[0], loss_of(loss).tightness
