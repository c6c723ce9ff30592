r"""The kernel for lists of classes: rows with a few targets, at the price of a label.

All classes that are not listed have the target 0, and enter a loss through sums over the row, as
the others do beside a label: its passes are those of :mod:`.labels`. They leave the listed classes
out by a bit for each class, which the program of a row sets before it reads the row. The bits lie
where the row's gradient will be, or, if that is in place of the scores, in a buffer of their own.
Each listed class has its own score and target in registers. Its score is asked for before the row,
and its entry of the gradient is written last, over that of its block.

- Logistic: the others are one class more, whose score is their log-sum-exp and whose target is 0,
  or the rest that the list has. What is left is a short row of proportions in registers.
- Sparsemax and entmax15: Newton's method finds τ from powers of the others and from the list.

A row without a class, or with the weight 0, becomes zeros without being read; a class out of range
makes its row NaN, and nothing is read there.
"""

import triton
import triton.language as tl

from .formulas import (
    ramp_scale,
    ramp_score,
    ramp_start,
    ramp_terms,
    softmax_terms,
    tightness_of,
)
from .labels import (
    block_maxima,
    powers_above,
    running_sums,
    sums_of_maxima,
    sums_of_row,
    write_others,
)
from .math import exp, relu
from .proportions import softmax_rows
from .root import solve_tau
from .tiles import write_zeros
from .transform import (
    along_factor,
    capped,
    finite_top,
    load_transform,
    merged,
    over_places,
    scaled,
    store_numbers,
    sums_of_block,
    with_slope,
)
from .weights import row_weight

# In place of class numbers: no class, and all that are not listed.
PADDING: tl.constexpr = tl.constexpr(-1)
REST: tl.constexpr = tl.constexpr(-2)


@triton.jit
def _set_bits(bits, classes, is_class, groups, o: tl.constexpr):
    """Set the bits of the listed classes, and clear all others, for all threads to see."""
    BLOCKS: tl.constexpr = 32 // o.lanes
    zero = tl.zeros((o.groups,), tl.int32)
    for i in range(tl.cdiv(tl.cdiv(groups, o.groups), BLOCKS)):
        tl.store(bits + i * o.groups + tl.arange(0, o.groups), zero)
    tl.debug_barrier()
    group = classes // o.lanes
    block = group // o.groups
    bit = tl.full(classes.shape, 1, tl.int32) << (block % BLOCKS * o.lanes + classes % o.lanes)
    word = block // BLOCKS * o.groups + group % o.groups
    tl.atomic_or(bits + word, bit, mask=is_class, sem="relaxed", scope="cta")
    tl.debug_barrier()


@triton.jit
def _without_listed(maxima, bits, groups, o: tl.constexpr):
    """Maxima over the blocks with −∞ in the places of listed classes; NaN stays."""
    BLOCKS: tl.constexpr = 32 // o.lanes
    lanes = tl.zeros((o.groups,), tl.int32)
    for i in range(tl.cdiv(tl.cdiv(groups, o.groups), BLOCKS)):
        word = tl.load(bits + i * o.groups + tl.arange(0, o.groups))
        for block in tl.static_range(BLOCKS):
            lanes |= word >> (block * o.lanes)
    bit = lanes[:, None] & (1 << tl.arange(0, o.lanes))[None, :]
    return tl.where((bit != 0) & (maxima == maxima), float("-inf"), maxima)


@triton.jit
def _own_scores(start, classes, is_class, k, given, o: tl.constexpr):
    """Capped scores of the listed classes: −∞ where there is none, and NaN out of range."""
    x = tl.load(start + classes, mask=is_class, other=float("-inf")).to(o.acc)
    return capped(tl.where(classes >= k, float("nan"), x), given, o)


@triton.jit
def _total(x):
    """The sum of a row of shape (1, m)."""
    return tl.sum(tl.sum(x, axis=1), axis=0)


@triton.jit
def _short_row(x, y, c, is_read, o: tl.constexpr):
    """p − y and the terms of the logistic loss of a row in registers."""
    x = tl.where(is_read, x, float("-inf"))
    x -= tl.max(x, axis=1)[:, None]
    lse = tl.log(tl.sum(exp(x, o.fast), axis=1))
    if o.mode == "zero":
        difference, loss = softmax_terms(x, lse[:, None], y, c, False, o)
    else:
        every = tl.full((1,), 1, tl.int1)
        _, difference, loss = softmax_rows(x, y, lse, c, is_read, every, False, o)
    return tl.where(is_read, difference, 0.0), tl.where(is_read, loss, 0.0)


