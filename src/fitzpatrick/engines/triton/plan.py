"""Which kernel computes rows of a kind, in which blocks, with which options.

All sizes here were measured on an H200 (benchmarks/gpu_losses.py).
"""

import functools
from dataclasses import dataclass, field, fields
from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from ..._root import newton_steps
from .labels import label_rows, wide_label_rows
from .lists import list_rows
from .proportions import proportion_rows, wide_proportion_rows
from .specs import SPECS
from .tsallis import tsallis_label_rows
from .weights import scale_rows


def working_dtype(dtype: torch.dtype) -> torch.dtype:
    """The dtype of the arithmetic: float64 for float64, else float32."""
    return torch.float64 if dtype == torch.float64 else torch.float32


@dataclass(frozen=True)
class Limits:
    """Numbers of classes where one way to compute a row gives way to another."""

    # the widest rows that stay in registers; wider ones are read in tiles
    max_logistic_labels: int = 4096
    max_sparse_labels: int = 512
    max_rows: int = 2048
    max_heavy_rows: int = 512  # with ω or a square root in every entry
    max_columns: int = 512
    # the widest rows in half precision whose errors of a rough function would not average out
    max_precise: int = 512
    # from here on the lse of proportions' scores is guessed from a sample
    min_guess: int = 16384
    # from here on rows that do not start at multiples of 16 bytes are read as if they did
    min_peel: int = 4097


LIMITS = Limits()


@dataclass(frozen=True, kw_only=True)
class Request:
    """What is asked of a kernel of losses, and how its rows lie.

    ``target`` is "labels", "rows", "smoothed" or "weighted" (see :mod:`.tiles`), or "lists" of less
    than ``listed`` classes (a power of two). ``scale`` says where row weights come from (see
    :mod:`.weights`), in how many ``parts`` if they are counted. ``transform`` is what happens to
    the scores (see :mod:`.transform`); ``learned`` and ``stats`` ask for more numbers of each row.
    ``lanes`` and ``peel`` say how rows are aligned.
    """

    mode: str
    target: str
    with_value: bool
    with_gradient: bool
    scale: str
    parts: int
    lanes: int
    peel: bool = False
    careful: bool = False
    listed: int = 0
    transform: str = ""
    learned: bool = False
    stats: bool = False


@dataclass(frozen=True, kw_only=True)
class Problem(Request):
    """Rows of one kind, which share a plan; classes lie in the middle axis if inner is not 0."""

    omega: str
    k: int
    inner: int
    dtype: torch.dtype


@dataclass(frozen=True)
class KernelOptions:
    """What a kernel is compiled for; kernels call it ``o``."""

    def __post_init__(self) -> None:
        """Make compile-time constants of the options, which Triton wants inside of shapes."""
        for option in fields(self) if not is_interpreted() else ():
            object.__setattr__(self, option.name, tl.constexpr(getattr(self, option.name)))


@dataclass(frozen=True, kw_only=True)
class Options(Request, KernelOptions):
    """Those of the losses on the simplex: the request, and what the plan adds to it."""

    power: int
    # arithmetic: its dtype, whether instructions of NVIDIA GPUs may be used, steps of ω (and rounds
    # of τ), and whether half precision allows a rough ω
    acc: Any
    fast: bool
    refine: int
    rough: bool
    # blocks: whole rows in registers (rows × block), or tiles of groups of lanes
    even: bool = False
    rows: int = 1
    block: int = 0
    columns: bool = False
    groups: int = 0
    guess: bool = False


@dataclass(frozen=True)
class Plan:
    """A kernel and everything about its launch that does not depend on the number of rows."""

    kernel: Any
    constants: dict[str, Any]
    rows: int = 1
    max_steps: int = 0
    tolerance: float = 0.0
    takes_all_sizes: bool = False  # one compiled kernel does, whatever its integers are
    launchers: dict[Any, Any] = field(default_factory=dict, compare=False)


def is_interpreted() -> bool:
    """True if kernels run in Triton's interpreter, on the CPU."""
    return not isinstance(scale_rows, triton.JITFunction)


