r"""Kernels for losses that are sums over entries: squared, clipped, sigmoid and Poisson.

Every entry is by itself: with its score θ and target y, at the tightness c,

- squared norm on an interval: p is (θ + c y)/(1 + c), clipped, and the loss is
  (1 + c)/2 (p − y)² + (p − y) ν, where ν = θ + c y − (1 + c) p is what was clipped;
- Poisson: that of the negative entropy in :mod:`.formulas`, with c in the place of τ;
- sigmoid: p = σ(u) with u + a e^u − b e^−u + a − b = θ, a = c (1 − y), b = c y. For a label 0 or 1
  it is the logistic loss of two classes, which has a closed form.

Scores and targets are read once; the loss is summed within a program where nobody asks for each
entry's.
"""

# mypy: disable-error-code="misc,no-untyped-def,no-any-return"
# ruff: noqa: RET505
# Triton's language is not Python to a type checker

import triton
import triton.language as tl

from .formulas import softmax_label_loss, softmax_terms, tightness_of
from .math import exp, expm1_minus_x, log, log1p, reciprocal, relu, sigmoid, wright_omega

__all__ = ["entry_links", "entry_losses"]


@triton.jit
def _clipped(x, y, c, o: tl.constexpr):
    """p − y and the loss of a squared norm."""
    if not o.clips:
        difference = (x - y) * (1.0 / (1.0 + c))
        return difference, difference * difference * (0.5 * (1.0 + c))
    else:
        score = x + c * y
        p = score * (1.0 / (1.0 + c))
        p = tl.where(p < 0.0, 0.0, tl.where(p > 1.0, 1.0, p))
        difference = p - y
        beyond = tl.where(difference == 0, 0.0, difference * (score - (1.0 + c) * p))
        return difference, difference * difference * (0.5 * (1.0 + c)) + beyond


@triton.jit
def _coin_root(s, y, c, steps, o: tl.constexpr):
    """u of the sigmoid, by Newton's method from the side where it is monotone."""
    TINY: tl.constexpr = 1e-37 if o.acc == tl.float32 else 1e-300
    MAX_EXPONENT: tl.constexpr = 80.0 if o.acc == tl.float32 else 700.0
    log_heads, log_tails = log(tl.maximum(y, TINY), o.fast), log(tl.maximum(1.0 - y, TINY), o.fast)
    shift = 0.5 * (log_tails - log_heads)
    # reflected where the left-hand side is negative, less the constant that makes it odd
    reflect = (y == 1.0) | ((y > 0) & (s - c * (1.0 - 2.0 * y) + shift < 0))
    a = c * tl.where(reflect, y, 1.0 - y)
    b = c * tl.where(reflect, 1.0 - y, y)
    level = tl.where(reflect, -s, s) - (a - b)
    shift = tl.where(reflect, -shift, shift)
    log_a = tl.log(c) + tl.where(reflect, log_heads, log_tails)
    # b e^−u <= m gives one upper bound, u = log(ω/a), and sinh v >= v the other
    m = tl.sqrt(a * b)
    z = level + m + log_a
    omega = wright_omega(z, 1, o.fast)
    u = tl.where(z < 0, level + m - omega, log(tl.where(z > 0, omega, 1.0), o.fast) - log_a)
    linear = (level + shift) * reciprocal(1.0 + 2.0 * m, o.fast) - shift
    u = tl.where((b > 0) & (linear < u), linear, u)
    for _ in range(steps):
        near = tl.minimum(tl.maximum(u, -MAX_EXPONENT), MAX_EXPONENT)
        e = exp(near, o.fast)
        rise = a * e
        fall = b * reciprocal(e, o.fast)
        step = (u + rise - fall - level) * reciprocal(1.0 + rise + fall, o.fast)
        u = u - tl.where(tl.abs(step) < float("inf"), step, 0.0)
    return tl.where(reflect, -u, u)


