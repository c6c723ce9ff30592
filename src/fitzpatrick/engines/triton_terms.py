r"""What the kernels for proportions compute entry by entry.

They restate the core's elementwise formulas: s = θ − τ ↦ the maximiser p and what Newton's method
needs of its derivative, and the entry's term of the loss.

The Fitzpatrick logistic loss has two ways to its ω(log y − s). The exact one works in logarithms
and takes any score. The narrow one is for rows whose scores span less than 60, where
:math:`q = e^s` is a floating-point number and ω = W(y/q). There
:math:`p = (q + e\,y) / (e^{-\omega} + e\,\omega)`, and the fraction of the two is a rational
function of :math:`\log_2(1 + e\,y/q)` to the precision in question: W branches at −1/e, which this
logarithm takes to infinity. That is one exponential and one logarithm, and y = 0 is no exception.
"""

# mypy: disable-error-code="misc,no-untyped-def,no-any-return"
# Triton's own language, which is not Python to a type checker

import triton
import triton.language as tl

from .triton_math import LOG2_E, exp, exp2, expm1_minus_x, log, log2, reciprocal, relu

__all__ = [
    "LOGISTIC",
    "LOSSES",
    "NARROW",
    "SPARSEMAX",
    "entmax_point",
    "omega_point",
    "ramp",
    "terms",
]

# names of the pairs, as numbers that a kernel can be specialised to
LOSSES = {"logistic": 0, "sparsemax": 1, "entmax15": 2}
LOGISTIC: tl.constexpr = tl.constexpr(0)
SPARSEMAX: tl.constexpr = tl.constexpr(1)
# what λ − θ may be in a narrow row
NARROW: tl.constexpr = tl.constexpr(60.0)
_E: tl.constexpr = tl.constexpr(2.718281828459045)


@triton.jit
def _gap(y, depth):
    """Product y (depth)₊, where 0 · ∞ counts as 0."""
    return tl.where(y > 0, y * relu(depth), 0.0)


@triton.jit
def _entmax_parts(s, y, FAST: tl.constexpr):
    """√p of the Fitzpatrick entmax15 loss, (s + √(s² + 12 y))/6, and the root's reciprocal."""
    TINY: tl.constexpr = 1e-37 if s.dtype == tl.float32 else 1e-300
    square = s * s + (12.0 * y + TINY)
    inverse = tl.rsqrt(square)
    length = tl.abs(s) + tl.where(tl.abs(s) > 1e9, tl.abs(s), square * inverse)
    # for a negative s the two would cancel; their product is −12 y
    both = tl.where(s > 0, length, 12.0 * y * reciprocal(length, FAST))
    return both * (1.0 / 6.0), inverse


@triton.jit
def _omega(s, y, REFINE: tl.constexpr, FLOOR: tl.constexpr, FAST: tl.constexpr):
    """ω(log y − s) by REFINE fourth-order steps from a guess within 1%; 0 where y = 0."""
    # ω is z where its logarithm is no digit of it; there its cube would overflow
    LARGE: tl.constexpr = 1e10 if s.dtype == tl.float32 else 1e30
    z = tl.where(y > 0, log(y, FAST) - s, 2.0 * FLOOR)
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
    omega = tl.where(z < FLOOR, e, tl.where(z > LARGE, z, omega))
    return tl.where(y > 0, omega, 0.0)


@triton.jit
def _narrow_parts(x, tau, y, ROUGH: tl.constexpr, FAST: tl.constexpr):
    """The maximiser as a quotient of two positive numbers, within 6e-5 (ROUGH) or 2e-7."""
    shift = tau * LOG2_E
    exponent = x * LOG2_E - shift
    both = exp2(exponent, FAST) + y * _E
    bits = log2(both, FAST) - exponent
    if ROUGH:
        above = 0.01909724403 + bits * 0.001179346263
        above = 1.000060864 + bits * (0.09625097126 + bits * above)
        below = 0.1346832406 + bits * (0.0191926537 + bits * 0.002201844416)
    else:
        above = 9.058047439e-05 + bits * (3.589807204e-06 - bits * 6.052537289e-11)
        above = 0.01854049132 + bits * (0.001220327531 + bits * above)
        above = 1.000000171 + bits * (0.07444390371 + bits * above)
        below = 0.001819618324 + bits * (0.0001178727419 + bits * 6.695560201e-06)
        below = 0.1237995713 + bits * (0.01830795651 + bits * below)
    first: tl.constexpr = 0.5344152367 if ROUGH else 0.5125968818
    return both * above, 1.0 + bits * (first + bits * below)


