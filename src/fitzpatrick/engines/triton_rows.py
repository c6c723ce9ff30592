r"""Kernels for proportions: all three pairs, entry by entry, with Newton's method for τ.

They restate the core's elementwise formulas, s = θ − τ ↦ (p, ∂p/∂s) and the terms of the loss. Rows
that fit stay in registers; wider ones are read again in each pass.
"""

# mypy: disable-error-code="misc,no-untyped-def,no-any-return"
# Triton's own language, which is not Python to a type checker

import triton
import triton.language as tl

from .triton_math import expm1_minus_x, relu, wright_omega

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
def _omega(s, y, STEPS: tl.constexpr, FLOOR: tl.constexpr):
    """ω(log y − s), and p in the form that keeps its digits."""
    z = tl.where(y > 0, tl.log(y) - s, float("-inf"))
    omega = wright_omega(z, STEPS, FLOOR)
    return omega, tl.where(omega < 0.5, tl.exp(s + omega), y / omega)


@triton.jit
def _point(
    s,
    y,
    LOSS: tl.constexpr,
    FITZPATRICK: tl.constexpr,
    STEPS: tl.constexpr,
    FLOOR: tl.constexpr,
):
    """The maximiser p and its derivative in s."""
    if LOSS == _LOGISTIC:
        if FITZPATRICK:
            omega, p = _omega(s, y, STEPS, FLOOR)
            return p, p / (1.0 + omega)
        p = tl.exp(s)
        return p, p
    if LOSS == _SPARSEMAX:
        if FITZPATRICK:
            p = relu((y + s) * 0.5)
            return p, tl.where(p > 0, 0.5, 0.0).to(s.dtype)
        p = relu(s)
        return p, tl.where(p > 0, 1.0, 0.0).to(s.dtype)
    if FITZPATRICK:
        root = _entmax_root(s, y)
        p = root * root
        below = tl.where(p > 0, 1.5 * p + 0.5 * y, 1.0)
        return p, root * p / below
    root = relu(s * 0.5)
    return root * root, root


@triton.jit
def _terms(
    s,
    y,
    LOSS: tl.constexpr,
    FITZPATRICK: tl.constexpr,
    STEPS: tl.constexpr,
    FLOOR: tl.constexpr,
):
    """The maximiser p and the entry's non-negative term of the loss."""
    if LOSS == _LOGISTIC:
        if FITZPATRICK:
            omega, p = _omega(s, y, STEPS, FLOOR)
            return p, (p - y) * (1.0 - omega)
        p = tl.exp(s)
        ratio = s - tl.log(tl.where(y > 0, y, 1.0))
        near = tl.abs(ratio) < 0.5
        close = y * expm1_minus_x(tl.where(near, ratio, 0.0))
        return p, tl.where(y > 0, tl.where(near, close, p - y - y * ratio), p)
    if LOSS == _SPARSEMAX:
        if FITZPATRICK:
            p = relu((y + s) * 0.5)
            return p, (y - p) * (y - p) + _gap(y, -(y + s))
        p = relu(s)
        return p, 0.5 * (y - p) * (y - p) + _gap(y, -s)
    if FITZPATRICK:
        root = _entmax_root(s, y)
        p = root * root
        curved = (p - y) * (p - y) / tl.where(p > 0, root, 1.0)
        return p, tl.where(p > 0, curved, _gap(y, -s))
    root = relu(s * 0.5)
    a = tl.sqrt(y)
    return root * root, (a - root) * (a - root) * (2.0 * a + root) * (2.0 / 3.0) + _gap(y, -s)


@triton.jit
def _excess(total, LOSS: tl.constexpr):
    """What Newton's step divides by the slope: for log g, g − 1 or √g."""
    if LOSS == _LOGISTIC:
        return total * tl.log(total)
    if LOSS == _SPARSEMAX:
        return total - 1.0
    root = tl.sqrt(total)
    return 2.0 * root * (root - 1.0)


