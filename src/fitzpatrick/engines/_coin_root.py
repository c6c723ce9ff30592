r"""The root of the Bernoulli entropy's losses: u + a e^u − b e^−u = s − (a − b).

Here a = c (1 − y) and b = c y, with the tightness c > 0. With δ = ½ log(a/b) the left-hand side is
v + 2 √(ab) sinh v at v = u + δ, up to a constant: an odd function, which is reflected to where it
is positive. There sinh v ≥ v, leaving out v, and leaving out u, unless it is negative, give upper
bounds to start from. Halley's method triples the digits in every step; the first ones are taken in
float32.
"""

import math

import numpy as np

from ._blocks import FloatArray, Scratch

_ROUGH_STEPS, _MAX_STEPS = 3, 8
_MIN_TARGET = 1e-37  # whose logarithm float32 knows
# The exponential of more is too large for the dtype.
MAX_EXPONENT = {np.dtype(np.float32): 80.0, np.dtype(np.float64): 700.0}
# A step of Halley's method leaves less than its third power.
_LAST_STEP = {np.dtype(np.float32): 2e-3, np.dtype(np.float64): 5e-6}


def solve_coins(s: FloatArray, y: FloatArray, c: float, scratch: Scratch) -> FloatArray | None:
    """u of scores and targets; None where a target is too close to 0 or 1 for the start."""
    rough = scratch.stack("rough coins", 9, s.shape, np.float32)
    u, level, heads, tails = scratch.stack("coins", 4, s.shape, s.dtype)
    work = scratch.stack("coin steps", 4, s.shape, s.dtype)
    np.subtract(1, y, out=tails)
    np.subtract(tails, y, out=level)
    level *= -c
    level += s
    rough_u, rough_level, rough_heads, rough_tails = rough[:4]
    np.copyto(rough_level, level, casting="same_kind")
    np.copyto(rough_heads, y, casting="same_kind")
    np.copyto(rough_tails, tails, casting="same_kind")
    _start(rough_u, rough_level, rough_heads, rough_tails, c, *rough[4:])
    rough_heads *= c
    rough_tails *= c
    for _ in range(_ROUGH_STEPS):
        _halley(rough_u, rough_level, rough_tails, rough_heads, *rough[4:8])
    np.copyto(u, rough_u)
    np.multiply(y, c, out=heads)
    tails *= c
    for _ in range(_MAX_STEPS):
        step = _halley(u, level, tails, heads, *work)
        if max(step.max(initial=0), -step.min(initial=0)) < _LAST_STEP[s.dtype]:
            return np.asarray(u)
    return None


def _start(
    u: FloatArray,
    level: FloatArray,
    y: FloatArray,
    tails: FloatArray,
    c: float,
    shift: FloatArray,
    log_a: FloatArray,
    height: FloatArray,
    sign: FloatArray,
    work: FloatArray,
) -> None:
    """Write the least of three upper bounds to u."""
    np.clip(y, _MIN_TARGET, 1, out=shift)
    np.log(shift, out=shift)
    np.clip(tails, _MIN_TARGET, 1, out=log_a)
    np.log(log_a, out=log_a)
    shift *= -0.5
    log_a *= 0.5
    shift += log_a
    log_a *= 2
    log_a -= shift  # ½ (log y + log(1 − y))
    np.add(level, shift, out=height)
    np.copysign(1, height, out=sign)
    np.abs(height, out=height)
    shift *= sign
    log_a += shift
    log_a += math.log(c)
    # sinh v >= v
    np.multiply(y, tails, out=work)
    work *= 4 * c * c
    np.sqrt(work, out=u)
    u += 1
    np.divide(height, u, out=u)
    u -= shift
    # without v
    np.multiply(height, height, out=shift)
    work += shift
    np.sqrt(work, out=work)
    work += height
    work *= 0.5
    np.clip(work, _MIN_TARGET, np.inf, out=work)
    np.log(work, out=work)
    work -= log_a
    np.minimum(u, work, out=u)
    # without u: b is c (1 + sign (2 y − 1))/2
    np.subtract(y, tails, out=work)
    work *= 0.5 * c
    work += level
    work *= sign
    work += 0.5 * c
    np.clip(work, _MIN_TARGET, np.inf, out=work)
    np.log(work, out=work)
    work -= log_a
    np.clip(work, 0, np.inf, out=work)
    np.minimum(u, work, out=u)
    u *= sign


def _halley(
    u: FloatArray,
    level: FloatArray,
    a: FloatArray,
    b: FloatArray,
    rise: FloatArray,
    fall: FloatArray,
    slope: FloatArray,
    excess: FloatArray,
) -> FloatArray:
    """Take one step in place, and return it."""
    most = MAX_EXPONENT[u.dtype]
    np.clip(u, -most, most, out=rise)
    np.exp(rise, out=rise)
    np.divide(b, rise, out=fall)
    rise *= a
    np.add(rise, fall, out=slope)
    slope += 1
    rise -= fall
    np.subtract(u, level, out=excess)
    excess += rise
    # excess · slope / (slope² − ½ excess (rise − fall)), whose divisor is at least slope²/4
    rise *= excess
    rise *= 0.5
    excess *= slope
    slope *= slope
    np.subtract(slope, rise, out=fall)
    slope *= 0.25
    np.maximum(fall, slope, out=fall)
    np.divide(excess, fall, out=excess)
    u -= excess
    return excess
