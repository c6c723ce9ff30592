"""Jacobians of links on the simplex, times vectors, and α-entmax with an order for each row.

The Jacobian is J = diag(d) − ddᵀ/⟨d, 1⟩, where d is the slope of the predictions. For α-entmax,
β = α − 1 and t = −β log p give d = p e^t and ∂p/∂α = r − d ⟨r, 1⟩/⟨d, 1⟩, r = −p (e^t − 1 − t)/β².
"""

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ...regularizers.tsallis import anchor_of
from ..rows import for_each_block
from ..targets import FloatArray
from ._jit import elementwise, loop, part
from ._kernel import usable
from ._math import exp, log, polynomial
from ._rows import highest
from ._simplex import threshold
from .tsallis import Entmax

_anchor_of = elementwise(anchor_of)
_MIN_NORMAL = float(np.finfo(np.float64).tiny)
# An order nearer to one has the same predictions.
_MIN_BETA = 1e-15
# of (e^t − 1 − t)/t² for t < 0.5; what is left out is 0.5^13/15! or less
_REMAINDER = tuple(1 / math.factorial(n) for n in range(14, 1, -1))


@part
def _slope(formula, p):
    d = formula.slope(p, 0.0) if p > 0 else 0.0
    return d + (p - p)  # NaN where p is


@part
def _mean(along, weight):
    return along / (weight if weight != 0 else 1.0)  # a row of zeros is one that is masked


@loop
def _jacobian(formula, p, v, out):
    n, k = p.shape
    for i in range(n):
        weight, along = 0.0, 0.0
        for j in range(k):
            d = _slope(formula, p[i, j])
            weight += d
            along += d * v[i, j]
        mean = _mean(along, weight)
        for j in range(k):
            d = _slope(formula, p[i, j])
            out[i, j] = d * (v[i, j] - mean)


@loop
def _links(theta, alpha, tolerance, out, x):
    n, k = theta.shape
    for i in range(n):
        beta = max(alpha[i] - 1.0, _MIN_BETA)
        anchor = _anchor_of(beta)
        reach = (1.0 - anchor) / beta
        formula = Entmax(0.0, reach, 1.0, beta, False, False, anchor, beta)
        top, total = highest(theta[i]), 0.0
        for j in range(k):
            x[j] = theta[i, j] - top
            total += x[j]
        lower = max(-reach, total / k - formula.equal(k))
        tau, low = threshold(formula, x, k, x, x, 0, 0, lower, tolerance)
        is_known = total == total and low == low and 1.0 <= alpha[i] <= 2.0
        for j in range(k):
            p, _ = formula.others((x[j] - tau) - low)
            out[i, j] = p if is_known else np.nan


@elementwise
def _exponential_remainder(t: float, e: float) -> float:
    """(e^t − 1 − t)/t² for t >= 0, from e = e^t; its series where that cancels."""
    series = polynomial(t if t < 0.5 else 0.0, _REMAINDER)
    far = t if t >= 0.5 else 1.0
    return series if t < 0.5 else (e - 1.0 - t) / (far * far)


@loop
def _products(p, v, alpha, out, by_alpha):
    n, k = p.shape
    for i in range(n):
        beta = alpha[i] - 1.0
        weight, along, rest, rest_along = 0.0, 0.0, 0.0, 0.0
        for j in range(k):
            one = float(p[i, j])
            logarithm = log(max(one, _MIN_NORMAL) if one > 0 else 1.0)
            t = -beta * logarithm
            e = exp(t)
            d = (one * e if one > 0 else 0.0) + (one - one)  # NaN where p is
            r = -one * logarithm * logarithm * _exponential_remainder(t, e)
            weight += d
            along += d * v[i, j]
            rest += r
            rest_along += r * v[i, j]
            out[i, j] = d
        mean = _mean(along, weight)
        by_alpha[i] = rest_along - rest * mean
        for j in range(k):
            out[i, j] *= v[i, j] - mean


def _for_all_rows(x: FloatArray, n_threads: int, work: Callable[[slice], None]) -> None:
    """In one piece for one thread, which is cheaper than blocks."""
    if n_threads == 1:
        work(slice(None))
    else:
        for_each_block(x.shape, x.itemsize, n_threads, lambda rows, _: work(rows))


def multiply_by_jacobian(
    formula: Any, p: FloatArray, v: FloatArray, out: FloatArray, n_threads: int
) -> None:
    """Write J v for each row of p and v, (n, k); ``formula.slope(p, y)`` is ∂p/∂s at a target y."""
    p, v = usable(p), usable(v)
    _for_all_rows(p, n_threads, lambda rows: _jacobian(formula, p[rows], v[rows], out[rows]))


def solve_links(theta: FloatArray, alpha: FloatArray, out: FloatArray, n_threads: int) -> None:
    """Write the predictions of the rows of θ, (n, k), at orders from 1 to 2, (n,).

    They are NaN if a row has none, or an order out of range.
    """
    theta = usable(theta)
    tolerance = float(np.finfo(theta.dtype).eps) / 16

    def work(rows: slice) -> None:
        _links(theta[rows], alpha[rows], tolerance, out[rows], np.empty(out.shape[1]))

    _for_all_rows(theta, n_threads, work)


def multiply_by_jacobians(
    p: FloatArray,
    v: FloatArray,
    alpha: FloatArray,
    out: FloatArray,
    by_alpha: FloatArray,
    n_threads: int,
) -> None:
    """Write J v for each row of p and v, (n, k), at orders (n,), and ⟨∂p/∂α, v⟩, (n,)."""
    p, v = usable(p), usable(v)

    def work(rows: slice) -> None:
        _products(p[rows], v[rows], alpha[rows], out[rows], by_alpha[rows])

    _for_all_rows(p, n_threads, work)
