"""The functions of the Triton engine: losses and gradients of PyTorch tensors in one kernel each.

For the regularizers of :mod:`.specs`, by their names in the engines' table, at any tightness, with
class indices or distributions as targets, rows of any width, float16 to float64 scores. Arithmetic
is in float32, or in float64 where the scores are. The loss and its gradient come from one pass
where both are wanted.

A scale says what multiplies the rows: a tensor with a weight for each, a number that divides all,
or None for one over the number of labels that are not ``ignore_index``.

``TRITON_INTERPRET=1`` in the environment runs the same kernels on the CPU, for tests.
"""

import functools
from contextlib import AbstractContextManager, nullcontext
from typing import Any, NamedTuple

import torch
import triton
from torch import Tensor

from .lists import count_lists, make_lists
from .plan import (
    Plan,
    Problem,
    arithmetic,
    ceil_div,
    lanes_of,
    needs_care,
    plan_for,
    working_dtype,
)
from .specs import parse_kernel
from .weights import count_labels, scale_rows

Scale = Tensor | int | None
# labels (n,), rows (n, k), lists (n, 2, m), or labels, base, share and own part of smoothed labels
Target = Tensor | tuple[Tensor, Tensor, Tensor, Tensor]

# Up to this cap half precision does not see what a tanh without digits near 0 leaves out.
MAX_ROUGH_CAP = 64.0


class Extras(NamedTuple):
    """What kernels of class indices and lists do besides: see :mod:`.transform`.

    ``factor`` multiplies the scores, whose cap is 0 without one. The derivatives of the rows in the
    factor, (n,), and their numbers, (n, 4), are written into the tensors for them.
    """

    factor: Tensor | None = None
    cap: float = 0.0
    by_factor: Tensor | None = None
    numbers: Tensor | None = None

    @property
    def transform(self) -> str:
        """What happens to the scores, as kernels call it."""
        if self.factor is None:
            return "cap" if self.cap else ""
        return "both" if self.cap else "scale"

    def needs_care(self, dtype: torch.dtype) -> bool:
        """True if tanh needs its digits near 0."""
        return self.cap > 0 and not (dtype.itemsize == 2 and self.cap <= MAX_ROUGH_CAP)


# earlier versions of Triton want other arguments where a compiled kernel is launched
_LAUNCHES_COMPILED = tuple(map(int, triton.__version__.split(".")[:2])) >= (3, 3)


def scale_rows_(rows: Tensor, factors: Tensor) -> None:
    """Multiply the rows by their factors, or all by one, in place; cheap where all are one."""
    n, k = rows.shape
    plan = _scale_plan(rows.dtype)
    programs = ceil_div(n, plan.rows)
    spread = max(1, min(ceil_div(k, plan.constants["BLOCK"]), ceil_div(1024, programs)))
    launch(plan, (programs, spread), (rows, factors), (n, k, factors.ndim and factors.stride(0)))


def launch(
    plan: Plan,
    grid: tuple[int, ...],
    tensors: tuple[Tensor, ...],
    integers: tuple[int, ...],
    floats: tuple[float, ...] = (),
) -> None:
    """Start the kernel of a plan on the device of the tensors.

    Finding the compiled kernel anew for each launch would take longer than a small kernel runs.
    """
    device = tensors[0].device
    pointers = [x.data_ptr() for x in tensors]
    # whatever a kernel is compiled for, on AMD's GPUs also for tensors of 2 GiB; floats are not
    sizes = () if plan.takes_all_sizes and torch.version.hip is None else integers
    key = device.index, sizes, *[x.dtype for x in tensors], *[at % 16 for at in pointers]
    launcher = plan.launchers.get(key)
    grid = (*grid, 1, 1)[:3]
    with on_device(device):
        if launcher is not None:
            compiled, constants = launcher
            compiled[grid](*pointers, *integers, *floats, *constants)
            return
        # the default of fused multiply-adds changes between versions of Triton
        options = {**plan.constants, "enable_fp_fusion": True}
        compiled = plan.kernel[grid](*tensors, *integers, *floats, **options)
        if _LAUNCHES_COMPILED and compiled is not None:
            names = plan.kernel.arg_names[len(tensors) + len(integers) + len(floats) :]
            plan.launchers[key] = compiled, tuple(plan.constants[name] for name in names)


