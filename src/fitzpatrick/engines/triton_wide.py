"""Passes over a row of proportions that is too wide for registers, in blocks of groups.

A group is what a thread loads at once, LANES entries. Eight of half precision come as four words,
and are taken apart into four even and four odd ones; each half leaves registers for the sums of the
other. Blocks are loaded one ahead of the arithmetic, and each pass goes over the row in the other
direction than the one before, since the end of a pass is what the cache still holds.

``rates`` is a tuple: where the row's proportions are. Smoothed labels instead have the label, what
each class has, and what the label has of its own; and where classes are weighted, where these
weights are.
"""

# mypy: disable-error-code="misc,no-untyped-def,no-any-return"
# ruff: noqa: RET505, SIM108, SIM300
# Triton's own language, which is not Python to a type checker

import triton
import triton.language as tl

from .triton_math import LOG2_E, advance, exp, exp2, lower_pairs
from .triton_root import add_moments, moments, newton_step, start, step_from_moments
from .triton_terms import LOGISTIC, NARROW, SPARSEMAX, entmax_point, omega_point, ramp, terms

__all__ = [
    "guess",
    "load_both",
    "log_sum_exp",
    "omega_step",
    "rates_at",
    "sparse_tau",
    "write_row",
]

# a score serves as the maximum of its row where Σ e^{θ − it} is less, or others are less above it
_ENOUGH: tl.constexpr = tl.constexpr(1e8)
_CLOSE: tl.constexpr = tl.constexpr(4.0)


@triton.jit
def _load(
    source,
    block,
    groups,
    EVEN: tl.constexpr,
    GROUPS: tl.constexpr,
    LANES: tl.constexpr,
    AGAIN: tl.constexpr,
):
    """A block as it is stored, 0 outside the row; the cache keeps it if it is read AGAIN."""
    POLICY: tl.constexpr = "evict_last" if AGAIN else "evict_first"
    KIND: tl.constexpr = source.dtype.element_ty
    WORDS: tl.constexpr = LANES == 8 and (KIND == tl.bfloat16 or KIND == tl.float16)
    WIDTH: tl.constexpr = 4 if WORDS else LANES
    group = block * GROUPS + tl.arange(0, GROUPS)
    cols = group[:, None] * WIDTH + tl.arange(0, WIDTH)[None, :]
    if WORDS:
        at = source.to(tl.pointer_type(tl.int32), bitcast=True) + cols
    else:
        at = source + cols
    if EVEN:
        return tl.load(at, eviction_policy=POLICY)
    return tl.load(at, mask=(group < groups)[:, None], other=0, eviction_policy=POLICY)


@triton.jit
def load_both(
    scores,
    rates,
    block,
    groups,
    EVEN: tl.constexpr,
    GROUPS: tl.constexpr,
    LANES: tl.constexpr,
    AGAIN: tl.constexpr,
):
    """A block of scores and proportions."""
    x = _load(scores, block, groups, EVEN, GROUPS, LANES, AGAIN)
    return x, _load_rates(rates, block, groups, EVEN, GROUPS, LANES, AGAIN)


@triton.jit
def _half(block, which: tl.constexpr, source, LANES: tl.constexpr, ACC: tl.constexpr):
    """The even entries (0) of a block, or the odd ones (1); of fewer than 8 lanes, all are even."""
    KIND: tl.constexpr = source.dtype.element_ty
    if LANES != 8:
        half = block
    elif block.dtype != tl.int32:
        half, odd = tl.split(tl.reshape(block, (block.shape[0], 4, 2)))
        if which == 1:
            half = odd
    elif KIND == tl.bfloat16:
        half = (block << 16 if which == 0 else block & -65536).to(tl.float32, bitcast=True)
    else:
        half = (block if which == 0 else block >> 16).to(tl.int16).to(KIND, bitcast=True)
    return half.to(ACC)


