"""Isotonic regression, :mod:`fitzpatrick.sets.isotonic`: a thread works on a row.

It keeps a stack of blocks in memory, and the upper two in registers. A step either pushes the block
at hand and begins the next, or pools it with the one below, so that rows of n entries take 2n − 2
steps at most, whatever they hold. Rows are in float32 or float64, arithmetic in float64.
"""

import torch
import triton
import triton.language as tl
from torch import Tensor

from .launch import launch
from .math import two_sum
from .plan import Plan, ceil_div

# Rows of a program: those of a warp.
_ROWS = 32


@triton.jit
def _pool(a, b, WEIGHTED: tl.constexpr):
    """What two blocks have together: a sum, or a log-sum-exp."""
    if WEIGHTED:
        distance = tl.where(a == b, 0.0, tl.abs(a - b))  # two infinities are equal
        return tl.maximum(a, b, propagate_nan=tl.PropagateNan.ALL) + tl.log(1.0 + tl.exp(-distance))
    else:
        return a + b


@triton.jit
def pool_rows(
    x, log_weights, starts, tops, bottoms, begins, n_rows, n,
    WEIGHTED: tl.constexpr, ROWS: tl.constexpr,
):  # fmt: skip
    """Clear ``starts`` where no block begins.

    Blocks have the level top/bottom, the mean, or top − bottom; they are stored where they end.
    """
    row = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    is_row = row < n_rows
    at = row * n
    begin, last = tl.zeros((ROWS,), tl.int32), tl.zeros((ROWS,), tl.int32)
    top = tl.load(x + at, mask=is_row, other=0.0).to(tl.float64)
    following = tl.load(x + at + 1, mask=is_row, other=0.0).to(tl.float64)
    one = tl.zeros((ROWS,), tl.float64) + 1.0
    bottom, following_weight = one, one
    if WEIGHTED:
        bottom = tl.load(log_weights + at, mask=is_row, other=0.0).to(tl.float64)
        following_weight = tl.load(log_weights + at + 1, mask=is_row, other=0.0).to(tl.float64)
    below_top, below_bottom, below_begin = top, bottom, begin  # there is none as yet
    for _ in range(2 * n - 2):
        if WEIGHTED:
            falls = below_top - below_bottom >= top - bottom
        else:
            falls = below_top * bottom >= top * below_bottom
        pools = is_row & (begin > 0) & (falls == 0)
        pushes = is_row & (pools == 0) & (last < n - 1)
        tl.store(starts + at + begin, begin.to(tl.int8) * 0, mask=pools)
        tl.store(tops + at + last, top, mask=pushes)
        tl.store(begins + at + last, begin, mask=pushes)
        if WEIGHTED:
            tl.store(bottoms + at + last, bottom, mask=pushes)
        pooled_top = _pool(below_top, top, WEIGHTED)
        pooled_bottom = _pool(below_bottom, bottom, WEIGHTED)
        last += pushes.to(tl.int32)
        # what was below is below still where nothing changes
        next_begin = tl.where(pushes, last, tl.where(pools, below_begin, begin))
        lower = at + next_begin - 1
        reads = pools & (next_begin > 0)
        tl.debug_barrier()  # what was pushed is read
        read_top = tl.load(tops + lower, mask=reads, other=0.0)
        read_begin = tl.load(begins + lower, mask=reads, other=0)
        if WEIGHTED:
            read_bottom = tl.load(bottoms + lower, mask=reads, other=0.0)
        else:
            read_bottom = (next_begin - read_begin).to(tl.float64)
        below_top = tl.where(pushes, top, tl.where(pools, read_top, below_top))
        below_bottom = tl.where(pushes, bottom, tl.where(pools, read_bottom, below_bottom))
        below_begin = tl.where(pushes, begin, tl.where(pools, read_begin, below_begin))
        begin = next_begin
        top = tl.where(pushes, following, tl.where(pools, pooled_top, top))
        bottom = tl.where(pushes, following_weight, tl.where(pools, pooled_bottom, bottom))
        has_more = pushes & (last < n - 1)
        entry = tl.load(x + at + last + 1, mask=has_more, other=0.0).to(tl.float64)
        following = tl.where(has_more, entry, following)
        if WEIGHTED:
            entry = tl.load(log_weights + at + last + 1, mask=has_more, other=0.0).to(tl.float64)
            following_weight = tl.where(has_more, entry, following_weight)


@triton.jit
def mean_rows(u, starts, out, n_rows, n, ROWS: tl.constexpr):
    """The mean so far at each entry, then that at the end of its block, from the last one on."""
    row = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    is_row = row < n_rows
    at = row * n
    total = tl.zeros((ROWS,), tl.float64)
    rest, count = total, total  # of the sum's rounding errors, and how many there are
    for i in range(n):
        entry = tl.load(u + at + i, mask=is_row, other=0.0).to(tl.float64)
        goes_on = tl.load(starts + at + i, mask=is_row, other=1) == 0
        total, error = two_sum(tl.where(goes_on, total, 0.0), entry)
        rest = tl.where(goes_on, rest, 0.0) + tl.where(error == error, error, 0.0)  # NaN next to ∞
        count = tl.where(goes_on, count, 0.0) + 1.0
        mean = (total + rest) / count
        tl.store(out + at + i, mean.to(out.dtype.element_ty), mask=is_row)
    tl.debug_barrier()  # what other threads wrote is read
    mean = tl.zeros((ROWS,), tl.float64)
    ends = is_row
    for j in range(n):
        i = n - 1 - j
        mean = tl.where(ends, tl.load(out + at + i, mask=ends, other=0.0).to(tl.float64), mean)
        tl.store(out + at + i, mean.to(out.dtype.element_ty), mask=is_row)
        ends = is_row & (tl.load(starts + at + i, mask=is_row, other=1) != 0)


_POOL, _POOL_WEIGHTED = (
    Plan(pool_rows, {"WEIGHTED": weighted, "ROWS": _ROWS, "num_warps": 1})
    for weighted in (False, True)
)
_MEAN = Plan(mean_rows, {"ROWS": _ROWS, "num_warps": 1})


def _launch(plan: Plan, tensors: tuple[Tensor, ...]) -> None:
    n = tensors[0].shape[-1]
    n_rows = tensors[0].numel() // n
    launch(plan, (ceil_div(n_rows, _ROWS),), tensors, (n_rows, n))


def decreasing_blocks(x: Tensor, log_weights: Tensor | None) -> Tensor:
    """Where the blocks of each row begin."""
    x = x.contiguous()
    starts = torch.ones_like(x, dtype=torch.int8)
    if x.numel() == 0 or x.shape[-1] == 1:
        return starts.bool()
    tops = torch.empty_like(x, dtype=torch.float64)
    begins = torch.empty_like(x, dtype=torch.int32)
    if log_weights is None:
        _launch(_POOL, (x, x, starts, tops, tops, begins))
    else:
        weights = log_weights.expand_as(x).contiguous()
        _launch(_POOL_WEIGHTED, (x, weights, starts, tops, torch.empty_like(tops), begins))
    return starts.view(torch.bool)


def block_means(u: Tensor, starts: Tensor) -> Tensor:
    """The mean over the block of each entry."""
    u = u.contiguous()
    out = torch.empty_like(u)
    if u.numel():
        _launch(_MEAN, (u, starts.contiguous().view(torch.int8), out))
    return out
