r"""Kernels for proportions: all three pairs, entry by entry, with Newton's method for τ.

They restate the core's elementwise formulas, s = θ − τ ↦ (p, ∂p/∂s, ∂²p/∂s²) and the terms of the
loss. Rows that fit stay in registers; wider ones are read again in each pass.

For the Fitzpatrick logistic loss τ lies between lse(θ) and lse(θ) + 1. From the middle, Halley's
third-order step on log Σp leaves an error below 2e-3, a second one below 1e-10, a third none; the
first step may use an ω that is 1% off.
"""

# mypy: disable-error-code="misc,no-untyped-def,no-any-return"
# ruff: noqa: ARG001, SIM108
# Triton's own language, which is not Python to a type checker

import triton
import triton.language as tl

from .triton_math import exp, expm1_minus_x, log, reciprocal, relu

__all__ = ["LOSSES", "rows_in_registers", "rows_wide"]

# names of the pairs, as numbers that a kernel can be specialised to
LOSSES = {"logistic": 0, "sparsemax": 1, "entmax15": 2}
_LOGISTIC: tl.constexpr = tl.constexpr(0)
_SPARSEMAX: tl.constexpr = tl.constexpr(1)


@triton.jit
def _gap(y, depth):
    """Product y (depth)₊, where 0 · ∞ counts as 0."""
    return tl.where(y > 0, y * relu(depth), 0.0)


@triton.jit
def _entmax_root(s, y):
    """√p of the Fitzpatrick entmax15 loss: (s + √(s² + 12 y))/6, without cancellation."""
    length = tl.sqrt(s * s + 12.0 * y)
    return tl.where(
        s > 0, (s + length) / 6.0, tl.where(y > 0, 2.0 * y / (length - s), 0.0 * relu(s))
    )


@triton.jit
def _omega(s, y, REFINE: tl.constexpr, FLOOR: tl.constexpr, FAST: tl.constexpr):
    """ω(log y − s) by REFINE fourth-order steps from a guess within 1%; 0 where y = 0."""
    z = tl.where(y > 0, log(y, FAST) - s, 2.0 * FLOOR)
    z = tl.where(z > 1e30, 1e30, z)
    e = exp(tl.where(z > 30.0, 30.0, z), FAST)
    start = tl.where(
        z > 30.0, z, tl.where(e < 0.03, e * (1.0 - e * (0.5 - e * (1.0 / 3.0))), log(1.0 + e, FAST))
    )
    omega = start * (1.0 - log(1.0 + start, FAST) * reciprocal(2.0 + start, FAST))
    for _ in tl.static_range(REFINE):
        residual = z - omega - log(omega, FAST)
        shifted = 1.0 + omega
        twice = shifted * (2.0 * shifted + residual * (4.0 / 3.0))
        below = shifted * (twice - 2.0 * residual)
        omega = omega + omega * residual * (twice - residual) * reciprocal(below, FAST)
    omega = tl.where(z < FLOOR, e, omega)
    return tl.where(y > 0, omega, 0.0)


@triton.jit
def _point(
    s,
    y,
    LOSS: tl.constexpr,
    FITZPATRICK: tl.constexpr,
    REFINE: tl.constexpr,
    FLOOR: tl.constexpr,
    FAST: tl.constexpr,
):
    """The maximiser p, its derivative in s, and (Fitzpatrick logistic) its second derivative."""
    if LOSS == _LOGISTIC:
        if FITZPATRICK:
            omega = _omega(s, y, REFINE, FLOOR, FAST)
            p = exp(s + omega, FAST)
            inverse = reciprocal(1.0 + omega, FAST)
            d = p * inverse
            return p, d, d * inverse * (2.0 - inverse)
        p = exp(s, FAST)
        return p, p, p
    if LOSS == _SPARSEMAX:
        if FITZPATRICK:
            p = relu((y + s) * 0.5)
            d = tl.where(p > 0, 0.5, 0.0).to(s.dtype)
            return p, d, d
        p = relu(s)
        d = tl.where(p > 0, 1.0, 0.0).to(s.dtype)
        return p, d, d
    if FITZPATRICK:
        root = _entmax_root(s, y)
        p = root * root
        below = tl.where(p > 0, 1.5 * p + 0.5 * y, 1.0)
        return p, root * p / below, root
    root = relu(s * 0.5)
    return root * root, root, root


