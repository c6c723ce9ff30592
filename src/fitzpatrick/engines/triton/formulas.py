r"""The formulas of the kernels, at every tightness c: entries p, their slopes, terms of the loss.

They restate the core's elementwise formulas with s = θ − τ.

- Logistic: :math:`p = c\,y / \omega(\log(c\,y) - s)`, which is :math:`e^s` where c y = 0.
- Sparsemax, with s = θ + c y − τ and the width w = 1 + c: p = s₊ / w.
- Entmax15, with the width w = 2 + c: :math:`\sqrt p = (s + \sqrt{s^2 + 4 w c y}) / 2w`.

Without a target the latter two are :math:`(s_+/w)^P`, P = 1 and 2: ramps, which the kernels sum as
powers of :math:`r = s_+`. An entry of the label has y = 1.

The logistic ω comes in two ways. The exact one works in logarithms and takes any score. The narrow
one is for rows whose scores span less than 60, where :math:`q = e^s` is a floating-point number and
ω = W(c y/q). There :math:`p = (q + e\,c\,y) / (e^{-\omega} + e\,\omega)`, and one over the
denominator is, to the precision in question, a rational function of :math:`\log_2(1 + e\,c\,y/q)`:
W branches at −1/e, which this logarithm takes to infinity. That costs one exponential and one
logarithm, and y = 0 is no exception.

``o`` holds the options of a kernel (:class:`.plan.Options`).
"""

import triton
import triton.language as tl

from .math import (
    LOG2_E,
    exp,
    exp2,
    expm1_minus_x,
    log,
    log1p,
    log2,
    reciprocal,
    relu,
    sigmoid,
    softplus,
    wright_omega,
    x_minus_log1p,
)

_E: tl.constexpr = tl.constexpr(2.718281828459045)


@triton.jit
def tightness_of(tightness, o: tl.constexpr):
    """The tightness as a number of the kernel's precision; a constant in a mode of its own."""
    if o.mode == "zero":
        return tl.full((), 0.0, o.acc)
    elif o.mode == "one":
        return tl.full((), 1.0, o.acc)
    else:
        return (tl.full((), 0.0, tl.float64) + tightness).to(o.acc)


@triton.jit
def softmax_label_loss(gap, c, o: tl.constexpr):
    """The loss and the mass of the classes other than the label; gap = lse over these − θ_j."""
    if o.mode == "zero":
        return softplus(gap), sigmoid(gap)
    elif o.mode == "one":
        odds = wright_omega(gap - 1.0, o.refine, False)
        return odds, 1.0 / (1.0 + 1.0 / odds)
    else:
        odds = wright_omega(gap - (c - tl.log(c)), o.refine, False) / c
        loss = log1p(odds) + c * x_minus_log1p(odds)
        # ∞ − ∞ where the label is masked
        return tl.where(odds == float("inf"), odds, loss), 1.0 / (1.0 + 1.0 / odds)


@triton.jit
def sum_of_powers(r, POWER: tl.constexpr):
    """Σ r^POWER over the last axis, r >= 0; the power 0 counts positive entries."""
    # of halves: Σr beside Σr² crashes the compiler of Triton 3.9
    if POWER == 0:
        return tl.sum(tl.where(r > 0, 1.0, 0.0).to(r.dtype), axis=1)
    elif POWER == 1:
        return 2.0 * tl.sum(r * 0.5, axis=1)
    elif POWER == 2:
        return 2.0 * tl.sum(r * (r * 0.5), axis=1)
    else:
        return tl.sum(r * r * r, axis=1)


@triton.jit
def ramp_scale(c, o: tl.constexpr):
    """w^−P, which makes p of r^P."""
    inverse = 1.0 / (o.power + c)
    if o.power == 1:
        return inverse
    else:
        return inverse * inverse


@triton.jit
def ramp_score(x, y, c, o: tl.constexpr):
    """What τ is taken off: the score, with c y added in sparsemax."""
    if o.power == 1 and o.mode != "zero":
        return x + c * y
    else:
        return x


@triton.jit
def ramp_start(highest, c, o: tl.constexpr):
    """A τ not above the root: the highest entry alone is one there."""
    return highest - (o.power + c)