@triton.jit
def rates_at(rates, cols, mask, ACC: tl.constexpr):
    """The proportions in some columns, 0 where masked."""
    if len(rates) == 1:
        return tl.load(rates[0] + cols, mask=mask, other=0.0).to(ACC)
    else:
        y = rates[1]
        if len(rates) == 4:
            y = y * tl.load(rates[3] + cols, mask=mask, other=0.0).to(ACC)
        return tl.where(mask, y + tl.where(cols == rates[0], rates[2], 0.0), 0.0).to(ACC)


@triton.jit
def _load_rates(
    rates,
    block,
    groups,
    EVEN: tl.constexpr,
    GROUPS: tl.constexpr,
    LANES: tl.constexpr,
    AGAIN: tl.constexpr,
):
    """A block of what is stored of the proportions."""
    if len(rates) == 3:
        return tl.zeros((GROUPS, 1), tl.int32)
    elif len(rates) == 4:
        return _load(rates[3], block, groups, EVEN, GROUPS, LANES, AGAIN)
    else:
        return _load(rates[0], block, groups, EVEN, GROUPS, LANES, AGAIN)


@triton.jit
def _rates(
    stored,
    which: tl.constexpr,
    rates,
    block,
    GROUPS: tl.constexpr,
    LANES: tl.constexpr,
    ACC: tl.constexpr,
):
    """The proportions of half a block."""
    if len(rates) == 1:
        return _half(stored, which, rates[0], LANES, ACC)
    else:
        HALVES: tl.constexpr = 2 if LANES == 8 else 1
        group = block * GROUPS + tl.arange(0, GROUPS)
        cols = group[:, None] * LANES + tl.arange(0, LANES // HALVES)[None, :] * HALVES + which
        y = rates[1]
        if len(rates) == 4:
            y = y * _half(stored, which, rates[3], LANES, ACC)
        return (y + tl.where(cols == rates[0], rates[2], 0.0)).to(ACC)


@triton.jit
def _whole(even, odd, GROUPS: tl.constexpr, LANES: tl.constexpr):
    """The two halves of a block together."""
    if LANES == 8:
        return tl.reshape(tl.join(even, odd), (GROUPS, LANES))
    else:
        return even


@triton.jit
def _inside(block, groups, GROUPS: tl.constexpr):
    """Which groups of a block are in the row."""
    return (block * GROUPS + tl.arange(0, GROUPS) < groups)[:, None]


@triton.jit
def _first_maximum(scores, groups, GROUPS: tl.constexpr, LANES: tl.constexpr, ACC: tl.constexpr):
    """The highest score of the first block; 0 if that is −∞."""
    group = tl.arange(0, GROUPS)
    cols = group[:, None] * LANES + tl.arange(0, LANES)[None, :]
    x = tl.load(scores + cols, mask=(group < groups)[:, None], other=float("-inf"))
    top = tl.max(tl.max(x.to(ACC), axis=1), axis=0)
    return tl.where(top == float("-inf"), 0.0, top)


@triton.jit
def _lower(
    lows,
    block,
    inside,
    source,
    EVEN: tl.constexpr,
    LANES: tl.constexpr,
    ACC: tl.constexpr,
):
    """The lower of earlier scores and those of a block, in pairs if :func:`_no_lows` says so."""
    if lows.dtype == tl.int32:
        lows = lower_pairs(lows, block)
    else:
        for which in tl.static_range(2 if LANES == 8 else 1):
            x = _half(block, which, source, LANES, ACC)
            if not EVEN:
                x = tl.where(inside, x, float("inf"))
            lows = tl.minimum(lows, x)
    return lows


@triton.jit
def _no_lows(
    source,
    EVEN: tl.constexpr,
    GROUPS: tl.constexpr,
    LANES: tl.constexpr,
    ACC: tl.constexpr,
    FAST: tl.constexpr,
):
    """The lowest of no scores, for each place in a block."""
    if FAST and EVEN and LANES == 8 and source.dtype.element_ty == tl.bfloat16:
        return tl.full((GROUPS, 4), 0x7F807F80, tl.int32)  # ∞ twice
    else:
        return tl.full((GROUPS, 4 if LANES == 8 else LANES), float("inf"), ACC)


@triton.jit
def _lows_of_places(lows, source, LANES: tl.constexpr, ACC: tl.constexpr):
    """The same as numbers."""
    if lows.dtype == tl.int32:
        return tl.minimum(_half(lows, 0, source, LANES, ACC), _half(lows, 1, source, LANES, ACC))
    else:
        return lows


@triton.jit
def _glance(
    scores,
    groups,
    top,
    EVEN: tl.constexpr,
    GROUPS: tl.constexpr,
    LANES: tl.constexpr,
    ACC: tl.constexpr,
    FAST: tl.constexpr,
):
    """Σ e^{θ − top}, and the lowest score."""
    totals = tl.zeros((GROUPS, 4 if LANES == 8 else LANES), ACC)
    lows = _no_lows(scores, EVEN, GROUPS, LANES, ACC, FAST)
    blocks = tl.cdiv(groups, GROUPS)
    ahead = _load(scores, 0, groups, EVEN, GROUPS, LANES, True)
    for block in range(blocks):
        now = ahead
        ahead = _load(scores, tl.minimum(block + 1, blocks - 1), groups, EVEN, GROUPS, LANES, True)
        inside = _inside(block, groups, GROUPS)
        for which in tl.static_range(2 if LANES == 8 else 1):
            e = exp2((_half(now, which, scores, LANES, ACC) - top) * LOG2_E, FAST)
            if not EVEN:
                e = tl.where(inside, e, 0.0)
            totals += e
        lows = _lower(lows, now, inside, scores, EVEN, LANES, ACC)
    low = tl.min(tl.min(_lows_of_places(lows, scores, LANES, ACC), axis=1), axis=0)
    return tl.sum(tl.sum(totals, axis=1), axis=0), low


@triton.jit
def _careful_sum(
    scores,
    groups,
    EVEN: tl.constexpr,
    GROUPS: tl.constexpr,
    LANES: tl.constexpr,
    ACC: tl.constexpr,
    FAST: tl.constexpr,
):
    """The highest score, and Σ e^{θ − it}, of any row."""
    HALVES: tl.constexpr = 2 if LANES == 8 else 1
    tops = tl.full((GROUPS,), float("-inf"), ACC)
    totals = tl.zeros((GROUPS,), ACC)
    for block in range(tl.cdiv(groups, GROUPS)):
        now = _load(scores, block, groups, EVEN, GROUPS, LANES, True)
        for which in tl.static_range(HALVES):
            x = _half(now, which, scores, LANES, ACC)
            if not EVEN:
                x = tl.where(_inside(block, groups, GROUPS), x, float("-inf"))
            higher = tl.maximum(tops, tl.max(x, axis=1))
            base = tl.where(higher == float("-inf"), 0.0, higher)
            fresh = tl.sum(exp(x - base[:, None], FAST), axis=1)
            totals = totals * exp(tops - base, FAST) + fresh
            tops = higher
    top = tl.max(tops, axis=0)
    base = tl.where(top == float("-inf"), 0.0, top)
    return top, tl.sum(totals * tl.exp(tops - base), axis=0)


@triton.jit
def log_sum_exp(
    scores,
    groups,
    EVEN: tl.constexpr,
    GROUPS: tl.constexpr,
    LANES: tl.constexpr,
    ACC: tl.constexpr,
    FAST: tl.constexpr,
):
    """A score near the highest, and lse(θ) and the lowest score less that."""
    top = _first_maximum(scores, groups, GROUPS, LANES, ACC)
    total, low = _glance(scores, groups, top, EVEN, GROUPS, LANES, ACC, FAST)
    # one of the row's own scores has a part of one in the sum; the 0 of an empty block may not
    if not ((total > 0.5) & (total < _ENOUGH)):
        top, total = _careful_sum(scores, groups, EVEN, GROUPS, LANES, ACC, FAST)
    return top, tl.log(total), low - top


@triton.jit
def guess(
    scores,
    groups,
    GROUPS: tl.constexpr,
    LANES: tl.constexpr,
    ACC: tl.constexpr,
    FAST: tl.constexpr,
):
    """The highest score of a sample, lse(θ) less that, and whether that is to be relied on.

    Its standard error is 5% or less then, and the sample has no score that makes the row wide.
    """
    SAMPLE: tl.constexpr = 2 * GROUPS
    group = tl.arange(0, SAMPLE) * (groups // SAMPLE)
    cols = group[:, None] * LANES + tl.arange(0, LANES)[None, :]
    x = tl.load(scores + cols, eviction_policy="evict_last").to(ACC)
    top = tl.max(tl.max(x, axis=1), axis=0)
    e = exp(x - top, FAST)
    total = tl.sum(tl.sum(e, axis=1), axis=0)
    squares = tl.sum(tl.sum(e * e, axis=1), axis=0)
    lse = tl.log(total * (groups * (1.0 / SAMPLE)))
    low = tl.min(tl.min(x - top, axis=1), axis=0)
    return top, lse, (squares < 0.0025 * total * total) & (lse + 1.0 - low < NARROW)


@triton.jit
def _add_few(a0, a1, a2, a3, low, b0, b1, b2, b3, lower):
    """Four moments and the lowest score of two parts of a row, together."""
    return a0 + b0, a1 + b1, a2 + b2, a3 + b3, tl.minimum(low, lower)


@triton.jit
def _add_all(
    a0, a1, a2, a3, a4, a5, a6, a7, low, b0, b1, b2, b3, b4, b5, b6, b7, lower
):  # fmt: skip
    """Eight of them."""
    a0, a1, a2, a3, a4, a5, a6, a7 = add_moments(
        a0, a1, a2, a3, a4, a5, a6, a7, b0, b1, b2, b3, b4, b5, b6, b7
    )
    return a0, a1, a2, a3, a4, a5, a6, a7, tl.minimum(low, lower)


@triton.jit
def omega_step(
    scores,
    rates,
    groups,
    top,
    tau,
    next_x,
    next_y,
    IS_NARROW: tl.constexpr,
    WITH_LOWEST: tl.constexpr,
    EVEN: tl.constexpr,
    GROUPS: tl.constexpr,
    LANES: tl.constexpr,
    ACC: tl.constexpr,
    ROUGH: tl.constexpr,
    REFINE: tl.constexpr,
    FLOOR: tl.constexpr,
    FAST: tl.constexpr,
):
    """The step of τ of the Fitzpatrick logistic loss from one pass over the row, backwards.

    Also the lowest score, or ∞ if nobody asks for it. The pass is given the last block and leaves
    the first one.
    """
    m0 = tl.zeros((GROUPS, 4 if LANES == 8 else LANES), ACC)
    m1, m2, m3, m4, m5, m6, m7 = m0, m0, m0, m0, m0, m0, m0
    lows = _no_lows(scores, EVEN, GROUPS, LANES, ACC, FAST)
    last = tl.cdiv(groups, GROUPS) - 1
    for i in range(last + 1):
        this_x, this_y = next_x, next_y
        following = tl.maximum(last - 1 - i, 0)
        next_x, next_y = load_both(scores, rates, following, groups, EVEN, GROUPS, LANES, True)
        inside = _inside(last - i, groups, GROUPS)
        if WITH_LOWEST:
            lows = _lower(lows, this_x, inside, scores, EVEN, LANES, ACC)
        for which in tl.static_range(2 if LANES == 8 else 1):
            x = _half(this_x, which, scores, LANES, ACC)
            y = _rates(this_y, which, rates, last - i, GROUPS, LANES, ACC)
            if not EVEN:
                x = tl.where(inside, x, top)  # anything that has an exponential
            if not (IS_NARROW and ROUGH):
                x = x - top
            p, t = omega_point(x, tau, y, IS_NARROW, ROUGH, REFINE, FLOOR, FAST)
            if not EVEN:
                p = tl.where(inside, p, 0.0)
            a0, a1, a2, a3, a4, a5, a6, a7 = moments(p, t, ROUGH)
            m0 += a0
            m1 += a1
            m2 += a2
            m3 += a3
            if not ROUGH:
                m4 += a4
                m5 += a5
                m6 += a6
                m7 += a7
    low = _lows_of_places(lows, scores, LANES, ACC)
    if ROUGH:
        m0, m1, m2, m3, low = tl.reduce((m0, m1, m2, m3, low), 1, _add_few)
        m0, m1, m2, m3, low = tl.reduce((m0, m1, m2, m3, low), 0, _add_few, keep_dims=True)
        m4, m5, m6, m7 = m0, m0, m0, m0  # not used
    else:
        m0, m1, m2, m3, m4, m5, m6, m7, low = tl.reduce(
            (m0, m1, m2, m3, m4, m5, m6, m7, low), 1, _add_all
        )
        m0, m1, m2, m3, m4, m5, m6, m7, low = tl.reduce(
            (m0, m1, m2, m3, m4, m5, m6, m7, low), 0, _add_all, keep_dims=True
        )
    step = step_from_moments(m0, m1, m2, m3, m4, m5, m6, m7, ROUGH, REFINE, FAST, ACC)
    return tl.sum(step, axis=0), tl.min(low, axis=0), next_x, next_y


@triton.jit
def _maxima(
    scores,
    rates,
    groups,
    top,
    WITH_RATES: tl.constexpr,
    EVEN: tl.constexpr,
    GROUPS: tl.constexpr,
    LANES: tl.constexpr,
    ACC: tl.constexpr,
):
    """The maxima of scores, or of scores and proportions, less top, over all blocks."""
    HALVES: tl.constexpr = 2 if LANES == 8 else 1
    evens = tl.full((GROUPS, LANES // HALVES), float("-inf"), ACC)
    odds = evens
    blocks = tl.cdiv(groups, GROUPS)
    next_x = _load(scores, 0, groups, EVEN, GROUPS, LANES, True)
    next_y = next_x
    if WITH_RATES:
        next_y = _load_rates(rates, 0, groups, EVEN, GROUPS, LANES, True)
    for block in range(blocks):
        this_x, this_y = next_x, next_y
        following = tl.minimum(block + 1, blocks - 1)
        next_x = _load(scores, following, groups, EVEN, GROUPS, LANES, True)
        if WITH_RATES:
            next_y = _load_rates(rates, following, groups, EVEN, GROUPS, LANES, True)
        for which in tl.static_range(HALVES):
            v = _half(this_x, which, scores, LANES, ACC) - top
            if WITH_RATES:
                v += _rates(this_y, which, rates, block, GROUPS, LANES, ACC)
            if not EVEN:
                v = tl.where(_inside(block, groups, GROUPS), v, float("-inf"))
            if which == 0:
                evens = tl.maximum(evens, v, propagate_nan=tl.PropagateNan.ALL)
            else:
                odds = tl.maximum(odds, v, propagate_nan=tl.PropagateNan.ALL)
    return _whole(evens, odds, GROUPS, LANES)


@triton.jit
def _sparse_step(
    scores,
    rates,
    groups,
    top,
    tau,
    low,
    peaks,
    LOSS: tl.constexpr,
    FITZPATRICK: tl.constexpr,
    EVEN: tl.constexpr,
    GROUPS: tl.constexpr,
    LANES: tl.constexpr,
    ACC: tl.constexpr,
):
    """Newton's step of τ of a sparse pair from one pass over the groups that reach above τ."""
    points = tl.zeros((GROUPS,), ACC)
    slopes = tl.zeros((GROUPS,), ACC)
    active = peaks - tau > low
    for block in range(tl.cdiv(groups, GROUPS)):
        group = block * GROUPS + tl.arange(0, GROUPS)
        cols = group[:, None] * LANES + tl.arange(0, LANES)[None, :]
        mask = active
        if not EVEN:
            mask = mask & (group < groups)
        s = tl.load(scores + cols, mask=mask[:, None], other=float("-inf")).to(ACC) - top
        if FITZPATRICK:
            s += rates_at(rates, cols, mask[:, None], ACC)
        p, d = ramp((s - tau) - low, LOSS, FITZPATRICK)
        points += tl.sum(p, axis=1)
        slopes += tl.sum(d, axis=1)
    return newton_step(tl.sum(points, axis=0), tl.sum(slopes, axis=0), LOSS)


@triton.jit
def _entmax_step(
    scores,
    rates,
    groups,
    top,
    tau,
    low,
    LOSS: tl.constexpr,
    EVEN: tl.constexpr,
    GROUPS: tl.constexpr,
    LANES: tl.constexpr,
    ACC: tl.constexpr,
    FAST: tl.constexpr,
):
    """Newton's step of τ of the Fitzpatrick entmax15 loss, where all proportions have a part."""
    HALVES: tl.constexpr = 2 if LANES == 8 else 1
    points = tl.zeros((GROUPS, LANES // HALVES), ACC)
    slopes = tl.zeros((GROUPS, LANES // HALVES), ACC)
    last = tl.cdiv(groups, GROUPS) - 1
    next_x, next_y = load_both(scores, rates, last, groups, EVEN, GROUPS, LANES, True)
    for i in range(last + 1):
        this_x, this_y = next_x, next_y
        following = tl.maximum(last - 1 - i, 0)
        next_x, next_y = load_both(scores, rates, following, groups, EVEN, GROUPS, LANES, True)
        for which in tl.static_range(HALVES):
            s = ((_half(this_x, which, scores, LANES, ACC) - top) - tau) - low
            if not EVEN:
                s = tl.where(_inside(last - i, groups, GROUPS), s, float("-inf"))
            y = _rates(this_y, which, rates, last - i, GROUPS, LANES, ACC)
            p, d = entmax_point(s, y, FAST)
            points += p
            slopes += d
    total = tl.sum(tl.sum(points, axis=1), axis=0)
    return newton_step(total, tl.sum(tl.sum(slopes, axis=1), axis=0), LOSS)


@triton.jit
def sparse_tau(
    scores,
    rates,
    groups,
    max_steps,
    tolerance,
    LOSS: tl.constexpr,
    FITZPATRICK: tl.constexpr,
    EVEN: tl.constexpr,
    GROUPS: tl.constexpr,
    LANES: tl.constexpr,
    ACC: tl.constexpr,
    FAST: tl.constexpr,
):
    """A score near the highest, and τ of a sparse pair less that, as a sum of two numbers.

    The first pass keeps the maximum of each place in the block over all blocks. These maxima are
    entries of the row, and their own τ, found in registers, is a lower bound of the row's that
    leaves little to do.
    """
    WITH_RATES: tl.constexpr = LOSS == SPARSEMAX and FITZPATRICK
    top = _first_maximum(scores, groups, GROUPS, LANES, ACC)
    tops = _maxima(scores, rates, groups, top, WITH_RATES, EVEN, GROUPS, LANES, ACC)
    peaks = tl.max(tops, axis=1)
    highest = tl.max(peaks, axis=0)
    if (tl.abs(highest) > _CLOSE) & (highest > float("-inf")):
        top += highest
        tops = _maxima(scores, rates, groups, top, WITH_RATES, EVEN, GROUPS, LANES, ACC)
        peaks = tl.max(tops, axis=1)
        highest = tl.max(peaks, axis=0)
    tau = start(highest, highest, LOSS, FITZPATRICK)
    # a group of NaN has no peak; it makes the first step NaN, and so everything
    low = tl.full((), 0.0, ACC)
    step, left = low, low + 1.0
    i = 0
    while (i < max_steps) & (left > tolerance):
        p, d = ramp((tops - tau) - low, LOSS, FITZPATRICK)
        points, slopes = tl.sum(p, axis=1), tl.sum(d, axis=1)
        step, left = newton_step(tl.sum(points, axis=0), tl.sum(slopes, axis=0), LOSS)
        tau, low = advance(tau, low, step, left > tolerance)
        i += 1
    # not above the root of all entries, whatever rounding did to that of the maxima; the
    # difference is 0, or the step's NaN
    low -= 2 * tolerance + (step - step)
    left = tl.full((), 1.0, ACC)
    while (i < 2 * max_steps) & (left > tolerance):
        if LOSS != SPARSEMAX and FITZPATRICK:
            step, left = _entmax_step(
                scores, rates, groups, top, tau, low, LOSS, EVEN, GROUPS, LANES, ACC, FAST
            )
        else:
            step, left = _sparse_step(
                scores, rates, groups, top, tau, low, peaks,
                LOSS, FITZPATRICK, EVEN, GROUPS, LANES, ACC,
            )  # fmt: skip
        tau, low = advance(tau, low, step, left > tolerance)
        i += 1
    return top, tau, low + tl.where(left > tolerance, 0.0, step)


@triton.jit
def write_row(
    scores,
    rates,
    value,
    out,
    groups,
    top,
    base,
    tau,
    weight,
    next_x,
    next_y,
    LOSS: tl.constexpr,
    FITZPATRICK: tl.constexpr,
    WITH_VALUE: tl.constexpr,
    WITH_GRADIENT: tl.constexpr,
    IS_NARROW: tl.constexpr,
    EVEN: tl.constexpr,
    GROUPS: tl.constexpr,
    LANES: tl.constexpr,
    ACC: tl.constexpr,
    ROUGH: tl.constexpr,
    REFINE: tl.constexpr,
    FLOOR: tl.constexpr,
    FAST: tl.constexpr,
):
    """Loss and gradient of a row whose τ is known, and its first block.

    Of a sparse pair, τ is what is to be taken off after ``base``.
    """
    HALVES: tl.constexpr = 2 if LANES == 8 else 1
    losses = tl.zeros((GROUPS, LANES // HALVES), ACC)
    factor = tl.where(tau == tau, weight, tau)
    blocks = tl.cdiv(groups, GROUPS)
    for block in range(blocks):
        this_x, this_y = next_x, next_y
        following = tl.minimum(block + 1, blocks - 1)
        next_x, next_y = load_both(scores, rates, following, groups, EVEN, GROUPS, LANES, False)
        group = block * GROUPS + tl.arange(0, GROUPS)
        mask = (group < groups)[:, None]
        for which in tl.static_range(HALVES):
            x = _half(this_x, which, scores, LANES, ACC)
            if not (IS_NARROW and ROUGH):
                x = x - top
            y = _rates(this_y, which, rates, block, GROUPS, LANES, ACC)
            if LOSS == SPARSEMAX and FITZPATRICK:
                x = x + y
            if LOSS != LOGISTIC:
                x = x - base
            difference, loss = terms(
                x, tau, y, LOSS, FITZPATRICK, IS_NARROW, ROUGH, REFINE, FLOOR, FAST
            )
            if WITH_VALUE:
                if not EVEN:
                    loss = tl.where(mask, loss, 0.0)
                losses += loss
            if which == 0:
                evens = difference * factor
                odds = evens
            else:
                odds = difference * factor
        if WITH_GRADIENT:
            cols = group[:, None] * LANES + tl.arange(0, LANES)[None, :]
            rows = _whole(evens, odds, GROUPS, LANES).to(out.dtype.element_ty)
            if EVEN:
                tl.store(out + cols, rows, cache_modifier=".cs")
            else:
                tl.store(out + cols, rows, mask=mask, cache_modifier=".cs")
    if WITH_VALUE:
        tl.store(value, tl.sum(tl.sum(losses, axis=1), axis=0) * factor)