@triton.jit
def _terms(
    s,
    y,
    LOSS: tl.constexpr,
    FITZPATRICK: tl.constexpr,
    REFINE: tl.constexpr,
    FLOOR: tl.constexpr,
    FAST: tl.constexpr,
):
    """The difference p − y and the entry's non-negative term of the loss."""
    if LOSS == _LOGISTIC:
        if FITZPATRICK:
            omega = _omega(s, y, REFINE, FLOOR, FAST)
            # p − y and p (1 − ω)², each in the form that keeps its digits
            inverse = reciprocal(tl.where(omega < 0.5, 1.0, omega), FAST)
            p = exp(tl.where(omega < 0.5, s + omega, 0.0), FAST)
            difference = tl.where(omega < 0.5, p - y, y * (inverse - 1.0))
            terms = difference * (1.0 - omega)
            return difference, tl.where(omega > 1e29, float("inf"), terms)
        p = exp(s, FAST)
        ratio = s - tl.log(tl.where(y > 0, y, 1.0))
        near = tl.abs(ratio) < 0.5
        close = y * expm1_minus_x(tl.where(near, ratio, 0.0))
        return p - y, tl.where(y > 0, tl.where(near, close, p - y - y * ratio), p)
    if LOSS == _SPARSEMAX:
        if FITZPATRICK:
            difference = relu((y + s) * 0.5) - y
            return difference, difference * difference + _gap(y, -(y + s))
        difference = relu(s) - y
        return difference, 0.5 * difference * difference + _gap(y, -s)
    if FITZPATRICK:
        root = _entmax_root(s, y)
        p = root * root
        curved = (p - y) * (p - y) / tl.where(p > 0, root, 1.0)
        return p - y, tl.where(p > 0, curved, _gap(y, -s))
    root = relu(s * 0.5)
    a = tl.sqrt(y)
    terms = (a - root) * (a - root) * (2.0 * a + root) * (2.0 / 3.0)
    return root * root - y, terms + _gap(y, -s)


@triton.jit
def _step(total, slope, bend, LOSS: tl.constexpr):
    """The step of τ: Halley's on log g, or Newton's on g (sparsemax) and √g (entmax15)."""
    if LOSS == _LOGISTIC:
        first = -slope / total
        height = tl.log(total)
        second = bend / total - first * first
        return -2.0 * height * first / (2.0 * first * first - height * second)
    if LOSS == _SPARSEMAX:
        return (total - 1.0) / slope
    root = tl.sqrt(total)
    return 2.0 * root * (root - 1.0) / slope


@triton.jit
def _start(highest, lse, LOSS: tl.constexpr, FITZPATRICK: tl.constexpr):
    """Where to start: not above the root, or, for the Fitzpatrick logistic loss, within ½ of it."""
    if LOSS == _LOGISTIC:
        return lse + (0.5 if FITZPATRICK else 0.0)
    if LOSS == _SPARSEMAX:
        return highest - (2.0 if FITZPATRICK else 1.0)
    return highest - (3.0 if FITZPATRICK else 2.0)