@triton.jit
def _entmax_root(s, bend, c, o: tl.constexpr):
    """√p of entmax15, and 1/√(s² + bend); bend = 4 w c y."""
    TINY: tl.constexpr = 1e-37 if s.dtype == tl.float32 else 1e-300
    square = s * s + (bend + TINY)
    inverse = tl.rsqrt(square)
    length = tl.abs(s) + tl.where(tl.abs(s) > 1e9, tl.abs(s), square * inverse)
    # for a negative s the two would cancel; their product is −bend
    both = tl.where(s > 0, length, bend * reciprocal(length, o.fast))
    return both * (0.5 / (2.0 + c)), inverse


@triton.jit
def entmax_point(s, y, c, o: tl.constexpr):
    """The entries p of entmax15 for c > 0, and their derivatives in s."""
    root, inverse = _entmax_root(s, 4.0 * (2.0 + c) * c * y, c, o)
    p = root * root
    return p, 2.0 * p * inverse


@triton.jit
def label_point(s, c, o: tl.constexpr):
    """The label's entry p of a sparse loss, and its derivative in s = θ_j − τ."""
    if o.power == 1:
        inverse = 1.0 / (1.0 + c)
        p = relu(c + s) * inverse
        return p, tl.where(p > 0, inverse, 0.0)
    else:
        return entmax_point(s, 1.0, c, o)


@triton.jit
def sparse_label_loss(mass, powers, s, c, o: tl.constexpr):
    """The loss from the others' mass Σp and from their Σ r^(P + 1), and the label's s."""
    others = powers * ramp_scale(c, o) / (o.power + 1.0)
    if o.power == 1:
        return others + 0.5 * (1.0 + c) * mass * mass + relu(-(c + s))
    else:
        root, _ = _entmax_root(s, 4.0 * (2.0 + c) * c, c, o)
        rest = mass / (1.0 + root)  # 1 − √p
        return others + rest * rest * ((2.0 + c) * (2.0 / 3.0) * (1.0 + 2.0 * root) - s)


@triton.jit
def ramp_terms(s, y, c, o: tl.constexpr):
    """p − y and the terms of the loss, of sparsemax (where c y is part of s) and entmax15."""
    width = o.power + c
    if o.power == 1:
        difference = relu(s * (1.0 / width)) - y
        below = tl.where(y > 0, y * relu(-s), 0.0)  # 0 · ∞ is 0
        return difference, difference * difference * (0.5 * width) + below
    elif o.mode == "one":
        root, _ = _entmax_root(s, 12.0 * y, c, o)
        rest = s - 2.0 * root
        below = tl.where(y > 0, y * relu(-s), 0.0)
        return root * root - y, tl.where(root > 0, root * rest * rest, below)
    else:
        if o.mode == "zero":
            root = relu(s * 0.5)
        else:
            root, _ = _entmax_root(s, 4.0 * width * c * y, c, o)
        u = tl.sqrt(y)
        gap = u - root
        # c y/√p is w √p − s; 0 · ∞ is 0
        slope = (2.0 / 3.0) * width * (u + 2.0 * root) - s
        return root * root - y, tl.where(gap == 0, 0.0, gap * gap * slope)


@triton.jit
def _narrow_parts(x, tau, y, c, o: tl.constexpr):
    """p as a quotient of two positive numbers, within 6e-5 (half precision) or 2e-7."""
    shift = tau * LOG2_E
    exponent = x * LOG2_E - shift
    both = exp2(exponent, o.fast) + y * (c * _E)
    bits = log2(both, o.fast) - exponent
    if o.rough:
        above = 0.01909724403 + bits * 0.001179346263
        above = 1.000060864 + bits * (0.09625097126 + bits * above)
        below = 0.1346832406 + bits * (0.0191926537 + bits * 0.002201844416)
    else:
        above = 9.058047439e-05 + bits * (3.589807204e-06 - bits * 6.052537289e-11)
        above = 0.01854049132 + bits * (0.001220327531 + bits * above)
        above = 1.000000171 + bits * (0.07444390371 + bits * above)
        below = 0.001819618324 + bits * (0.0001178727419 + bits * 6.695560201e-06)
        below = 0.1237995713 + bits * (0.01830795651 + bits * below)
    first: tl.constexpr = 0.5344152367 if o.rough else 0.5125968818
    return both * above, 1.0 + bits * (first + bits * below)


