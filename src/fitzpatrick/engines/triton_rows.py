"""Kernels for proportions: all three pairs. A row is looked at as a whole, then τ is found, then
every entry has its difference p − y and its term of the loss.

Rows that fit stay in registers; wider ones are read again in each pass.
"""

# mypy: disable-error-code="assignment,misc,no-untyped-def,no-any-return"
# ruff: noqa: SIM300
# Triton's own language, which is not Python to a type checker

import triton
import triton.language as tl

from .triton_math import advance, exp, write_zeros
from .triton_root import add_moments, moments, newton_step, start, step_from_moments
from .triton_scale import row_weight
from .triton_terms import LOGISTIC, NARROW, SPARSEMAX, entmax_point, omega_point, ramp, terms
from .triton_wide import (
    guess,
    load_both,
    log_sum_exp,
    omega_step,
    rates_at,
    sparse_tau,
    write_row,
)

__all__ = ["rows_in_registers", "rows_wide"]

# what top may be where τ and top in one number have digits enough for half precision
_NEAR: tl.constexpr = tl.constexpr(150.0)


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
    labels,
    mix,
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
    SMOOTH: tl.constexpr,
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
    at = row[:, None] * theta_groups * LANES + cols
    x = tl.load(theta + at, mask=read, other=float("-inf")).to(ACC)
    if SMOOTH:
        label = tl.load(labels + row, mask=inside, other=-1)[:, None]
        share = tl.load(mix + 2 * row, mask=inside, other=0.0)[:, None]
        own = tl.load(mix + 2 * row + 1, mask=inside, other=0.0)[:, None]
        rates = (label, share, own, target) if SMOOTH == 2 else (label, share, own)
    else:
        rates = (target + row[:, None] * target_groups * LANES,)
    y = rates_at(rates, cols, read, ACC)
    top = tl.max(x, axis=1)
    x = x - top[:, None]
    v = x
    if LOSS == SPARSEMAX and FITZPATRICK:
        v = x + y
    highest = tl.max(v, axis=1)
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
            low = tl.zeros((ROWS,), ACC)
            step, left = low, low + 1.0
            i = 0
            while (i < max_steps) & (tl.max(tl.where(left > tolerance, 1, 0), axis=0) > 0):
                p, d = ramp((v - tau[:, None]) - low[:, None], LOSS, FITZPATRICK)
                step, left = newton_step(tl.sum(p, axis=1), tl.sum(d, axis=1), LOSS)
                tau, low = advance(tau, low, step, left > tolerance)
                i += 1
            if LOSS != SPARSEMAX and FITZPATRICK:
                left = tl.full((ROWS,), 1.0, ACC)
                while (i < 2 * max_steps) & (tl.max(tl.where(left > tolerance, 1, 0), axis=0) > 0):
                    p, d = entmax_point((x - tau[:, None]) - low[:, None], y, FAST)
                    step, left = newton_step(tl.sum(p, axis=1), tl.sum(d, axis=1), LOSS)
                    tau, low = advance(tau, low, step, left > tolerance)
                    i += 1
            v = v - tau[:, None]
            tau = low + tl.where(left > tolerance, 0.0, step)
        difference, loss = terms(
            v, tau[:, None], y, LOSS, FITZPATRICK, False, ROUGH, REFINE, FLOOR, FAST
        )
    if WITH_VALUE:
        total = tl.where(tau == tau, tl.sum(loss, axis=1), tau)
        tl.store(value + row, tl.where(counts, total, 0.0) * weight, mask=inside)
    if WITH_GRADIENT:
        out = tl.where((tau == tau)[:, None], difference * weight[:, None], float("nan"))
        out = tl.where(counts[:, None], out, 0.0).to(gradient.dtype.element_ty)
        tl.store(gradient + row[:, None] * k + cols, out, mask=mask, cache_modifier=".cs")


@triton.jit
def _guessed_tau(
    scores,
    rates,
    groups,
    EVEN: tl.constexpr,
    GROUPS: tl.constexpr,
    LANES: tl.constexpr,
    ACC: tl.constexpr,
    ROUGH: tl.constexpr,
    REFINE: tl.constexpr,
    FLOOR: tl.constexpr,
    FAST: tl.constexpr,
):
    """The same as :func:`_measured_tau` from a sample of a narrow row, which saves a pass.

    The step and the lowest score, which come with it, tell whether the guess was near enough, and
    the row narrow; if not, τ is of no use.
    """
    last = tl.cdiv(groups, GROUPS) - 1
    x, y = load_both(scores, rates, last, groups, EVEN, GROUPS, LANES, True)
    top, lse, found = guess(scores, groups, GROUPS, LANES, ACC, FAST)
    tau = lse + 0.75  # more often right than ½
    if ROUGH:
        found = found & (tl.abs(top) < _NEAR)
        tau += top
    if found:
        step, low, x, y = omega_step(
            scores, rates, groups, top, tau, x, y, True, True,
            EVEN, GROUPS, LANES, ACC, ROUGH, REFINE, FLOOR, FAST,
        )  # fmt: skip
        tau += step
        if not ROUGH:
            low -= top
        found = (tl.abs(step) <= 0.5) & (tau - low < NARROW)
    return top, tau, found, x, y