@triton.jit(do_not_specialize=["divisor", "tightness"])
def list_rows(
    theta, lists, bits, scale, value, gradient, factors, by_factor, numbers,
    n, m, groups, theta_groups, out_groups, bit_stride, scale_stride, divisor, max_steps,
    tolerance, tightness: tl.float64, cap: tl.float64, o: tl.constexpr,
):  # fmt: skip
    """One row of any width; widths and strides are counted in groups of lanes."""
    c = tightness_of(tightness, o)
    row = tl.program_id(0).to(tl.int64)
    k = groups * o.lanes
    start = theta + tl.multiple_of(row * theta_groups * o.lanes, o.lanes)
    out = gradient + tl.multiple_of(row * out_groups * o.lanes, o.lanes)
    weight = row_weight(scale, row, row < n, scale_stride, divisor, o)
    # the place after the last is for all others together
    place = tl.arange(0, o.listed)[None, :]
    at = lists + row * 2 * m + place
    classes = tl.load(at, mask=place < m, other=-1.0).to(tl.int32)
    y = tl.load(at + m, mask=place < m, other=0.0).to(o.acc)
    is_class = (classes >= 0) & (classes < k)
    is_any = tl.max(tl.max((classes != PADDING).to(tl.int32), axis=1), axis=0) > 0
    rest = _total(tl.where(classes == REST, y, 0.0))
    y = tl.where(classes >= 0, y, 0.0)
    given = load_transform(factors, cap, o)
    own = bits.to(tl.pointer_type(tl.int32), bitcast=True) + row * bit_stride
    scores = start, groups, own, given
    if o.stats:
        _set_bits(own, classes, is_class, groups, o)
        tops, totals, means = running_sums(scores, o)
        x = scaled(_own_scores(start, classes, is_class, k, given, o), given, o)
        x = tl.where(is_class, x, float("-inf"))
        b, s, d = sums_of_block(x, o)
        b, s, d = over_places(b, s, d)
        h, total, mean = over_places(tops, totals, means)
        h, total, mean = merged(h, total, mean, b, s, d)
        score = _total(tl.where(y > 0, x * y, 0.0))
        most = tl.max(tl.max(y, axis=1), axis=0)
        best = tl.max(tl.max(tl.where(y == most, x, float("-inf")), axis=1), axis=0)
        store_numbers(numbers, row, row < n, h, total, mean, score, best)
    if is_any & (weight != 0):
        # asked for before the row, so that they arrive while it is read
        own_u = _own_scores(start, classes, is_class, k, given, o)
        if not o.stats:
            _set_bits(own, classes, is_class, groups, o)
        if o.power == 0:
            if not o.stats:
                tops, totals, means = running_sums(scores, o)
            tau = finite_top(tl.max(tops, axis=0))
            total = tl.sum(totals * tl.exp(tops - tau), axis=0)
            x = scaled(own_u, given, o)
            is_others = place == m
            x = tl.where(is_others, tau + tl.log(total), x)
            y = tl.where(is_others, rest, y)
            difference, losses = _short_row(x, y, c, (classes >= 0) | is_others, o)
            loss = _total(losses)
            mass = _total(tl.where(is_others, difference, 0.0))
            factor = mass / tl.where(total == 0, 1.0, total)
            top, low = tl.zeros((), o.acc), tau
            active = tl.full((o.groups,), 1, tl.int1)
        else:
            # maxima of the others are entries of the row: their own τ is a lower bound
            maxima = block_maxima(scores, o)
            peaks = tl.max(maxima, axis=1)
            highest = tl.max(peaks, axis=0)
            x = scaled(own_u, given, o)
            top = tl.maximum(highest, tl.max(tl.max(x, axis=1), axis=0))
            x -= top
            peaks -= top
            v = ramp_score(x, y, c, o)
            tau = ramp_start(tl.maximum(highest - top, tl.max(tl.max(v, axis=1), axis=0)), c, o)
            tau, low = solve_tau(
                sums_of_maxima, (_without_listed(maxima, own, groups, o) - top, tau, (x, y), c),
                tau, tl.zeros((), o.acc), max_steps, tolerance, o,
            )  # fmt: skip
            # not above the root of all entries, whatever rounding did to that of the maxima
            tau, low = solve_tau(
                sums_of_row, (scores, top, peaks, tau, (x, y), c),
                tau, low - 2 * tolerance, max_steps, tolerance, o,
            )  # fmt: skip
            _, highs = powers_above(scores, top, peaks, tau, tau, low, o.power + 1, o)
            factor = tl.where(tau == tau, ramp_scale(c, o), tau)
            difference, losses = ramp_terms((v - tau) - low, y, c, o)
            difference += tl.where(tau == tau, 0.0, tau)
            loss = highs * (factor / (o.power + 1.0)) + _total(losses)
            active = peaks - tau > low
        if o.with_value:
            tl.store(value + row, loss * weight)
        if o.with_gradient:
            factor *= weight
            difference *= weight
            if o.learned:
                of_classes = tl.where(is_class, difference, 0.0)
                by_classes = _total(along_factor(of_classes, own_u))
            listed = with_slope(difference, own_u, given, o).to(gradient.dtype.element_ty)
            terms = write_others(scores, out, listed, factor, top, tau, low, active, o)
            # over what all threads have written
            tl.debug_barrier()
            tl.store(out + classes, listed, mask=is_class)
            if o.learned:
                tl.store(by_factor + row, by_classes + tl.sum(terms, axis=0))
    else:
        if o.with_value:
            tl.store(value + row, 0.0 * weight)
        if o.with_gradient:
            if o.learned:
                tl.store(by_factor + row, 0.0)
            write_zeros(out, groups, o)


