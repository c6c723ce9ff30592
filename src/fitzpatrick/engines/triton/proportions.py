"""Kernels for targets that are distributions: proportions and smoothed labels.

A row is looked at as a whole, then τ is found, then every entry has its difference p − y and its
term of the loss. Rows that fit stay in registers; wider ones are read again in each pass.
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
    tightness_of,
)
from .math import exp, relu
from .passes import guess_tau, log_sum_exp, measure_tau, span_limit, sparse_tau, write_row
from .root import add_eight, moments, next_tau, solve_tau, step_from_moments
from .tiles import load_both, targets_at, targets_of_row, write_zeros
from .weights import row_weight


@triton.jit
def _ramp_sums(given, tau, low, o: tl.constexpr):
    """Σp and its slope of ramps in registers; of entmax15, as if it had no targets."""
    v, c = given
    r = relu((v - tau[:, None]) - low[:, None])
    scale = ramp_scale(c, o)
    return sum_of_powers(r, o.power) * scale, sum_of_powers(r, o.power - 1) * (scale * o.power)


@triton.jit
def _entmax_sums(given, tau, low, o: tl.constexpr):
    """Σp and its slope of entmax15 in registers, for c > 0."""
    x, y, c = given
    p, d = entmax_point((x - tau[:, None]) - low[:, None], y, c, o)
    return tl.sum(p, axis=1), tl.sum(d, axis=1)


@triton.jit
def _softmax_step(x, y, tau, c, read, IS_NARROW: tl.constexpr, o: tl.constexpr):
    """The step of τ, and Newton's, of rows in registers."""
    p, t = softmax_point(x, tau[:, None], y, c, IS_NARROW, o)
    m0, m1, m2, m3, m4, m5, m6, m7 = moments(tl.where(read, p, 0.0), t, o)
    m0, m1, m2, m3, m4, m5, m6, m7 = tl.reduce((m0, m1, m2, m3, m4, m5, m6, m7), 1, add_eight)
    return step_from_moments(m0, m1, m2, m3, m4, m5, m6, m7, o)


@triton.jit
def softmax_rows(x, y, lse, c, read, counts, IS_NARROW: tl.constexpr, o: tl.constexpr):
    """τ, the differences p − y and the terms of the logistic loss, c > 0, of rows in registers."""
    ROUNDS: tl.constexpr = o.refine
    x = tl.where(read, x, 0.0)
    tau = lse + 0.5 * c
    if o.mode == "beyond":
        is_last = counts == 0
        is_any = tl.full((), 1, tl.int1)
        i = 0
        while (i < 4 + 3 * c) & is_any:
            step, newton = _softmax_step(x, y, tau, c, read, IS_NARROW, o)
            moved, is_near = next_tau(tau, step, newton, lse, o)
            tau = tl.where(is_last, tau, moved)
            is_last = is_last | is_near | (newton != newton)
            is_any = tl.min(is_last.to(tl.int32), axis=0) == 0
            i += 1
    else:
        for _ in tl.static_range(ROUNDS):
            step, _newton = _softmax_step(x, y, tau, c, read, IS_NARROW, o)
            tau += step
    difference, loss = softmax_terms(x, tau[:, None], y, c, IS_NARROW, o)
    return tau, difference, tl.where(read, loss, 0.0)


