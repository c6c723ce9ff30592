"""Scalar functions for Triton kernels, elementwise on tensors of float32 or float64.

They restate functions of :mod:`fitzpatrick.special` with what a GPU has in hardware, an exponential
and a logarithm; parity tests bind the two.
"""

# mypy: disable-error-code="misc,no-untyped-def,no-any-return"
# Triton's own language, which is not Python to a type checker

import triton
import triton.language as tl

__all__ = [
    "LOG2_E",
    "LOG_2",
    "advance",
    "exp",
    "exp2",
    "expm1_minus_x",
    "log",
    "log1p",
    "log2",
    "lower_pairs",
    "reciprocal",
    "relu",
    "sigmoid",
    "softplus",
    "wright_omega",
    "write_zeros",
]

LOG2_E: tl.constexpr = tl.constexpr(1.4426950408889634)
LOG_2: tl.constexpr = tl.constexpr(0.6931471805599453)


@triton.jit
def advance(tau, low, step, is_left):
    """τ + low, moved by a step of Newton's method where there is something left to do.

    Many small entries need digits that τ has not: short steps move what is to be taken off after
    it. And a step stays below what rounding may add, since above the root entries that belong below
    it are lost, and the step back would be as long as all of them together are heavy.
    """
    EPS: tl.constexpr = 1.2e-7 if tau.dtype == tl.float32 else 2.3e-16
    size = tl.abs(step)
    is_long = size > 0.004
    moved = low + (step - EPS * (tl.abs(low) + size + tl.where(is_long, tl.abs(tau), 0.0)))
    longer = tl.where(is_left & is_long, tau + moved, tau)
    return longer, tl.where(is_left, tl.where(is_long, 0.0, moved), low)


@triton.jit
def relu(x):
    """x where it is positive, else 0; NaN stays."""
    return tl.where(x < 0, 0.0, x)


@triton.jit
def lower_pairs(a, b):
    """The lower of two pairs of bfloat16, each pair in a word; NaN is passed over."""
    return tl.inline_asm_elementwise(
        "min.bf16x2 $0, $1, $2;", "=r,r,r", [a, b], tl.int32, is_pure=True, pack=1
    )


@triton.jit
def exp2(x, FAST: tl.constexpr):
    """2 to the power of x; FAST is the GPU's own instruction, where subnormal results are 0."""
    if FAST:
        return tl.inline_asm_elementwise(
            "ex2.approx.ftz.f32 $0, $1;", "=f,f", [x], tl.float32, is_pure=True, pack=1
        )
    return tl.exp2(x)


@triton.jit
def log2(x, FAST: tl.constexpr):
    """The logarithm to base 2; FAST is the GPU's own instruction."""
    if FAST:
        return tl.inline_asm_elementwise(
            "lg2.approx.ftz.f32 $0, $1;", "=f,f", [x], tl.float32, is_pure=True, pack=1
        )
    return tl.log2(x)


@triton.jit
def exp(x, FAST: tl.constexpr):
    """The exponential, as precise as FAST allows."""
    if FAST:
        return exp2(x * LOG2_E, FAST)
    return tl.exp(x)


@triton.jit
def log(x, FAST: tl.constexpr):
    """The logarithm, as precise as FAST allows."""
    if FAST:
        return LOG_2 * log2(x, FAST)
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
def expm1_minus_x(x, FAST: tl.constexpr):
    """exp(x) − 1 − x, by its series for |x| < 1/2; FAST has as many terms as float32 can tell."""
    TERMS: tl.constexpr = 6 if FAST else 12
    near = tl.abs(x) < 0.5
    small = tl.where(near, x, 0.0)
    series = 1.0 + small * 0.0
    for i in tl.static_range(TERMS):
        series = 1.0 + series * (small * (1.0 / (TERMS + 2 - i)))
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


@triton.jit
def write_zeros(out, groups, GROUPS: tl.constexpr, LANES: tl.constexpr):
    """The gradient of a row that does not count."""
    zero = tl.zeros((GROUPS, LANES), out.dtype.element_ty)
    for block in range(tl.cdiv(groups, GROUPS)):
        group = block * GROUPS + tl.arange(0, GROUPS)
        cols = group[:, None] * LANES + tl.arange(0, LANES)[None, :]
        tl.store(out + cols, zero, mask=(group < groups)[:, None], cache_modifier=".cs")
