r"""Kernels for class indices: the logistic pair, and the sparse pairs (sparsemax and entmax15).

The entry of the label is set apart, and the losses are functions of the other entries:

- Logistic pair. With d = lse over the others − θ_j, the loss is softplus(d) (logistic) or ω(d − 1)
  (Fitzpatrick), and the others share the mass σ(d) or ω/(1 + ω) as their soft argmax says.
- Sparse pairs. The others are :math:`p = (c\,r)^P` with :math:`r = (\theta - \tau)_+`: c = 1 and
  P = 1 (sparsemax), c = ½ and P = 1 (its Fitzpatrick twin), c = ½ and P = 2 (entmax15), c = ⅓ and
  P = 2 (its twin). Newton's method finds τ, where they and the label's own p sum to one.

The gradient at the label is minus the mass of the others, which keeps its digits where the label's
own p rounds to one. A row is read once where it fits into the registers of one program. A wider one
is read in blocks, twice by the logistic pair; the sparse pairs remember maxima, and come back to
those places alone that reach above τ. Rows that do not start at a multiple of 16 bytes are read in
whole groups of 16 bytes all the same, and the few entries beside those apart.

A label equal to ``ignore_index``, or a scale of 0, makes a row of zeros without reading it; a label
out of range makes it NaN.
"""

# mypy: disable-error-code="misc,no-untyped-def,no-any-return"
# Triton's own language, which is not Python to a type checker

import triton
import triton.language as tl

from .triton_math import advance, exp, relu, sigmoid, softplus, wright_omega, write_zeros
from .triton_scale import EACH, row_weight

__all__ = ["logistic_labels", "logistic_labels_wide", "sparse_labels", "sparse_labels_wide"]


@triton.jit
def _logistic_pair(gap, FITZPATRICK: tl.constexpr, STEPS: tl.constexpr, FLOOR: tl.constexpr):
    """The loss, and the mass of the classes other than the label."""
    if FITZPATRICK:
        omega = wright_omega(gap - 1.0, STEPS, FLOOR)
        return omega, 1.0 / (1.0 + 1.0 / omega)
    return softplus(gap), sigmoid(gap)


@triton.jit
def _gap(top, total, own):
    """lse over the others − the label's score; NaN where a score is +∞."""
    gap = (top - own) + tl.log(total)
    return tl.where(own == float("inf"), float("nan"), gap)