@triton.jit(do_not_specialize=["divisor", "tightness"])
def proportion_rows(
    theta, target, labels, mix, scale, value, gradient,
    n, groups, theta_groups, out_groups, target_groups, scale_stride, divisor, max_steps,
    tolerance, tightness: tl.float64, o: tl.constexpr,
):  # fmt: skip
    """Rows that fit into one block; widths and strides are counted in groups of lanes."""
    k = groups * o.lanes
    c = tightness_of(tightness, o)
    row = tl.program_id(0).to(tl.int64) * o.rows + tl.arange(0, o.rows)
    inside = row < n
    weight = row_weight(scale, row, inside, scale_stride, divisor, o)
    counts = weight != 0
    cols = tl.arange(0, o.block)[None, :]
    mask = inside[:, None]
    if not o.even:
        mask = mask & (cols < k)
    read = mask & counts[:, None]
    at = row[:, None] * theta_groups * o.lanes + cols
    x = tl.load(theta + at, mask=read, other=float("-inf")).to(o.acc)
    given = targets_of_row(target, labels, mix, row[:, None], inside[:, None], target_groups, o)
    y = targets_at(given, cols, read, o)
    x = x - tl.max(x, axis=1)[:, None]
    if o.power == 0:
        lse = tl.log(tl.sum(exp(x, o.fast), axis=1))
        if o.mode == "zero":
            tau = lse
            difference, loss = softmax_terms(x, tau[:, None], y, c, False, o)
        else:
            is_narrow = False
            if o.acc == tl.float32:
                lowest = tl.min(tl.where(read, x, 0.0), axis=1)
                fits = (lse - lowest < span_limit(c, o)) | (counts == 0)
                is_narrow = tl.min(fits.to(tl.int32), axis=0) > 0
            if is_narrow:
                tau, difference, loss = softmax_rows(x, y, lse, c, read, counts, True, o)
            else:
                tau, difference, loss = softmax_rows(x, y, lse, c, read, counts, False, o)
    else:
        v = ramp_score(x, y, c, o)
        tau = ramp_start(tl.max(v, axis=1), c, o)
        low = tl.zeros((o.rows,), o.acc)
        tau, low = solve_tau(_ramp_sums, (v, c), tau, low, max_steps, tolerance, o)
        if o.power == 2 and o.mode != "zero":
            tau, low = solve_tau(_entmax_sums, (x, y, c), tau, low, max_steps, tolerance, o)
        difference, loss = ramp_terms((v - tau[:, None]) - low[:, None], y, c, o)
    if o.with_value:
        total = tl.where(tau == tau, tl.sum(loss, axis=1), tau)
        tl.store(value + row, tl.where(counts, total, 0.0) * weight, mask=inside)
    if o.with_gradient:
        out = tl.where((tau == tau)[:, None], difference * weight[:, None], float("nan"))
        out = tl.where(counts[:, None], out, 0.0).to(gradient.dtype.element_ty)
        at = row[:, None] * out_groups * o.lanes + cols
        tl.store(gradient + at, out, mask=mask, cache_modifier=".cs")


@triton.jit(do_not_specialize=["divisor", "tightness"])
def wide_proportion_rows(
    theta, target, labels, mix, scale, value, gradient,
    n, groups, theta_groups, out_groups, target_groups, scale_stride, divisor, max_steps,
    tolerance, tightness: tl.float64, o: tl.constexpr,
):  # fmt: skip
    """One row of any width; widths and strides are counted in groups of lanes."""
    c = tightness_of(tightness, o)
    row = tl.program_id(0).to(tl.int64)
    inside = row < n
    weight = row_weight(scale, row, inside, scale_stride, divisor, o)
    scores = theta + row * theta_groups * o.lanes
    given = targets_of_row(target, labels, mix, row, inside, target_groups, o)
    value += row
    out = gradient + row * out_groups * o.lanes
    if weight != 0:
        if o.power == 0 and o.mode != "zero":
            if o.guess:
                top, tau, is_narrow, x, y = guess_tau(scores, given, groups, c, o)
                if not is_narrow:
                    top, tau, is_narrow, x, y = measure_tau(scores, given, groups, c, o)
            else:
                top, tau, is_narrow, x, y = measure_tau(scores, given, groups, c, o)
            if is_narrow:
                write_row(
                    scores, given, value, out, groups, top, tau, tau, c, weight, x, y, True, o
                )
            else:
                write_row(
                    scores, given, value, out, groups, top, tau, tau, c, weight, x, y, False, o
                )
        else:
            if o.power == 0:
                top, tau, low = log_sum_exp(scores, groups, o)
            else:
                top, tau, low = sparse_tau(scores, given, groups, c, max_steps, tolerance, o)
            x, y = load_both(scores, given, 0, groups, o, False)
            write_row(scores, given, value, out, groups, top, tau, low, c, weight, x, y, False, o)
    else:
        if o.with_value:
            tl.store(value, 0.0 * weight)
        if o.with_gradient:
            write_zeros(out, groups, o)
