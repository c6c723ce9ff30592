r"""Kernels for class indices.

The entry of the label is set apart, and the losses are functions of the other entries:

- Logistic. With d = lse over the others − θ_j, the others have the odds r = ω(d − c + log c)/c
  (e^d for c = 0), and share their mass r/(1 + r) as their soft argmax says.
- Sparsemax and entmax15. The others are :math:`(r/w)^P` with :math:`r = (\theta - \tau)_+`, and
  Newton's method finds τ, where they and the label's own p sum to one.

The gradient at the label is minus the mass of the others, which keeps its digits where the label's
own p rounds to one. A row that fits into the registers of a program is read once. A wider one is
read in blocks, twice by the logistic loss; the sparse losses remember maxima, and return only to
the places that reach above τ. Rows that do not start at a multiple of 16 bytes are still read in
whole groups of 16 bytes; the few entries beside those are read on their own ("peel").

Passes over wide rows serve lists of classes, too (:mod:`.lists`), whose ``own`` is where the row's
bits are, and whose own scores are a list of them with their targets.

A label equal to ``ignore_index``, or a weight of 0, makes a row of zeros without reading it; a
label out of range makes it NaN.
"""

import triton
import triton.language as tl

from .formulas import (
    entmax_point,
    label_point,
    ramp_scale,
    ramp_score,
    ramp_start,
    softmax_label_loss,
    sparse_label_loss,
    sum_of_powers,
    tightness_of,
)
from .math import exp, relu
from .root import solve_tau
from .tiles import columns_of, inside_row, store_block, write_zeros
from .transform import (
    along_factor,
    capped,
    finite_top,
    load_transform,
    merged,
    over_places,
    rebased,
    scaled,
    seen,
    store_numbers,
    sums_of_block,
    with_slope,
)
from .weights import label_and_weight


@triton.jit
def _gap(top, total, own):
    """lse over the others − the label's score; NaN where a score is +∞."""
    gap = (top - own) + tl.log(total)
    return tl.where(own == float("inf"), float("nan"), gap)


@triton.jit
def others_at(x, tau, low, o: tl.constexpr):
    """The entries of the others up to a factor; τ + low is the maximum for the logistic loss."""
    if o.power == 0:
        return exp(x - tau, o.fast)
    elif o.power == 1:
        return relu((x - tau) - low)
    else:
        r = relu((x - tau) - low)
        return r * r


@triton.jit
def _start(highest, own, c, o: tl.constexpr):
    """A τ not above the root: one entry alone is one there."""
    # the label's is one at s = P, since c p of its equation cancels c y
    return tl.maximum(ramp_start(highest, c, o), own - o.power)


@triton.jit
def _list_sums(own, tau, low, c, o: tl.constexpr):
    """Σp and its slope of the classes of a list, from their scores and targets, shape (1, m)."""
    x, y = own
    s = (ramp_score(x, y, c, o) - tau) - low
    if o.power == 2 and o.mode != "zero":
        p, d = entmax_point(s, y, c, o)
        p, d = tl.sum(p, axis=1), tl.sum(d, axis=1)
    else:
        r, scale = relu(s), ramp_scale(c, o)
        p = sum_of_powers(r, o.power) * scale
        d = sum_of_powers(r, o.power - 1) * (scale * o.power)
    return tl.sum(p, axis=0), tl.sum(d, axis=0)


@triton.jit
def _with_own(powers, slopes, own, tau, low, c, o: tl.constexpr):
    """Σp and its slope from Σ r^P and Σ r^(P − 1) of the others, and the target's own scores."""
    if o.target == "lists":
        p, d = _list_sums(own, tau, low, c, o)
    else:
        p, d = label_point((own - tau) - low, c, o)
    scale = ramp_scale(c, o)
    return powers * scale + p, slopes * (scale * o.power) + d


@triton.jit
def _block_sums(given, tau, low, o: tl.constexpr):
    """Σp and its slope of rows in registers."""
    x, own, c = given
    r = relu((x - tau[:, None]) - low[:, None])
    return _with_own(sum_of_powers(r, o.power), sum_of_powers(r, o.power - 1), own, tau, low, c, o)


