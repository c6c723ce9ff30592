r"""The root λ of the negentropy's losses for a block of rows, where only y > 0 sees ω.

Per row, with t = θ − max θ, the tightness c > 0 and r = Σ e^t over the entries with y = 0,

.. math:: g(\lambda) = r e^{-\lambda} + \sum_{y_i > 0} p_i(\lambda) = 1, \qquad
          p_i = c y_i / \omega_i, \quad \omega_i + \log \omega_i = \log(c y_i) - t_i + \lambda.

Since :math:`\sum_i p_i e^{-\omega_i} = e^{\mathrm{lse}(t) - \lambda}`, Jensen's inequality with
:math:`\sum_i p_i \omega_i = c \sum_i y_i = c` gives :math:`\mathrm{lse}(t) \le \lambda \le
\mathrm{lse}(t) + c`. From the middle of that interval one Halley step on log g (a few for c > 1)
comes within 1e-3 of the root and a Newton step from there within 1e-7. Both run in float32. One
more Newton step in the precision of the scores ends it: every ω is moved to the root by its own
Taylor series around the point where it is exact, which takes one logarithm per entry.

With v = 1/(1 + ω), derivatives in λ are ω' = ωv, p' = −pv and p'' = pv²(2 − v).
"""

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import wrightomega

from .targets import FloatArray, Scratch, Support

# Below this z, ω is too small to matter beside 1, and p = e^s whatever y is.
LOWEST_Z = -40.0
# Above this z, e^z is too large for float32.
_HIGHEST_Z = 80.0
# Targets below these behave like these, to an absolute error of that size.
_MIN_Y = {np.dtype(np.float32): 1e-20, np.dtype(np.float64): 1e-300}
_MIN_ROUGH_Y = 1e-30
# How far the last Newton step may go for its first-order update to be exact. It is the first one,
# unless scores are so large that float32 says little about them.
_LAST_STEP = {np.dtype(np.float32): 1e-3, np.dtype(np.float64): 4e-7}
_MAX_STEPS = 4


@dataclass(frozen=True)
class Root:
    """λ and the maximizer at the entries with y > 0; valid until the scratch is used again."""

    lam: FloatArray
    p: FloatArray
    omega: FloatArray
    y: FloatArray  # what stands for the targets: for c = 1 those that p and ω belong to


def not_too_small(y: FloatArray) -> FloatArray:
    """The targets y > 0, or a copy where some of them are so small that 1/y overflows."""
    least = _MIN_Y[y.dtype]
    return y if y.min(initial=1) >= least else np.maximum(y, least)


def solve(
    t: FloatArray,
    y: FloatArray,
    rest: FloatArray,
    lse: FloatArray,
    support: Support,
    tightness: float,
    scratch: Scratch,
) -> Root | None:
    """Find λ; None where the block holds something that the short cut does not cover.

    Args:
        t: scores at y > 0, less their row's maximum.
        y: the targets there; below they stand for c y.
        rest: Σ e^t over the other entries, per row.
        lse: log Σ e^t over all entries, per row.
        support: which entry belongs to which row.
        tightness: c > 0.
        scratch: buffers.
    """
    dtype = t.dtype
    start = (lse + tightness / 2).astype(np.float32)
    targets, least = None, y.min(initial=np.inf)
    if tightness != 1:
        targets = y if least >= _MIN_Y[dtype] else np.maximum(y, _MIN_Y[dtype])
        y = np.multiply(tightness, y, out=scratch.array("c y", y.shape, dtype))
        least = tightness * least
    y, y32, z32 = _prepare(t, y, least, start, support, scratch)
    lam, omega32 = _rough_root(z32, y32, rest, lse, start, support, tightness, scratch)

    omega, v, h, p = scratch.stack("omega", 4, t.shape, dtype)
    np.copyto(omega, omega32)
    for _ in range(_MAX_STEPS):
        # ω is exact at log ω + ω, from where it is h = log y − t + λ − log ω − ω to the root
        np.divide(y, omega, out=p)
        np.log(p, out=h)
        np.subtract(h, t, out=h)
        np.subtract(h, omega, out=h)
        np.add(h, support.spread(lam.astype(dtype)), out=h)
        np.add(omega, 1, out=v)
        np.divide(1, v, out=v)
        _move(omega, h, h, v, p)
        np.divide(y, omega, out=p)
        # Newton's step on log g
        mass = rest * np.exp(-lam)
        g = support.total(p) + mass
        np.multiply(p, v, out=h)
        step = g * np.log(g) / (support.total(h) + mass)
        np.multiply(h, support.spread(step.astype(dtype)), out=h)
        np.subtract(p, h, out=p)
        np.divide(y, p, out=omega)
        lam = lam + step
        # the first-order update of p is off by p (step v)² (1 − v/2)
        error = step * step * support.highest(p) / 2
        if np.all((np.abs(step) <= _LAST_STEP[dtype]) & (error <= 4 * np.finfo(dtype).eps)):
            return Root(lam.astype(dtype), p, omega, y if targets is None else targets)
    return None