@triton.jit
def rows_in_registers(
    theta,
    target,
    scale,
    value,
    gradient,
    n,
    k,
    theta_stride,
    target_stride,
    scale_stride,
    max_steps,
    tolerance,
    LOSS: tl.constexpr,
    FITZPATRICK: tl.constexpr,
    WITH_VALUE: tl.constexpr,
    WITH_GRADIENT: tl.constexpr,
    ROWS: tl.constexpr,
    BLOCK: tl.constexpr,
    ACC: tl.constexpr,
    HALLEY: tl.constexpr,
    REFINE: tl.constexpr,
    FLOOR: tl.constexpr,
    FAST: tl.constexpr,
):
    """Rows that fit into one block."""
    row = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    inside = row < n
    weight = tl.load(scale + row * scale_stride, mask=inside, other=0.0).to(ACC)
    counts = weight != 0
    cols = tl.arange(0, BLOCK)[None, :]
    mask = inside[:, None] & (cols < k)
    read = mask & counts[:, None]
    at = row[:, None] * theta_stride + cols
    x = tl.load(theta + at, mask=read, other=float("-inf")).to(ACC)
    y = tl.load(target + row[:, None] * target_stride + cols, mask=read, other=0.0).to(ACC)
    top = tl.max(x, axis=1)
    x = x - top[:, None]
    if LOSS == _SPARSEMAX and FITZPATRICK:
        highest = tl.max(x + y, axis=1)
    else:
        highest = top - top
    lse = highest
    if LOSS == _LOGISTIC:
        lse = tl.log(tl.sum(exp(x, FAST), axis=1))
    tau = _start(highest, lse, LOSS, FITZPATRICK)
    if LOSS == _LOGISTIC and FITZPATRICK:
        for i in tl.static_range(HALLEY):
            p, d, bend = _point(
                x - tau[:, None], y, LOSS, True, 0 if i == 0 else REFINE, FLOOR, FAST
            )
            total, slope = tl.sum(p, axis=1), tl.sum(d, axis=1)
            tau = tau + _step(total, slope, tl.sum(bend, axis=1), LOSS)
    elif LOSS != _LOGISTIC:
        step = tl.full((ROWS,), 1.0, ACC)
        i = 0
        while (i < max_steps) & (tl.max(tl.where(step > tolerance, 1, 0), axis=0) > 0):
            p, d, _ = _point(x - tau[:, None], y, LOSS, FITZPATRICK, REFINE, FLOOR, FAST)
            step = _step(tl.sum(p, axis=1), tl.sum(d, axis=1), top, LOSS)
            tau = tau + step
            i += 1
    difference, terms = _terms(x - tau[:, None], y, LOSS, FITZPATRICK, REFINE, FLOOR, FAST)
    if WITH_VALUE:
        loss = tl.where(tau == tau, tl.sum(terms, axis=1), tau)
        tl.store(value + row, tl.where(counts, loss, 0.0) * weight, mask=inside)
    if WITH_GRADIENT:
        out = tl.where((tau == tau)[:, None], difference * weight[:, None], float("nan"))
        out = tl.where(counts[:, None], out, 0.0).to(gradient.dtype.element_ty)
        tl.store(gradient + row[:, None] * k + cols, out, mask=mask, cache_modifier=".cs")


@triton.jit
def _wide_step(
    scores,
    rates,
    k,
    top,
    tau,
    LOSS: tl.constexpr,
    FITZPATRICK: tl.constexpr,
    BLOCK: tl.constexpr,
    ACC: tl.constexpr,
    REFINE: tl.constexpr,
    FLOOR: tl.constexpr,
    FAST: tl.constexpr,
):
    """The step of τ from one pass over the row."""
    points = tl.zeros((BLOCK,), ACC)
    slopes = tl.zeros((BLOCK,), ACC)
    bends = tl.zeros((BLOCK,), ACC)
    for block in range(tl.cdiv(k, BLOCK)):
        cols = block * BLOCK + tl.arange(0, BLOCK)
        x = tl.load(scores + cols, mask=cols < k, other=float("-inf")).to(ACC)
        y = tl.load(rates + cols, mask=cols < k, other=0.0).to(ACC)
        p, d, bend = _point((x - top) - tau, y, LOSS, FITZPATRICK, REFINE, FLOOR, FAST)
        points += p
        slopes += d
        bends += bend
    return _step(tl.sum(points, axis=0), tl.sum(slopes, axis=0), tl.sum(bends, axis=0), LOSS)


