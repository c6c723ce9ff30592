"""Kernels for proportions: all three pairs. A row is looked at as a whole, then τ is found, then
every entry has its difference p − y and its term of the loss.

Rows that fit stay in registers; wider ones are read again in each pass, in alternating directions,
since the end of a pass is what the cache still holds.
"""

# mypy: disable-error-code="misc,no-untyped-def,no-any-return"
# ruff: noqa: SIM108, SIM300
# Triton's own language, which is not Python to a type checker

import triton
import triton.language as tl

from .triton_math import exp, write_zeros
from .triton_root import add_moments, moments, newton_step, start, step_from_moments
from .triton_scale import row_weight
from .triton_terms import LOGISTIC, NARROW, SPARSEMAX, omega_point, point, terms

__all__ = ["rows_in_registers", "rows_wide"]


@triton.jit
def _fitzpatrick_logistic(
    x,
    y,
    tau,
    read,
    IS_NARROW: tl.constexpr,
    ROUNDS: tl.constexpr,
    ROUGH: tl.constexpr,
    REFINE: tl.constexpr,
    FLOOR: tl.constexpr,
    FAST: tl.constexpr,
    ACC: tl.constexpr,
):
    """τ, the differences p − y and the terms of the loss, of rows in registers."""
    x = tl.where(read, x, 0.0)
    for _ in tl.static_range(ROUNDS):
        p, t = omega_point(x, tau[:, None], y, IS_NARROW, ROUGH, REFINE, FLOOR, FAST)
        m0, m1, m2, m3, m4, m5, m6, m7 = moments(tl.where(read, p, 0.0), t, ROUGH)
        m0, m1, m2, m3, m4, m5, m6, m7 = tl.reduce((m0, m1, m2, m3, m4, m5, m6, m7), 1, add_moments)
        tau += step_from_moments(m0, m1, m2, m3, m4, m5, m6, m7, ROUGH, REFINE, FAST, ACC)
    difference, loss = terms(
        x, tau[:, None], y, LOGISTIC, True, IS_NARROW, ROUGH, REFINE, FLOOR, FAST
    )
    return tau, difference, tl.where(read, loss, 0.0)


@triton.jit(do_not_specialize=["divisor"])
def rows_in_registers(
    theta,
    target,
    scale,
    value,
    gradient,
    n,
    groups,
    theta_groups,
    target_groups,
    scale_stride,
    divisor,
    max_steps,
    tolerance,
    LOSS: tl.constexpr,
    FITZPATRICK: tl.constexpr,
    WITH_VALUE: tl.constexpr,
    WITH_GRADIENT: tl.constexpr,
    EVEN: tl.constexpr,
    ROWS: tl.constexpr,
    BLOCK: tl.constexpr,
    LANES: tl.constexpr,
    ACC: tl.constexpr,
    SCALE: tl.constexpr,
    PARTS: tl.constexpr,
    ROUNDS: tl.constexpr,
    ROUGH: tl.constexpr,
    REFINE: tl.constexpr,
    FLOOR: tl.constexpr,
    FAST: tl.constexpr,
):
    """Rows that fit into one block; widths and strides are counted in groups of LANES entries."""
    k = groups * LANES
    row = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    inside = row < n
    weight = row_weight(scale, row, inside, scale_stride, divisor, SCALE, PARTS, ACC)
    counts = weight != 0
    cols = tl.arange(0, BLOCK)[None, :]
    mask = inside[:, None]
    if not EVEN:
        mask = mask & (cols < k)
    read = mask & counts[:, None]
    at = row[:, None] * (theta_groups * LANES) + cols
    x = tl.load(theta + at, mask=read, other=float("-inf")).to(ACC)
    y = tl.load(target + row[:, None] * (target_groups * LANES) + cols, mask=read, other=0.0).to(
        ACC
    )
    top = tl.max(x, axis=1)
    x = x - top[:, None]
    if LOSS == SPARSEMAX and FITZPATRICK:
        highest = tl.max(x + y, axis=1)
    else:
        highest = top - top
    lse = highest
    if LOSS == LOGISTIC:
        lse = tl.log(tl.sum(exp(x, FAST), axis=1))
    tau = start(highest, lse, LOSS, FITZPATRICK)
    if LOSS == LOGISTIC and FITZPATRICK:
        narrow = False
        if ACC == tl.float32:
            lowest = tl.min(tl.where(read, x, 0.0), axis=1)
            fits = (lse + 1.0 - lowest < NARROW) | (counts == 0)
            narrow = tl.min(fits.to(tl.int32), axis=0) > 0
        if narrow:
            tau, difference, loss = _fitzpatrick_logistic(
                x, y, tau, read, True, ROUNDS, ROUGH, REFINE, FLOOR, FAST, ACC
            )
        else:
            tau, difference, loss = _fitzpatrick_logistic(
                x, y, tau, read, False, ROUNDS, ROUGH, REFINE, FLOOR, FAST, ACC
            )
    else:
        if LOSS != LOGISTIC:
            step = tl.full((ROWS,), 1.0, ACC)
            i = 0
            while (i < max_steps) & (tl.max(tl.where(step > tolerance, 1, 0), axis=0) > 0):
                p, d = point(x - tau[:, None], y, LOSS, FITZPATRICK)
                step = newton_step(tl.sum(p, axis=1), tl.sum(d, axis=1), LOSS)
                tau = tau + step
                i += 1
        difference, loss = terms(
            x, tau[:, None], y, LOSS, FITZPATRICK, False, ROUGH, REFINE, FLOOR, FAST
        )
    if WITH_VALUE:
        total = tl.where(tau == tau, tl.sum(loss, axis=1), tau)
        tl.store(value + row, tl.where(counts, total, 0.0) * weight, mask=inside)
    if WITH_GRADIENT:
        out = tl.where((tau == tau)[:, None], difference * weight[:, None], float("nan"))
        out = tl.where(counts[:, None], out, 0.0).to(gradient.dtype.element_ty)
        tl.store(gradient + row[:, None] * k + cols, out, mask=mask, cache_modifier=".cs")