@triton.jit
def _exact_parts(x, tau, y, c, o: tl.constexpr):
    """s, ω(log(c y) − s), which is 0 where y = 0, and whether p is e^(s + ω) rather than c y/ω."""
    s = x - tau
    z = log(y, o.fast)
    if o.mode != "one":
        z += tl.log(c)
    z = tl.where(y > 0, z - s, -80.0)
    omega = tl.where(y > 0, wright_omega(z, o.refine, o.fast), 0.0)
    # s + ω has no digits left where ω is large, and p is near y where ω is near c
    return s, omega, omega < 0.5 * tl.minimum(c, 1.0)


@triton.jit
def softmax_point(x, tau, y, c, IS_NARROW: tl.constexpr, o: tl.constexpr):
    """The entries p of the logistic loss for c > 0, and 1/(1 + ω) − ½."""
    if IS_NARROW:
        above, below = _narrow_parts(x, tau, y, c, o)
        both = above + c * y * below
        share = above * reciprocal(below * both, o.fast)
        return share * both, share * below - 0.5
    else:
        s, omega, small = _exact_parts(x, tau, y, c, o)
        p = exp(tl.where(small, s + omega, 0.0), o.fast)
        p = tl.where(small, p, y * (c * reciprocal(tl.where(small, 1.0, omega), o.fast)))
        return p, reciprocal(1.0 + omega, o.fast) - 0.5


@triton.jit
def _divergence(difference, square, h, y, o: tl.constexpr):
    r"""The entry's KL term D = p − y − y log(p/y), from p − y, Q = (p − y)²/p and h = 1 − y/p.

    D = Q/2 + Q h/6 + Q h²/12 + …, the coefficients being 1/((n + 1)(n + 2)). A rough D does without
    the series: its errors, of 2e-7 times y, sum to less than half precision has digits.
    """
    TERMS: tl.constexpr = 8 if o.acc == tl.float32 else 22
    EPS: tl.constexpr = 6e-8 if o.acc == tl.float32 else 1e-16
    far = difference + y * log(tl.maximum(1.0 - h, EPS), o.fast)
    if o.rough:
        return relu(far)
    series = 1.0 / ((TERMS + 1) * (TERMS + 2))
    for i in tl.static_range(TERMS):
        series = 1.0 / ((TERMS - i) * (TERMS + 1 - i)) + h * series
    return tl.where(tl.abs(h) < 0.25, square * series, far)


@triton.jit
def softmax_terms(x, tau, y, c, IS_NARROW: tl.constexpr, o: tl.constexpr):
    """p − y and the terms of the logistic loss, D + c (Q − D), in forms that keep their digits."""
    if o.mode == "zero":
        s = x - tau
        p = exp(s, o.fast)
        ratio = s - log(tl.where(y > 0, y, 1.0), o.fast)
        near = tl.abs(ratio) < 0.5
        close = y * expm1_minus_x(tl.where(near, ratio, 0.0), o.fast)
        return p - y, tl.where(y > 0, tl.where(near, close, p - y - y * ratio), p)
    else:
        if IS_NARROW:
            above, below = _narrow_parts(x, tau, y, c, o)
            rest = above - y * below
            share = rest * reciprocal(above * below, o.fast)
            difference, square, h = share * above, share * rest, share * below
        else:
            s, omega, small = _exact_parts(x, tau, y, c, o)
            w = omega * (1.0 / c)
            h = 1.0 - w
            p = exp(tl.where(small, s + omega, 0.0), o.fast)
            quotient = y * (reciprocal(tl.where(small, 1.0, w), o.fast) - 1.0)
            difference = tl.where(small, p - y, quotient)
            square = tl.abs(difference * h)
        if o.mode == "one":
            return difference, square
        else:
            divergence = _divergence(difference, square, h, y, o)
            loss = divergence + c * (square - divergence)
            if not IS_NARROW:
                loss = tl.where(square == float("inf"), square, loss)
            return difference, loss