@triton.jit
def _start(highest, lse, LOSS: tl.constexpr, FITZPATRICK: tl.constexpr):
    """A τ not above the root, from the largest x (x + y for Fitzpatrick sparsemax) and lse(x)."""
    if LOSS == _LOGISTIC:
        return lse
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
    STEPS: tl.constexpr,
    FLOOR: tl.constexpr,
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
        lse = tl.log(tl.sum(tl.exp(x), axis=1))
    tau = _start(highest, lse, LOSS, FITZPATRICK)
    if LOSS != _LOGISTIC or FITZPATRICK:
        step = tl.full((ROWS,), 1.0, ACC)
        i = 0
        while (i < max_steps) & (tl.max(tl.where(step > tolerance, 1, 0), axis=0) > 0):
            p, d = _point(x - tau[:, None], y, LOSS, FITZPATRICK, STEPS, FLOOR)
            step = _excess(tl.sum(p, axis=1), LOSS) / tl.sum(d, axis=1)
            tau = tau + step
            i += 1
    p, terms = _terms(x - tau[:, None], y, LOSS, FITZPATRICK, STEPS, FLOOR)
    if WITH_VALUE:
        loss = tl.where(tau == tau, tl.sum(terms, axis=1), tau)
        tl.store(value + row, tl.where(counts, loss, 0.0) * weight, mask=inside)
    if WITH_GRADIENT:
        out = tl.where((tau == tau)[:, None], (p - y) * weight[:, None], float("nan"))
        out = tl.where(counts[:, None], out, 0.0).to(gradient.dtype.element_ty)
        tl.store(gradient + row[:, None] * k + cols, out, mask=mask, cache_modifier=".cs")


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
    STEPS: tl.constexpr,
    FLOOR: tl.constexpr,
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
        for block in range(0, blocks):
            cols = block * BLOCK + tile
            x = tl.load(scores + cols, mask=cols < k, other=float("-inf")).to(ACC)
            higher = tl.maximum(tops, x)
            if LOSS == _LOGISTIC:
                base = tl.where(higher == float("-inf"), 0.0, higher)
                totals = totals * tl.exp(tops - base) + tl.exp(x - base)
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
        if LOSS != _LOGISTIC or FITZPATRICK:
            step = tolerance + 1.0
            i = 0
            while (i < max_steps) & (step > tolerance):
                points = tl.zeros((BLOCK,), ACC)
                slopes = tl.zeros((BLOCK,), ACC)
                for block in range(0, blocks):
                    cols = block * BLOCK + tile
                    x = tl.load(scores + cols, mask=cols < k, other=float("-inf")).to(ACC)
                    y = tl.load(rates + cols, mask=cols < k, other=0.0).to(ACC)
                    p, d = _point((x - top) - tau, y, LOSS, FITZPATRICK, STEPS, FLOOR)
                    points += p
                    slopes += d
                step = _excess(tl.sum(points, axis=0), LOSS) / tl.sum(slopes, axis=0)
                tau = tau + step
                i += 1
        losses = tl.zeros((BLOCK,), ACC)
        for block in range(0, blocks):
            cols = block * BLOCK + tile
            x = tl.load(scores + cols, mask=cols < k, other=float("-inf")).to(ACC)
            y = tl.load(rates + cols, mask=cols < k, other=0.0).to(ACC)
            p, terms = _terms((x - top) - tau, y, LOSS, FITZPATRICK, STEPS, FLOOR)
            losses += tl.where(cols < k, terms, 0.0)
            if WITH_GRADIENT:
                rows = tl.where(tau == tau, (p - y) * weight, float("nan"))
                rows = rows.to(gradient.dtype.element_ty)
                tl.store(out + cols, rows, mask=cols < k, cache_modifier=".cs")
        if WITH_VALUE:
            loss = tl.sum(losses, axis=0)
            tl.store(value + row, tl.where(tau == tau, loss, tau) * weight)
    else:
        if WITH_VALUE:
            tl.store(value + row, 0.0 * weight)
        if WITH_GRADIENT:
            for block in range(0, blocks):
                cols = block * BLOCK + tile
                zero = tl.zeros((BLOCK,), gradient.dtype.element_ty)
                tl.store(out + cols, zero, mask=cols < k, cache_modifier=".cs")
