"""The Triton engine: losses and gradients of PyTorch tensors in one kernel each.

For the logistic, sparsemax and entmax15 pairs, with class indices or proportions, rows of any
width, float16 to float64 scores. Arithmetic is in float32, or in float64 where the scores are. The
loss and its gradient come from one pass where both are wanted.

A scale says what multiplies the rows: a tensor with a weight for each, a number by which all are
divided, or None for one over the number of labels that are not ``ignore_index``.

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
from .row_scale import Scale, working_dtype
from .smoothed_labels import Smoothed, Target
from .triton_labels import (
    logistic_labels,
    logistic_labels_wide,
    sparse_labels,
    sparse_labels_wide,
)
from .triton_rows import rows_in_registers, rows_wide
from .triton_scale import COUNTED, EACH, SHARED, count_labels, scale_rows
from .triton_terms import LOSSES

__all__ = [
    "gradient",
    "is_interpreted",
    "scale_rows_",
    "supports",
    "takes_columns",
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
_MOMENTS_LIMIT = 512
_COLUMNS_LIMIT = 512
# From here on the lse of proportions' scores is guessed from a sample.
_GUESS_LIMIT = 16384
# Rows wider than this that do not start at multiples of 16 bytes are read as if they did.
_PEEL_LIMIT = 4096
# Earlier versions of Triton want other arguments where a compiled kernel is launched.
_LAUNCHES_COMPILED = tuple(map(int, triton.__version__.split(".")[:2])) >= (3, 3)


def is_interpreted() -> bool:
    """Whether kernels run in Triton's interpreter, on the CPU."""
    return not isinstance(scale_rows, triton.JITFunction)


def _has_fast_instructions() -> bool:
    """Whether the kernels may use instructions of NVIDIA's GPUs, from the Ampere generation on."""
    if is_interpreted() or torch.version.hip is not None:
        return False
    return not torch.cuda.is_available() or torch.cuda.get_device_capability() >= (8, 0)


def supports(loss: str) -> bool:
    """Whether there is a kernel for the loss of that name."""
    return loss in _NAMES


def value(theta: Tensor, target: Target, scale: Scale, loss: str, ignore_index: int) -> Tensor:
    """Losses of the rows, shape (n,), in working precision."""
    return _launch(theta, target, scale, loss, ignore_index, True, False)[0]


def gradient(theta: Tensor, target: Target, scale: Scale, loss: str, ignore_index: int) -> Tensor:
    """Gradients of the rows in θ, shape (n, k), in the dtype of θ."""
    return _launch(theta, target, scale, loss, ignore_index, False, True)[1]


def value_and_gradient(
    theta: Tensor, target: Target, scale: Scale, loss: str, ignore_index: int
) -> tuple[Tensor, Tensor]:
    """Both, in one kernel."""
    return _launch(theta, target, scale, loss, ignore_index, True, True)


def scale_rows_(rows: Tensor, factors: Tensor) -> None:
    """Multiply the rows by their factors, or all by one, in place; cheap where all are one."""
    if rows.ndim == 3:
        rows = rows.flatten(1)  # all by one
    n, k = rows.shape
    if n == 0:
        return
    plan = _scale_plan(n, k, rows.dtype)
    plan.launch((rows, factors), (n, k, factors.ndim and factors.stride(0)))


class _Plan:
    """A kernel, its grid and its constants, for tensors of one shape.

    Finding the compiled kernel anew for each launch would take longer than a small kernel runs.
    """

    def __init__(self, kernel: Any, grid: tuple[int, ...], constants: dict[str, Any]) -> None:
        self._kernel = kernel
        self._grid = (*grid, 1, 1)[:3]
        self._constants = constants
        self._compiled: dict[Any, tuple[Any, tuple[Any, ...]]] = {}

    def launch(self, tensors: tuple[Tensor, ...], numbers: tuple[Any, ...]) -> None:
        """Start the kernel on the device of the tensors."""
        device = tensors[0].device
        pointers = [x.data_ptr() for x in tensors]
        # whatever a kernel is compiled for
        key = device.index, numbers, *[x.dtype for x in tensors], *[at % 16 for at in pointers]
        known = self._compiled.get(key)
        with _on_device(device):
            if known is not None:
                start, constants = known
                start(*pointers, *numbers, *constants)
                return
            # the default of fused multiply-adds changes between versions of Triton
            options = {**self._constants, "enable_fp_fusion": True}
            compiled = self._kernel[self._grid](*tensors, *numbers, **options)
            if _LAUNCHES_COMPILED and compiled is not None:
                names = self._kernel.arg_names[len(tensors) + len(numbers) :]
                constants = tuple(self._constants[name] for name in names)
                self._compiled[key] = compiled[self._grid], constants