@triton.jit
def _entropy(y, log_p, p, c, o: tl.constexpr):
    """D + c (Q − D) of one side of a coin, from y, log p and p."""
    rho = log_p - log(tl.where(y > 0, y, 1.0), o.fast)
    near = tl.abs(rho) < 0.5
    small = tl.where(near, rho, 0.0)
    inner = expm1_minus_x(small, o.fast) + c * expm1_minus_x(-small, o.fast)
    outer = p - y - y * rho
    if o.mode != "zero":
        # y/p, which is infinite where p is 0
        outer += c * y * (exp(-rho, o.fast) - 1.0 + rho)
    return tl.where(y > 0, tl.where(near, y * inner, outer), p)


@triton.jit
def _coin(x, y, c, steps, o: tl.constexpr):
    """p − y and the loss of the sigmoid at any target."""
    u = x
    if o.mode != "zero":
        u = _coin_root(x, y, c, steps, o)
    tail = exp(-tl.abs(u), o.fast)
    larger = reciprocal(1.0 + tail, o.fast)
    smaller = tail * larger
    p = tl.where(u > 0, larger, smaller)
    q = tl.where(u > 0, smaller, larger)
    log_larger = -log1p(tail)
    log_smaller = log_larger - tl.abs(u)
    heads = _entropy(y, tl.where(u > 0, log_larger, log_smaller), p, c, o)
    tails = _entropy(1.0 - y, tl.where(u > 0, log_smaller, log_larger), q, c, o)
    # of the two forms, the one without cancellation near its end
    difference = tl.where(y > 0.5, (1.0 - y) - q, p - y)
    return difference, heads + tails


@triton.jit
def _hard_coin(x, y, c, o: tl.constexpr):
    """The same for labels 0 and 1."""
    gap = tl.where(y > 0.5, -x, x)
    loss, mass = softmax_label_loss(gap, c, o)
    loss = tl.where(gap == float("inf"), gap, loss)
    mass = tl.where(gap == float("-inf"), 0.0, mass)
    return tl.where(y > 0.5, -mass, mass), loss


@triton.jit
def _entry_losses(x, y, c, steps, o: tl.constexpr):
    """p − y and the losses."""
    if o.kind == "clipped":
        return _clipped(x, y, c, o)
    elif o.kind == "poisson":
        return softmax_terms(x, c, y, c, False, o)
    else:
        is_soft = (y != 0.0) & (y != 1.0)
        if tl.max(is_soft.to(tl.int32), axis=0) > 0:
            difference, loss = _coin(x, y, c, steps, o)
        else:
            difference, loss = _hard_coin(x, y, c, o)
        return difference, loss


@triton.jit(do_not_specialize=["divisor", "tightness"])
def entry_losses(
    theta, target, weight, pos_weight, value, gradient,
    n, k, weight_row, weight_column, pos_row, pos_column, divisor, steps,
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
    difference, loss = _entry_losses(x, y, c, steps, o)
    if o.with_value:
        loss = tl.where(is_counted, loss * scale, 0.0)
        if o.summed:
            tl.store(value + tl.program_id(0), tl.sum(tl.where(inside, loss, 0.0), axis=0))
        else:
            tl.store(value + at, loss, mask=inside)
    if o.with_gradient:
        out = tl.where(is_counted, difference * scale, 0.0).to(gradient.dtype.element_ty)
        tl.store(gradient + at, out, mask=inside, cache_modifier=".cs")


@triton.jit
def entry_links(theta, out, n, o: tl.constexpr):
    """The links of n entries."""
    at = tl.program_id(0).to(tl.int64) * o.block + tl.arange(0, o.block)
    x = tl.load(theta + at, mask=at < n, other=0.0).to(o.acc)
    if o.kind == "poisson":
        p = exp(x, o.fast)
    elif o.kind == "sigmoid":
        p = sigmoid(x)
    elif o.clips:
        p = tl.where(x > 1.0, 1.0, relu(x))
    else:
        p = x
    tl.store(out + at, p.to(out.dtype.element_ty), mask=at < n)