@triton.jit(do_not_specialize=["divisor", "tightness"])
def label_rows(
    theta, target, scale, value, gradient, factors, by_factor, numbers,
    n, groups, theta_groups, out_groups, scale_stride, divisor, ignore_index, max_steps,
    tolerance, tightness: tl.float64, cap: tl.float64, o: tl.constexpr,
):  # fmt: skip
    """Rows that fit into one block; widths and strides are counted in groups of lanes.

    With ``columns`` a row is a column of one of many matrices (k, n).
    """
    k = groups * o.lanes
    c = tightness_of(tightness, o)
    program = tl.program_id(0)
    if o.columns:
        matrix = (program // tl.cdiv(n, o.rows)).to(tl.int64)
        program = program % tl.cdiv(n, o.rows)
    row = program.to(tl.int64) * o.rows + tl.arange(0, o.rows)
    inside = row < n
    cols = tl.arange(0, o.block)[None, :]
    mask = inside[:, None]
    if not o.even:
        mask = mask & (cols < k)
    if o.columns:
        start = matrix * k * n + row
        offset = start[:, None] + cols.to(tl.int64) * n
        at = offset
        row = matrix * n + row
    else:
        start = row * theta_groups * o.lanes
        offset = start[:, None] + cols
        at = row[:, None] * out_groups * o.lanes + cols
    label, weight, counts = label_and_weight(
        target, scale, row, inside, scale_stride, divisor, ignore_index, o
    )
    given = load_transform(factors, cap, o)
    read = mask if o.stats else mask & counts[:, None]
    u = capped(tl.load(theta + offset, mask=read, other=float("-inf")).to(o.acc), given, o)
    valid = counts & (label >= 0) & (label < k)
    own_at = start + (label * n if o.columns else label)
    own_u = capped(tl.load(theta + own_at, mask=valid, other=float("nan")).to(o.acc), given, o)
    own = scaled(own_u, given, o)
    at_label = cols == label.to(tl.int32)[:, None]
    if o.stats:
        s = scaled(u, given, o)
        score = tl.sum(tl.where(at_label, s, 0.0), axis=1)
        top, total, mean = sums_of_block(s, o)
        store_numbers(numbers, row, inside, top, total, mean, score, score)
    x = tl.where(at_label, float("-inf"), scaled(u, given, o))
    highest = tl.max(x, axis=1)
    if o.power == 0:
        tau = finite_top(highest)
        low = tau
        others = others_at(x, tau[:, None], low[:, None], o)
        total = tl.sum(others, axis=1)
        loss, mass = softmax_label_loss(_gap(tau, total, own), c, o)
        factor = mass / tl.where(total == 0, 1.0, total)
    else:
        own = tl.where(counts, own, 0.0)
        top = tl.maximum(highest, own)
        x = x - top[:, None]
        own = own - top
        tau = _start(highest - top, own, c, o)
        low = tl.zeros((o.rows,), o.acc)
        tau, low = solve_tau(_block_sums, (x, own, c), tau, low, max_steps, tolerance, o)
        r = relu((x - tau[:, None]) - low[:, None])
        others = others_at(x, tau[:, None], low[:, None], o)
        factor = tl.where(tau == tau, ramp_scale(c, o), tau)
        mass = sum_of_powers(r, o.power) * factor
        powers = sum_of_powers(r, o.power + 1)
        loss = sparse_label_loss(mass, powers, (own - tau) - low, c, o)
        loss = tl.where(tau == tau, loss, tau)
    if o.with_value:
        tl.store(value + row, tl.where(counts, loss, 0.0) * weight, mask=inside)
    if o.with_gradient:
        own_g, g = -mass * weight, others * (factor * weight)[:, None]
        if o.learned:
            terms = tl.sum(tl.where(mask & (at_label == 0), along_factor(g, u), 0.0), axis=1)
            terms += along_factor(own_g, own_u)
            tl.store(by_factor + row, tl.where(counts, terms, 0.0), mask=inside)
        own_g, g = with_slope(own_g, own_u, given, o), with_slope(g, u, given, o)
        out = tl.where(at_label, own_g[:, None], g)
        out = tl.where(counts[:, None], out, 0.0)
        out = out.to(gradient.dtype.element_ty)
        tl.store(gradient + at, out, mask=mask, cache_modifier=".cs")


@triton.jit
def load_block(start, block, mask, o: tl.constexpr, POLICY: tl.constexpr):
    """The columns of a block and their scores, −∞ where masked or outside of the row."""
    _, cols = columns_of(block, o)
    if mask is None:
        x = tl.load(start + cols, eviction_policy=POLICY)
    else:
        x = tl.load(start + cols, mask=mask[:, None], other=float("-inf"), eviction_policy=POLICY)
    return cols, x.to(o.acc)


@triton.jit
def without_own(x, cols, block, own, word, o: tl.constexpr):
    """Scores with −∞ at the label ``own``, or at a list's classes, and the word with their bits.

    A group has a bit for each lane, and a word those of its groups in some blocks.
    """
    if o.target != "lists":
        if block == own // (o.groups * o.lanes):
            x = tl.where(cols == own, float("-inf"), x)
    else:
        BLOCKS: tl.constexpr = 32 // o.lanes
        if block % BLOCKS == 0:
            word = tl.load(own + block // BLOCKS * o.groups + tl.arange(0, o.groups))
        bit = (word >> (block % BLOCKS * o.lanes))[:, None] & (1 << tl.arange(0, o.lanes))[None, :]
        x = tl.where(bit != 0, float("-inf"), x)
    return x, word


@triton.jit
def running_sums(scores, o: tl.constexpr):
    """The maximum, Σ e^d and Σ e^d d of d = θ − maximum over the blocks, for each place of a tile.

    The latter is zero if numbers of the rows are not asked for.
    """
    start, groups, own, given = scores
    tops = tl.full((o.groups,), float("-inf"), o.acc)
    totals = tl.zeros((o.groups,), o.acc)
    means = tl.zeros((o.groups,), o.acc)
    word = tl.zeros((o.groups,), tl.int32)
    for block in range(tl.cdiv(groups, o.groups)):
        mask = None if o.even else inside_row(block, groups, o)
        cols, x = load_block(start, block, mask, o, "evict_last")
        x, word = without_own(seen(x, given, o), cols, block, own, word, o)
        higher = tl.maximum(tops, tl.max(x, axis=1))
        base = finite_top(higher)
        d = x - base[:, None]
        e = exp(d, o.fast)
        if o.stats:
            _, means = rebased(tops, totals, means, base)
            means += tl.sum(tl.where(e == 0, 0.0, e * d), axis=1)
        totals = totals * exp(tops - base, o.fast) + tl.sum(e, axis=1)
        tops = higher
    return tops, totals, means


@triton.jit
def block_maxima(scores, o: tl.constexpr):
    """The maximum over the blocks, for each place in the tile; listed classes may be among them."""
    start, groups, own, given = scores
    tops = tl.full((o.groups, o.lanes), float("-inf"), o.acc)
    for block in range(tl.cdiv(groups, o.groups)):
        mask = None if o.even else inside_row(block, groups, o)
        cols, x = load_block(start, block, mask, o, "")
        if o.transform != "cap":
            x = seen(x, given, o)
        if o.target != "lists":
            x, _ = without_own(x, cols, block, own, own, o)
        tops = tl.maximum(tops, x, propagate_nan=tl.PropagateNan.ALL)
    if o.transform == "cap":  # which does not change the order
        tops = capped(tops, given, o)
    return tops


@triton.jit
def sums_of_maxima(given, tau, low, o: tl.constexpr):
    """Σp and its slope of the maxima, and of the entries beside the groups."""
    tops, beside, own, c = given
    r = relu((tops - tau) - low)
    powers = tl.sum(sum_of_powers(r, o.power), axis=0)
    slopes = tl.sum(sum_of_powers(r, o.power - 1), axis=0)
    if o.peel:
        r = relu((beside - tau) - low)
        powers += tl.sum(sum_of_powers(r, o.power), axis=0)
        slopes += tl.sum(sum_of_powers(r, o.power - 1), axis=0)
    return _with_own(powers, slopes, own, tau, low, c, o)


@triton.jit
def powers_above(scores, top, peaks, beside, tau, low, SECOND: tl.constexpr, o: tl.constexpr):
    """Σ r^P and Σ r^SECOND over the groups whose peak is above τ."""
    start, groups, own, given = scores
    powers = tl.zeros((o.groups,), o.acc)
    seconds = tl.zeros((o.groups,), o.acc)
    word = tl.zeros((o.groups,), tl.int32)
    active = peaks - tau > low
    for block in range(tl.cdiv(groups, o.groups)):
        mask = active if o.even else active & inside_row(block, groups, o)
        cols, x = load_block(start, block, mask, o, "")
        x, word = without_own(seen(x, given, o), cols, block, own, word, o)
        r = relu(((x - top) - tau) - low)
        powers += sum_of_powers(r, o.power)
        seconds += sum_of_powers(r, SECOND)
    power, second = tl.sum(powers, axis=0), tl.sum(seconds, axis=0)
    if o.peel:
        r = relu((beside - tau) - low)
        power += tl.sum(sum_of_powers(r, o.power), axis=0)
        second += tl.sum(sum_of_powers(r, SECOND), axis=0)
    return power, second


@triton.jit
def sums_of_row(given, tau, low, o: tl.constexpr):
    """Σp and its slope of a row, by a pass over the groups that reach above τ."""
    scores, top, peaks, beside, own, c = given
    powers, slopes = powers_above(scores, top, peaks, beside, tau, low, o.power - 1, o)
    return _with_own(powers, slopes, own, tau, low, c, o)


@triton.jit
def write_others(scores, out, own_g, factor, top, tau, low, active, o: tl.constexpr):
    """Write the gradient of a row, without its list; terms of the derivative in the factor."""
    start, groups, own, given = scores
    IS_LIST: tl.constexpr = o.target == "lists"
    terms = tl.zeros((o.groups,), o.acc)
    word = tl.zeros((o.groups,), tl.int32)
    blocks = tl.cdiv(groups, o.groups)
    for i in range(blocks):
        # a second read goes backwards: the end of the row is what the cache still holds
        block = i if o.power > 0 or (o.learned and IS_LIST) else blocks - 1 - i
        inside = inside_row(block, groups, o)
        if o.power == 0:
            cols, u = load_block(start, block, None if o.even else inside, o, "evict_first")
        else:
            cols, u = load_block(start, block, active if o.even else active & inside, o, "")
        u = capped(u, given, o)
        x = scaled(u, given, o)
        if o.learned and IS_LIST:  # then bits are not where the gradient is
            x, word = without_own(x, cols, block, own, word, o)
        if o.power > 0:
            x -= top
        p = others_at(x, tau, low, o) * factor
        if o.learned:
            if not IS_LIST:
                if block == own // (o.groups * o.lanes):
                    p = tl.where(cols == own, 0.0, p)
            terms += tl.sum(along_factor(p, u), axis=1)
        p = with_slope(p, u, given, o)
        if not IS_LIST:
            if block == own // (o.groups * o.lanes):
                p = tl.where(cols == own, own_g, p)
        store_block(out, cols, p.to(out.dtype.element_ty), inside, o)
    return terms


@triton.jit(do_not_specialize=["divisor", "tightness"])
def wide_label_rows(
    theta, target, scale, value, gradient, factors, by_factor, numbers,
    n, groups, theta_groups, out_groups, scale_stride, divisor, ignore_index, max_steps,
    tolerance, tightness: tl.float64, cap: tl.float64, o: tl.constexpr,
):  # fmt: skip
    """One row of any width.

    Widths and strides are counted in groups of lanes, which one thread loads at once. With ``peel``
    they are counted in entries, and the entries beside the whole groups are read on their own.
    """
    c = tightness_of(tightness, o)
    row = tl.program_id(0).to(tl.int64)
    label, weight, counts = label_and_weight(
        target, scale, row, row < n, scale_stride, divisor, ignore_index, o
    )
    UNIT: tl.constexpr = 1 if o.peel else o.lanes
    k = groups * UNIT
    valid = (label >= 0) & (label < k)
    first = row * theta_groups * UNIT
    given = load_transform(factors, cap, o)
    is_own = valid if o.stats else counts & valid
    own_u = tl.load(theta + first + label, mask=is_own, other=float("nan")).to(o.acc)
    own_u = capped(own_u, given, o)
    own = scaled(own_u, given, o)
    head = 0
    if o.peel:
        head = ((o.lanes - first % o.lanes) % o.lanes).to(tl.int32)
        groups = (k - head) // o.lanes
    start = theta + tl.multiple_of(first + head, o.lanes)
    out = gradient + tl.multiple_of(row * out_groups * UNIT + head, o.lanes)
    label = (label - head).to(tl.int32)
    scores = start, groups, label, given
    beside = own  # not used
    if o.peel:
        # some of the first and of the last lanes
        edge = tl.arange(0, 2 * o.lanes)[None, :]
        edges = tl.where(edge < o.lanes, edge, k - 2 * o.lanes + edge) - head
        is_edge = tl.where(edge < o.lanes, edges < 0, edges >= groups * o.lanes)
        beside = tl.load(start + edges, mask=is_edge, other=float("-inf")).to(o.acc)
        beside_u = capped(tl.where(edges == label, float("-inf"), beside), given, o)
        beside = scaled(beside_u, given, o)
    if o.stats:
        tops, totals, means = running_sums(scores, o)
        h, total, mean = over_places(tops, totals, means)
        if o.peel:
            b, s, d = sums_of_block(beside, o)
            b, s, d = over_places(b, s, d)
            h, total, mean = merged(h, total, mean, b, s, d)
        if valid:
            h, total, mean = merged(h, total, mean, own, 1.0, 0.0)
        store_numbers(numbers, row, row < n, h, total, mean, own, own)
    if counts:
        if o.power == 0:
            if not o.stats:
                tops, totals, means = running_sums(scores, o)
            tau = tl.max(tops, axis=0)
            if o.peel:
                tau = tl.maximum(tau, tl.max(tl.max(beside, axis=1), axis=0))
            tau = tl.where(tau == float("-inf"), 0.0, tau)
            total = tl.sum(totals * tl.exp(tops - tau), axis=0)
            if o.peel:
                total += tl.sum(tl.sum(exp(beside - tau, o.fast), axis=1), axis=0)
            loss, mass = softmax_label_loss(_gap(tau, total, own), c, o)
            factor = mass / tl.where(total == 0, 1.0, total)
            top, low = tl.zeros((), o.acc), tau
            active = tl.full((o.groups,), 1, tl.int1)
        else:
            # maxima are entries of the row: their own τ is a lower bound that leaves little to do
            maxima = block_maxima(scores, o)
            peaks = tl.max(maxima, axis=1)
            highest = tl.max(peaks, axis=0)
            if o.peel:
                highest = tl.maximum(highest, tl.max(tl.max(beside, axis=1), axis=0))
            top = tl.maximum(highest, own)
            beside -= top
            own -= top
            peaks -= top
            tau = _start(highest - top, own, c, o)
            # a group of NaN has no peak; its maxima make the first step NaN, and so everything
            tau, low = solve_tau(
                sums_of_maxima, (maxima - top, beside, own, c),
                tau, tl.zeros((), o.acc), max_steps, tolerance, o,
            )  # fmt: skip
            # not above the root of all entries, whatever rounding did to that of the maxima
            tau, low = solve_tau(
                sums_of_row, (scores, top, peaks, beside, own, c),
                tau, low - 2 * tolerance, max_steps, tolerance, o,
            )  # fmt: skip
            powers, highs = powers_above(scores, top, peaks, beside, tau, low, o.power + 1, o)
            factor = tl.where(tau == tau, ramp_scale(c, o), tau)
            mass = powers * factor
            loss = sparse_label_loss(mass, highs, (own - tau) - low, c, o)
            loss = tl.where(tau == tau, loss, tau)
            active = peaks - tau > low
        if o.with_value:
            tl.store(value + row, loss * weight)
        if o.with_gradient:
            own_g = -mass * weight
            factor *= weight
            if o.learned:
                by_own = along_factor(own_g, own_u)
            own_g = with_slope(own_g, own_u, given, o)
            if o.peel:
                few = others_at(beside, tau, low, o) * factor
                if o.learned:
                    by_own += tl.sum(tl.sum(along_factor(few, beside_u), axis=1), axis=0)
                few = tl.where(edges == label, own_g, with_slope(few, beside_u, given, o))
                tl.store(out + edges, few.to(gradient.dtype.element_ty), mask=is_edge)
            terms = write_others(scores, out, own_g, factor, top, tau, low, active, o)
            if o.learned:
                tl.store(by_factor + row, by_own + tl.sum(terms, axis=0))
    else:
        if o.with_value:
            tl.store(value + row, 0.0 * weight)
        if o.with_gradient:
            if o.learned:
                tl.store(by_factor + row, 0.0)
            if o.peel:
                zero = tl.zeros((1, 2 * o.lanes), gradient.dtype.element_ty)
                tl.store(out + edges, zero, mask=is_edge)
            write_zeros(out, groups, o)
