"""Links on the simplex as functions of PyTorch tensors: one kernel forward, one backward.

Arguments are trusted: scores (n, k), or (outer, k, inner) with classes in the middle.
"""

import functools
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor

from .launch import launch
from .links import link_gradient_rows, link_rows, wide_link_gradient_rows, wide_link_rows
from .plan import (
    KernelOptions,
    Plan,
    arithmetic,
    ceil_div,
    column_shape,
    max_steps,
    needs_care,
    tile_shape,
    tolerance_of,
    working_dtype,
)

# The widest rows that stay in registers; measured on an H200 (benchmarks/gpu_links.py).
_MAX_ROWS, _MAX_GRADIENT_ROWS = 512, 32768


class RowMask(NamedTuple):
    """A mask of bytes over rows that are counted along three axes, and its strides.

    ``rows`` is the length of the last of the three axes, and ``matrices`` that of the one before.
    """

    mask: Tensor
    rows: int = 1
    matrices: int = 1
    outer: int = 0
    middle: int = 0
    inner: int = 0
    column: int = 0


@dataclass(frozen=True)
class LinkOptions(KernelOptions):
    """What a kernel is compiled for."""

    power: int
    lanes: int
    acc: Any
    fast: bool
    careful: bool
    masked: bool = False
    with_alpha: bool = False
    columns: bool = False
    even: bool = False
    rows: int = 1
    block: int = 0
    groups: int = 0


@functools.lru_cache(maxsize=4096)
def plan_links(
    k: int,
    inner: int,
    dtype: torch.dtype,
    *,
    is_gradient: bool,
    power: int,
    lanes: int,
    **given: bool,
) -> Plan:
    """How to compute links of rows of k classes, or their backward pass, with some options."""
    limit = _MAX_GRADIENT_ROWS if is_gradient else _MAX_ROWS
    if k > limit and not inner:
        kernel = wide_link_gradient_rows if is_gradient else wide_link_rows
        shape = tile_shape(k, lanes, dtype)
        shape["even"] = k % (shape["groups"] * lanes) == 0
    else:
        kernel = link_gradient_rows if is_gradient else link_rows
        shape = column_shape(k, max(inner, 1))
        if not inner:
            height = max(1, (512 if is_gradient else 256) // shape["block"])
            shape |= {"rows": height, "columns": False}
        shape["num_warps"] = min(32, max(1, shape["rows"] * shape["block"] // 1024))
    warps = shape.pop("num_warps")
    options = LinkOptions(power, lanes, **arithmetic(dtype), **given, **shape)
    tolerance = tolerance_of(dtype, is_smooth=power == 2)
    if power == 0 and dtype.itemsize == 2:
        tolerance = 1e-4
    constants = {"o": options, "num_warps": warps}
    return Plan(kernel, constants, shape.get("rows", 1), max_steps(k, dtype), tolerance)


def _lanes(k: int, *tensors: Tensor) -> int:
    """Entries that a thread loads at once: 16 bytes where all rows start at multiples of that."""
    lanes = 16 // tensors[0].element_size()
    starts = all(x.data_ptr() % 16 == 0 and x.stride(0) % lanes == 0 for x in tensors)
    return lanes if k % lanes == 0 and starts else 1


def _prepare(
    x: Tensor, alpha: float | Tensor, tensors: tuple[Tensor, ...], **options: bool
) -> tuple[Plan, int, int, int, Tensor, int]:
    """A plan, programs, rows, lanes, and α as a tensor with its stride."""
    inner = x.shape[2] if x.ndim == 3 else 0
    n, k = x.shape[:2]
    lanes = 1 if inner else _lanes(k, *tensors)
    if isinstance(alpha, Tensor):
        power, careful, stride = 0, True, alpha.stride(0)
    else:
        power = {2.0: 1, 1.5: 2}.get(alpha, 0)  # the α that have kernels of their own
        careful, stride = power == 0 and needs_care(alpha, x.dtype), 0
        alpha = x if power else _filled(alpha, x.device)
    plan = plan_links(k, inner, x.dtype, power=power, lanes=lanes, careful=careful, **options)
    programs = n * ceil_div(inner, plan.rows) if inner else ceil_div(n, plan.rows)
    return plan, programs, inner or n, lanes, alpha, stride


@functools.lru_cache(maxsize=64)
def _filled(alpha: float, device: torch.device) -> Tensor:
    return torch.full((1,), alpha, dtype=torch.float64, device=device)


def row_mask(mask: Tensor, theta: Tensor) -> RowMask:
    """A boolean mask as kernels read it.

    It has the shape of scores (outer, k, inner), or any number of axes, classes last, for scores
    that were made rows. Broadcast axes are not copied, up to three that cannot be merged.
    """
    mask = mask.view(torch.uint8)
    if theta.ndim == 3:
        return RowMask(mask.contiguous())
    axes: list[tuple[int, int]] = []
    for size, stride in zip(mask.shape[:-1], mask.stride()[:-1], strict=True):
        if axes and axes[-1][1] == size * stride:
            axes[-1] = axes[-1][0] * size, stride
        elif size > 1:
            axes.append((size, stride))
    if len(axes) > 3:
        return row_mask(mask.contiguous().view(torch.bool), theta)
    (_, outer), (matrices, middle), (rows, inner) = ([(1, 0)] * 3 + axes)[-3:]
    return RowMask(mask, rows, matrices, outer, middle, inner, mask.stride(-1))


def link(theta: Tensor, alpha: float | Tensor, mask: RowMask | None = None) -> Tensor:
    """The entries of rows, in the shape and dtype of θ; α a number, or one for each row."""
    if theta.ndim == 3 or theta.stride(1) != 1:
        theta = theta.contiguous()
    out = torch.empty_like(theta, memory_format=torch.contiguous_format)
    if theta.numel() == 0:
        return out
    plan, programs, n, lanes, alphas, stride = _prepare(
        theta, alpha, (theta, out), masked=mask is not None, is_gradient=False
    )
    given = mask or RowMask(theta)
    integers = n, theta.shape[1] // lanes, theta.stride(0) // lanes, stride, *given[1:]
    launch(
        plan, (programs,), (theta, alphas, given.mask, out), (*integers, plan.max_steps),
        (plan.tolerance,),
    )  # fmt: skip
    return out


def link_gradient(
    p: Tensor, upstream: Tensor, alpha: float | Tensor, with_alpha: bool = False
) -> tuple[Tensor, Tensor]:
    """The backward pass from the entries, and the derivative in each row's α, (n,) or empty."""
    if upstream.ndim == 3 or upstream.stride(1) != 1:
        upstream = upstream.contiguous()
    if p.ndim == 3 or p.stride(1) != 1:
        p = p.contiguous()
    out = torch.empty_like(p, memory_format=torch.contiguous_format)
    n = p.numel() // max(p.shape[1], 1)
    by_alpha = p.new_empty(n if with_alpha else 0, dtype=working_dtype(p.dtype))
    if p.numel() == 0:
        return out, by_alpha.zero_()
    plan, programs, rows, lanes, alphas, stride = _prepare(
        p, alpha, (p, upstream, out), with_alpha=with_alpha, is_gradient=True
    )
    integers = rows, p.shape[1] // lanes, p.stride(0) // lanes, upstream.stride(0) // lanes, stride
    launch(plan, (programs,), (p, upstream, alphas, out, by_alpha), integers)
    return out, by_alpha
