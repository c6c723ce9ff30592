"""Passes over a row of proportions that is too wide for registers.

Blocks are loaded one ahead of the arithmetic, and each pass goes over the row in the direction
opposite to the one before, since the end of a pass is what the cache still holds.
"""

import triton
import triton.language as tl

from .formulas import (
    entmax_point,
    ramp_scale,
    ramp_score,
    ramp_start,
    ramp_terms,
    softmax_point,
    softmax_terms,
    sum_of_powers,
)
from .math import LOG2_E, exp, exp2, min_of_pairs, relu
from .root import add_eight, add_four, moments, next_tau, solve_tau, step_from_moments
from .tiles import (
    columns_of,
    half,
    inside_row,
    join_halves,
    load,
    load_both,
    load_targets,
    targets_at,
    targets_of_half,
)

# what λ − θ may be in a narrow row
MAX_SPAN: tl.constexpr = tl.constexpr(60.0)
# a score serves as the maximum of its row where Σ e^(θ − it) is below this, or where no other score
# is further above it
MAX_SUM: tl.constexpr = tl.constexpr(1e8)
MAX_RISE: tl.constexpr = tl.constexpr(4.0)
# what the maximum may be where τ and it in one number have digits enough for half precision
MAX_TOP: tl.constexpr = tl.constexpr(150.0)


@triton.jit
def span_limit(c, o: tl.constexpr):
    """What lse(θ) − θ may be in a narrow row."""
    if o.mode == "beyond":
        return MAX_SPAN - c - tl.log(c)
    else:
        return MAX_SPAN - c


@triton.jit
def _first_maximum(scores, groups, o: tl.constexpr):
    """The highest score of the first block; 0 if that is −∞."""
    group, cols = columns_of(0, o)
    x = tl.load(scores + cols, mask=(group < groups)[:, None], other=float("-inf"))
    top = tl.max(tl.max(x.to(o.acc), axis=1), axis=0)
    return tl.where(top == float("-inf"), 0.0, top)


@triton.jit
def _no_minima(source, o: tl.constexpr):
    """The minima of no scores, for each place in a block; in pairs where the GPU has those."""
    if o.fast and o.even and o.lanes == 8 and source.dtype.element_ty == tl.bfloat16:
        return tl.full((o.groups, 4), 0x7F807F80, tl.int32)  # ∞ twice
    else:
        return tl.full((o.groups, 4 if o.lanes == 8 else o.lanes), float("inf"), o.acc)


@triton.jit
def _minima(minima, block, inside, source, o: tl.constexpr):
    """The minima of earlier scores and those of a block."""
    if minima.dtype == tl.int32:
        minima = min_of_pairs(minima, block)
    else:
        for which in tl.static_range(2 if o.lanes == 8 else 1):
            x = half(block, which, source, o)
            if not o.even:
                x = tl.where(inside, x, float("inf"))
            minima = tl.minimum(minima, x)
    return minima


@triton.jit
def _minimum(minima, source, o: tl.constexpr):
    if minima.dtype == tl.int32:
        minima = tl.minimum(half(minima, 0, source, o), half(minima, 1, source, o))
    return tl.min(tl.min(minima, axis=1), axis=0)


@triton.jit
def _quick_sum(scores, groups, top, o: tl.constexpr):
    """Σ e^(θ − top), and the lowest score."""
    totals = tl.zeros((o.groups, 4 if o.lanes == 8 else o.lanes), o.acc)
    minima = _no_minima(scores, o)
    blocks = tl.cdiv(groups, o.groups)
    ahead = load(scores, 0, groups, o, True)
    for block in range(blocks):
        now = ahead
        ahead = load(scores, tl.minimum(block + 1, blocks - 1), groups, o, True)
        inside = inside_row(block, groups, o)[:, None]
        for which in tl.static_range(2 if o.lanes == 8 else 1):
            e = exp2((half(now, which, scores, o) - top) * LOG2_E, o.fast)
            if not o.even:
                e = tl.where(inside, e, 0.0)
            totals += e
        minima = _minima(minima, now, inside, scores, o)
    return tl.sum(tl.sum(totals, axis=1), axis=0), _minimum(minima, scores, o)


