r"""Kernels for losses that are sums over entries: squared, clipped, sigmoid and Poisson.

Entries are independent: with the score θ and the target y of one, at the tightness c,

- squared norm on an interval: p is (θ + c y)/(1 + c), clipped, and the loss is
  (1 + c)/2 (p − y)² + (p − y) ν, where ν = θ + c y − (1 + c) p is what was clipped;
- Poisson: the loss of the negative entropy in :mod:`.formulas`, with c in place of τ;
- sigmoid: p = σ(u) with u + a e^u − b e^−u + a − b = θ, a = c (1 − y), b = c y. For a label 0 or 1
  it is the logistic loss of two classes, which has a closed form.

Scores and targets are read once. A program sums its losses, unless the loss of each entry is asked
for.
"""

import triton
import triton.language as tl

from .formulas import softmax_terms, tightness_of
from .math import exp, log, log1p, reciprocal, relu, wright_omega, x_minus_log1p


@triton.jit
def _clipped(x, y, c, o: tl.constexpr):
    """p − y and the loss of a squared norm."""
    if o.lower == -float("inf") and o.upper == float("inf"):
        difference = (x - y) * (1.0 / (1.0 + c))
        return difference, difference * difference * (0.5 * (1.0 + c))
    else:
        score = x + c * y
        mixture = score * (1.0 / (1.0 + c))
        p = tl.where(mixture < o.lower, o.lower, tl.where(mixture > o.upper, o.upper, mixture))
        # inside nothing is clipped, and p − y needs no rounded mixture: no loss is below zero
        is_clipped = p != mixture
        difference = tl.where(is_clipped, p - y, (x - y) * (1.0 / (1.0 + c)))
        beyond = tl.abs(difference * (score - (1.0 + c) * p))
        beyond = tl.where(is_clipped & (difference != 0), beyond, 0.0)
        return difference, difference * difference * (0.5 * (1.0 + c)) + beyond


@triton.jit
def _coin_root(s, y, c, o: tl.constexpr):
    """u of the sigmoid at 0 < y < 1: three steps of Halley's method, five in float64.

    With δ = ½ log(a/b) the left-hand side is v + 2 √(ab) sinh v at v = u + δ, up to a constant: an
    odd function, which is reflected to where it is positive. There sinh v >= v and leaving out v
    give two upper bounds to start from.
    """
    TINY: tl.constexpr = 1e-37 if o.acc == tl.float32 else 1e-300
    MAX_EXPONENT: tl.constexpr = 87.0 if o.acc == tl.float32 else 700.0
    log_heads, log_tails = log(tl.maximum(y, TINY), o.fast), log(tl.maximum(1.0 - y, TINY), o.fast)
    shift = 0.5 * (log_tails - log_heads)
    level = s - c * (1.0 - 2.0 * y)
    reflect = level + shift < 0
    a = c * tl.where(reflect, y, 1.0 - y)
    b = c * tl.where(reflect, 1.0 - y, y)
    level = tl.where(reflect, -level, level)
    shift = tl.where(reflect, -shift, shift)
    log_a = tl.where(reflect, log_heads, log_tails)
    if o.mode != "one":
        log_a += tl.log(c)
    height = level + shift
    product = 4.0 * a * b
    bound = 0.5 * (height + tl.sqrt(height * height + product)) + TINY
    linear = height * reciprocal(1.0 + tl.sqrt(product), o.fast) - shift
    u = tl.minimum(linear, log(bound, o.fast) - log_a)
    STEPS: tl.constexpr = 3 if o.acc == tl.float32 else 5
    for _ in tl.static_range(STEPS):
        e = exp(tl.minimum(tl.maximum(u, -MAX_EXPONENT), MAX_EXPONENT), o.fast)
        rise = a * e
        fall = b * reciprocal(e, o.fast)
        bend = rise - fall
        excess = u + bend - level
        slope = 1.0 + rise + fall
        square = slope * slope
        below = tl.maximum(square - 0.5 * excess * bend, 0.25 * square)
        step = excess * slope * reciprocal(below, o.fast)
        u = u - tl.where(tl.abs(step) < float("inf"), step, 0.0)
    return tl.where(reflect, -u, u)


@triton.jit
def _entropy(y, log_p, p, c, o: tl.constexpr):
    """D + c (Q − D) = y (E(ρ) + c E(−ρ)) of one side of a coin, with E(ρ) = e^ρ − 1 − ρ."""
    rho = log_p - log(tl.where(y > 0, y, 1.0), o.fast)
    near = tl.abs(rho) < 0.5
    square = tl.where(near, rho * rho, 0.0)
    # even and odd terms of the series by themselves, since c changes the sign of the odd ones
    even = tl.full((), 1.0, o.acc)
    odd = tl.full((), 1.0, o.acc)
    TERMS: tl.constexpr = 3 if o.acc == tl.float32 else 6
    for i in tl.static_range(TERMS):
        even = 1.0 + even * square * (1.0 / ((2 * TERMS - 2 * i + 1) * (2 * TERMS - 2 * i + 2)))
        odd = 1.0 + odd * square * (1.0 / ((2 * TERMS - 2 * i + 2) * (2 * TERMS - 2 * i + 3)))
    inner = square * (
        0.5 * (1.0 + c) * even + (1.0 - c) * (1.0 / 6.0) * tl.where(near, rho, 0.0) * odd
    )
    outer = p - y - y * rho
    if o.mode != "zero":
        # y/p, which is infinite where p is 0
        outer += c * y * (exp(-rho, o.fast) - 1.0 + rho)
    return tl.where(y > 0, tl.where(near, y * inner, outer), p)


