"""The Triton engine with the arguments of every engine: regularizers by their handles.

Entries come as rows of one, with a scale for each, or all at once with their weights
(:func:`entry_loss`).
"""

from torch import Tensor

from ..engines.triton import launch
from ..engines.triton.entry_launch import EntryCall, entry_loss
from ..engines.triton.launch import scale_rows_, takes_columns
from ..engines.triton.scale import Scale, as_tensor
from ..engines.triton.targets import Target
from ._engine import kernel_of
from ._handles import regularizer_of

__all__ = [
    "EntryCall",
    "entry_loss",
    "gradient",
    "scale_rows_",
    "takes_columns",
    "value",
    "value_and_gradient",
]


def _entries(
    theta: Tensor,
    target: Tensor,
    scale: Scale,
    omega: str,
    tightness: float,
    with_value: bool,
    with_gradient: bool,
) -> tuple[Tensor, Tensor]:
    call = EntryCall(kernel_of(omega), tightness, False, with_value, with_gradient)
    divisor = 1
    if isinstance(scale, int):
        divisor, weight = scale, None
    else:
        weight = as_tensor(scale, theta, target, -1)[:, None].expand(theta.shape)
    values, gradients = entry_loss(theta, target, weight, None, divisor, call)
    return values.reshape(-1), gradients


def value_and_gradient(
    theta: Tensor, target: Target, scale: Scale, omega: str, tightness: float, ignore_index: int
) -> tuple[Tensor, Tensor]:
    """Losses of the rows, and their gradients."""
    if regularizer_of(omega).is_entrywise and isinstance(target, Tensor):
        return _entries(theta, target, scale, omega, tightness, True, True)
    kernel = kernel_of(omega)
    return launch.value_and_gradient(theta, target, scale, kernel, tightness, ignore_index)


def value(
    theta: Tensor, target: Target, scale: Scale, omega: str, tightness: float, ignore_index: int
) -> Tensor:
    """Losses alone."""
    if regularizer_of(omega).is_entrywise and isinstance(target, Tensor):
        return _entries(theta, target, scale, omega, tightness, True, False)[0]
    return launch.value(theta, target, scale, kernel_of(omega), tightness, ignore_index)


def gradient(
    theta: Tensor, target: Target, scale: Scale, omega: str, tightness: float, ignore_index: int
) -> Tensor:
    """Gradients alone."""
    if regularizer_of(omega).is_entrywise and isinstance(target, Tensor):
        return _entries(theta, target, scale, omega, tightness, False, True)[1]
    return launch.gradient(theta, target, scale, kernel_of(omega), tightness, ignore_index)
