r"""The number τ that makes the entries of a row sum to one.

The sparse losses take Newton's steps, :func:`solve_tau`.

For the logistic loss at a tightness c > 0, τ lies between lse(θ) and lse(θ) + c, and for c <= 1 one
pass over the row finds it: with :math:`t = 1/(1 + \omega)` in the middle of that interval, an entry
is :math:`p\,F(\Delta, t)` at a distance Δ from it, where F is smooth. The row is replaced by eight
stand-ins at the Chebyshev nodes of [0, 1] that have its moments :math:`\sum p\,T_j(2t - 1)`, j < 8,
and the equation is solved for these. For \|Δ\| <= ½ that leaves an error of 1e-6; a second round in
float64 leaves none. Four moments leave 4e-4, which half precision does not see: the loss does not
change with τ to first order. For c > 1 Newton's steps on log g lead to where \|Δ\| <= ½.
"""

import triton
import triton.language as tl

from .math import exp, log, omega_step, reciprocal, two_sum

# Newton's step N on log g is at least 1 − e^−Δ from the left and at least |Δ| from the right, since
# the slope of log g changes by a factor e at most where τ changes by 1: |N| <= 0.39 means |Δ| <= ½.
MAX_NEWTON: tl.constexpr = tl.constexpr(0.39)


@triton.jit
def _one_minus_power(logarithm, beta):
    """(1 − S^−β)/β from log S, which is its limit for small β."""
    x = beta * logarithm
    near = tl.abs(x) < 0.02
    series = logarithm * (1.0 - x * (0.5 - x * (1.0 / 6.0 - x * (1.0 / 24.0))))
    return tl.where(near, series, (1.0 - tl.exp(-x)) / beta)


@triton.jit
def solve_tau(
    sums: tl.constexpr, given, tau, low, max_steps, tolerance, o: tl.constexpr
):  # fmt: skip
    """τ + low with Σp = 1, by Newton's steps on Σp (sparsemax) or a power of it, which is convex.

    ``sums(given, tau, low, o)`` is Σp and the sum of the slopes; the start is not above the root.
    The power is ½ for entmax15; for ``power`` 0 it is the last number given, β of α-entmax. τ
    is a number or one for each row, and low holds the digits that many small entries need and τ
    does not have. A step stays below its rounding error: above the root entries that belong to it
    are lost, and the step back would be as long as all of them together are heavy.
    """
    EPS: tl.constexpr = 5e-7 if o.acc == tl.float32 else 1e-15
    left = tl.zeros(tau.shape, o.acc) + 1.0
    is_any = tl.full((), 1, tl.int1)
    i = 0
    while (i < max_steps) & is_any:
        total, slope = sums(given, tau, low, o)
        if o.power == 1:
            excess = total - 1.0
        elif o.power == 2:
            root = tl.sqrt(total)
            excess = 2.0 * root * (root - 1.0)
        else:
            beta = given[len(given) - 1]
            excess = total * _one_minus_power(tl.log(total), beta)
        step = excess / slope
        is_left = left > tolerance
        step = tl.where(is_left, step - EPS * tl.abs(step), 0.0)
        tau, low = two_sum(tau, low + step)
        left = tl.where(is_left, tl.abs(excess), left)
        if len(tau.shape) == 0:
            is_any = left > tolerance
        else:
            is_any = tl.max((left > tolerance).to(tl.int32), axis=0) > 0
        i += 1
    return tau, low


@triton.jit
def moments(p, t, o: tl.constexpr):
    """p tʲ, entry by entry, for j = 0 … 7, where t is less ½; rough ones are four."""
    first = p * t
    square = t * t
    if o.rough:
        return p, first, p * square, first * square, p, p, p, p  # the latter are not used
    else:
        fourth = square * square
        sixth = fourth * square
        return (
            p, first, p * square, first * square,
            p * fourth, first * fourth, p * sixth, first * sixth,
        )  # fmt: skip


@triton.jit
def add_four(a0, a1, a2, a3, b0, b1, b2, b3):
    """Moments of two parts of a row, added."""
    return a0 + b0, a1 + b1, a2 + b2, a3 + b3


@triton.jit
def add_eight(a0, a1, a2, a3, a4, a5, a6, a7, b0, b1, b2, b3, b4, b5, b6, b7):
    """Eight moments of two parts of a row, added."""
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
    """ω at a distance delta <= ½ from where it is omega: Taylor, and a fourth-order step."""
    guess = omega + delta * (1.0 - t) * (1.0 + 0.5 * delta * t * t)
    return omega_step(guess, omega + log(omega, FAST) + delta, FAST)


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
def step_from_moments(m0, m1, m2, m3, m4, m5, m6, m7, o: tl.constexpr):
    """The step of τ from the moments of the rows, shape (rows,) each, and Newton's on log g."""
    newton = tl.log(m0) * m0 / (m1 + 0.5 * m0)
    # powers of t to Chebyshev's polynomials of 2t; t is less ½ here
    if not o.rough:
        m7 = 8192.0 * m7 - 3584.0 * m5 + 448.0 * m3 - 14.0 * m1
        m6 = 2048.0 * m6 - 768.0 * m4 + 72.0 * m2 - m0
        m5 = 512.0 * m5 - 160.0 * m3 + 10.0 * m1
        m4 = 128.0 * m4 - 32.0 * m2 + m0
    m3 = 32.0 * m3 - 6.0 * m1
    m2 = 8.0 * m2 - m0
    m1 = 2.0 * m1
    x = _nodes(o.acc)
    twice = 2.0 * x
    t2 = twice * x - 1.0
    t3 = twice * t2 - x
    t4 = twice * t3 - t2
    t5 = twice * t4 - t3
    t6 = twice * t5 - t4
    t7 = twice * t6 - t5
    others = m1[:, None] * x + m2[:, None] * t2 + m3[:, None] * t3
    if not o.rough:
        others += m4[:, None] * t4 + m5[:, None] * t5 + m6[:, None] * t6 + m7[:, None] * t7
    weight = 0.125 * m0[:, None] + 0.25 * others
    t = 0.5 + 0.5 * x
    first = (0.5 - 0.5 * x) * reciprocal(t, o.fast)  # ω of the stand-ins
    step = _halley_step(weight, t + 0.0 * weight, o.fast)
    STEPS: tl.constexpr = o.refine
    for _ in tl.static_range(STEPS):
        omega = _omega_near(first, t, step[:, None], o.fast)
        p = weight * exp(omega - first - step[:, None], o.fast)
        step += _halley_step(p, reciprocal(1.0 + omega, o.fast), o.fast)
    return step, newton


@triton.jit
def next_tau(tau, step, newton, lse, o: tl.constexpr):
    """τ after a round beyond c = 1, kept above lse(θ), and whether that was the last.

    Nothing needs to keep it below lse(θ) + c, since Newton's steps from the left stay there; and
    targets that sum to more than one, as half precision has them, have their root above that.
    """
    moved = tau + tl.where(tl.abs(newton) <= MAX_NEWTON, step, newton)
    moved = tl.maximum(moved, lse)
    ENOUGH: tl.constexpr = MAX_NEWTON if o.acc == tl.float32 else 0.01
    return moved, tl.abs(newton) <= ENOUGH
