"""The Triton engine with the arguments of every engine: regularizers by their handles.

Entries come as rows of one, with a scale for each, or all at once with their weights
(:func:`entry_loss`).
"""

from typing import Any

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
    "value_and_gradient_",
]


def _compute(
    rows: tuple[Tensor, Target, Scale],
    omega: str,
    tightness: float,
    ignore_index: int,
    *,
    with_value: bool = True,
    with_gradient: bool = True,
) -> tuple[Tensor, Tensor]:
    """Losses and gradients, empty where they are not wanted."""
    theta, target, scale = rows
    kernel = kernel_of(omega)
    if not (regularizer_of(omega).is_entrywise and isinstance(target, Tensor)):
        asked = with_value, with_gradient
        return launch.launch_loss(*rows, kernel, tightness, ignore_index, *asked)
    call = EntryCall(kernel, tightness, False, with_value, with_gradient)
    divisor, weight = 1, None
    if isinstance(scale, int):
        divisor = scale
    else:
        weight = as_tensor(scale, theta, target, -1)[:, None].expand(theta.shape)
    values, gradients = entry_loss(theta, target, weight, None, divisor, call)
    return values.reshape(-1), gradients


def value_and_gradient(
    theta: Tensor, target: Target, scale: Scale, omega: str, tightness: float, ignore_index: int
) -> tuple[Tensor, Tensor]:
    """Losses of the rows, and their gradients."""
    return _compute((theta, target, scale), omega, tightness, ignore_index)


def value_and_gradient_(
    theta: Tensor, target: Target, scale: Scale, omega: str, tightness: float, ignore_index: int
) -> tuple[Tensor, Tensor]:
    """Losses of rows on the simplex, and their gradients, written over the scores."""
    kernel = kernel_of(omega)
    rows = theta, target, scale
    return launch.launch_loss(*rows, kernel, tightness, ignore_index, True, True, in_place=True)


def value(theta: Tensor, target: Target, scale: Scale, *loss: Any) -> Tensor:
    """Losses alone."""
    return _compute((theta, target, scale), *loss, with_gradient=False)[0]


def gradient(theta: Tensor, target: Target, scale: Scale, *loss: Any) -> Tensor:
    """Gradients alone."""
    return _compute((theta, target, scale), *loss, with_value=False)[1]