@triton.jit
def _careful_sum(scores, groups, o: tl.constexpr):
    """The highest score, and Σ e^(θ − it), of any row."""
    tops = tl.full((o.groups,), float("-inf"), o.acc)
    totals = tl.zeros((o.groups,), o.acc)
    for block in range(tl.cdiv(groups, o.groups)):
        now = load(scores, block, groups, o, True)
        for which in tl.static_range(2 if o.lanes == 8 else 1):
            x = half(now, which, scores, o)
            if not o.even:
                x = tl.where(inside_row(block, groups, o)[:, None], x, float("-inf"))
            higher = tl.maximum(tops, tl.max(x, axis=1))
            base = tl.where(higher == float("-inf"), 0.0, higher)
            fresh = tl.sum(exp(x - base[:, None], o.fast), axis=1)
            totals = totals * exp(tops - base, o.fast) + fresh
            tops = higher
    top = tl.max(tops, axis=0)
    base = tl.where(top == float("-inf"), 0.0, top)
    return top, tl.sum(totals * tl.exp(tops - base), axis=0)


@triton.jit
def log_sum_exp(scores, groups, o: tl.constexpr):
    """A score near the highest, and lse(θ) and the lowest score less that."""
    top = _first_maximum(scores, groups, o)
    total, low = _quick_sum(scores, groups, top, o)
    # one of the row's own scores adds one to the sum; the 0 of an empty block may not
    if not ((total > 0.5) & (total < MAX_SUM)):
        top, total = _careful_sum(scores, groups, o)
    return top, tl.log(total), low - top


