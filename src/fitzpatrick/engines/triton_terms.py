r"""What the kernels for proportions compute entry by entry.

They restate the core's elementwise formulas: s = θ − τ ↦ the maximiser p and what Newton's method
needs of its derivative, and the entry's term of the loss.

The Fitzpatrick logistic loss has two ways to its ω(log y − s). The exact one works in logarithms
and takes any score. The narrow one is for rows whose scores span less than 60, where ω = W(u) with
:math:`u = y e^{-s}` in floating point: there p = y/ω, with a tiny number for y = 0, needs one
exponential and one logarithm, and one logarithm more to be refined.
"""

# mypy: disable-error-code="misc,no-untyped-def,no-any-return"
# Triton's own language, which is not Python to a type checker

import triton
import triton.language as tl

from .triton_math import LOG2_E, exp, exp2, expm1_minus_x, log, log2, reciprocal, relu

__all__ = ["LOGISTIC", "LOSSES", "NARROW", "SPARSEMAX", "omega_point", "point", "terms"]

# names of the pairs, as numbers that a kernel can be specialised to
LOSSES = {"logistic": 0, "sparsemax": 1, "entmax15": 2}
LOGISTIC: tl.constexpr = tl.constexpr(0)
SPARSEMAX: tl.constexpr = tl.constexpr(1)
# what λ − θ may be in a narrow row
NARROW: tl.constexpr = tl.constexpr(60.0)
# stands for y = 0 in a narrow row: e^60 times it is less than an ulp of one
_NOTHING: tl.constexpr = tl.constexpr(1e-37)


@triton.jit
def _gap(y, depth):
    """Product y (depth)₊, where 0 · ∞ counts as 0."""
    return tl.where(y > 0, y * relu(depth), 0.0)


@triton.jit
def _entmax_root(s, y):
    """√p of the Fitzpatrick entmax15 loss: (s + √(s² + 12 y))/6, without cancellation."""
    length = tl.where(tl.abs(s) > 1e9, tl.abs(s), tl.sqrt(s * s + 12.0 * y))
    return tl.where(
        s > 0, (s + length) * (1.0 / 6.0), tl.where(y > 0, 2.0 * y / (length - s), 0.0 * relu(s))
    )


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
def _narrow_omega(x, tau, y, ROUGH: tl.constexpr, FAST: tl.constexpr):
    """W(y e^{τ − x}) as a quotient, with a denominator of one unless it is ROUGH, and its y.

    A rational function of log(1 + u) comes within 4e-5 (ROUGH), or within 2e-3 and is refined by a
    third-order step.
    """
    y = tl.maximum(y, _NOTHING, propagate_nan=tl.PropagateNan.ALL)
    u = y * exp2(tau * LOG2_E - x * LOG2_E, FAST)
    bits = tl.where(u < 0.01, u * (LOG2_E - u * (0.5 * LOG2_E)), log2(1.0 + u, FAST))
    if ROUGH:
        above = 0.08072798061 + bits * (0.01383291808 + bits * 0.0002715451831)
        above = 0.6931210363 + bits * (0.5337805463 + bits * above)
        below = 0.1921101471 + bits * (0.02288412743 + bits * 0.0003932388199)
        return bits * above, 1.0 + bits * (1.115129113 + bits * below), y
    above = bits * (0.6916649818 + bits * (0.258917001 + bits * 0.03726187361))
    below = 1.0 + bits * (0.688348499 + bits * 0.0541728434)
    omega = above * reciprocal(below, FAST)
    shifted = 1.0 + omega
    inverse = reciprocal(omega * shifted, FAST)
    residual = log(u * (inverse * shifted), FAST) - omega
    slope = omega * inverse
    step = residual * slope
    omega += omega * step * (1.0 + 0.5 * step * slope)
    return omega, tl.full(omega.shape, 1.0, omega.dtype), y


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
    """The maximiser p of the Fitzpatrick logistic loss, and 1/(1 + ω)."""
    if IS_NARROW:
        above, below, y = _narrow_omega(x, tau, y, ROUGH, FAST)
        both = above + below
        inverse = reciprocal(above * both, FAST) * below
        return y * (inverse * both), above * inverse
    s = x - tau
    omega = _omega(s, y, REFINE, FLOOR, FAST)
    # s + ω has no digits left where ω is large
    small = omega < 0.5
    p = exp(tl.where(small, s + omega, 0.0), FAST)
    p = tl.where(small, p, y * reciprocal(tl.where(small, 1.0, omega), FAST))
    return p, reciprocal(1.0 + omega, FAST)


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
        above, below, y = _narrow_omega(x, tau, y, ROUGH, FAST)
        rest = below - above
        share = y * rest * reciprocal(above * below, FAST)
        return share * below, share * rest
    s = x - tau
    omega = _omega(s, y, REFINE, FLOOR, FAST)
    inverse = reciprocal(tl.where(omega < 0.5, 1.0, omega), FAST)
    p = exp(tl.where(omega < 0.5, s + omega, 0.0), FAST)
    difference = tl.where(omega < 0.5, p - y, y * (inverse - 1.0))
    return difference, difference * (1.0 - omega)


@triton.jit
def point(s, y, LOSS: tl.constexpr, FITZPATRICK: tl.constexpr):
    """The maximiser p of a sparse pair, and its derivative in s."""
    if LOSS == SPARSEMAX:
        if FITZPATRICK:
            p = relu((y + s) * 0.5)
            return p, tl.where(p > 0, 0.5, 0.0).to(s.dtype)
        p = relu(s)
        return p, tl.where(p > 0, 1.0, 0.0).to(s.dtype)
    if FITZPATRICK:
        root = _entmax_root(s, y)
        p = root * root
        return p, root * p / tl.where(p > 0, 1.5 * p + 0.5 * y, 1.0)
    root = relu(s * 0.5)
    return root * root, root


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
    """The difference p − y and the entry's non-negative term of the loss."""
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
    cubic = (a - root) * (a - root) * (2.0 * a + root) * (2.0 / 3.0)
    return root * root - y, cubic + _gap(y, -s)