@triton.jit
def make_lists(
    indices, values, lists, n, m, k, stride,
    REST_KIND: tl.constexpr, IS_LOG: tl.constexpr, ROWS: tl.constexpr, LISTED: tl.constexpr,
):  # fmt: skip
    """:meth:`.SparseTargets.lists` in one pass; ``stride`` is m, or m + 1 with a bucket."""
    row = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)[:, None]
    place = tl.arange(0, LISTED)[None, :]
    inside = (row < n) & (place < m)
    classes = tl.load(indices + row * m + place, mask=inside, other=-1).to(tl.int64)
    is_class = classes >= 0
    is_any = tl.max(is_class.to(tl.int32), axis=1)[:, None] > 0
    nothing = float("-inf") if IS_LOG else 0.0
    y = tl.load(values + row * m + place, mask=is_class, other=nothing).to(tl.float64)
    if IS_LOG:
        if REST_KIND == "renormalize":
            top = tl.max(y, axis=1)[:, None]
            y -= tl.where(top == float("-inf"), 0.0, top)
        y = tl.exp(y)
    total = tl.sum(y, axis=1)[:, None]
    if REST_KIND == "renormalize":
        y /= tl.where(is_any, total, 1.0)
    numbers = tl.minimum(tl.maximum(classes, PADDING), k)
    if REST_KIND == "bucket":
        is_rest = place == m
        numbers = tl.where(is_rest & is_any, REST, numbers)
        y = tl.where(is_rest & is_any, relu(1.0 - total), y)
    KIND: tl.constexpr = lists.dtype.element_ty
    at = lists + row * 2 * stride + place
    mask = (row < n) & (place < stride)
    tl.store(at, numbers.to(KIND), mask=mask)
    tl.store(at + stride, y.to(KIND), mask=mask)


@triton.jit
def count_lists(lists, counts, n, m, BLOCK: tl.constexpr):
    """How many rows have a class; each program leaves the count of its part."""
    total = tl.zeros((BLOCK,), tl.int32)
    for first in range(tl.program_id(0) * BLOCK, n, tl.num_programs(0) * BLOCK):
        row = tl.arange(0, BLOCK).to(tl.int64) + first
        is_empty = row < n
        place = 0
        # nearly all rows begin with a class
        while (place < m) & (tl.max(is_empty.to(tl.int32), axis=0) > 0):
            number = tl.load(lists + row * 2 * m + place, mask=is_empty, other=PADDING)
            is_empty = is_empty & (number == PADDING)
            place += 1
        total += ((row < n) ^ is_empty).to(tl.int32)
    tl.store(counts + tl.program_id(0), tl.sum(total, axis=0))
