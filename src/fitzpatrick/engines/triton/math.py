"""Scalar functions for Triton kernels, elementwise on tensors of float32 or float64.

They restate functions of :mod:`fitzpatrick.special` in terms of what a GPU has in hardware, an
exponential and a logarithm; parity tests tie the two together. FAST allows the instructions of
NVIDIA GPUs, which flush subnormal numbers to zero.
"""

import triton
import triton.language as tl

LOG2_E: tl.constexpr = tl.constexpr(1.4426950408889634)
LOG_2: tl.constexpr = tl.constexpr(0.6931471805599453)


@triton.jit
def relu(x):
    """x where it is positive, else 0; NaN stays."""
    return tl.where(x < 0, 0.0, x)


@triton.jit
def two_sum(a, b):
    """a + b rounded, and the rounding error, exactly."""
    total = a + b
    part = total - a
    return total, (a - (total - part)) + (b - part)


@triton.jit
def min_of_pairs(a, b):
    """The minima of two pairs of bfloat16, each pair in one word; NaN is ignored."""
    return tl.inline_asm_elementwise(
        "min.bf16x2 $0, $1, $2;", "=r,r,r", [a, b], tl.int32, is_pure=True, pack=1
    )


@triton.jit
def exp2(x, FAST: tl.constexpr):
    """2 to the power of x."""
    if FAST:
        return tl.inline_asm_elementwise(
            "ex2.approx.ftz.f32 $0, $1;", "=f,f", [x], tl.float32, is_pure=True, pack=1
        )
    return tl.exp2(x)


@triton.jit
def log2(x, FAST: tl.constexpr):
    """The logarithm to base 2."""
    if FAST:
        return tl.inline_asm_elementwise(
            "lg2.approx.ftz.f32 $0, $1;", "=f,f", [x], tl.float32, is_pure=True, pack=1
        )
    return tl.log2(x)


@triton.jit
def exp(x, FAST: tl.constexpr):
    """The exponential."""
    if FAST:
        return exp2(x * LOG2_E, FAST)
    return tl.exp(x)


@triton.jit
def log(x, FAST: tl.constexpr):
    """The natural logarithm."""
    if FAST:
        return LOG_2 * log2(x, FAST)
    return tl.log(x)


@triton.jit
def reciprocal(x, FAST: tl.constexpr):
    """1 / x."""
    if FAST:
        return tl.inline_asm_elementwise(
            "rcp.approx.ftz.f32 $0, $1;", "=f,f", [x], tl.float32, is_pure=True, pack=1
        )
    return 1.0 / x


@triton.jit
def log1p(x):
    """log(1 + x) for x >= 0: the rounding of 1 + x is divided out."""
    shifted = 1.0 + x
    return tl.where(shifted == 1.0, x, tl.log(shifted) * (x / (shifted - 1.0)))


@triton.jit
def x_minus_log1p(x):
    """x − log(1 + x) for x >= 0, by its series for x < 1/4."""
    TERMS: tl.constexpr = 10 if x.dtype == tl.float32 else 24
    small = tl.where(x < 0.25, x, 0.0)
    series = small * 0.0
    for i in tl.static_range(TERMS):
        series = 1.0 / (TERMS + 1 - i) - small * series
    return tl.where(x < 0.25, small * small * series, x - log1p(x))


@triton.jit
def softplus(x):
    """log(1 + exp(x)) without overflow."""
    return relu(x) + log1p(tl.exp(-tl.abs(x)))


@triton.jit
def sigmoid(x):
    """1 / (1 + exp(−x)), accurate in both tails."""
    small = tl.exp(-tl.abs(x))
    return tl.where(x >= 0, 1.0, small) / (1.0 + small)


@triton.jit
def tanh(x, CAREFUL: tl.constexpr, FAST: tl.constexpr):
    """The hyperbolic tangent; near 0 only a careful one has the digits of x."""
    if CAREFUL:
        u = x * x
        near = tl.abs(x) < 0.5
        e = exp(-2.0 * tl.abs(x), FAST)
        above = x * (135135.0 + u * (17325.0 + u * (378.0 + u)))
        above = tl.where(near, above, tl.where(x < 0, e - 1.0, 1.0 - e))
        below = 135135.0 + u * (62370.0 + u * (3150.0 + u * 28.0))
        return above / tl.where(near, below, 1.0 + e)
    return 1.0 - 2.0 * reciprocal(1.0 + exp(2.0 * x, FAST), FAST)


@triton.jit
def expm1_minus_x(x, FAST: tl.constexpr):
    """exp(x) − 1 − x for |x| < 1/2, by its series; FAST has as many terms as float32 can tell."""
    TERMS: tl.constexpr = 6 if FAST else 12
    series = 1.0 + x * 0.0
    for i in tl.static_range(TERMS):
        series = 1.0 + series * (x * (1.0 / (TERMS + 2 - i)))
    return x * x * 0.5 * series


@triton.jit
def omega_step(omega, z, FAST: tl.constexpr):
    """A fourth-order step from ``omega`` towards the root of ω + log ω = z."""
    residual = z - omega - log(omega, FAST)
    shifted = 1.0 + omega
    twice = shifted * (2.0 * shifted + residual * (4.0 / 3.0))
    below = shifted * (twice - 2.0 * residual)
    return omega + omega * residual * (twice - residual) * reciprocal(below, FAST)


@triton.jit
def wright_omega(z, STEPS: tl.constexpr, FAST: tl.constexpr):
    """The root of ω + log ω = z: a guess within 1%, then one step (float32) or two (float64)."""
    # below LOW ω is exp(z) to the last bit; above HIGH it is z, and its cube would overflow
    LOW: tl.constexpr = -18.0 if z.dtype == tl.float32 else -40.0
    HIGH: tl.constexpr = 1e10 if z.dtype == tl.float32 else 1e30
    e = exp(tl.where(z > 30.0, 30.0, z), FAST)
    series = e * (1.0 - e * (0.5 - e * (1.0 / 3.0)))
    start = tl.where(z > 30.0, z, tl.where(e < 0.03, series, log(1.0 + e, FAST)))
    omega = start * (1.0 - log(1.0 + start, FAST) * reciprocal(2.0 + start, FAST))
    for _ in tl.static_range(STEPS):
        omega = omega_step(omega, z, FAST)
    return tl.where(z < LOW, e, tl.where(z > HIGH, z, omega))