@triton.jit
def _sample_lse(scores, groups, c, o: tl.constexpr):
    """The highest score of a sample, lse(θ) less that, and whether it can be relied on.

    It can if its standard error is 5% or less, and no score of the sample makes the row wide.
    """
    SAMPLE: tl.constexpr = 2 * o.groups
    group = tl.arange(0, SAMPLE) * (groups // SAMPLE)
    cols = group[:, None] * o.lanes + tl.arange(0, o.lanes)[None, :]
    x = tl.load(scores + cols, eviction_policy="evict_last").to(o.acc)
    top = tl.max(tl.max(x, axis=1), axis=0)
    e = exp(x - top, o.fast)
    total = tl.sum(tl.sum(e, axis=1), axis=0)
    squares = tl.sum(tl.sum(e * e, axis=1), axis=0)
    lse = tl.log(total * (groups * (1.0 / SAMPLE)))
    low = tl.min(tl.min(x - top, axis=1), axis=0)
    return top, lse, (squares < 0.0025 * total * total) & (lse - low < span_limit(c, o))


@triton.jit
def _moments_step(
    scores, given, groups, top, tau, c, next_x, next_y,
    IS_NARROW: tl.constexpr, WITH_LOWEST: tl.constexpr, o: tl.constexpr,
):  # fmt: skip
    """The step of τ of the logistic loss from one pass over the row, backwards, and Newton's.

    Also the lowest score, or ∞ if it is not asked for. The pass is given the last block and leaves
    the first one.
    """
    m0 = tl.zeros((o.groups, 4 if o.lanes == 8 else o.lanes), o.acc)
    m1, m2, m3, m4, m5, m6, m7 = m0, m0, m0, m0, m0, m0, m0
    minima = _no_minima(scores, o)
    last = tl.cdiv(groups, o.groups) - 1
    for i in range(last + 1):
        this_x, this_y = next_x, next_y
        next_x, next_y = load_both(scores, given, tl.maximum(last - 1 - i, 0), groups, o, True)
        inside = inside_row(last - i, groups, o)[:, None]
        if WITH_LOWEST:
            minima = _minima(minima, this_x, inside, scores, o)
        for which in tl.static_range(2 if o.lanes == 8 else 1):
            x = half(this_x, which, scores, o)
            y = targets_of_half(this_y, which, given, last - i, o)
            if not o.even:
                x = tl.where(inside, x, top)  # anything that has an exponential
            if not (IS_NARROW and o.rough):
                x = x - top
            p, t = softmax_point(x, tau, y, c, IS_NARROW, o)
            if not o.even:
                p = tl.where(inside, p, 0.0)
            a0, a1, a2, a3, a4, a5, a6, a7 = moments(p, t, o)
            m0 += a0
            m1 += a1
            m2 += a2
            m3 += a3
            if not o.rough:
                m4 += a4
                m5 += a5
                m6 += a6
                m7 += a7
    low = tl.full((), float("inf"), o.acc)
    if WITH_LOWEST:
        low = _minimum(minima, scores, o)
    if o.rough:
        m0, m1, m2, m3 = tl.reduce((m0, m1, m2, m3), 1, add_four)
        m0, m1, m2, m3 = tl.reduce((m0, m1, m2, m3), 0, add_four, keep_dims=True)
        m4, m5, m6, m7 = m0, m0, m0, m0  # not used
    else:
        m0, m1, m2, m3, m4, m5, m6, m7 = tl.reduce((m0, m1, m2, m3, m4, m5, m6, m7), 1, add_eight)
        m0, m1, m2, m3, m4, m5, m6, m7 = tl.reduce(
            (m0, m1, m2, m3, m4, m5, m6, m7), 0, add_eight, keep_dims=True
        )
    step, newton = step_from_moments(m0, m1, m2, m3, m4, m5, m6, m7, o)
    return tl.sum(step, axis=0), tl.sum(newton, axis=0), low, next_x, next_y


@triton.jit
def guess_tau(scores, given, groups, c, o: tl.constexpr):
    """τ as in :func:`measure_tau`, for c <= 1, from a sample of the row, which saves a pass.

    The step, and the lowest score, which comes with it, tell whether the guess was near enough and
    the row narrow; if not, the result is of no use.
    """
    last = tl.cdiv(groups, o.groups) - 1
    x, y = load_both(scores, given, last, groups, o, True)
    top, lse, found = _sample_lse(scores, groups, c, o)
    tau = lse + 0.75 * c  # more often right than the middle
    if o.rough:
        found = found & (tl.abs(top) < MAX_TOP)
        tau += top
    if found:
        step, _, low, x, y = _moments_step(scores, given, groups, top, tau, c, x, y, True, True, o)
        tau += step
        if not o.rough:
            low -= top
        found = (tl.abs(step) <= 0.5) & (tau - low < MAX_SPAN)
    return top, tau, found, x, y


@triton.jit
def _rounds(scores, given, groups, top, lse, c, x, y, IS_NARROW: tl.constexpr, o: tl.constexpr):
    """τ of the logistic loss less ``top``, and the first block."""
    ROUNDS: tl.constexpr = o.refine
    shift = top if IS_NARROW and o.rough else tl.zeros((), o.acc)
    low = lse + shift  # in a narrow row of half precision scores are taken as they are
    tau = low + 0.5 * c
    if o.mode == "beyond":
        # neither a while loop nor blocks that are carried through it: Triton 3.6 crashes on these
        last = tl.cdiv(groups, o.groups) - 1
        is_last = lse != lse
        for _round in range((4 + 3 * c).to(tl.int32)):
            if is_last == 0:
                last_x, last_y = load_both(scores, given, last, groups, o, True)
                step, newton, _, _, _ = _moments_step(
                    scores, given, groups, top, tau, c, last_x, last_y, IS_NARROW, False, o
                )
                tau, is_last = next_tau(tau, step, newton, low, o)
        x, y = load_both(scores, given, 0, groups, o, True)
    else:
        for i in tl.static_range(ROUNDS):
            if i > 0:
                last = tl.cdiv(groups, o.groups) - 1
                x, y = load_both(scores, given, last, groups, o, True)
            step, _, _, x, y = _moments_step(
                scores, given, groups, top, tau, c, x, y, IS_NARROW, False, o
            )
            tau += step
    return tau, x, y


@triton.jit
def measure_tau(scores, given, groups, c, o: tl.constexpr):
    """A score near the highest, τ less that, whether the row is narrow, and its first block.

    In a narrow row of half precision scores are taken as they are, and nothing is taken off τ.
    """
    x, y = load_both(scores, given, tl.cdiv(groups, o.groups) - 1, groups, o, True)
    top, lse, low = log_sum_exp(scores, groups, o)
    is_narrow = lse != lse
    if o.acc == tl.float32:
        is_narrow = lse - low < span_limit(c, o)
        if o.rough:
            is_narrow = is_narrow & (tl.abs(top) < MAX_TOP)
    if is_narrow:
        tau, x, y = _rounds(scores, given, groups, top, lse, c, x, y, True, o)
    else:
        tau, x, y = _rounds(scores, given, groups, top, lse, c, x, y, False, o)
    return top, tau, is_narrow, x, y


@triton.jit
def _maxima(scores, given, groups, top, c, o: tl.constexpr):
    """The maxima over all blocks of what τ is taken off, less top."""
    WITH_TARGETS: tl.constexpr = o.power == 1 and o.mode != "zero"
    HALVES: tl.constexpr = 2 if o.lanes == 8 else 1
    evens = tl.full((o.groups, o.lanes // HALVES), float("-inf"), o.acc)
    odds = evens
    blocks = tl.cdiv(groups, o.groups)
    next_x = load(scores, 0, groups, o, True)
    next_y = next_x
    if WITH_TARGETS:
        next_y = load_targets(given, 0, groups, o, True)
    for block in range(blocks):
        this_x, this_y = next_x, next_y
        following = tl.minimum(block + 1, blocks - 1)
        next_x = load(scores, following, groups, o, True)
        if WITH_TARGETS:
            next_y = load_targets(given, following, groups, o, True)
        for which in tl.static_range(HALVES):
            v = half(this_x, which, scores, o) - top
            if WITH_TARGETS:
                v += c * targets_of_half(this_y, which, given, block, o)
            if not o.even:
                v = tl.where(inside_row(block, groups, o)[:, None], v, float("-inf"))
            if which == 0:
                evens = tl.maximum(evens, v, propagate_nan=tl.PropagateNan.ALL)
            else:
                odds = tl.maximum(odds, v, propagate_nan=tl.PropagateNan.ALL)
    return join_halves(evens, odds, o)


@triton.jit
def _scaled_sums(powers, slopes, c, o: tl.constexpr):
    """Σp and its slope from Σ r^P and Σ r^(P − 1) of the groups."""
    scale = ramp_scale(c, o)
    return tl.sum(powers, axis=0) * scale, tl.sum(slopes, axis=0) * (scale * o.power)


@triton.jit
def _sums_of_maxima(given, tau, low, o: tl.constexpr):
    """Σp and its slope of the maxima, as if they had no targets."""
    tops, c = given
    r = relu((tops - tau) - low)
    return _scaled_sums(sum_of_powers(r, o.power), sum_of_powers(r, o.power - 1), c, o)


@triton.jit
def _sums_of_ramps(row, tau, low, o: tl.constexpr):
    """Σp and its slope of ramps, by a pass over the groups that reach above τ."""
    scores, given, groups, top, peaks, c = row
    powers = tl.zeros((o.groups,), o.acc)
    slopes = tl.zeros((o.groups,), o.acc)
    active = peaks - tau > low
    for block in range(tl.cdiv(groups, o.groups)):
        group, cols = columns_of(block, o)
        mask = (active if o.even else active & (group < groups))[:, None]
        v = tl.load(scores + cols, mask=mask, other=float("-inf")).to(o.acc) - top
        if o.power == 1 and o.mode != "zero":
            v += c * targets_at(given, cols, mask, o)
        r = relu((v - tau) - low)
        powers += sum_of_powers(r, o.power)
        slopes += sum_of_powers(r, o.power - 1)
    return _scaled_sums(powers, slopes, c, o)


@triton.jit
def _sums_of_entmax(row, tau, low, o: tl.constexpr):
    """Σp and its slope of entmax15 for c > 0, where every target has a part."""
    scores, given, groups, top, _, c = row
    HALVES: tl.constexpr = 2 if o.lanes == 8 else 1
    points = tl.zeros((o.groups, o.lanes // HALVES), o.acc)
    slopes = tl.zeros((o.groups, o.lanes // HALVES), o.acc)
    last = tl.cdiv(groups, o.groups) - 1
    next_x, next_y = load_both(scores, given, last, groups, o, True)
    for i in range(last + 1):
        this_x, this_y = next_x, next_y
        next_x, next_y = load_both(scores, given, tl.maximum(last - 1 - i, 0), groups, o, True)
        for which in tl.static_range(HALVES):
            s = ((half(this_x, which, scores, o) - top) - tau) - low
            if not o.even:
                s = tl.where(inside_row(last - i, groups, o)[:, None], s, float("-inf"))
            y = targets_of_half(this_y, which, given, last - i, o)
            p, d = entmax_point(s, y, c, o)
            points += p
            slopes += d
    return tl.sum(tl.sum(points, axis=1), axis=0), tl.sum(tl.sum(slopes, axis=1), axis=0)


@triton.jit
def sparse_tau(scores, given, groups, c, max_steps, tolerance, o: tl.constexpr):
    """A score near the highest, and τ of a sparse loss less that, as a sum of two numbers.

    The first pass keeps the maximum of each place in the block over all blocks. These maxima are
    entries of the row, and their own τ, found in registers, is a lower bound of the row's that
    leaves little to do.
    """
    top = _first_maximum(scores, groups, o)
    tops = _maxima(scores, given, groups, top, c, o)
    peaks = tl.max(tops, axis=1)
    highest = tl.max(peaks, axis=0)
    if (tl.abs(highest) > MAX_RISE + c) & (highest > float("-inf")):
        top += highest
        tops = _maxima(scores, given, groups, top, c, o)
        peaks = tl.max(tops, axis=1)
        highest = tl.max(peaks, axis=0)
    # a group of NaN has no peak; its maxima make the first step NaN, and so everything
    tau, low = solve_tau(
        _sums_of_maxima, (tops, c), ramp_start(highest, c, o), tl.zeros((), o.acc),
        max_steps, tolerance, o,
    )  # fmt: skip
    # not above the root of all entries, whatever rounding did to that of the maxima
    low -= 2 * tolerance
    row = (scores, given, groups, top, peaks, c)
    if o.power == 2 and o.mode != "zero":
        tau, low = solve_tau(_sums_of_entmax, row, tau, low, max_steps, tolerance, o)
    else:
        tau, low = solve_tau(_sums_of_ramps, row, tau, low, max_steps, tolerance, o)
    return top, tau, low


@triton.jit
def write_row(
    scores, given, value, out, groups, top, tau, low, c, weight, next_x, next_y,
    IS_NARROW: tl.constexpr, o: tl.constexpr,
):  # fmt: skip
    """Loss and gradient of a row whose first block and τ are known; that of ramps is τ + low."""
    HALVES: tl.constexpr = 2 if o.lanes == 8 else 1
    losses = tl.zeros((o.groups, o.lanes // HALVES), o.acc)
    factor = tl.where(tau == tau, weight, tau)
    blocks = tl.cdiv(groups, o.groups)
    for block in range(blocks):
        this_x, this_y = next_x, next_y
        next_x, next_y = load_both(
            scores, given, tl.minimum(block + 1, blocks - 1), groups, o, False
        )
        group = block * o.groups + tl.arange(0, o.groups)
        mask = (group < groups)[:, None]
        for which in tl.static_range(HALVES):
            x = half(this_x, which, scores, o)
            if not (IS_NARROW and o.rough):
                x = x - top
            y = targets_of_half(this_y, which, given, block, o)
            if o.power == 0:
                difference, loss = softmax_terms(x, tau, y, c, IS_NARROW, o)
            else:
                difference, loss = ramp_terms((ramp_score(x, y, c, o) - tau) - low, y, c, o)
            if o.with_value:
                if not o.even:
                    loss = tl.where(mask, loss, 0.0)
                losses += loss
            if which == 0:
                evens = difference * factor
                odds = evens
            else:
                odds = difference * factor
        if o.with_gradient:
            cols = group[:, None] * o.lanes + tl.arange(0, o.lanes)[None, :]
            rows = join_halves(evens, odds, o).to(out.dtype.element_ty)
            if o.even:
                tl.store(out + cols, rows, cache_modifier=".cs")
            else:
                tl.store(out + cols, rows, mask=mask, cache_modifier=".cs")
    if o.with_value:
        tl.store(value, tl.sum(tl.sum(losses, axis=1), axis=0) * factor)
