r"""Class probabilities of the logistic family, for every tightness c > 0, on rows of scores.

The formulas are those of ``regularizers/_probabilities.py``: with p the soft argmax and
:math:`\omega = \omega(\log((1 - p)/p) + \log c - c)`, :math:`q \propto p\,(1 - p)(1 + c/\omega)`.
The largest entry is computed from the sum of the others; all others have p ≤ ½.

A row that fits into the registers of a program is read once. A wider one is read three times, from
the cache but for the first: for its largest score, the sum of the exponentials, and the weights in
units of the largest. These are written where the probabilities go, and divided by their sum there.
"""

import functools
from dataclasses import dataclass
from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from .launch import launch
from .math import exp, log, reciprocal, wright_omega
from .plan import KernelOptions, Plan, arithmetic, ceil_div

# The widest row that stays in registers, and how a wider one is cut.
_MAX_WIDTH, _TILE = 8192, 4096


@triton.jit
def _weigh(x, log_total, tightness, shift, o: tl.constexpr):
    """The probabilities of scores whose p is at most ½, up to a factor; x = θ − max θ."""
    log_p = x - log_total
    p = exp(log_p, o.fast)
    rest = 1.0 - p
    rest = tl.where(rest < 0.5, 0.5, rest)
    omega = wright_omega(log(rest, o.fast) - log_p + shift, o.steps, o.fast)
    return p * rest * (1.0 + tightness * reciprocal(omega, o.fast))


@triton.jit
def _weigh_top(others, tightness, shift, o: tl.constexpr):
    """The weight of the largest entry, from the sum of the others' exponentials in units of it."""
    # where there are no others, any positive number does
    known = tl.where(others > 1e-30, others, 1e-30)
    omega = wright_omega(log(known, False) + shift, o.steps, o.fast)
    small = tl.where(omega < 1.0, omega, 1.0)
    near = others + exp(tightness + small, False)
    far = others * (1.0 + tightness / tl.where(omega < 1.0, 1.0, omega))
    total = 1.0 + others
    return tl.where(omega < 1.0, near, far) / (total * total)


@triton.jit
def _numbers_of(tightness, o: tl.constexpr):
    """c and log c − c in the kernel's precision."""
    c = tl.full((), 0.0, tl.float64) + tightness
    return c.to(o.acc), (tl.log(c) - c).to(o.acc)


@triton.jit(do_not_specialize=["tightness"])
def probability_rows(theta, out, n, k, stride, tightness: tl.float64, o: tl.constexpr):
    """Rows that fit into one block, several of them if they are short."""
    c, shift = _numbers_of(tightness, o)
    row = tl.program_id(0).to(tl.int64) * o.rows + tl.arange(0, o.rows)[:, None]
    cols = tl.arange(0, o.block)[None, :]
    within = (row < n) & (cols < k)
    x = tl.load(theta + row * stride + cols, mask=within, other=float("-inf")).to(o.acc)
    x = tl.where(row < n, x, 0.0)  # not −∞ alone, which has no largest entry
    x = x - tl.max(x, axis=1)[:, None]
    is_top = cols == tl.min(tl.where(x == 0.0, cols, o.block), axis=1)[:, None]
    others = tl.sum(tl.where(is_top, 0.0, exp(x, o.fast)), axis=1)[:, None]
    weights = _weigh(x, log(1.0 + others, False), c, shift, o)
    top = _weigh_top(others, c, shift, o)
    weights = tl.where(is_top, top, weights)
    q = weights * (1.0 / tl.sum(weights, axis=1)[:, None])
    tl.store(out + row * k + cols, q.to(out.dtype.element_ty), mask=within)


@triton.jit(do_not_specialize=["tightness"])
def wide_probability_rows(theta, out, k, stride, tightness: tl.float64, o: tl.constexpr):
    """One row of any width."""
    c, shift = _numbers_of(tightness, o)
    row = tl.program_id(0).to(tl.int64)
    theta += row * stride
    out += row * k
    lanes = tl.arange(0, o.block)
    low = float("-inf")
    highest = tl.full((o.block,), low, o.acc)
    place = tl.zeros((o.block,), tl.int32)
    for start in range(0, k, o.block):
        x = tl.load(theta + start + lanes, mask=start + lanes < k, other=low).to(o.acc)
        place = tl.where(x > highest, start + lanes, place)
        highest = tl.maximum(highest, x, propagate_nan=tl.PropagateNan.ALL)
    top = tl.max(highest, axis=0)
    first = tl.min(tl.where(highest == top, place, k), axis=0)
    sums = tl.zeros((o.block,), o.acc)
    for start in range(0, k, o.block):
        cols = start + lanes
        x = tl.load(theta + cols, mask=cols < k, other=low).to(o.acc) - top
        sums += tl.where(cols == first, 0.0, exp(x, o.fast))
    others = tl.sum(sums, axis=0)
    log_total = log(1.0 + others, False)
    own = _weigh_top(others, c, shift, o) + 0.0 * top  # NaN where the largest score is infinite
    inverse = 1.0 / own
    sums = tl.zeros((o.block,), o.acc)
    for start in range(0, k, o.block):
        cols = start + lanes
        x = tl.load(theta + cols, mask=cols < k, other=low).to(o.acc) - top
        weights = _weigh(x, log_total, c, shift, o) * inverse
        weights = tl.where(cols == first, own * inverse, weights)
        sums += weights
        tl.store(out + cols, weights.to(out.dtype.element_ty), mask=cols < k)
    factor = 1.0 / tl.sum(sums, axis=0)
    tl.debug_barrier()  # what other threads wrote is read
    for start in range(0, k, o.block):
        cols = start + lanes
        weights = tl.load(out + cols, mask=cols < k, other=0.0).to(o.acc)
        tl.store(out + cols, (weights * factor).to(out.dtype.element_ty), mask=cols < k)


@dataclass(frozen=True)
class ProbabilityOptions(KernelOptions):
    """What a kernel is compiled for: rows of a block, arithmetic, and steps of ω."""

    rows: int
    block: int
    acc: Any
    fast: bool
    steps: int


@functools.lru_cache(maxsize=1024)
def plan_probabilities(k: int, dtype: torch.dtype) -> Plan:
    """How to compute rows of k scores."""
    is_double = dtype == torch.float64
    is_wide = k > (_MAX_WIDTH // 4 if is_double else _MAX_WIDTH)
    block = _TILE // (2 if is_double else 1) if is_wide else max(triton.next_power_of_2(k), 2)
    rows = 1 if is_wide else max(1, 1024 // block)
    options = ProbabilityOptions(
        rows=rows,
        block=block,
        steps=2 if is_double else 1,
        **arithmetic(dtype),
    )
    kernel = wide_probability_rows if is_wide else probability_rows
    constants = {"o": options, "num_warps": min(16, max(4, block // 512))}
    return Plan(kernel, constants, rows=0 if is_wide else rows)


def probabilities(theta: Tensor, tightness: float) -> Tensor:
    """The probabilities of scores (n, k), in their dtype, for 0 < c ≤ MAX_PROPER_TIGHTNESS."""
    theta = theta if theta.stride(1) == 1 else theta.contiguous()
    out = torch.empty_like(theta, memory_format=torch.contiguous_format)
    n, k = theta.shape
    if theta.numel() == 0:
        return out
    plan = plan_probabilities(k, theta.dtype)
    widths = k, theta.stride(0)
    programs, integers = (ceil_div(n, plan.rows), (n, *widths)) if plan.rows else (n, widths)
    launch(plan, (programs,), (theta, out), integers, (tightness,))
    return out