@functools.lru_cache(maxsize=1024)
def _scale_plan(n: int, k: int, dtype: torch.dtype) -> _Plan:
    """How to scale rows; the second axis of the grid deals columns out."""
    height, block = 128, 4096
    programs = _ceil(n, height)
    spread = max(1, min(_ceil(k, block), _ceil(1024, programs)))
    acc = tl.float64 if dtype == torch.float64 else tl.float32
    constants = {"ROWS": height, "BLOCK": block, "ACC": acc, "num_warps": 4}
    return _Plan(scale_rows, (programs, spread), constants)


def _ceil(a: int, b: int) -> int:
    return -(-a // b)


def _power_of_2(a: int) -> int:
    """The highest one that is not above a."""
    return 1 << (a.bit_length() - 1)


def _on_device(device: torch.device) -> AbstractContextManager[Any]:
    """Make a device the current one, if it is not; kernels start on the current one."""
    if device.type != "cuda" or device.index == torch.cuda.current_device():
        return nullcontext()
    return torch.cuda.device(device)


@functools.lru_cache(maxsize=1024)
def _precision(k: int, dtype: torch.dtype) -> tuple[dict[str, Any], tuple[int, float]]:
    """Constants of the arithmetic, and steps and tolerance of Newton's method, for k scores."""
    wide = dtype == torch.float64
    acc = torch.float64 if wide else torch.float32
    flags = {
        "ACC": tl.float64 if wide else tl.float32,
        "FAST": not wide and _has_fast_instructions(),
        "REFINE": 2 if wide else 1,
        "FLOOR": -40.0 if wide else -18.0,
    }
    return flags, (newton_steps(torch.empty((1, k), dtype=acc)), 16 * torch.finfo(acc).eps)


def _launch(
    theta: Tensor,
    target: Target,
    scale: Scale,
    loss: str,
    ignore_index: int,
    with_value: bool,
    with_gradient: bool,
) -> tuple[Tensor, Tensor]:
    if theta.ndim == 3 or theta.stride(1) != 1:
        theta = theta.contiguous()
    smooth, labels, mix = 0, theta, theta  # the latter two are not read
    if isinstance(target, Smoothed):
        smooth, target, labels, mix = _smoothed(target, theta)
    n, k = target.shape[0], theta.shape[1]
    working = working_dtype(theta)
    values = theta.new_empty(n if with_value else 0, dtype=working)
    rows = theta.new_empty(theta.shape if with_gradient else (0, k))
    if n == 0:
        return values, rows
    if target.ndim == 1 or target.stride(1) != 1:
        target = target.contiguous()
    inner = theta.shape[2] if theta.ndim == 3 else 0
    lanes, peel = (1, False) if inner else _lanes(theta, target)
    unit = 1 if peel else lanes
    if scale is None:
        scale = _count(target, ignore_index)
        source, parts, shared = COUNTED.value, len(scale), (0, 1)
    elif isinstance(scale, int):
        source, parts, shared = SHARED.value, 1, (0, scale)
        scale = values  # not read
    else:
        source, parts, shared = EACH.value, 1, (scale.stride(0), 1)
    plan, newton = _plan(
        loss, target.ndim, n, k, inner, theta.dtype, lanes, peel, with_value, with_gradient,
        source, parts, smooth,
    )  # fmt: skip
    if target.ndim == 2:
        more = target.stride(0) // unit, *shared, *newton
    else:
        more = *shared, ignore_index, *newton
    numbers = inner or n, k // unit, theta.stride(0) // unit, *more
    targets = (target,) if target.ndim == 1 else (target, labels, mix)
    plan.launch((theta, *targets, scale, values, rows), numbers)
    return values, rows


def _smoothed(target: Smoothed, theta: Tensor) -> tuple[int, Tensor, Tensor, Tensor]:
    """Where the kernels find smoothed labels: the weights of classes, labels, and their mixture."""
    if len(target.base) == 1:
        mix = torch.stack((target.base * target.share, target.own), 1)
        return 1, theta, target.labels, mix  # without weights
    mix = torch.stack((target.share, target.own), 1)
    return 2, target.base.contiguous().expand(theta.shape), target.labels, mix


def _count(labels: Tensor, ignore_index: int) -> Tensor:
    """How many labels count, in parts."""
    n = len(labels)
    plan, parts = _count_plan(n)
    counts = labels.new_empty(parts, dtype=torch.int32)
    plan.launch((labels, counts), (n, ignore_index))
    return counts


@functools.lru_cache(maxsize=1024)
def _count_plan(n: int) -> tuple[_Plan, int]:
    """How to count n labels, and in how many parts."""
    block = 2048
    parts = min(triton.next_power_of_2(_ceil(n, block)), 32)
    return _Plan(count_labels, (parts,), {"BLOCK": block, "num_warps": 8}), parts


def _lanes(theta: Tensor, target: Tensor) -> tuple[int, bool]:
    """Entries that a thread loads at once, and whether rows start between multiples of them.

    That is 16 bytes where all rows start at a multiple of 16 bytes, and in wide rows with labels
    that have the same offset in the gradient. Otherwise rows are read entry by entry, with
    neighbours in neighbouring threads.
    """
    k, size = theta.shape[1], theta.element_size()
    lanes = 16 // size
    if theta.data_ptr() % 16:
        return 1, False
    if target.ndim == 2:
        odd = target.stride(0) % lanes or target.data_ptr() % 16
        return (1, False) if odd or k % lanes or theta.stride(0) % lanes else (lanes, False)
    if k % lanes == 0 and theta.stride(0) % lanes == 0:
        return lanes, False
    if k > _PEEL_LIMIT and (theta.stride(0) - k) % lanes == 0:
        return lanes, True
    return 1, False


@functools.lru_cache(maxsize=4096)
def _plan(
    loss: str,
    target_ndim: int,
    n: int,
    k: int,
    inner: int,
    dtype: torch.dtype,
    lanes: int,
    peel: bool,
    with_value: bool,
    with_gradient: bool,
    source: int,
    parts: int,
    smooth: int,
) -> tuple[_Plan, tuple[Any, ...]]:
    """How to compute rows like these, and the numbers that Newton's method needs."""
    proportions = target_ndim == 2
    precision, newton = _precision(k, dtype)
    numbers: tuple[Any, ...] = newton
    flags = {
        "FITZPATRICK": loss.startswith(_PREFIX),
        "WITH_VALUE": with_value,
        "WITH_GRADIENT": with_gradient,
        "LANES": lanes,
        "SCALE": source,
        "PARTS": parts,
        **precision,
    }
    size = dtype.itemsize
    if proportions:
        flags["LOSS"] = LOSSES[loss.removeprefix(_PREFIX)]
        flags["ROUNDS"] = flags["REFINE"]
        # in narrow rows a rough function's errors do not average out
        flags["ROUGH"] = size == 2 and k > _MOMENTS_LIMIT
        flags["SMOOTH"] = smooth
        if loss.endswith("entmax15") and size < 8:
            # Newton's method on a smooth function: what is left is the square of the last step
            numbers = newton[0], 1e-3 if size == 2 else 3e-5
        kernels, shape = (rows_in_registers, rows_wide), _rows_shape(loss, k, size, lanes)
    elif loss in _SPARSE:
        flags["SHARE"], flags["POWER"] = _SPARSE[loss]
        for unused in ("FAST", "REFINE", "FLOOR"):
            del flags[unused]
        kernels, shape = (sparse_labels, sparse_labels_wide), _sparse_shape(k, size, lanes)
    else:
        numbers = ()
        kernels, shape = (logistic_labels, logistic_labels_wide), _logistic_shape(k, size, lanes)
    if inner:
        shape = _columns_shape(k, inner)
        grid = n // inner * _ceil(inner, shape["ROWS"])
        return _Plan(kernels[0], (grid,), {**flags, **shape}), numbers
    if "ROWS" in shape:
        if not proportions:
            shape["COLUMNS"] = False
        return _Plan(kernels[0], (_ceil(n, shape["ROWS"]),), {**flags, **shape}), numbers
    shape["EVEN"] = k % (lanes * shape["GROUPS"]) == 0
    if proportions:
        shape["GUESS"] = loss == "fitzpatrick_logistic" and size < 8 and k >= _GUESS_LIMIT
    else:
        shape["PEEL"] = peel
    return _Plan(kernels[1], (n,), {**flags, **shape}), numbers


def _block_shape(k: int) -> dict[str, int]:
    """Rows a program, block width and warps for rows that are held in registers."""
    block = max(triton.next_power_of_2(k), 2)
    return {
        "ROWS": max(1, 1024 // block),
        "BLOCK": block,
        "EVEN": k == block,
        "num_warps": min(32, max(1, block // 1024)),
    }


def takes_columns(k: int, inner: int) -> bool:
    """Whether class indices may come with scores of shape (outer, k, inner), which are not copied.

    Their classes must fit into a program, and enough of them lie side by side.
    """
    return k <= _COLUMNS_LIMIT and inner >= 16


def _columns_shape(k: int, inner: int) -> dict[str, int]:
    block = max(triton.next_power_of_2(k), 2)
    height = min(max(1024 // block, 16), triton.next_power_of_2(inner))
    return {
        "ROWS": height,
        "BLOCK": block,
        "EVEN": k == block,
        "COLUMNS": True,
        # one warp, if it can: Newton's method sums over the classes again and again
        "num_warps": max(height * block // 2048, 1),
    }


def _logistic_shape(k: int, size: int, lanes: int) -> dict[str, int]:
    if k <= _LOGISTIC_LIMIT:
        return _block_shape(k)
    if lanes == 1:
        return {"GROUPS": 4096, "num_warps": 8}
    if size > 2:
        return {"GROUPS": 2048, "num_warps": 16}
    return {"GROUPS": 512, "num_warps": 8} if k <= 65536 else {"GROUPS": 1024, "num_warps": 16}


def _sparse_shape(k: int, size: int, lanes: int) -> dict[str, int]:
    if k <= _SPARSE_LIMIT:
        return _block_shape(k)
    # an eighth of the row or less: the maxima of many tiles say where the row is high
    widest = 4096 if lanes == 1 else 8192
    tile = min(max(2 ** (k.bit_length() - 4), 256), widest)
    return {"GROUPS": tile // lanes, "num_warps": min(max(tile * size // 2048, 1), 8)}


def _rows_shape(loss: str, k: int, size: int, lanes: int) -> dict[str, int]:
    heavy = loss in ("fitzpatrick_logistic", "fitzpatrick_entmax15")
    if k <= (_MOMENTS_LIMIT if heavy else _ROWS_LIMIT):
        shape = _block_shape(k)
        if heavy:
            shape["ROWS"] = max(1, 256 // shape["BLOCK"])
        # scores and targets share registers
        shape["num_warps"] = max(1, shape["BLOCK"] // (256 if heavy else 512))
        return shape
    warps = min(_power_of_2(max(k // 1024, 1)), 8 if size == 2 else 16)
    if loss == "fitzpatrick_logistic":
        # 64 registers a thread: moments of four entries, and room for many warps
        groups = (128 if lanes == 1 else 32) * warps
        return {"GROUPS": groups, "num_warps": warps, "maxnreg": 64 if size < 8 else 128}
    return {"GROUPS": 256 * warps // lanes, "num_warps": warps}