@triton.jit
def _measured_tau(
    scores,
    rates,
    groups,
    EVEN: tl.constexpr,
    GROUPS: tl.constexpr,
    LANES: tl.constexpr,
    ACC: tl.constexpr,
    ROUNDS: tl.constexpr,
    ROUGH: tl.constexpr,
    REFINE: tl.constexpr,
    FLOOR: tl.constexpr,
    FAST: tl.constexpr,
):
    """A score near the highest, τ less that, whether the row is narrow, and its first block.

    In a narrow row of half precision scores are taken as they are, and nothing is taken off τ.
    """
    last = tl.cdiv(groups, GROUPS) - 1
    x, y = load_both(scores, rates, last, groups, EVEN, GROUPS, LANES, True)
    top, lse, low = log_sum_exp(scores, groups, EVEN, GROUPS, LANES, ACC, FAST)
    tau = start(lse, lse, LOGISTIC, True)
    narrow = lse != lse
    if ACC == tl.float32:
        narrow = lse + 1.0 - low < NARROW
        if ROUGH:
            narrow = narrow & (tl.abs(top) < _NEAR)
    if narrow:
        if ROUGH:
            tau += top
        step, _, x, y = omega_step(
            scores, rates, groups, top, tau, x, y, True, False,
            EVEN, GROUPS, LANES, ACC, ROUGH, REFINE, FLOOR, FAST,
        )  # fmt: skip
        tau += step
    else:
        for i in tl.static_range(ROUNDS):
            if i > 0:
                x, y = load_both(scores, rates, last, groups, EVEN, GROUPS, LANES, True)
            step, _, x, y = omega_step(
                scores, rates, groups, top, tau, x, y, False, False,
                EVEN, GROUPS, LANES, ACC, ROUGH, REFINE, FLOOR, FAST,
            )  # fmt: skip
            tau += step
    return top, tau, narrow, x, y


@triton.jit(do_not_specialize=["divisor"])
def rows_wide(
    theta,
    target,
    labels,
    mix,
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
    GUESS: tl.constexpr,
    EVEN: tl.constexpr,
    GROUPS: tl.constexpr,
    LANES: tl.constexpr,
    ACC: tl.constexpr,
    SCALE: tl.constexpr,
    PARTS: tl.constexpr,
    SMOOTH: tl.constexpr,
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
    if SMOOTH:
        label = tl.load(labels + row).to(tl.int32)
        share, own = tl.load(mix + 2 * row), tl.load(mix + 2 * row + 1)
        rates = (label, share, own, target) if SMOOTH == 2 else (label, share, own)
    else:
        rates = (target + row * target_groups * LANES,)
    out = gradient + row * groups * LANES
    if weight != 0:
        if LOSS == LOGISTIC and FITZPATRICK:
            if GUESS:
                top, tau, narrow, x, y = _guessed_tau(
                    scores, rates, groups,
                    EVEN, GROUPS, LANES, ACC, ROUGH, REFINE, FLOOR, FAST,
                )  # fmt: skip
                if not narrow:
                    top, tau, narrow, x, y = _measured_tau(
                        scores, rates, groups,
                        EVEN, GROUPS, LANES, ACC, ROUNDS, ROUGH, REFINE, FLOOR, FAST,
                    )  # fmt: skip
            else:
                top, tau, narrow, x, y = _measured_tau(
                    scores, rates, groups,
                    EVEN, GROUPS, LANES, ACC, ROUNDS, ROUGH, REFINE, FLOOR, FAST,
                )  # fmt: skip
            if narrow:
                write_row(
                    scores, rates, value + row, out, groups, top, tau, tau, weight, x, y,
                    LOSS, True, WITH_VALUE, WITH_GRADIENT, True,
                    EVEN, GROUPS, LANES, ACC, ROUGH, REFINE, FLOOR, FAST,
                )  # fmt: skip
            else:
                write_row(
                    scores, rates, value + row, out, groups, top, tau, tau, weight, x, y,
                    LOSS, True, WITH_VALUE, WITH_GRADIENT, False,
                    EVEN, GROUPS, LANES, ACC, ROUGH, REFINE, FLOOR, FAST,
                )  # fmt: skip
        else:
            if LOSS == LOGISTIC:
                top, tau, _ = log_sum_exp(scores, groups, EVEN, GROUPS, LANES, ACC, FAST)
                base = tau
            else:
                top, base, tau = sparse_tau(
                    scores, rates, groups, max_steps, tolerance,
                    LOSS, FITZPATRICK, EVEN, GROUPS, LANES, ACC, FAST,
                )  # fmt: skip
            x, y = load_both(scores, rates, 0, groups, EVEN, GROUPS, LANES, False)
            write_row(
                scores, rates, value + row, out, groups, top, base, tau, weight, x, y,
                LOSS, FITZPATRICK, WITH_VALUE, WITH_GRADIENT, False,
                EVEN, GROUPS, LANES, ACC, ROUGH, REFINE, FLOOR, FAST,
            )  # fmt: skip
    else:
        if WITH_VALUE:
            tl.store(value + row, 0.0 * weight)
        if WITH_GRADIENT:
            write_zeros(out, groups, GROUPS, LANES)
