"""The Triton engine: losses and gradients of PyTorch tensors in one kernel each.

For the logistic, sparsemax and entmax15 pairs, with class indices or proportions, rows of any
width, float16 to float64 scores. Arithmetic is in float32, or in float64 where the scores are. The
loss and its gradient come from one pass where both are wanted.

``TRITON_INTERPRET=1`` in the environment runs the same kernels on the CPU, for tests.
"""

import functools
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from .._root import newton_steps
from .triton_labels import (
    logistic_labels,
    logistic_labels_wide,
    sparse_labels,
    sparse_labels_wide,
)
from .triton_rows import LOSSES, rows_in_registers, rows_wide
from .triton_scale import scale_rows

__all__ = [
    "check",
    "gradient",
    "is_interpreted",
    "scale_rows_",
    "supports",
    "value",
    "value_and_gradient",
]

_PREFIX = "fitzpatrick_"
# c and P of the sparse pairs: the others are ((c (θ − τ))₊)^P
_SPARSE = {
    "sparsemax": (1.0, 1),
    "fitzpatrick_sparsemax": (0.5, 1),
    "entmax15": (0.5, 2),
    "fitzpatrick_entmax15": (1.0 / 3.0, 2),
}
_NAMES = tuple(LOSSES) + tuple(_PREFIX + name for name in LOSSES)
# The widest row that a program keeps in registers as a whole; wider ones go through it in tiles.
# All sizes here were measured on an H200 (benchmarks/gpu_losses.py).
_LOGISTIC_LIMIT = 4096
_SPARSE_LIMIT = 512
_ROWS_LIMIT = 2048


def is_interpreted() -> bool:
    """Whether kernels run in Triton's interpreter, on the CPU."""
    return bool(triton.knobs.runtime.interpret)


def supports(loss: str) -> bool:
    """Whether there is a kernel for the loss of that name."""
    return loss in _NAMES


def check(theta: Tensor, loss: str) -> None:
    """Raise unless the loss of these scores can be computed here."""
    if not supports(loss):
        raise ValueError(
            f"there is no Triton kernel for the loss {loss!r}; there is one for "
            f'{", ".join(_NAMES)}. Use engine="reference"'
        )
    if not theta.is_cuda and not is_interpreted():
        raise ValueError(
            f'engine="triton" needs scores on a CUDA device, got {theta.device}. Move them with '
            '.cuda(), use engine="reference", or set TRITON_INTERPRET=1 to test on the CPU'
        )


def value(theta: Tensor, target: Tensor, scale: Tensor, loss: str, ignore_index: int) -> Tensor:
    """Losses of the rows, shape (n,), in working precision."""
    return _launch(theta, target, scale, loss, ignore_index, True, False)[0]


def gradient(theta: Tensor, target: Tensor, scale: Tensor, loss: str, ignore_index: int) -> Tensor:
    """Gradients of the rows in θ, shape (n, k), in the dtype of θ."""
    return _launch(theta, target, scale, loss, ignore_index, False, True)[1]


def value_and_gradient(
    theta: Tensor, target: Tensor, scale: Tensor, loss: str, ignore_index: int
) -> tuple[Tensor, Tensor]:
    """Both, in one kernel."""
    return _launch(theta, target, scale, loss, ignore_index, True, True)


def scale_rows_(rows: Tensor, factors: Tensor) -> None:
    """Multiply the rows by their factors, or all by one, in place; cheap where all are one."""
    n, k = rows.shape
    if n == 0:
        return
    height, block = 128, 4096
    programs = triton.cdiv(n, height)
    spread = max(1, min(triton.cdiv(k, block), triton.cdiv(1024, programs)))
    acc = tl.float64 if rows.dtype == torch.float64 else tl.float32
    with _device(rows):
        scale_rows[(programs, spread)](
            rows,
            factors,
            n,
            k,
            factors.ndim and factors.stride(0),
            ROWS=height,
            BLOCK=block,
            ACC=acc,
            num_warps=4,
        )


def _device(x: Tensor) -> AbstractContextManager[Any]:
    """Make the device of ``x`` the current one, if it is not; kernels start on the current one."""
    if not x.is_cuda or x.device.index == torch.cuda.current_device():
        return nullcontext()
    return torch.cuda.device(x.device)


@functools.lru_cache(maxsize=256)
def _precision(k: int, dtype: torch.dtype) -> dict[str, Any]:
    """Accumulation dtype and iteration counts for rows of k scores."""
    wide = dtype == torch.float64
    acc = torch.float64 if wide else torch.float32
    steps = newton_steps(torch.empty((1, k), dtype=acc))
    return {
        "acc": tl.float64 if wide else tl.float32,
        "tolerance": 4 * torch.finfo(acc).eps,
        "newton_steps": steps,
        "fast": not wide and not is_interpreted(),
        "omega_steps": 2 if wide else 1,
        "omega_floor": -40.0 if wide else -18.0,
    }