@triton.jit
def _read_block(
    theta,
    target,
    scale,
    n,
    k,
    theta_groups,
    LANES: tl.constexpr,
    scale_stride,
    divisor,
    ignore_index,
    EVEN: tl.constexpr,
    COLUMNS: tl.constexpr,
    ROWS: tl.constexpr,
    BLOCK: tl.constexpr,
    ACC: tl.constexpr,
    SCALE: tl.constexpr,
    PARTS: tl.constexpr,
):
    """ROWS rows of k scores, with −∞ at the label, and what goes with them.

    These are the rows' numbers, which of them are there and count, their weights, where their
    gradients go, a mask of that, the scores, those of the labels, and where the labels are.
    With COLUMNS a row is a column of one of many matrices (k, n).
    """
    program = tl.program_id(0)
    if COLUMNS:
        matrix = (program // tl.cdiv(n, ROWS)).to(tl.int64)
        program = program % tl.cdiv(n, ROWS)
    row = program.to(tl.int64) * ROWS + tl.arange(0, ROWS)
    inside = row < n
    cols = tl.arange(0, BLOCK)[None, :]
    mask = inside[:, None]
    if not EVEN:
        mask = mask & (cols < k)
    if COLUMNS:
        start = matrix * k * n + row
        offset = start[:, None] + cols.to(tl.int64) * n
        at = offset
        row = matrix * n + row
    else:
        start = row * theta_groups * LANES
        offset = start[:, None] + cols
        at = row[:, None] * k + cols
    label = tl.load(target + row, mask=inside, other=ignore_index)
    weight = row_weight(scale, row, inside, scale_stride, divisor, SCALE, PARTS, ACC)
    counts = inside & (label != ignore_index)
    if SCALE == EACH:
        counts = counts & (weight != 0)
    x = tl.load(theta + offset, mask=mask & counts[:, None], other=float("-inf")).to(ACC)
    valid = counts & (label >= 0) & (label < k)
    if COLUMNS:
        own = tl.load(theta + start + label * n, mask=valid, other=float("nan")).to(ACC)
    else:
        own = tl.load(theta + start + label, mask=valid, other=float("nan")).to(ACC)
    at_label = cols == label.to(tl.int32)[:, None]
    x = tl.where(at_label, float("-inf"), x)
    return row, inside, counts, weight, at, mask, x, own, at_label


@triton.jit(do_not_specialize=["divisor"])
def logistic_labels(
    theta,
    target,
    scale,
    value,
    gradient,
    n,
    groups,
    theta_groups,
    scale_stride,
    divisor,
    ignore_index,
    FITZPATRICK: tl.constexpr,
    WITH_VALUE: tl.constexpr,
    WITH_GRADIENT: tl.constexpr,
    EVEN: tl.constexpr,
    COLUMNS: tl.constexpr,
    ROWS: tl.constexpr,
    BLOCK: tl.constexpr,
    LANES: tl.constexpr,
    ACC: tl.constexpr,
    SCALE: tl.constexpr,
    PARTS: tl.constexpr,
    REFINE: tl.constexpr,
    FLOOR: tl.constexpr,
    FAST: tl.constexpr,
):
    """Rows that fit into one block; widths and strides are counted in groups of LANES entries."""
    row, inside, counts, weight, at, mask, x, own, at_label = _read_block(
        theta, target, scale, n, groups * LANES, theta_groups, LANES, scale_stride, divisor,
        ignore_index, EVEN, COLUMNS, ROWS, BLOCK, ACC, SCALE, PARTS,
    )  # fmt: skip
    top = tl.max(x, axis=1)
    top = tl.where(top == float("-inf"), 0.0, top)
    e = exp(x - top[:, None], FAST)
    total = tl.sum(e, axis=1)
    loss, mass = _logistic_pair(_gap(top, total, own), FITZPATRICK, REFINE, FLOOR)
    if WITH_VALUE:
        tl.store(value + row, tl.where(counts, loss, 0.0) * weight, mask=inside)
    if WITH_GRADIENT:
        mass = tl.where(counts, mass * weight, 0.0)
        share = mass / tl.where(total == 0, 1.0, total)
        out = tl.where(at_label, -mass[:, None], e * share[:, None])
        out = tl.where(counts[:, None], out, 0.0)
        out = out.to(gradient.dtype.element_ty)
        tl.store(gradient + at, out, mask=mask, cache_modifier=".cs")


@triton.jit
def _inner_groups(first, k, LANES: tl.constexpr, PEEL: tl.constexpr):
    """Entries before the first whole group of a row that starts at ``first``, and whole groups."""
    if PEEL:
        head = ((LANES - first % LANES) % LANES).to(tl.int32)
        return head, (k - head) // LANES
    return 0, k // LANES


@triton.jit
def _edges(k, head, inner, LANES: tl.constexpr):
    """Columns beside the whole groups: some of the first and the last LANES, and which of them."""
    edge = tl.arange(0, 2 * LANES)
    cols = tl.where(edge < LANES, edge, k - 2 * LANES + edge)
    return cols, tl.where(edge < LANES, edge < head, cols >= head + inner * LANES)


@triton.jit(do_not_specialize=["divisor"])
def logistic_labels_wide(
    theta,
    target,
    scale,
    value,
    gradient,
    n,
    groups,
    theta_groups,
    scale_stride,
    divisor,
    ignore_index,
    FITZPATRICK: tl.constexpr,
    WITH_VALUE: tl.constexpr,
    WITH_GRADIENT: tl.constexpr,
    EVEN: tl.constexpr,
    GROUPS: tl.constexpr,
    LANES: tl.constexpr,
    PEEL: tl.constexpr,
    ACC: tl.constexpr,
    SCALE: tl.constexpr,
    PARTS: tl.constexpr,
    REFINE: tl.constexpr,
    FLOOR: tl.constexpr,
    FAST: tl.constexpr,
):
    """One row of any width, read twice: each thread keeps a running log-sum-exp of its own.

    Widths and strides are counted in groups of LANES entries, which one thread loads at once. With
    PEEL they are counted in entries, and the entries beside the whole groups are read apart.
    """
    row = tl.program_id(0).to(tl.int64)
    label = tl.load(target + row)
    weight = row_weight(scale, row, row < n, scale_stride, divisor, SCALE, PARTS, ACC)
    counts = label != ignore_index
    if SCALE == EACH:
        counts = counts & (weight != 0)
    UNIT: tl.constexpr = 1 if PEEL else LANES
    k = groups * UNIT
    valid = (label >= 0) & (label < k)
    first = row * theta_groups * UNIT
    own = tl.load(theta + first + label, mask=counts & valid, other=float("nan")).to(ACC)
    head, groups = _inner_groups(first, k, LANES, PEEL)
    start = theta + tl.multiple_of(first + head, LANES)
    out = gradient + tl.multiple_of(row * k + head, LANES)
    label = (label - head).to(tl.int32)
    tile = tl.arange(0, GROUPS)
    lanes = tl.arange(0, LANES)[None, :]
    blocks = tl.cdiv(groups, GROUPS)
    label_block = label // (GROUPS * LANES)
    if PEEL:
        edges, there = _edges(k, head, groups, LANES)
        edges -= head
        beside = tl.load(start + edges, mask=there, other=float("-inf")).to(ACC)
        beside = tl.where(edges == label, float("-inf"), beside)
    if counts:
        tops = tl.full((GROUPS,), float("-inf"), ACC)
        totals = tl.zeros((GROUPS,), ACC)
        for block in range(blocks):
            group = block * GROUPS + tile
            cols = group[:, None] * LANES + lanes
            if EVEN:
                x = tl.load(start + cols, eviction_policy="evict_last").to(ACC)
            else:
                x = tl.load(
                    start + cols,
                    mask=(group < groups)[:, None],
                    other=float("-inf"),
                    eviction_policy="evict_last",
                ).to(ACC)
            if block == label_block:
                x = tl.where(cols == label, float("-inf"), x)
            higher = tl.maximum(tops, tl.max(x, axis=1))
            base = tl.where(higher == float("-inf"), 0.0, higher)
            fresh = tl.sum(exp(x - base[:, None], FAST), axis=1)
            totals = totals * exp(tops - base, FAST) + fresh
            tops = higher
        top = tl.max(tops, axis=0)
        if PEEL:
            top = tl.maximum(top, tl.max(beside, axis=0))
        top = tl.where(top == float("-inf"), 0.0, top)
        total = tl.sum(totals * tl.exp(tops - top), axis=0)
        if PEEL:
            total += tl.sum(exp(beside - top, FAST), axis=0)
        loss, mass = _logistic_pair(_gap(top, total, own), FITZPATRICK, REFINE, FLOOR)
        if WITH_VALUE:
            tl.store(value + row, loss * weight)
        if WITH_GRADIENT:
            mass = mass * weight
            share = mass / tl.where(total == 0, 1.0, total)
            if PEEL:
                few = tl.where(edges == label, -mass, exp(beside - top, FAST) * share)
                tl.store(out + edges, few.to(gradient.dtype.element_ty), mask=there)
            # backwards: the end of the row is what the cache still holds
            for i in range(blocks):
                block = blocks - 1 - i
                group = block * GROUPS + tile
                cols = group[:, None] * LANES + lanes
                mask = (group < groups)[:, None]
                if EVEN:
                    x = tl.load(start + cols, eviction_policy="evict_first").to(ACC)
                else:
                    x = tl.load(
                        start + cols, mask=mask, other=float("-inf"), eviction_policy="evict_first"
                    ).to(ACC)
                rows = exp(x - top, FAST) * share
                if block == label_block:
                    rows = tl.where(cols == label, -mass, rows)
                rows = rows.to(gradient.dtype.element_ty)
                if EVEN:
                    tl.store(out + cols, rows, cache_modifier=".cs")
                else:
                    tl.store(out + cols, rows, mask=mask, cache_modifier=".cs")
    else:
        if WITH_VALUE:
            tl.store(value + row, 0.0 * weight)
        if WITH_GRADIENT:
            if PEEL:
                zero = tl.zeros((2 * LANES,), gradient.dtype.element_ty)
                tl.store(out + edges, zero, mask=there)
            write_zeros(out, groups, GROUPS, LANES)


@triton.jit
def _others(x, tau, low):
    """r = (θ − τ)₊ of the classes other than the label; τ is the sum of two numbers."""
    return relu((x - tau) - low)


@triton.jit
def _label(s, FITZPATRICK: tl.constexpr, POWER: tl.constexpr):
    """The label's p, and its derivative in s = θ_j − τ."""
    if POWER == 1:
        if FITZPATRICK:
            p = relu((1.0 + s) * 0.5)
            return p, tl.where(p > 0, 0.5, 0.0).to(s.dtype)
        return relu(s), tl.where(s > 0, 1.0, 0.0).to(s.dtype)
    if FITZPATRICK:
        root = _entmax_root(s)
        return root * root, root * root * root / (1.5 * root * root + 0.5)
    root = relu(s * 0.5)
    return root * root, root


@triton.jit
def _entmax_root(s):
    """√p of the Fitzpatrick entmax15 label: (s + √(s² + 12))/6, without cancellation."""
    length = tl.where(tl.abs(s) > 1e9, tl.abs(s), tl.sqrt(s * s + 12.0))
    return tl.where(s > 0, (s + length) / 6.0, 2.0 / (length - s))


@triton.jit
def _start(top, own, FITZPATRICK: tl.constexpr, POWER: tl.constexpr):
    """A τ not above the root: there one entry alone is one."""
    if POWER == 1:
        if FITZPATRICK:
            return tl.maximum(top, own + 1.0) - 2.0
        return tl.maximum(top, own) - 1.0
    if FITZPATRICK:
        return tl.maximum(top - 3.0, own - 2.0)
    return tl.maximum(top, own) - 2.0


@triton.jit
def _newton_step(mass, slope, s, FITZPATRICK: tl.constexpr, POWER: tl.constexpr):
    """Newton's step on g or on √g, with the label's added to the others', and what it removes."""
    p, d = _label(s, FITZPATRICK, POWER)
    total = mass + p
    if POWER == 1:
        excess = total - 1.0
    else:
        root = tl.sqrt(total)
        excess = 2.0 * root * (root - 1.0)
    return excess / (slope + d), tl.abs(excess)


@triton.jit
def _sparse_value(mass, terms, s, FITZPATRICK: tl.constexpr, POWER: tl.constexpr):
    """The loss from the others' Σp and Σp² (P = 1) or Σp^1.5 (P = 2), and the label's s."""
    if POWER == 1:
        if FITZPATRICK:
            return terms + mass * mass + relu(-(1.0 + s))
        return 0.5 * (terms + mass * mass) + relu(-s)
    if FITZPATRICK:
        return terms + mass * mass / _entmax_root(s)
    b = relu(s * 0.5)
    # (1 − √p)² = mass²/(1 + √p)²
    rest = mass / (1.0 + b)
    return (2.0 / 3.0) * (terms + rest * rest * (2.0 + b)) + relu(-s)


@triton.jit(do_not_specialize=["divisor"])
def sparse_labels(
    theta,
    target,
    scale,
    value,
    gradient,
    n,
    groups,
    theta_groups,
    scale_stride,
    divisor,
    ignore_index,
    max_steps,
    tolerance,
    FITZPATRICK: tl.constexpr,
    SHARE: tl.constexpr,
    POWER: tl.constexpr,
    WITH_VALUE: tl.constexpr,
    WITH_GRADIENT: tl.constexpr,
    EVEN: tl.constexpr,
    COLUMNS: tl.constexpr,
    ROWS: tl.constexpr,
    BLOCK: tl.constexpr,
    LANES: tl.constexpr,
    ACC: tl.constexpr,
    SCALE: tl.constexpr,
    PARTS: tl.constexpr,
):
    """Rows that fit into one block; widths and strides are counted in groups of LANES entries."""
    row, inside, counts, weight, at, mask, x, own, at_label = _read_block(
        theta, target, scale, n, groups * LANES, theta_groups, LANES, scale_stride, divisor,
        ignore_index, EVEN, COLUMNS, ROWS, BLOCK, ACC, SCALE, PARTS,
    )  # fmt: skip
    own = tl.where(counts, own, 0.0)
    highest = tl.max(x, axis=1)
    top = tl.maximum(highest, own)
    x = x - top[:, None]
    own = own - top
    tau = _start(highest - top, own, FITZPATRICK, POWER)
    low = tl.zeros((ROWS,), ACC)
    step, left = low, low + 1.0
    i = 0
    while (i < max_steps) & (tl.max(tl.where(left > tolerance, 1, 0), axis=0) > 0):
        r = _others(x, tau[:, None], low[:, None])
        mass, slope = _mass(r, SHARE, POWER), _slope(r, SHARE, POWER)
        step, left = _newton_step(mass, slope, (own - tau) - low, FITZPATRICK, POWER)
        tau, low = advance(tau, low, step, left > tolerance)
        i += 1
    low += tl.where(left > tolerance, 0.0, step)
    r = _others(x, tau[:, None], low[:, None])
    mass, terms = _mass(r, SHARE, POWER), _term(r, SHARE, POWER)
    if WITH_VALUE:
        loss = _sparse_value(mass, terms, (own - tau) - low, FITZPATRICK, POWER)
        loss = tl.where(low == low, loss, low)
        tl.store(value + row, tl.where(counts, loss, 0.0) * weight, mask=inside)
    if WITH_GRADIENT:
        FACTOR: tl.constexpr = SHARE if POWER == 1 else SHARE * SHARE
        p = _power(r, POWER) * FACTOR
        out = tl.where(at_label, -mass[:, None], p) * weight[:, None]
        out = tl.where((low == low)[:, None], out, float("nan"))
        out = tl.where(counts[:, None], out, 0.0)
        out = out.to(gradient.dtype.element_ty)
        tl.store(gradient + at, out, mask=mask, cache_modifier=".cs")


@triton.jit
def _tile_sums(
    start,
    peaks,
    groups,
    label,
    top,
    tau,
    low,
    SHARE: tl.constexpr,
    POWER: tl.constexpr,
    WITH_TERMS: tl.constexpr,
    EVEN: tl.constexpr,
    GROUPS: tl.constexpr,
    LANES: tl.constexpr,
    ACC: tl.constexpr,
):
    """Σp, and the slope or the terms, over the groups whose peak is above τ."""
    masses = tl.zeros((GROUPS,), ACC)
    seconds = tl.zeros((GROUPS,), ACC)
    active = peaks - tau > low
    for block in range(tl.cdiv(groups, GROUPS)):
        group = block * GROUPS + tl.arange(0, GROUPS)
        cols = group[:, None] * LANES + tl.arange(0, LANES)[None, :]
        mask = active
        if not EVEN:
            mask = mask & (group < groups)
        x = tl.load(start + cols, mask=mask[:, None], other=float("-inf")).to(ACC)
        if block == label // (GROUPS * LANES):
            x = tl.where(cols == label, float("-inf"), x)
        r = _others(x - top, tau, low)
        masses += _mass(r, SHARE, POWER)
        if WITH_TERMS:
            seconds += _term(r, SHARE, POWER)
        else:
            seconds += _slope(r, SHARE, POWER)
    return tl.sum(masses, axis=0), tl.sum(seconds, axis=0)


@triton.jit
def _power(r, POWER: tl.constexpr):
    """r^P, which is p without its factor."""
    if POWER == 1:
        return r
    return r * r


@triton.jit
def _sum(r):
    """Σr over the last axis, of halves: Σr beside Σr² crashes the compiler of Triton 3.9."""
    return 2.0 * tl.sum(r * 0.5, axis=1)


@triton.jit
def _sum_of_squares(r):
    """Σr² over the last axis."""
    return 2.0 * tl.sum(r * (r * 0.5), axis=1)


@triton.jit
def _mass(r, SHARE: tl.constexpr, POWER: tl.constexpr):
    """Σp over the last axis."""
    if POWER == 1:
        return SHARE * _sum(r)
    return SHARE * SHARE * _sum_of_squares(r)


@triton.jit
def _slope(r, SHARE: tl.constexpr, POWER: tl.constexpr):
    """Σ ∂p/∂θ over the last axis."""
    if POWER == 1:
        return SHARE * tl.sum(tl.where(r > 0, 1.0, 0.0).to(r.dtype), axis=1)
    return 2.0 * SHARE * SHARE * _sum(r)


@triton.jit
def _term(r, SHARE: tl.constexpr, POWER: tl.constexpr):
    """Σp² (P = 1) or Σp^1.5 (P = 2) over the last axis."""
    if POWER == 1:
        return SHARE * SHARE * _sum_of_squares(r)
    return SHARE * SHARE * SHARE * tl.sum(r * r * r, axis=1)


@triton.jit(do_not_specialize=["divisor"])
def sparse_labels_wide(
    theta,
    target,
    scale,
    value,
    gradient,
    n,
    groups,
    theta_groups,
    scale_stride,
    divisor,
    ignore_index,
    max_steps,
    tolerance,
    FITZPATRICK: tl.constexpr,
    SHARE: tl.constexpr,
    POWER: tl.constexpr,
    WITH_VALUE: tl.constexpr,
    WITH_GRADIENT: tl.constexpr,
    EVEN: tl.constexpr,
    GROUPS: tl.constexpr,
    LANES: tl.constexpr,
    PEEL: tl.constexpr,
    ACC: tl.constexpr,
    SCALE: tl.constexpr,
    PARTS: tl.constexpr,
):
    """One row of any width, read once; then only where it reaches above τ.

    The first pass keeps the maximum of each place in the tile over all blocks. These maxima are
    entries of the row, and their own τ, found in registers, is a lower bound of the row's that
    leaves little to do. Widths are counted as in :func:`logistic_labels_wide`.
    """
    row = tl.program_id(0).to(tl.int64)
    label = tl.load(target + row)
    weight = row_weight(scale, row, row < n, scale_stride, divisor, SCALE, PARTS, ACC)
    counts = label != ignore_index
    if SCALE == EACH:
        counts = counts & (weight != 0)
    UNIT: tl.constexpr = 1 if PEEL else LANES
    k = groups * UNIT
    valid = (label >= 0) & (label < k)
    first = row * theta_groups * UNIT
    own = tl.load(theta + first + label, mask=counts & valid, other=float("nan")).to(ACC)
    head, groups = _inner_groups(first, k, LANES, PEEL)
    start = theta + tl.multiple_of(first + head, LANES)
    out = gradient + tl.multiple_of(row * k + head, LANES)
    label = (label - head).to(tl.int32)
    blocks = tl.cdiv(groups, GROUPS)
    tile = tl.arange(0, GROUPS)
    lanes = tl.arange(0, LANES)[None, :]
    label_block = label // (GROUPS * LANES)
    if PEEL:
        edges, there = _edges(k, head, groups, LANES)
        edges -= head
        beside = tl.load(start + edges, mask=there, other=float("-inf")).to(ACC)
        beside = tl.where(edges == label, float("-inf"), beside)[None, :]
    if counts:
        tops = tl.full((GROUPS, LANES), float("-inf"), ACC)
        for block in range(blocks):
            group = block * GROUPS + tile
            cols = group[:, None] * LANES + lanes
            if EVEN:
                x = tl.load(start + cols).to(ACC)
            else:
                x = tl.load(start + cols, mask=(group < groups)[:, None], other=float("-inf")).to(
                    ACC
                )
            if block == label_block:
                x = tl.where(cols == label, float("-inf"), x)
            tops = tl.maximum(tops, x, propagate_nan=tl.PropagateNan.ALL)
        peaks = tl.max(tops, axis=1)
        highest = tl.max(peaks, axis=0)
        if PEEL:
            highest = tl.maximum(highest, tl.max(tl.max(beside, axis=1), axis=0))
        top = tl.maximum(highest, own)
        if PEEL:
            beside = beside - top
        own = own - top
        tops = tops - top
        peaks = peaks - top
        tau = _start(highest - top, own, FITZPATRICK, POWER)
        # a group of NaN has no peak; it makes the first step NaN, and so everything
        low = tl.full((), 0.0, ACC)
        step, left = low, low + 1.0
        i = 0
        while (i < max_steps) & (left > tolerance):
            r = _others(tops, tau, low)
            mass = tl.sum(_mass(r, SHARE, POWER), axis=0)
            slope = tl.sum(_slope(r, SHARE, POWER), axis=0)
            if PEEL:
                few = _others(beside, tau, low)
                mass += tl.sum(_mass(few, SHARE, POWER), axis=0)
                slope += tl.sum(_slope(few, SHARE, POWER), axis=0)
            step, left = _newton_step(mass, slope, (own - tau) - low, FITZPATRICK, POWER)
            tau, low = advance(tau, low, step, left > tolerance)
            i += 1
        # not above the root of all entries, whatever rounding did to that of the maxima; the
        # difference is 0, or the step's NaN
        low -= 2 * tolerance + (step - step)
        left = tl.full((), 1.0, ACC)
        while (i < 2 * max_steps) & (left > tolerance):
            mass, slope = _tile_sums(
                start, peaks, groups, label, top, tau, low,
                SHARE, POWER, False, EVEN, GROUPS, LANES, ACC,
            )  # fmt: skip
            if PEEL:
                few = _others(beside, tau, low)
                mass += tl.sum(_mass(few, SHARE, POWER), axis=0)
                slope += tl.sum(_slope(few, SHARE, POWER), axis=0)
            step, left = _newton_step(mass, slope, (own - tau) - low, FITZPATRICK, POWER)
            tau, low = advance(tau, low, step, left > tolerance)
            i += 1
        low += tl.where(left > tolerance, 0.0, step)
        mass, terms = _tile_sums(
            start, peaks, groups, label, top, tau, low,
            SHARE, POWER, True, EVEN, GROUPS, LANES, ACC,
        )  # fmt: skip
        if PEEL:
            few = _others(beside, tau, low)
            mass += tl.sum(_mass(few, SHARE, POWER), axis=0)
            terms += tl.sum(_term(few, SHARE, POWER), axis=0)
        if WITH_VALUE:
            loss = _sparse_value(mass, terms, (own - tau) - low, FITZPATRICK, POWER)
            tl.store(value + row, tl.where(low == low, loss, low) * weight)
        if WITH_GRADIENT:
            active = peaks - tau > low
            mass = tl.where(low == low, mass, low)
            FACTOR: tl.constexpr = SHARE if POWER == 1 else SHARE * SHARE
            base = tl.where(low == low, weight * FACTOR, low)
            if PEEL:
                few = _power(few, POWER) * base
                few = tl.where(edges[None, :] == label, -mass * weight, few)
                few = few.to(gradient.dtype.element_ty)
                tl.store(out + edges[None, :], few, mask=there[None, :])
            for block in range(blocks):
                group = block * GROUPS + tile
                cols = group[:, None] * LANES + lanes
                inside = group < groups
                mask = active
                if not EVEN:
                    mask = mask & inside
                x = tl.load(start + cols, mask=mask[:, None], other=float("-inf")).to(ACC)
                r = _others(x - top, tau, low)
                p = _power(r, POWER) * base
                if block == label_block:
                    p = tl.where(cols == label, -mass * weight, p)
                p = p.to(gradient.dtype.element_ty)
                if EVEN:
                    tl.store(out + cols, p, cache_modifier=".cs")
                else:
                    tl.store(out + cols, p, mask=inside[:, None], cache_modifier=".cs")
    else:
        if WITH_VALUE:
            tl.store(value + row, 0.0 * weight)
        if WITH_GRADIENT:
            if PEEL:
                zero = tl.zeros((2 * LANES,), gradient.dtype.element_ty)
                tl.store(out + edges, zero, mask=there)
            write_zeros(out, groups, GROUPS, LANES)
