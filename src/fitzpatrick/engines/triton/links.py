r"""Kernels for links on the simplex: sparsemax, entmax15 and α-entmax, forward and backward.

With s = θ − τ and β = α − 1 an entry is :math:`p = (\beta s)_+^{1/\beta}`, that is :math:`s_+` for
α = 2 and :math:`(s_+/2)^2` for α = 1.5. Any other α has the ``power`` 0. Near α = 1, and where α
differs from row to row (``careful``), τ is counted from where an entry is one,
:math:`p = (1 + \beta s)_+^{1/\beta}`, which tends to :math:`e^s` as β goes to 0.

The backward pass needs nothing but the entries: with the slopes :math:`d = p^{1 - \beta}` it is
d ⊙ (v − ⟨d, v⟩/⟨d, 1⟩). Where p is 0 the upstream gradient v is not even read.

A row that fits into the registers of a program is read once. A wider one is read in tiles: the
maxima over all tiles say where it is high, and only these places are read again. A ``mask`` of
bytes leaves entries out, which are then 0; so is a row without any entry left.
"""

import triton
import triton.language as tl

from .math import exp2, expm1_minus_x, log, log2, reciprocal, relu
from .root import solve_tau
from .tiles import columns_of, store_block


@triton.jit
def ramps(s, beta, rate, o: tl.constexpr):
    """The entries (rate s)^1/β, careful ones (1 + rate s)^1/β, and their slopes; NaN stays."""
    if o.power == 1:
        return relu(s), tl.where(s > 0, 1.0, 0.0).to(s.dtype)
    elif o.power == 2:
        r = relu(s) * 0.5
        return r * r, r
    else:
        shift = rate * s
        u = shift
        if o.careful:
            u = 1.0 + shift
        safe = tl.where(u <= 0, 1.0, u)
        if o.careful:
            # the rounding of 1 + rate s, which 1/β enlarges, is divided out
            logarithm = tl.log(safe) * tl.where(safe == 1.0, 1.0, shift / (safe - 1.0))
            logarithm = tl.where(safe == 1.0, shift, logarithm) * 1.4426950408889634
        else:
            logarithm = log2(safe, o.fast)
        p = exp2(logarithm / beta, o.fast)
        p = tl.where(u <= 0, 0.0, p)
        return p, p * (rate / beta) * reciprocal(safe, o.fast)


@triton.jit
def ramp_start(highest, rate, o: tl.constexpr):
    """A τ not above the root: the highest entry alone is one there."""
    if o.power == 0:
        if o.careful:
            return highest
        else:
            return highest - 1.0 / rate
    else:
        return highest - o.power


@triton.jit
def is_active(peaks, tau, low, rate, o: tl.constexpr):
    """Which groups have an entry above 0."""
    s = (peaks - tau) - low
    if o.careful:
        return 1.0 + rate * s > 0
    else:
        return s > 0


@triton.jit
def _sums(given, tau, low, o: tl.constexpr):
    """Σp and the sum of the slopes of rows in registers."""
    x, beta = given
    if o.power == 0:
        beta = beta[:, None]
    p, d = ramps((x - tau[:, None]) - low[:, None], beta, beta, o)
    return row_sums(p), row_sums(d)


@triton.jit
def row_sums(p):
    """Σp along the last axis."""
    # of halves: Σr beside Σr² crashes the compiler of Triton 3.9
    return 2.0 * tl.sum(p * 0.5, axis=1)


@triton.jit
def _load_beta(alpha, row, inside, alpha_stride, o: tl.constexpr):
    """α − 1 of rows, which no formula divides by where it is 0."""
    if o.power == 0:
        beta = tl.load(alpha + row * alpha_stride, mask=inside, other=2.0).to(o.acc) - 1.0
        beta = tl.where((beta >= 0) & (beta <= 1), beta, float("nan"))
        return tl.where(beta < 1e-15, 1e-15, beta)
    else:
        return tl.full(row.shape, 1.0 / o.power, o.acc)