def on_device(device: torch.device) -> AbstractContextManager[Any]:
    """Make a device the current one, if it is not; kernels start on the current one."""
    if device.type != "cuda" or device.index == torch.cuda.current_device():
        return nullcontext()
    return torch.cuda.device(device)


def launch_loss(
    theta: Tensor,
    target: Target,
    scale: Scale,
    omega: str,
    tightness: float,
    ignore_index: int,
    with_value: bool = True,
    with_gradient: bool = True,
    in_place: bool = False,
    extras: Extras | None = None,
) -> tuple[Tensor, Tensor]:
    """Losses and gradients, empty where they are not wanted.

    ``in_place`` writes the gradients over the scores, whose rows have to lie one after another.
    """
    if theta.ndim == 3 or theta.stride(1) != 1:
        if in_place:
            raise ValueError(f"no gradient fits in place of scores with strides {theta.stride()}")
        theta = theta.contiguous()
    form, rows, labels, mix = _parts(target, theta)
    n, k = rows.shape[0], theta.shape[1]
    values = theta.new_empty(n if with_value else 0, dtype=working_dtype(theta.dtype))
    gradients = theta if in_place else theta.new_empty(theta.shape if with_gradient else (0, k))
    if n == 0:
        return values, gradients
    if rows.ndim != 2 or rows.stride(1) != 1:
        rows = rows.contiguous()
    inner = theta.shape[2] if theta.ndim == 3 else 0
    spec, alpha = parse_kernel(omega)
    extras = extras or Extras()
    lanes, peel = (1, False) if inner else lanes_of(theta, rows)
    unit = 1 if peel or alpha else lanes
    stride, divisor, parts = 0, 1, 1
    if scale is None:
        scale = _count(rows, ignore_index)
        source, parts = "counted", len(scale)
    elif isinstance(scale, int):
        source, divisor = "shared", scale
        scale = values  # not read
    else:
        source, stride = "each", scale.stride(0)
    plan = plan_for(
        Problem(
            omega=spec.name,
            k=k,
            inner=inner,
            dtype=theta.dtype,
            mode=spec.mode(tightness, form == "labels"),
            target=form,
            with_value=with_value,
            with_gradient=with_gradient,
            scale=source,
            parts=parts,
            lanes=lanes,
            peel=peel,
            careful=needs_care(alpha, theta.dtype) if alpha else extras.needs_care(theta.dtype),
            listed=triton.next_power_of_2(rows.shape[-1] + 1) if form == "lists" else 0,
            transform=extras.transform,
            learned=extras.by_factor is not None and with_gradient,
            stats=extras.numbers is not None,
        )
    )
    widths = k // unit, theta.stride(0) // unit, gradients.stride(0) // unit
    weighing = stride, divisor
    targets: tuple[Tensor, ...]
    integers: tuple[int, ...]
    if form == "labels":
        targets, integers = (rows,), (inner or n, *widths, *weighing, ignore_index)
    elif form == "lists":
        bits, bit_stride = _bits(theta, gradients, plan, in_place or extras.by_factor is not None)
        targets, integers = (rows, bits), (n, rows.shape[2], *widths, bit_stride, *weighing)
    else:
        targets = rows, labels, mix
        integers = inner or n, *widths, rows.stride(0) // unit, *weighing
    tensors: tuple[Tensor, ...] = (theta, *targets, scale, values, gradients)
    floats: tuple[float, ...] = (plan.tolerance, tightness)
    if alpha:
        floats = plan.tolerance, alpha - 1, tightness
    elif form in ("labels", "lists"):
        others = extras.factor, extras.by_factor, extras.numbers
        tensors += tuple(values if x is None else x for x in others)  # nothing is read in its place
        floats = *floats, extras.cap
    programs = n // inner * ceil_div(inner, plan.rows) if inner else ceil_div(n, plan.rows)
    launch(plan, (programs,), tensors, (*integers, plan.max_steps), floats)
    return values, gradients