@triton.jit
def _coin(x, y, c, o: tl.constexpr):
    """p − y and the loss of the sigmoid at any target."""
    u = x
    if o.mode != "zero":
        u = _coin_root(x, y, c, o)
    if o.mode == "one":
        # with h = e^{u/2} the quadratic form (p − y)²/(p q) is a square, of (p − y)(h + 1/h)
        MAX_HALF: tl.constexpr = 43.0 if o.acc == tl.float32 else 350.0
        half = 0.5 * u
        half = tl.where(half > MAX_HALF, MAX_HALF, tl.where(half < -MAX_HALF, -MAX_HALF, half))
        h = exp(half, o.fast)
        inverse = reciprocal(h, o.fast)
        root = (1.0 - y) * h - y * inverse
        return root * reciprocal(h + inverse, o.fast), root * root
    else:
        tail = exp(-tl.abs(u), o.fast)
        larger = reciprocal(1.0 + tail, o.fast)
        smaller = tail * larger
        p = tl.where(u > 0, larger, smaller)
        q = tl.where(u > 0, smaller, larger)
        log_larger = -log1p(tail) if not o.fast else -log(1.0 + tail, True)
        log_smaller = log_larger - tl.abs(u)
        heads = _entropy(y, tl.where(u > 0, log_larger, log_smaller), p, c, o)
        tails = _entropy(1.0 - y, tl.where(u > 0, log_smaller, log_larger), q, c, o)
        return (1.0 - y) * p - y * q, heads + tails


@triton.jit
def _hard_coin(x, y, c, o: tl.constexpr):
    """p − y and the loss of the sigmoid at labels 0 and 1: two classes of the logistic loss."""
    gap = tl.where(y > 0.5, -x, x)
    if o.mode == "zero":
        tail = exp(-tl.abs(gap), o.fast)
        inverse = reciprocal(1.0 + tail, o.fast)
        mass = tl.where(gap >= 0, inverse, tail * inverse)
        # log(1 + tail) from its rounding error, too: it is the whole loss of a right answer
        loss = relu(gap) + log1p(tail)
    else:
        z = gap - 1.0
        if o.mode != "one":
            z = gap - (c - tl.log(c))
        odds = wright_omega(z, o.refine, o.fast)
        loss = odds
        if o.mode != "one":
            odds = odds * (1.0 / c)
            loss = log1p(odds) + c * x_minus_log1p(odds)
            loss = tl.where(odds == float("inf"), odds, loss)
        mass = tl.where(odds > 1e30, 1.0, odds * reciprocal(1.0 + odds, o.fast))
    return tl.where(y > 0.5, -mass, mass), loss


@triton.jit
def _entry_losses(x, y, c, o: tl.constexpr):
    if o.kind == "clipped":
        return _clipped(x, y, c, o)
    elif o.kind == "poisson":
        return softmax_terms(x, c, y, c, False, o)
    else:
        # a smaller target would have odds beyond the range of exponentials, and counts for nothing
        NOTHING: tl.constexpr = 1e-30 if o.acc == tl.float32 else 1e-280
        y = tl.where(y < NOTHING, 0.0, y)
        is_soft = (y != 0.0) & (y != 1.0)
        if tl.max(is_soft.to(tl.int32), axis=0) > 0:
            difference, loss = _coin(x, y, c, o)
        else:
            difference, loss = _hard_coin(x, y, c, o)
        return difference, loss


@triton.jit(do_not_specialize=["divisor", "tightness"])
def entry_losses(
    theta, target, weight, pos_weight, value, gradient,
    n, k, weight_row, weight_column, pos_row, pos_column, divisor,
    tightness: tl.float64, o: tl.constexpr,
):  # fmt: skip
    """Losses, or the sum of a program's, and gradients of n entries in rows of k."""
    c = tightness_of(tightness, o)
    at = tl.program_id(0).to(tl.int64) * o.block + tl.arange(0, o.block)
    inside = at < n
    x = tl.load(theta + at, mask=inside, other=0.0).to(o.acc)
    y = tl.load(target + at, mask=inside, other=0.0).to(o.acc)
    scale = 1.0 / (tl.full((), 1.0, o.acc) * divisor)
    scale = tl.full((o.block,), 0.0, o.acc) + scale
    if o.weighted:
        where = (at // k) * weight_row + (at % k) * weight_column
        scale *= tl.load(weight + where, mask=inside, other=0.0).to(o.acc)
    is_counted = scale != 0
    if o.pos_weighted:
        # w y log p + (1 − y) log(1 − p) is t times the loss at w y/t, with t = w y + 1 − y
        where = (at // k) * pos_row + (at % k) * pos_column
        positive = y * tl.load(pos_weight + where, mask=inside, other=0.0).to(o.acc)
        total = positive + (1.0 - y)
        y = positive / total
        scale *= total
    difference, loss = _entry_losses(x, y, c, o)
    if o.with_value:
        loss = tl.where(is_counted, loss * scale, 0.0)
        if o.summed:
            tl.store(value + tl.program_id(0), tl.sum(tl.where(inside, loss, 0.0), axis=0))
        else:
            tl.store(value + at, loss, mask=inside)
    if o.with_gradient:
        out = tl.where(is_counted, difference * scale, 0.0).to(gradient.dtype.element_ty)
        tl.store(gradient + at, out, mask=inside, cache_modifier=".cs")
