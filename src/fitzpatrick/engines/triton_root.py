r"""The number τ that makes the entries of a row sum to one, for kernels for proportions.

The sparse pairs take Newton's steps. For the Fitzpatrick logistic loss τ lies between lse(θ) and
lse(θ) + 1, and one pass over the row finds it: with :math:`t = 1/(1 + \omega)` in the middle of
that interval, an entry is :math:`p\,F(\Delta, t)` at a distance Δ from it, where F is smooth. The
row is replaced by eight stand-ins at the Chebyshev nodes of [0, 1] that have its moments
:math:`\sum p\,T_j(2t - 1)`, j < 8, and the equation is solved for these. For \|Δ\| ≤ ½ that leaves
an error of 1e-6; a second round, where float64 asks for it, leaves none. Four moments leave 4e-4,
which half precision does not see: the loss does not change with τ to first order.
"""

# mypy: disable-error-code="misc,no-untyped-def,no-any-return"
# Triton's own language, which is not Python to a type checker

import triton
import triton.language as tl

from .triton_math import exp, log, reciprocal
from .triton_terms import LOGISTIC, SPARSEMAX

__all__ = ["add_moments", "moments", "newton_step", "start", "step_from_moments"]


@triton.jit
def start(highest, lse, LOSS: tl.constexpr, FITZPATRICK: tl.constexpr):
    """Where to start: not above the root, or, for the Fitzpatrick logistic loss, within ½ of it."""
    if LOSS == LOGISTIC:
        return lse + (0.5 if FITZPATRICK else 0.0)
    if LOSS == SPARSEMAX:
        return highest - (2.0 if FITZPATRICK else 1.0)
    return highest - (3.0 if FITZPATRICK else 2.0)


@triton.jit
def newton_step(total, slope, LOSS: tl.constexpr):
    """Newton's step of τ on g (sparsemax) or √g (entmax15), and what it removes."""
    if LOSS == SPARSEMAX:
        excess = total - 1.0
    else:
        root = tl.sqrt(total)
        excess = 2.0 * root * (root - 1.0)
    return excess / slope, tl.abs(excess)


@triton.jit
def moments(p, t, ROUGH: tl.constexpr):
    """p tʲ, entry by entry, for j = 0 … 7, where t is less ½; four are enough for ROUGH."""
    first = p * t
    square = t * t
    if ROUGH:
        none = tl.zeros(p.shape, p.dtype)
        return p, first, p * square, first * square, none, none, none, none
    fourth = square * square
    sixth = fourth * square
    return (
        p, first, p * square, first * square,
        p * fourth, first * fourth, p * sixth, first * sixth,
    )  # fmt: skip


@triton.jit
def add_moments(a0, a1, a2, a3, a4, a5, a6, a7, b0, b1, b2, b3, b4, b5, b6, b7):
    """Moments of two parts of a row, together."""
    return a0 + b0, a1 + b1, a2 + b2, a3 + b3, a4 + b4, a5 + b5, a6 + b6, a7 + b7


@triton.jit
def _nodes(ACC: tl.constexpr):
    """cos(π (q + ½)/8), q = 0 … 7, shape (1, 8)."""
    q = tl.arange(0, 8)[None, :]
    nearer = tl.minimum(q, 7 - q)
    x = tl.full((1, 8), 0.19509032201612825, ACC)
    x = tl.where(nearer == 2, tl.full((1, 8), 0.5555702330196022, ACC), x)
    x = tl.where(nearer == 1, tl.full((1, 8), 0.8314696123025452, ACC), x)
    x = tl.where(nearer == 0, tl.full((1, 8), 0.9807852804032304, ACC), x)
    return tl.where(q < 4, x, -x)


@triton.jit
def _omega_near(omega, t, delta, FAST: tl.constexpr):
    """ω at a distance delta ≤ ½ from a place where it is omega: Taylor, and a fourth-order step."""
    z = omega + log(omega, FAST) + delta
    guess = omega + delta * (1.0 - t) * (1.0 + 0.5 * delta * t * t)
    residual = z - guess - log(guess, FAST)
    shifted = 1.0 + guess
    twice = shifted * (2.0 * shifted + residual * (4.0 / 3.0))
    below = shifted * (twice - 2.0 * residual)
    return guess + guess * residual * (twice - residual) * reciprocal(below, FAST)


@triton.jit
def _halley_step(p, t, FAST: tl.constexpr):
    """Halley's step of τ on log g, from the entries p and t = 1/(1 + ω)."""
    d = p * t
    total = tl.sum(p, axis=1)
    inverse = reciprocal(total, FAST)
    slope = -tl.sum(d, axis=1) * inverse
    bend = tl.sum(d * t * (2.0 - t), axis=1) * inverse - slope * slope
    height = log(total, FAST)
    return -2.0 * height * slope * reciprocal(2.0 * slope * slope - height * bend, FAST)


@triton.jit
def step_from_moments(
    m0,
    m1,
    m2,
    m3,
    m4,
    m5,
    m6,
    m7,
    ROUGH: tl.constexpr,
    REFINE: tl.constexpr,
    FAST: tl.constexpr,
    ACC: tl.constexpr,
):
    """The step of τ from the moments of the rows, shape (rows,) each."""
    # powers of t to Chebyshev's polynomials of 2t; t is less ½ here
    if not ROUGH:
        m7 = 8192.0 * m7 - 3584.0 * m5 + 448.0 * m3 - 14.0 * m1
        m6 = 2048.0 * m6 - 768.0 * m4 + 72.0 * m2 - m0
        m5 = 512.0 * m5 - 160.0 * m3 + 10.0 * m1
        m4 = 128.0 * m4 - 32.0 * m2 + m0
    m3 = 32.0 * m3 - 6.0 * m1
    m2 = 8.0 * m2 - m0
    m1 = 2.0 * m1
    x = _nodes(ACC)
    twice = 2.0 * x
    t2 = twice * x - 1.0
    t3 = twice * t2 - x
    t4 = twice * t3 - t2
    t5 = twice * t4 - t3
    t6 = twice * t5 - t4
    t7 = twice * t6 - t5
    others = m1[:, None] * x + m2[:, None] * t2 + m3[:, None] * t3
    if not ROUGH:
        others += m4[:, None] * t4 + m5[:, None] * t5 + m6[:, None] * t6 + m7[:, None] * t7
    weight = 0.125 * m0[:, None] + 0.25 * others
    t = 0.5 + 0.5 * x
    first = (0.5 - 0.5 * x) * reciprocal(t, FAST)  # ω of the stand-ins
    step = _halley_step(weight, t + 0.0 * weight, FAST)
    for _ in tl.static_range(REFINE):
        omega = _omega_near(first, t, step[:, None], FAST)
        p = weight * exp(omega - first - step[:, None], FAST)
        step += _halley_step(p, reciprocal(1.0 + omega, FAST), FAST)
    return step
