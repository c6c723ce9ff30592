"""Exponential, logarithm and Wright omega as plain arithmetic, so that loops over them vectorise.

LLVM turns a loop into SIMD instructions only where it sees no call; the mathematical library of
the system is one. Each function is within a few units in the last place of float64.
"""

import math
from collections.abc import Callable
from typing import Any

from numba import types
from numba.extending import intrinsic

from ._jit import elementwise

# Targets below this behave like it.
MIN_TARGET = 1e-300

_LOG2_E = 1.4426950408889634
_LN2_HIGH, _LN2_LOW = 0.6931471803691238, 1.9082149292705877e-10
# Adding this rounds a float64 to an integer, which is then in its low bits.
_ROUND = 6755399441055744.0
# Below this the exponential is returned as zero; arguments stay below its negative.
_MIN_EXPONENT = -708.0
# The bits of the root of 1/2 and of 1, and what the last of them adds to a logarithm, in the mean.
_ROOT_HALF_BITS, _ONE_BITS = 0x3FE6A09E667F3BCD, 0x3FF0000000000000
_LN2 = 0.6931471805599453
_LOG_OF_BITS = _LN2 / 2**52
_MAX_ROUGH = 700.0
# Coefficients, the highest power first: e^x − 1 − x over x², its even and odd part for |x| < 1/16,
# and 2 artanh(√z)/√z − 2 over z.
_EXP = tuple(1 / math.factorial(n) for n in range(13, 1, -1))
_EVEN, _ODD = (tuple(1 / math.factorial(n) for n in range(m, 1, -2)) for m in (8, 9))
_ARTANH = tuple(2 / n for n in range(21, 1, -2))
# of the logarithm of a mantissa, within 7e-5
_NEAR_LOG = (-0.2218417, 1.24595422, -2.91043656, 3.96970843, -2.08334467)


def _bitcast(to: Any) -> Any:
    """A function that reads the bits of a number as those of another type."""

    @intrinsic
    def cast(_: Any, x: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            return builder.bitcast(args[0], context.get_value_type(signature.return_type))

        return to(x), generate

    return cast


as_int: Callable[[float], int] = _bitcast(types.int64)
as_float: Callable[[int], float] = _bitcast(types.float64)


@elementwise
def polynomial(x: float, coefficients: tuple[float, ...]) -> float:
    """A polynomial by Horner's rule, the coefficient of the highest power first."""
    value = coefficients[0]
    for coefficient in coefficients[1:]:
        value = value * x + coefficient
    return value


@elementwise
def exp(x: float) -> float:
    """e^x for x ≤ 709; 0 below −708, NaN at NaN."""
    clipped = _MIN_EXPONENT if x < _MIN_EXPONENT else x
    shifted = clipped * _LOG2_E + _ROUND
    n = shifted - _ROUND
    r = (clipped - n * _LN2_HIGH) - n * _LN2_LOW
    q = polynomial(r, _EXP) * r * r + r + 1  # |r| <= log(2)/2
    scaled = as_float(as_int(q) + (as_int(shifted) << 52))
    known = scaled if x == x else x  # the bits of a NaN would get into the exponent
    return 0.0 if x < _MIN_EXPONENT else known


@elementwise
def log(x: float) -> float:
    """Logarithm of a positive, normal, finite number."""
    bits = as_int(x)
    exponent = (bits - _ROOT_HALF_BITS) >> 52
    f = as_float(bits - (exponent << 52)) - 1  # the mantissa, in [√½, √2), less one
    s = f / (2 + f)
    z = s * s
    # log(1 + f) = 2 artanh(s) = f − f²/2 + s (f²/2 + R), |R| < z
    half = 0.5 * f * f
    n = float(exponent)
    small = f - (half - (s * (half + polynomial(z, _ARTANH) * z) + n * _LN2_LOW))
    return n * _LN2_HIGH + small


@elementwise
def log1p(x: float) -> float:
    """log(1 + x) for x ≥ 0, with the digits of small x."""
    u = 1 + x
    d = u - 1
    return x if d == 0 else log(u) * (x / d)


@elementwise
def omega_step(omega: float, residual: float) -> float:
    """ω moved by a residual z − ω − log ω, to fourth order, as in the core."""
    shifted = 1 + omega
    q = 2 * shifted * (shifted + residual * (2 / 3))
    return omega * (1 + residual * (q - residual) / (shifted * (q - 2 * residual)))


@elementwise
def rough_log(x: float) -> float:
    """Logarithm of a positive number within 0.03: its exponent, and its mantissa as it is."""
    return (as_int(x) - _ONE_BITS) * _LOG_OF_BITS + 0.03


@elementwise
def rough_exp(x: float) -> float:
    """e^x for |x| < 700 within three percent, the inverse of :func:`rough_log`."""
    shifted = (x - 0.03) * (_LOG2_E * 2**20) + _ROUND  # 20 digits after the point will do
    return as_float((as_int(shifted) << 32) + _ONE_BITS)


@elementwise
def near_log(x: float) -> float:
    """Logarithm of a positive number within 7e-5: a polynomial of the mantissa in [√½, √2)."""
    bits = as_int(x)
    exponent = (bits - _ROOT_HALF_BITS) >> 52
    return float(exponent) * _LN2 + polynomial(as_float(bits - (exponent << 52)), _NEAR_LOG)


@elementwise
def rough_omega(z: float) -> float:
    """ω within six percent, for finite z > −700.

    Iacono and Boyd's approximation with rough functions; log(1 + x) is a polynomial on [0, 1].
    """
    x = rough_exp(max(-abs(z), -_MAX_ROUGH))
    softplus = max(z, 0.0) + x * (1 - x * (0.4583 - 0.1514 * x))
    return softplus * (1 - rough_log(1 + softplus) / (2 + softplus))


@elementwise
def near_omega(z: float) -> float:
    """ω within 2e-4, for finite z > −700: the same, moved by its residual to second order."""
    omega = rough_omega(z)
    v = 1 / (1 + omega)
    u = (z - omega - near_log(omega)) * v
    return omega * (1 + u * (1 + u * v * 0.5))


@elementwise
def wright_omega(z: float) -> float:
    """The root of ω + log ω = z, for finite z."""
    below = z < 0
    tail = exp(-abs(z))
    omega = near_omega(z)
    # log(e^z/ω) − ω has the digits that z − log ω loses for negative z
    logarithm = log(tail / omega if below else omega)
    omega = omega_step(omega, (logarithm if below else z - logarithm) - omega)
    return tail if z < -40 else omega


# Below this |log(p/y)| the terms of an entropy are a series, above it differences.
_NEAR = 1 / 16


@elementwise
def entropy_term(y: float, rho: float, p: float, ratio: float, tightness: float) -> float:
    """y (E(ρ) + c E(−ρ)) for y > 0, with ρ = log(p/y), y/p and E(x) = exp(x) − 1 − x."""
    x = rho if abs(rho) < _NEAR else 0.0
    square = x * x
    even, odd = polynomial(square, _EVEN), polynomial(square, _ODD)
    near = y * square * ((1 + tightness) * even + (1 - tightness) * x * odd)
    reverse = tightness * y * (ratio - 1 + rho) if tightness > 0 else 0.0
    far = p - y - y * rho + reverse
    return near if abs(rho) < _NEAR else far


@elementwise
def entropy_entry(y: float, log_p: float, p: float, tightness: float) -> float:
    """The entropy term of any y ≥ 0, from log p: p where y = 0, or as good as that."""
    known = max(y, MIN_TARGET)
    term = entropy_term(known, log_p - log(known), p, known / p, tightness)
    return term if y >= MIN_TARGET else p