@triton.jit
def omega_point(
    x,
    tau,
    y,
    IS_NARROW: tl.constexpr,
    ROUGH: tl.constexpr,
    REFINE: tl.constexpr,
    FLOOR: tl.constexpr,
    FAST: tl.constexpr,
):
    """The maximiser p of the Fitzpatrick logistic loss, and 1/(1 + ω) − ½."""
    if IS_NARROW:
        above, below = _narrow_parts(x, tau, y, ROUGH, FAST)
        sum_ = above + y * below
        share = above * reciprocal(below * sum_, FAST)
        return share * sum_, share * below - 0.5
    s = x - tau
    omega = _omega(s, y, REFINE, FLOOR, FAST)
    # s + ω has no digits left where ω is large
    small = omega < 0.5
    p = exp(tl.where(small, s + omega, 0.0), FAST)
    p = tl.where(small, p, y * reciprocal(tl.where(small, 1.0, omega), FAST))
    return p, reciprocal(1.0 + omega, FAST) - 0.5


@triton.jit
def _omega_terms(
    x,
    tau,
    y,
    IS_NARROW: tl.constexpr,
    ROUGH: tl.constexpr,
    REFINE: tl.constexpr,
    FLOOR: tl.constexpr,
    FAST: tl.constexpr,
):
    """p − y and p (1 − ω)², each in the form that keeps its digits."""
    if IS_NARROW:
        above, below = _narrow_parts(x, tau, y, ROUGH, FAST)
        rest = above - y * below
        share = rest * reciprocal(above * below, FAST)
        return share * above, share * rest
    s = x - tau
    omega = _omega(s, y, REFINE, FLOOR, FAST)
    inverse = reciprocal(tl.where(omega < 0.5, 1.0, omega), FAST)
    p = exp(tl.where(omega < 0.5, s + omega, 0.0), FAST)
    difference = tl.where(omega < 0.5, p - y, y * (inverse - 1.0))
    return difference, difference * (1.0 - omega)


@triton.jit
def ramp(s, LOSS: tl.constexpr, FITZPATRICK: tl.constexpr):
    """The maximiser p of a sparse pair, and its derivative in s.

    The proportion is part of s in Fitzpatrick sparsemax; in Fitzpatrick entmax15 this p is for a
    proportion of 0, and a lower bound for others.
    """
    if LOSS == SPARSEMAX:
        SHARE: tl.constexpr = 0.5 if FITZPATRICK else 1.0
        p = relu(s * SHARE)
        return p, tl.where(p > 0, SHARE, 0.0).to(s.dtype)
    SQUARE: tl.constexpr = 1.0 / 9.0 if FITZPATRICK else 0.25
    above = relu(s)
    return above * (above * SQUARE), above * (2.0 * SQUARE)


@triton.jit
def entmax_point(s, y, FAST: tl.constexpr):
    """The maximiser p of the Fitzpatrick entmax15 loss, and its derivative in s."""
    root, inverse = _entmax_parts(s, y, FAST)
    p = root * root
    return p, 2.0 * p * inverse


@triton.jit
def terms(
    x,
    tau,
    y,
    LOSS: tl.constexpr,
    FITZPATRICK: tl.constexpr,
    IS_NARROW: tl.constexpr,
    ROUGH: tl.constexpr,
    REFINE: tl.constexpr,
    FLOOR: tl.constexpr,
    FAST: tl.constexpr,
):
    """The difference p − y and the entry's non-negative term of the loss.

    In Fitzpatrick sparsemax the proportion is part of x.
    """
    if LOSS == LOGISTIC and FITZPATRICK:
        return _omega_terms(x, tau, y, IS_NARROW, ROUGH, REFINE, FLOOR, FAST)
    s = x - tau
    if LOSS == LOGISTIC:
        p = exp(s, FAST)
        ratio = s - log(tl.where(y > 0, y, 1.0), FAST)
        near = tl.abs(ratio) < 0.5
        close = y * expm1_minus_x(tl.where(near, ratio, 0.0), FAST)
        return p - y, tl.where(y > 0, tl.where(near, close, p - y - y * ratio), p)
    if LOSS == SPARSEMAX:
        if FITZPATRICK:
            difference = relu(s * 0.5) - y
            return difference, difference * difference + _gap(y, -s)
        difference = relu(s) - y
        return difference, 0.5 * difference * difference + _gap(y, -s)
    if FITZPATRICK:
        root, _ = _entmax_parts(s, y, FAST)
        rest = s - 2.0 * root
        return root * root - y, tl.where(root > 0, root * rest * rest, _gap(y, -s))
    root = relu(s * 0.5)
    a = tl.sqrt(y)
    cubic = (a - root) * (a - root) * (2.0 * a + root) * (2.0 / 3.0)
    return root * root - y, cubic + _gap(y, -s)
