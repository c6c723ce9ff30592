"""Scalar functions for Triton kernels, elementwise on tensors of float32 or float64.

They restate functions of :mod:`fitzpatrick.special` with what a GPU has in hardware, an exponential
and a logarithm; parity tests bind the two.
"""

# mypy: disable-error-code="misc,no-untyped-def,no-any-return"
# Triton's own language, which is not Python to a type checker

import triton
import triton.language as tl

__all__ = [
    "exp",
    "expm1_minus_x",
    "log",
    "log1p",
    "reciprocal",
    "relu",
    "sigmoid",
    "softplus",
    "wright_omega",
]

_LOG2_E: tl.constexpr = tl.constexpr(1.4426950408889634)
_LOG_2: tl.constexpr = tl.constexpr(0.6931471805599453)


@triton.jit
def relu(x):
    """x where it is positive, else 0; NaN stays."""
    return tl.where(x < 0, 0.0, x)


@triton.jit
def exp(x, FAST: tl.constexpr):
    """The exponential; FAST is the GPU's own instruction, which takes subnormal results for 0."""
    if FAST:
        return tl.inline_asm_elementwise(
            "ex2.approx.ftz.f32 $0, $1;", "=f,f", [x * _LOG2_E], tl.float32, is_pure=True, pack=1
        )
    return tl.exp(x)


@triton.jit
def log(x, FAST: tl.constexpr):
    """The logarithm; FAST is the GPU's own instruction."""
    if FAST:
        return _LOG_2 * tl.inline_asm_elementwise(
            "lg2.approx.ftz.f32 $0, $1;", "=f,f", [x], tl.float32, is_pure=True, pack=1
        )
    return tl.log(x)


@triton.jit
def reciprocal(x, FAST: tl.constexpr):
    """The reciprocal; FAST is the GPU's own instruction."""
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
def softplus(x):
    """log(1 + exp(x)) without overflow."""
    return relu(x) + log1p(tl.exp(-tl.abs(x)))


@triton.jit
def sigmoid(x):
    """1 / (1 + exp(−x)), accurate in both tails."""
    small = tl.exp(-tl.abs(x))
    return tl.where(x >= 0, 1.0, small) / (1.0 + small)


@triton.jit
def expm1_minus_x(x):
    """exp(x) − 1 − x, by its series for |x| < 1/2."""
    near = tl.abs(x) < 0.5
    small = tl.where(near, x, 0.0)
    series = 1.0 + small * 0.0
    for i in tl.static_range(12):
        series = 1.0 + series * small / (14 - i)
    return tl.where(near, small * small * 0.5 * series, tl.exp(x) - 1.0 - x)


@triton.jit
def wright_omega(z, STEPS: tl.constexpr, FLOOR: tl.constexpr):
    """The root of ω + log ω = z: a guess within 1% and fourth-order steps.

    Below FLOOR it is exp(z) to the last bit. One step serves float32, two serve float64.
    """
    inner = tl.where(z < FLOOR, FLOOR, tl.where(z > 1e30, 1e30, z))
    start = softplus(inner)
    omega = start * (1.0 - log1p(start) / (2.0 + start))
    for _ in tl.static_range(STEPS):
        residual = inner - omega - tl.log(omega)
        shifted = 1.0 + omega
        twice = 2.0 * shifted + residual * (4.0 / 3.0)
        step = residual / shifted
        omega = omega * (1.0 + step * (twice - step) / (twice - 2.0 * step))
    omega = tl.where(z < FLOOR, tl.exp(z), omega)
    return tl.where(z > 1e30, z, tl.where(z == z, omega, z))