@triton.jit
def rows_wide(
    theta,
    target,
    scale,
    value,
    gradient,
    n,
    k,
    theta_stride,
    target_stride,
    scale_stride,
    max_steps,
    tolerance,
    LOSS: tl.constexpr,
    FITZPATRICK: tl.constexpr,
    WITH_VALUE: tl.constexpr,
    WITH_GRADIENT: tl.constexpr,
    BLOCK: tl.constexpr,
    ACC: tl.constexpr,
    HALLEY: tl.constexpr,
    REFINE: tl.constexpr,
    FLOOR: tl.constexpr,
    FAST: tl.constexpr,
):
    """One row of any width."""
    row = tl.program_id(0).to(tl.int64)
    weight = tl.load(scale + row * scale_stride).to(ACC)
    scores = theta + row * theta_stride
    rates = target + row * target_stride
    out = gradient + row * k
    tile = tl.arange(0, BLOCK)
    blocks = tl.cdiv(k, BLOCK)
    if weight != 0:
        tops = tl.full((BLOCK,), float("-inf"), ACC)
        totals = tl.zeros((BLOCK,), ACC)
        shifted = tl.full((BLOCK,), float("-inf"), ACC)
        for block in range(blocks):
            cols = block * BLOCK + tile
            x = tl.load(scores + cols, mask=cols < k, other=float("-inf")).to(ACC)
            higher = tl.maximum(tops, x)
            if LOSS == _LOGISTIC:
                base = tl.where(higher == float("-inf"), 0.0, higher)
                totals = totals * exp(tops - base, FAST) + exp(x - base, FAST)
            if LOSS == _SPARSEMAX and FITZPATRICK:
                y = tl.load(rates + cols, mask=cols < k, other=0.0).to(ACC)
                shifted = tl.maximum(shifted, x + y)
            tops = higher
        top = tl.max(tops, axis=0)
        highest = tl.max(shifted, axis=0) - top
        if LOSS != _SPARSEMAX or not FITZPATRICK:
            highest = top - top
        lse = highest
        if LOSS == _LOGISTIC:
            base = tl.where(top == float("-inf"), 0.0, top)
            lse = tl.log(tl.sum(totals * tl.exp(tops - base), axis=0))
        tau = _start(highest, lse, LOSS, FITZPATRICK)
        if LOSS == _LOGISTIC and FITZPATRICK:
            for i in tl.static_range(HALLEY):
                tau += _wide_step(
                    scores, rates, k, top, tau, LOSS, True, BLOCK, ACC,
                    0 if i == 0 else REFINE, FLOOR, FAST,
                )  # fmt: skip
        elif LOSS != _LOGISTIC:
            step = tl.full((), 1.0, ACC)
            i = 0
            while (i < max_steps) & (step > tolerance):
                step = _wide_step(
                    scores, rates, k, top, tau, LOSS, FITZPATRICK, BLOCK, ACC, REFINE, FLOOR, FAST
                )
                tau = tau + step
                i += 1
        losses = tl.zeros((BLOCK,), ACC)
        for block in range(blocks):
            cols = block * BLOCK + tile
            x = tl.load(scores + cols, mask=cols < k, other=float("-inf")).to(ACC)
            y = tl.load(rates + cols, mask=cols < k, other=0.0).to(ACC)
            difference, terms = _terms((x - top) - tau, y, LOSS, FITZPATRICK, REFINE, FLOOR, FAST)
            losses += tl.where(cols < k, terms, 0.0)
            if WITH_GRADIENT:
                rows = tl.where(tau == tau, difference * weight, float("nan"))
                rows = rows.to(gradient.dtype.element_ty)
                tl.store(out + cols, rows, mask=cols < k, cache_modifier=".cs")
        if WITH_VALUE:
            loss = tl.sum(losses, axis=0)
            tl.store(value + row, tl.where(tau == tau, loss, tau) * weight)
    else:
        if WITH_VALUE:
            tl.store(value + row, 0.0 * weight)
        if WITH_GRADIENT:
            for block in range(blocks):
                cols = block * BLOCK + tile
                zero = tl.zeros((BLOCK,), gradient.dtype.element_ty)
                tl.store(out + cols, zero, mask=cols < k, cache_modifier=".cs")