@triton.jit
def _mask_of_row(mask, row, mask_rows, mask_matrices, outer, middle, inner, o: tl.constexpr):
    """Where the mask of a row is; rows are counted over three axes."""
    if o.masked:
        matrix = row // mask_rows
        at = (row % mask_rows) * inner + (matrix % mask_matrices) * middle
        return mask + at + (matrix // mask_matrices) * outer
    else:
        return mask


@triton.jit
def _places(n, k, stride, o: tl.constexpr):
    """Rows of a program, which of them there are, and where entries and their copies are.

    With ``columns`` a row is a column of one of many matrices (k, n).
    """
    program = tl.program_id(0)
    cols = tl.arange(0, o.block)[None, :]
    if o.columns:
        matrix = (program // tl.cdiv(n, o.rows)).to(tl.int64)
        column = (program % tl.cdiv(n, o.rows)).to(tl.int64) * o.rows + tl.arange(0, o.rows)
        inside = column < n
        at = (matrix * k * n + column)[:, None] + cols.to(tl.int64) * n
        return matrix * n + column, inside, inside[:, None] & (cols < k), at, at
    else:
        row = program.to(tl.int64) * o.rows + tl.arange(0, o.rows)
        inside = row < n
        mask = inside[:, None]
        if not o.even:
            mask = mask & (cols < k)
        return row, inside, mask, row[:, None] * stride + cols, row[:, None] * k + cols


@triton.jit
def link_rows(
    theta, alpha, mask, out,
    n, groups, theta_groups, alpha_stride,
    mask_rows, mask_matrices, mask_outer, mask_middle, mask_inner, mask_column,
    max_steps, tolerance, o: tl.constexpr,
):  # fmt: skip
    """Rows that fit into one block; widths and strides are counted in groups of lanes."""
    k = groups * o.lanes
    row, inside, within, at, to = _places(n, k, theta_groups * o.lanes, o)
    kept = within
    if o.masked:
        if o.columns:
            kept_at = mask + at
        else:
            start = _mask_of_row(
                mask, row, mask_rows, mask_matrices, mask_outer, mask_middle, mask_inner, o
            )
            kept_at = start[:, None] + tl.arange(0, o.block)[None, :].to(tl.int64) * mask_column
        kept = within & (tl.load(kept_at, mask=within, other=0) != 0)
    x = tl.load(theta + at, mask=kept, other=float("-inf")).to(o.acc)
    beta = _load_beta(alpha, row, inside, alpha_stride, o)
    top = tl.max(x, axis=1)
    is_left = inside
    if o.masked:
        # a row without an entry has nothing to solve; its entries become 0 below
        is_left = tl.max(kept.to(tl.int32), axis=1) > 0
    top = tl.where(is_left, top, 0.0)
    x = x - top[:, None]
    start = ramp_start(tl.where(is_left, 0.0, float("nan")).to(o.acc), beta, o)
    low = tl.zeros((o.rows,), o.acc)
    tau, low = solve_tau(_sums, (x, beta), start, low, max_steps, tolerance, o)
    spread = beta
    if o.power == 0:
        spread = beta[:, None]
    p, _ = ramps((x - tau[:, None]) - low[:, None], spread, spread, o)
    p = tl.where((tau == tau)[:, None], p, float("nan"))
    p = tl.where(kept, p, 0.0)
    tl.store(out + to, p.to(out.dtype.element_ty), mask=within, cache_modifier=".cs")


@triton.jit
def _tile(source, block, groups, active, row_mask, mask_column, o: tl.constexpr):
    """Columns of a tile, their scores, −∞ where they are left out, and which groups are inside."""
    group, cols = columns_of(block, o)
    inside = group < groups
    read = inside[:, None]
    if active is not None:
        read = read & active[:, None]
    if o.masked:
        kept = tl.load(row_mask + cols.to(tl.int64) * mask_column, mask=read, other=0)
        read = read & (kept != 0)
    if o.even and not o.masked and active is None:
        x = tl.load(source + cols)
    else:
        x = tl.load(source + cols, mask=read, other=float("-inf"))
    return cols, x.to(o.acc), inside


@triton.jit
def _sums_of_maxima(given, tau, low, o: tl.constexpr):
    """Σp and the slope of the maxima alone."""
    tops, beta = given
    p, d = ramps((tops - tau) - low, beta, beta, o)
    return tl.sum(row_sums(p), axis=0), tl.sum(row_sums(d), axis=0)


@triton.jit
def _sums_of_row(given, tau, low, o: tl.constexpr):
    """Σp and the slope of a row, by a pass over the groups that reach above τ."""
    source, groups, row_mask, mask_column, top, peaks, beta = given
    totals = tl.zeros((o.groups,), o.acc)
    slopes = tl.zeros((o.groups,), o.acc)
    active = is_active(peaks, tau, low, beta, o)
    for block in range(tl.cdiv(groups, o.groups)):
        _cols, x, _inside = _tile(source, block, groups, active, row_mask, mask_column, o)
        p, d = ramps(((x - top) - tau) - low, beta, beta, o)
        totals += row_sums(p)
        slopes += row_sums(d)
    return tl.sum(totals, axis=0), tl.sum(slopes, axis=0)


@triton.jit
def wide_link_rows(
    theta, alpha, mask, out,
    n, groups, theta_groups, alpha_stride,
    mask_rows, mask_matrices, mask_outer, mask_middle, mask_inner, mask_column,
    max_steps, tolerance, o: tl.constexpr,
):  # fmt: skip
    """One row of any width; widths and strides are counted in groups of lanes."""
    row = tl.program_id(0).to(tl.int64)
    source = theta + row * theta_groups * o.lanes
    to = out + row * groups * o.lanes
    beta = _load_beta(alpha, row, row < n, alpha_stride, o)
    row_mask = _mask_of_row(
        mask, row, mask_rows, mask_matrices, mask_outer, mask_middle, mask_inner, o
    )
    blocks = tl.cdiv(groups, o.groups)
    tops = tl.full((o.groups, o.lanes), float("-inf"), o.acc)
    for block in range(blocks):
        _cols, x, _inside = _tile(source, block, groups, None, row_mask, mask_column, o)
        tops = tl.maximum(tops, x, propagate_nan=tl.PropagateNan.ALL)
    peaks = tl.max(tops, axis=1)
    top = tl.max(peaks, axis=0)
    is_empty = tl.full((), 0, tl.int1)
    if o.masked:
        # no entry is left, or nothing but −∞, which is NaN as it is without a mask
        if top == float("-inf"):
            count = tl.zeros((o.groups, o.lanes), tl.int32)
            for block in range(blocks):
                group, cols = columns_of(block, o)
                inside = (group < groups)[:, None]
                kept = tl.load(row_mask + cols.to(tl.int64) * mask_column, mask=inside, other=0)
                count = tl.maximum(count, kept.to(tl.int32))
            is_empty = tl.max(tl.max(count, axis=1), axis=0) == 0
    peaks -= top
    # a group of NaN has no peak; its maxima make the first step NaN, and so everything
    tau, low = solve_tau(
        _sums_of_maxima, (tops - top, beta), ramp_start(top - top, beta, o), tl.zeros((), o.acc),
        max_steps, tolerance, o,
    )  # fmt: skip
    # not above the root of all entries, whatever rounding did to that of the maxima
    tau, low = solve_tau(
        _sums_of_row, (source, groups, row_mask, mask_column, top, peaks, beta),
        tau, low - 2 * tolerance, max_steps, tolerance, o,
    )  # fmt: skip
    active = is_active(peaks, tau, low, beta, o)
    for block in range(blocks):
        cols, x, inside = _tile(source, block, groups, active, row_mask, mask_column, o)
        p, _ = ramps(((x - top) - tau) - low, beta, beta, o)
        p = tl.where(tau == tau, p, tau)
        if o.masked:
            p = tl.where((x == float("-inf")) | is_empty, 0.0, p)
        store_block(to, cols, p.to(out.dtype.element_ty), inside, o)


@triton.jit
def _slopes(p, beta, o: tl.constexpr):
    """The slopes of the entries, up to one factor."""
    if o.power == 1:
        return tl.where(p == 0, 0.0, tl.where(p == p, 1.0, p))
    elif o.power == 2:
        return tl.sqrt(p)
    else:
        d = exp2((1.0 - beta) * log2(tl.where(p == 0, 1.0, p), o.fast), o.fast)
        return tl.where(p == 0, 0.0, d)


@triton.jit
def _by_alpha(p, d, beta):
    """The derivative of the entries in α where τ stays: −p (e^x − 1 − x)/β², x = −β log p."""
    logarithm = log(tl.where(p == 0, 1.0, p), False)
    x = -beta * logarithm
    near = x < 0.5
    series = expm1_minus_x(tl.where(near, x, 0.25), False)
    # x² over β², where both may be too small to square
    series = p * logarithm * logarithm * (series / tl.where(near, x * x, 0.0625))
    series = tl.where(x == 0, p * logarithm * logarithm * 0.5, series)
    return -tl.where(near, series, (d - p - p * x) / (beta * beta))


@triton.jit
def link_gradient_rows(
    p, upstream, alpha, out, by_alpha,
    n, groups, p_groups, upstream_groups, alpha_stride, o: tl.constexpr,
):  # fmt: skip
    """The backward pass of rows that fit into one block, and of their α if it is wanted."""
    k = groups * o.lanes
    row, inside, within, at, to = _places(n, k, p_groups * o.lanes, o)
    entries = tl.load(p + at, mask=within, other=0.0).to(o.acc)
    if o.columns:
        given_at = at
    else:
        given_at = row[:, None] * upstream_groups * o.lanes + tl.arange(0, o.block)[None, :]
    v = tl.load(upstream + given_at, mask=within & (entries != 0), other=0.0).to(o.acc)
    beta = _load_beta(alpha, row, inside, alpha_stride, o)[:, None]
    d = _slopes(entries, beta, o)
    weight = tl.sum(d, axis=1)
    mean = tl.sum(d * v, axis=1) / tl.where(weight == 0, 1.0, weight)
    rest = v - mean[:, None]
    tl.store(out + to, (d * rest).to(out.dtype.element_ty), mask=within, cache_modifier=".cs")
    if o.with_alpha:
        terms = tl.where(entries == 0, 0.0, _by_alpha(entries, d, beta) * rest)
        tl.store(by_alpha + row, tl.sum(terms, axis=1), mask=inside)


@triton.jit
def wide_link_gradient_rows(
    p, upstream, alpha, out, by_alpha,
    n, groups, p_groups, upstream_groups, alpha_stride, o: tl.constexpr,
):  # fmt: skip
    """The backward pass of one row of any width, read twice; where p is 0 it is read once."""
    row = tl.program_id(0).to(tl.int64)
    p += row * p_groups * o.lanes
    upstream += row * upstream_groups * o.lanes
    out += row * groups * o.lanes
    beta = _load_beta(alpha, row, row < n, alpha_stride, o)
    weights = tl.zeros((o.groups, o.lanes), o.acc)
    products = tl.zeros((o.groups, o.lanes), o.acc)
    blocks = tl.cdiv(groups, o.groups)
    for block in range(blocks):
        group, cols = columns_of(block, o)
        inside = (group < groups)[:, None]
        entries = tl.load(p + cols, mask=inside, other=0.0, eviction_policy="evict_last")
        entries = entries.to(o.acc)
        v = tl.load(upstream + cols, mask=inside & (entries != 0), other=0.0).to(o.acc)
        d = _slopes(entries, beta, o)
        weights += d
        products += d * v
    weight = tl.sum(tl.sum(weights, axis=1), axis=0)
    mean = tl.sum(tl.sum(products, axis=1), axis=0) / tl.where(weight == 0, 1.0, weight)
    sums = tl.zeros((o.groups, o.lanes), o.acc)
    for i in range(blocks):
        # backwards: the end of the row is what the cache still holds
        block = blocks - 1 - i
        group, cols = columns_of(block, o)
        inside = (group < groups)[:, None]
        entries = tl.load(p + cols, mask=inside, other=0.0, eviction_policy="evict_first")
        entries = entries.to(o.acc)
        v = tl.load(upstream + cols, mask=inside & (entries != 0), other=0.0).to(o.acc)
        d = _slopes(entries, beta, o)
        rest = v - mean
        tl.store(out + cols, (d * rest).to(out.dtype.element_ty), mask=inside, cache_modifier=".cs")
        if o.with_alpha:
            sums += tl.where(entries == 0, 0.0, _by_alpha(entries, d, beta) * rest)
    if o.with_alpha:
        tl.store(by_alpha + row, tl.sum(tl.sum(sums, axis=1), axis=0))