def _bits(theta: Tensor, gradients: Tensor, plan: Plan, apart: bool) -> tuple[Tensor, int]:
    """Where rows have bits for their listed classes, and how many words apart.

    That is where the gradients will be, if there is room, unless bits have to be apart.
    """
    options = plan.constants["o"]
    lanes, groups = (getattr(x, "value", x) for x in (options.lanes, options.groups))
    words = ceil_div(ceil_div(theta.shape[1], lanes * groups), 32 // lanes) * groups
    n_bytes = gradients.stride(0) * gradients.element_size()
    if len(gradients) and not apart and n_bytes % 4 == 0 and n_bytes >= 4 * words:
        return gradients, n_bytes // 4
    return theta.new_empty((len(theta), words), dtype=torch.int32), words


def launch_lists(
    indices: Tensor, values: Tensor, k: int, rest: str | None, is_log: bool, dtype: torch.dtype
) -> Tensor:
    """The lists (n, 2, m) of targets (n, m) with some rest."""
    n, m = indices.shape
    stride = m + (rest == "bucket")
    lists = values.new_empty((n, 2, stride), dtype=dtype)
    plan = _lists_plan(triton.next_power_of_2(stride), rest or "", is_log)
    tensors = indices.contiguous(), values.contiguous(), lists
    launch(plan, (ceil_div(n, plan.rows),), tensors, (n, m, k, stride))
    return lists


def _parts(target: Target, theta: Tensor) -> tuple[str, Tensor, Tensor, Tensor]:
    """The form of the targets, their labels or rows, and the labels and mixture of smoothed ones.

    What a form does not have is the scores, which are not read in its place.
    """
    if isinstance(target, Tensor):
        return ("labels", "rows", "lists")[target.ndim - 1], target, theta, theta
    labels, base, share, own = target
    if len(base) == 1:
        return "smoothed", theta, labels, torch.stack((base * share, own), 1)
    base = base.contiguous().expand(theta.shape)
    return "weighted", base, labels, torch.stack((share, own), 1)


def _count(rows: Tensor, ignore_index: int) -> Tensor:
    """How many labels, or lists, count, in parts."""
    n, kernel = len(rows), count_labels if rows.ndim == 1 else count_lists
    plan = _count_plan(kernel)
    parts = min(triton.next_power_of_2(ceil_div(n, plan.constants["BLOCK"])), 32)
    counts = rows.new_empty(parts, dtype=torch.int32)
    launch(plan, (parts,), (rows, counts), (n, ignore_index if rows.ndim == 1 else rows.shape[2]))
    return counts


@functools.cache
def _count_plan(kernel: Any) -> Plan:
    block, warps = (2048, 8) if kernel is count_labels else (512, 4)
    return Plan(kernel, {"BLOCK": block, "num_warps": warps})


@functools.cache
def _lists_plan(listed: int, rest: str, is_log: bool) -> Plan:
    rows = max(2048 // listed, 1)
    shape = {"REST_KIND": rest, "IS_LOG": is_log, "ROWS": rows, "LISTED": listed}
    return Plan(make_lists, {**shape, "num_warps": 4 if listed <= 2048 else 8}, rows)


@functools.cache
def _scale_plan(dtype: torch.dtype) -> Plan:
    acc = arithmetic(dtype)["acc"]
    return Plan(scale_rows, {"ROWS": 128, "BLOCK": 4096, "ACC": acc, "num_warps": 4}, rows=128)