def _launch(
    theta: Tensor,
    target: Tensor,
    scale: Tensor,
    loss: str,
    ignore_index: int,
    with_value: bool,
    with_gradient: bool,
) -> tuple[Tensor, Tensor]:
    n, k = theta.shape
    working = torch.float64 if theta.dtype == torch.float64 else torch.float32
    values = theta.new_empty(n if with_value else 0, dtype=working)
    rows = theta.new_empty((n, k) if with_gradient else (0, k))
    if n == 0:
        return values, rows
    if theta.stride(1) != 1:
        theta = theta.contiguous()
    precision = _precision(k, theta.dtype)
    flags = {
        "FITZPATRICK": loss.startswith(_PREFIX),
        "WITH_VALUE": with_value,
        "WITH_GRADIENT": with_gradient,
        "ACC": precision["acc"],
    }
    tensors = theta, target, scale, values, rows
    with _device(theta):
        if target.is_floating_point():
            _launch_rows(tensors, loss, precision, flags)
        elif loss in _SPARSE:
            _launch_sparse(tensors, ignore_index, *_SPARSE[loss], precision, flags)
        else:
            _launch_logistic(tensors, ignore_index, precision, flags)
    return values, rows


def _block_shape(k: int) -> dict[str, int]:
    """Rows a program, block width and warps for rows that are held in registers."""
    block = max(triton.next_power_of_2(k), 2)
    return {
        "ROWS": max(1, 1024 // block),
        "BLOCK": block,
        "num_warps": min(32, max(1, block // 1024)),
    }


def _tile_shape(k: int, groups: int, warps: int, itemsize: int) -> dict[str, Any]:
    """Groups of 16 bytes, the widest load of a thread, for rows that are read in tiles."""
    lanes = 16 // itemsize
    return {
        "EVEN": k % (lanes * groups) == 0,
        "GROUPS": groups,
        "LANES": lanes,
        "num_warps": warps,
    }


def _launch_logistic(
    tensors: tuple[Tensor, ...], ignore_index: int, precision: dict[str, Any], flags: dict[str, Any]
) -> None:
    theta, target, scale, values, rows = tensors
    n, k = theta.shape
    labels = target.contiguous()
    strides = theta.stride(0), scale.stride(0)
    args = theta, labels, scale, values, rows, n, k, *strides, ignore_index
    flags["STEPS"] = precision["omega_steps"]
    flags["FLOOR"] = precision["omega_floor"]
    flags["FAST"] = precision["fast"]
    if k <= _LOGISTIC_LIMIT:
        shape = _block_shape(k)
        grid = (triton.cdiv(n, shape["ROWS"]),)
        logistic_labels[grid](*args, **flags, EVEN=k == shape["BLOCK"], **shape)
        return
    size = theta.element_size()
    if size > 2:
        groups, warps = 2048, 16
    else:
        groups, warps = (512, 8) if k <= 65536 else (1024, 16)
    logistic_labels_wide[(n,)](*args, **flags, **_tile_shape(k, groups, warps, size))


def _launch_sparse(
    tensors: tuple[Tensor, ...],
    ignore_index: int,
    share: float,
    power: int,
    precision: dict[str, Any],
    flags: dict[str, Any],
) -> None:
    theta, target, scale, values, rows = tensors
    n, k = theta.shape
    labels = target.contiguous()
    strides = theta.stride(0), scale.stride(0)
    newton = precision["newton_steps"], precision["tolerance"]
    args = theta, labels, scale, values, rows, n, k, *strides, ignore_index, *newton
    flags["SHARE"] = share
    flags["POWER"] = power
    if k <= _SPARSE_LIMIT:
        shape = _block_shape(k)
        grid = (triton.cdiv(n, shape["ROWS"]),)
        sparse_labels[grid](*args, **flags, EVEN=k == shape["BLOCK"], **shape)
        return
    # an eighth of the row: the maxima of eight tiles or more say where the row is high
    size = theta.element_size()
    tile = min(max(triton.next_power_of_2(k) // 8, 1024 // size), 8192)
    groups = tile * size // 16
    warps = min(max(groups // 128, 1), 8)
    sparse_labels_wide[(n,)](*args, **flags, **_tile_shape(k, groups, warps, size))


def _launch_rows(
    tensors: tuple[Tensor, ...], loss: str, precision: dict[str, Any], flags: dict[str, Any]
) -> None:
    theta, target, scale, values, rows = tensors
    n, k = theta.shape
    if target.stride(1) != 1:
        target = target.contiguous()
    strides = theta.stride(0), target.stride(0), scale.stride(0)
    newton = precision["newton_steps"], precision["tolerance"]
    args = theta, target, scale, values, rows, n, k, *strides, *newton
    flags["LOSS"] = LOSSES[loss.removeprefix(_PREFIX)]
    # one step on log Σp with a rough ω, then one for each that refines ω itself
    flags["HALLEY"] = precision["omega_steps"] + 1
    flags["REFINE"] = precision["omega_steps"]
    flags["FLOOR"] = precision["omega_floor"]
    flags["FAST"] = precision["fast"]
    if k <= _ROWS_LIMIT:
        shape = _block_shape(k)
        shape["num_warps"] = max(1, shape["BLOCK"] // 256)  # scores and targets share registers
        rows_in_registers[(triton.cdiv(n, shape["ROWS"]),)](*args, **flags, **shape)
    else:
        rows_wide[(n,)](*args, **flags, BLOCK=1024, num_warps=4)