def _prepare(
    t: FloatArray,
    y: FloatArray,
    least: float,
    start: FloatArray,
    support: Support,
    scratch: Scratch,
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """y, of which the least is given, its float32 copy, and z at the start in float32.

    The extremes are drawn in.
    """
    y32, z32, t32 = scratch.stack("rough", 3, t.shape, np.float32)
    if least < _MIN_Y[y.dtype]:
        y = np.maximum(y, _MIN_Y[y.dtype])
    np.copyto(y32, y, casting="same_kind")
    if least < _MIN_ROUGH_Y:
        np.copyto(z32, np.log(y) - t, casting="same_kind")
    else:
        np.copyto(t32, t, casting="same_kind")
        np.log(y32, out=z32)
        np.subtract(z32, t32, out=z32)
    np.add(z32, support.spread(start), out=z32)
    if z32.min(initial=np.inf) < LOWEST_Z:
        # the y that would have this z gives the same p
        raised = np.exp(t - support.spread((start - LOWEST_Z).astype(t.dtype)))
        y = np.where(z32 < LOWEST_Z, np.maximum(raised, _MIN_Y[y.dtype]), y)
        np.copyto(y32, y, casting="same_kind")
        np.maximum(z32, np.float32(LOWEST_Z), out=z32)
    return y, y32, z32


def _rough_root(
    z: FloatArray,
    y: FloatArray,
    rest: FloatArray,
    lse: FloatArray,
    start: FloatArray,
    support: Support,
    tightness: float,
    scratch: Scratch,
) -> tuple[FloatArray, FloatArray]:
    """λ within about 1e-7 and ω there, all of the work on entries in float32."""
    omega, u, v, w = scratch.stack("rough omega", 4, z.shape, np.float32)
    _first_omega(z, omega, u, v)
    lam = start.astype(np.float64)
    for _ in range(1 + math.ceil(math.log2(max(tightness, 1)) / 2)):
        _refine(z, omega, u, v, w)
        np.divide(y, omega, out=u)
        mass = rest * np.exp(-lam)
        g = support.total(u) + mass
        np.multiply(u, v, out=u)
        first = support.total(u) + mass
        np.multiply(u, v, out=u)
        second = 2 * support.total(u) - support.dot(u, v) + mass
        # Halley's step on f = log g
        f, slope = np.log(g), first / g
        bend = second / g - slope * slope
        step = 2 * f * slope / (2 * slope * slope - f * bend)
        step = (np.clip(lam + step, lse, lse + tightness) - lam).astype(np.float32)
        _move(omega, support.spread(step), u, v, w)
        np.add(z, support.spread(step), out=z)
        lam = lam + step
    _refine(z, omega, u, v, w)
    np.divide(y, omega, out=u)
    mass = rest * np.exp(-lam)
    g = support.total(u) + mass
    step = g * np.log(g) / (support.dot(u, v) + mass)
    np.multiply(v, support.spread(step.astype(np.float32)), out=u)
    np.add(u, _ONE, out=u)
    np.multiply(omega, u, out=omega)
    return lam + step, omega


_ONE, _TWO, _HALF, _TWO_THIRDS = (np.float32(x) for x in (1, 2, 0.5, 2 / 3))


def _first_omega(z: FloatArray, omega: FloatArray, a: FloatArray, b: FloatArray) -> None:
    """Write ω within one percent: the approximation of Iacono and Boyd, as in the core."""
    if z.max(initial=-np.inf) < _HIGHEST_Z:
        np.exp(z, out=omega)
        np.log1p(omega, out=omega)
    else:
        np.abs(z, out=a)
        np.negative(a, out=a)
        np.exp(a, out=a)
        np.log1p(a, out=a)
        np.maximum(z, np.float32(0), out=omega)
        np.add(omega, a, out=omega)
    np.log1p(omega, out=a)
    np.add(omega, _TWO, out=b)
    np.divide(a, b, out=a)
    np.subtract(_ONE, a, out=a)
    np.multiply(omega, a, out=omega)


def _refine(z: FloatArray, omega: FloatArray, u: FloatArray, v: FloatArray, w: FloatArray) -> None:
    """Move ω from log ω + ω, where it is exact, to z; write v = 1/(1 + ω) there."""
    np.log(omega, out=u)
    np.subtract(z, u, out=u)
    np.subtract(u, omega, out=u)
    np.add(omega, _ONE, out=v)
    np.divide(_ONE, v, out=v)
    np.multiply(u, v, out=u)
    # third order: 1 + u (1 + uv/2 (1 + uv − 2u/3))
    np.multiply(u, v, out=w)
    np.multiply(u, _TWO_THIRDS, out=v)
    np.subtract(w, v, out=v)
    np.add(v, _ONE, out=v)
    np.multiply(w, _HALF, out=w)
    np.multiply(w, v, out=w)
    np.add(w, _ONE, out=w)
    np.multiply(w, u, out=w)
    np.add(w, _ONE, out=w)
    np.multiply(omega, w, out=omega)
    np.add(omega, _ONE, out=v)
    np.divide(_ONE, v, out=v)


def _move(omega: FloatArray, step: FloatArray, u: FloatArray, v: FloatArray, w: FloatArray) -> None:
    """Move ω by a step in z, to second order: ω (1 + u (1 + uv/2)), u = step v."""
    np.multiply(v, step, out=u)
    np.multiply(u, v, out=w)
    np.multiply(w, _HALF, out=w)
    np.add(w, _ONE, out=w)
    np.multiply(w, u, out=w)
    np.add(w, _ONE, out=w)
    np.multiply(omega, w, out=omega)


def wright_omega(z: FloatArray) -> FloatArray:
    """The core's ω(z) in few calls: SciPy's, and the digits that it loses in float64."""
    omega = np.asarray(wrightomega(z))
    if z.dtype == np.float32:  # which SciPy rounds from float64
        return omega
    # below −50 SciPy has e^z; near 5.54 it ends a step too early
    inexact = ((z < 0) & (z > -50)) | ((z > 5.5) & (z < 5.6))
    if inexact.any():
        # a Newton step from log(e^z/ω) − ω, which has the digits that z − log ω has lost
        rough = omega[inexact]
        omega[inexact] = rough * (1 + (np.log(np.exp(z[inexact]) / rough) - rough) / (1 + rough))
    return omega