def ceil_div(a: int, b: int) -> int:
    """a / b, rounded up."""
    return -(-a // b)


def needs_care(alpha: float, dtype: torch.dtype) -> bool:
    """True if 1/(α − 1) is so large that it brings the rounding of its base to light."""
    return (alpha - 1) * (1000 if dtype.itemsize == 2 else 8) < 1


def takes_columns(k: int, inner: int) -> bool:
    """True if class indices may come with scores of shape (outer, k, inner), which are not copied.

    Their classes must fit into a program, and enough of them lie side by side.
    """
    return k <= LIMITS.max_columns and inner >= 16


def lanes_of(theta: Tensor, target: Tensor) -> tuple[int, bool]:
    """Entries that a thread loads at once, and whether rows start between multiples of them.

    That is 16 bytes where all rows start at a multiple of 16 bytes, and in wide rows with labels
    that have the same offset in the gradient. Otherwise rows are read entry by entry, with
    neighbors in neighboring threads.
    """
    k, lanes = theta.shape[1], 16 // theta.element_size()
    if theta.data_ptr() % 16:
        return 1, False
    is_even = k % lanes == 0 and theta.stride(0) % lanes == 0
    if target.ndim == 2:
        is_even = is_even and target.stride(0) % lanes == 0 and target.data_ptr() % 16 == 0
    if is_even:
        return lanes, False
    peels = target.ndim == 1 and k >= LIMITS.min_peel and (theta.stride(0) - k) % lanes == 0
    return (lanes, True) if peels else (1, False)


@functools.cache
def has_fast_instructions() -> bool:
    """True if the kernels may use instructions of NVIDIA GPUs, from the Ampere generation on."""
    if is_interpreted() or torch.version.hip is not None:
        return False
    return not torch.cuda.is_available() or torch.cuda.get_device_capability() >= (8, 0)


def arithmetic(dtype: torch.dtype) -> dict[str, Any]:
    """Options of kernels for scores of a dtype: that of the arithmetic, and fast instructions."""
    is_double = dtype == torch.float64
    acc = tl.float64 if is_double else tl.float32
    return {"acc": acc, "fast": not is_double and has_fast_instructions()}


def tolerance_of(dtype: torch.dtype, is_smooth: bool) -> float:
    """The error that τ may have.

    Newton's method on a smooth function squares what is left: it may end as soon as that is small.
    """
    if is_smooth and dtype != torch.float64:
        return 1e-3 if dtype.itemsize == 2 else 3e-5
    return 16 * torch.finfo(working_dtype(dtype)).eps


def max_steps(k: int, dtype: torch.dtype) -> int:
    """Newton steps for rows of k classes."""
    return newton_steps(torch.empty((1, k), dtype=working_dtype(dtype)))


@functools.lru_cache(maxsize=4096)
def plan_for(problem: Problem) -> Plan:
    """How to compute rows of a kind."""
    k, dtype, lanes = problem.k, problem.dtype, problem.lanes
    power = SPECS[problem.omega].power
    has_labels = problem.target == "labels"
    has_rows = problem.target in ("rows", "smoothed", "weighted")
    is_double, is_half = dtype == torch.float64, dtype.itemsize == 2
    if problem.omega == "tsallis":
        kernel = wide_kernel = tsallis_label_rows
        shape = tile_shape(k, lanes, dtype)
    elif has_labels:
        kernel, wide_kernel = label_rows, wide_label_rows
        shape = _sparse_label_shape(problem) if power else _logistic_label_shape(problem)
    elif problem.target == "lists":
        kernel = wide_kernel = list_rows
        shape = _list_shape(problem, power)
    else:
        kernel, wide_kernel = proportion_rows, wide_proportion_rows
        shape = _row_shape(problem, power)
    if problem.inner:
        shape = column_shape(k, problem.inner)
    if "groups" in shape:
        kernel = wide_kernel
        shape["even"] = k % (lanes * shape["groups"]) == 0
        moderate = kernel is wide_proportion_rows and power == 0
        moderate = moderate and problem.mode in ("one", "other")
        shape["guess"] = moderate and not is_double and k >= LIMITS.min_guess
    compiler: dict[str, Any] = {
        name: shape.pop(name) for name in ("num_warps", "maxnreg") if name in shape
    }
    options = Options(
        **{option.name: getattr(problem, option.name) for option in fields(Request)},
        power=power,
        refine=2 if is_double else 1,
        **arithmetic(dtype),
        # the errors of a rough ω are multiplied by c
        rough=has_rows and is_half and k > LIMITS.max_precise and problem.mode != "beyond",
        **shape,
    )
    tolerance = tolerance_of(dtype, is_smooth=power == 2 and not has_labels)
    rows = shape.get("rows", 1)
    return Plan(kernel, {"o": options, **compiler}, rows, max_steps(k, dtype), tolerance)


def _block_shape(k: int) -> dict[str, Any]:
    """Rows a program, block width and warps for rows that are held in registers."""
    block = max(triton.next_power_of_2(k), 2)
    return {
        "rows": max(1, 1024 // block),
        "block": block,
        "even": k == block,
        "num_warps": min(32, max(1, block // 1024)),
    }


def column_shape(k: int, inner: int) -> dict[str, Any]:
    """Columns a program, block width and warps for classes in the middle axis."""
    block = max(triton.next_power_of_2(k), 2)
    height = min(max(1024 // block, 16), triton.next_power_of_2(inner))
    shape = {"rows": height, "block": block, "even": k == block, "columns": True}
    # one warp, if it can: Newton's method sums over the classes again and again
    return {**shape, "num_warps": max(height * block // 2048, 1)}


def _logistic_label_shape(problem: Problem) -> dict[str, Any]:
    k = problem.k
    if k <= LIMITS.max_logistic_labels:
        return _block_shape(k)
    if problem.lanes == 1:
        return {"groups": 4096, "num_warps": 8}
    if problem.dtype.itemsize > 2:
        return {"groups": 2048, "num_warps": 16}
    return {"groups": 512, "num_warps": 8} if k <= 65536 else {"groups": 1024, "num_warps": 16}


def _sparse_label_shape(problem: Problem) -> dict[str, Any]:
    if problem.k <= LIMITS.max_sparse_labels:
        return _block_shape(problem.k)
    return tile_shape(problem.k, problem.lanes, problem.dtype)


def _list_shape(problem: Problem, power: int) -> dict[str, Any]:
    is_aligned_half = problem.dtype.itemsize == 2 and problem.lanes > 1
    is_wide = problem.k > 65536
    if power or problem.k <= LIMITS.max_logistic_labels:
        shape = tile_shape(problem.k, problem.lanes, problem.dtype)
        return shape | {"maxnreg": 64} if is_wide and is_aligned_half else shape
    if is_aligned_half:
        # few warps, which all compute the short row, and rows that fit into the cache together
        return {"groups": 1024, "num_warps": 8 if is_wide else 4, "maxnreg": 96}
    return _logistic_label_shape(problem)


def tile_shape(k: int, lanes: int, dtype: torch.dtype) -> dict[str, Any]:
    """Groups of lanes a tile and warps for wide rows.

    A tile is an eighth of the row or less: the maxima of many tiles say where the row is high.
    """
    tile = min(max(2 ** (k.bit_length() - 4), 256), 4096 if lanes == 1 else 8192)
    return {"groups": tile // lanes, "num_warps": min(max(tile * dtype.itemsize // 2048, 1), 8)}


def _row_shape(problem: Problem, power: int) -> dict[str, Any]:
    k, lanes, size = problem.k, problem.lanes, problem.dtype.itemsize
    is_heavy = power != 1 and problem.mode != "zero"
    if k <= (LIMITS.max_heavy_rows if is_heavy else LIMITS.max_rows):
        shape = _block_shape(k)
        if is_heavy:
            shape["rows"] = max(1, 256 // shape["block"])
        # scores and targets share registers
        shape["num_warps"] = max(1, shape["block"] // (256 if is_heavy else 512))
        return shape
    warps = min(1 << max(k // 1024, 1).bit_length() - 1, 8 if size == 2 else 16)
    if is_heavy and power == 0:
        # 64 registers a thread: moments of four entries, and room for many warps; the loop beyond
        # c = 1 would spill
        registers = 128 if size == 8 else 96 if problem.mode == "beyond" else 64
        groups = (128 if lanes == 1 else 32) * warps
        return {"groups": groups, "num_warps": warps, "maxnreg": registers}
    shape = {"groups": 256 * warps // lanes, "num_warps": warps}
    if power == 1 and problem.mode == "zero" and size == 2:
        shape["maxnreg"] = 32  # without spilling: three more would cost a quarter of the warps
    return shape