@triton.jit
def _tile(
    scores,
    rates,
    block,
    groups,
    EVEN: tl.constexpr,
    GROUPS: tl.constexpr,
    LANES: tl.constexpr,
    ACC: tl.constexpr,
):
    """Scores and proportions of a block of groups, and which of them are there."""
    group = block * GROUPS + tl.arange(0, GROUPS)
    cols = group[:, None] * LANES + tl.arange(0, LANES)[None, :]
    mask = (group < groups)[:, None]
    if EVEN:
        x = tl.load(scores + cols, eviction_policy="evict_last")
        y = tl.load(rates + cols, eviction_policy="evict_last")
    else:
        x = tl.load(scores + cols, mask=mask, other=0.0, eviction_policy="evict_last")
        y = tl.load(rates + cols, mask=mask, other=0.0, eviction_policy="evict_last")
    return x.to(ACC), y.to(ACC), cols, mask


@triton.jit
def _omega_step(
    scores,
    rates,
    groups,
    top,
    tau,
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
    """The step of τ of the Fitzpatrick logistic loss from one pass over the row, backwards."""
    # eight entries a thread are taken four by four, which leaves registers for their moments
    HALVES: tl.constexpr = LANES == 8
    m0 = tl.zeros((GROUPS, 4 if HALVES else LANES), ACC)
    m1, m2, m3, m4, m5, m6, m7 = m0, m0, m0, m0, m0, m0, m0
    blocks = tl.cdiv(groups, GROUPS)
    for i in range(blocks):
        x, y, _, mask = _tile(scores, rates, blocks - 1 - i, groups, EVEN, GROUPS, LANES, ACC)
        if not EVEN:
            x = tl.where(mask, x, top)  # anything that has an exponential
        if HALVES:
            x, next_x = tl.split(tl.reshape(x, (GROUPS, 4, 2)))
            y, next_y = tl.split(tl.reshape(y, (GROUPS, 4, 2)))
        for half in tl.static_range(2 if HALVES else 1):
            if half == 1:
                x, y = next_x, next_y
            p, t = omega_point(x - top, tau, y, IS_NARROW, ROUGH, REFINE, FLOOR, FAST)
            if not EVEN:
                p = tl.where(mask, p, 0.0)
            a0, a1, a2, a3, a4, a5, a6, a7 = moments(p, t, ROUGH)
            m0 += a0
            m1 += a1
            m2 += a2
            m3 += a3
            m4 += a4
            m5 += a5
            if not ROUGH:
                m6 += a6
                m7 += a7
    m0, m1, m2, m3, m4, m5, m6, m7 = tl.reduce((m0, m1, m2, m3, m4, m5, m6, m7), 1, add_moments)
    m0, m1, m2, m3, m4, m5, m6, m7 = tl.reduce(
        (m0, m1, m2, m3, m4, m5, m6, m7), 0, add_moments, keep_dims=True
    )
    step = step_from_moments(m0, m1, m2, m3, m4, m5, m6, m7, ROUGH, REFINE, FAST, ACC)
    return tl.sum(step, axis=0)


@triton.jit
def _sparse_step(
    scores,
    rates,
    groups,
    top,
    tau,
    LOSS: tl.constexpr,
    FITZPATRICK: tl.constexpr,
    EVEN: tl.constexpr,
    GROUPS: tl.constexpr,
    LANES: tl.constexpr,
    ACC: tl.constexpr,
):
    """Newton's step of τ of a sparse pair from one pass over the row."""
    points = tl.zeros((GROUPS,), ACC)
    slopes = tl.zeros((GROUPS,), ACC)
    for block in range(tl.cdiv(groups, GROUPS)):
        x, y, _, mask = _tile(scores, rates, block, groups, EVEN, GROUPS, LANES, ACC)
        s = (x - top) - tau
        if not EVEN:
            s = tl.where(mask, s, float("-inf"))
        p, d = point(s, y, LOSS, FITZPATRICK)
        points += tl.sum(p, axis=1)
        slopes += tl.sum(d, axis=1)
    return newton_step(tl.sum(points, axis=0), tl.sum(slopes, axis=0), LOSS)


@triton.jit
def _write_row(
    scores,
    rates,
    value,
    out,
    groups,
    top,
    tau,
    weight,
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
    """Loss and gradient of a row whose τ is known."""
    losses = tl.zeros((GROUPS, LANES), ACC)
    factor = tl.where(tau == tau, weight, tau)
    for block in range(tl.cdiv(groups, GROUPS)):
        x, y, cols, mask = _tile(scores, rates, block, groups, EVEN, GROUPS, LANES, ACC)
        difference, loss = terms(
            x - top, tau, y, LOSS, FITZPATRICK, IS_NARROW, ROUGH, REFINE, FLOOR, FAST
        )
        if WITH_VALUE:
            if not EVEN:
                loss = tl.where(mask, loss, 0.0)
            losses += loss
        if WITH_GRADIENT:
            rows = (difference * factor).to(out.dtype.element_ty)
            if EVEN:
                tl.store(out + cols, rows, cache_modifier=".cs")
            else:
                tl.store(out + cols, rows, mask=mask, cache_modifier=".cs")
    if WITH_VALUE:
        tl.store(value, tl.sum(tl.sum(losses, axis=1), axis=0) * factor)


@triton.jit(do_not_specialize=["divisor"])
def rows_wide(
    theta,
    target,
    scale,
    value,
    gradient,
    n,
    groups,
    theta_groups,
    target_groups,
    scale_stride,
    divisor,
    max_steps,
    tolerance,
    LOSS: tl.constexpr,
    FITZPATRICK: tl.constexpr,
    WITH_VALUE: tl.constexpr,
    WITH_GRADIENT: tl.constexpr,
    EVEN: tl.constexpr,
    GROUPS: tl.constexpr,
    LANES: tl.constexpr,
    ACC: tl.constexpr,
    SCALE: tl.constexpr,
    PARTS: tl.constexpr,
    ROUNDS: tl.constexpr,
    ROUGH: tl.constexpr,
    REFINE: tl.constexpr,
    FLOOR: tl.constexpr,
    FAST: tl.constexpr,
):
    """One row of any width; widths and strides are counted in groups of LANES entries."""
    row = tl.program_id(0).to(tl.int64)
    weight = row_weight(scale, row, row < n, scale_stride, divisor, SCALE, PARTS, ACC)
    scores = theta + row * theta_groups * LANES
    rates = target + row * target_groups * LANES
    out = gradient + row * groups * LANES
    blocks = tl.cdiv(groups, GROUPS)
    if weight != 0:
        tops = tl.full((GROUPS,), float("-inf"), ACC)
        lows = tl.full((GROUPS,), float("inf"), ACC)
        totals = tl.zeros((GROUPS,), ACC)
        shifted = tl.full((GROUPS,), float("-inf"), ACC)
        for block in range(blocks):
            group = block * GROUPS + tl.arange(0, GROUPS)
            cols = group[:, None] * LANES + tl.arange(0, LANES)[None, :]
            mask = (group < groups)[:, None]
            if EVEN:
                x = tl.load(scores + cols, eviction_policy="evict_last").to(ACC)
            else:
                x = tl.load(
                    scores + cols,
                    mask=mask,
                    other=float("-inf"),
                    eviction_policy="evict_last",
                ).to(ACC)
            higher = tl.maximum(tops, tl.max(x, axis=1))
            if LOSS == LOGISTIC:
                base = tl.where(higher == float("-inf"), 0.0, higher)
                fresh = tl.sum(exp(x - base[:, None], FAST), axis=1)
                totals = totals * exp(tops - base, FAST) + fresh
                if FITZPATRICK:
                    low = x
                    if not EVEN:
                        low = tl.where(mask, x, float("inf"))
                    lows = tl.minimum(lows, tl.min(low, axis=1))
            if LOSS == SPARSEMAX and FITZPATRICK:
                y = tl.load(rates + cols, mask=mask, other=0.0).to(ACC)
                shifted = tl.maximum(shifted, tl.max(x + y, axis=1))
            tops = higher
        top = tl.max(tops, axis=0)
        highest = tl.max(shifted, axis=0) - top
        if LOSS != SPARSEMAX or not FITZPATRICK:
            highest = top - top
        lse = highest
        if LOSS == LOGISTIC:
            base = tl.where(top == float("-inf"), 0.0, top)
            lse = tl.log(tl.sum(totals * tl.exp(tops - base), axis=0))
        tau = start(highest, lse, LOSS, FITZPATRICK)
        if LOSS == LOGISTIC and FITZPATRICK:
            narrow = False
            if ACC == tl.float32:
                narrow = lse + 1.0 - (tl.min(lows, axis=0) - top) < NARROW
            if narrow:
                for _ in tl.static_range(ROUNDS):
                    tau += _omega_step(
                        scores, rates, groups, top, tau, True,
                        EVEN, GROUPS, LANES, ACC, ROUGH, REFINE, FLOOR, FAST,
                    )  # fmt: skip
                _write_row(
                    scores, rates, value + row, out, groups, top, tau, weight,
                    LOSS, True, WITH_VALUE, WITH_GRADIENT, True,
                    EVEN, GROUPS, LANES, ACC, ROUGH, REFINE, FLOOR, FAST,
                )  # fmt: skip
            else:
                for _ in tl.static_range(ROUNDS):
                    tau += _omega_step(
                        scores, rates, groups, top, tau, False,
                        EVEN, GROUPS, LANES, ACC, ROUGH, REFINE, FLOOR, FAST,
                    )  # fmt: skip
                _write_row(
                    scores, rates, value + row, out, groups, top, tau, weight,
                    LOSS, True, WITH_VALUE, WITH_GRADIENT, False,
                    EVEN, GROUPS, LANES, ACC, ROUGH, REFINE, FLOOR, FAST,
                )  # fmt: skip
        else:
            if LOSS != LOGISTIC:
                step = tl.full((), 1.0, ACC)
                i = 0
                while (i < max_steps) & (step > tolerance):
                    step = _sparse_step(
                        scores, rates, groups, top, tau,
                        LOSS, FITZPATRICK, EVEN, GROUPS, LANES, ACC,
                    )  # fmt: skip
                    tau = tau + step
                    i += 1
            _write_row(
                scores, rates, value + row, out, groups, top, tau, weight,
                LOSS, FITZPATRICK, WITH_VALUE, WITH_GRADIENT, False,
                EVEN, GROUPS, LANES, ACC, ROUGH, REFINE, FLOOR, FAST,
            )  # fmt: skip
    else:
        if WITH_VALUE:
            tl.store(value + row, 0.0 * weight)
        if WITH_GRADIENT:
            write_zeros(out, groups, GROUPS, LANES)
