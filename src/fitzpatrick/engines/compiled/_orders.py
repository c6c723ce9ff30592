"""α-entmax with an order of its own for each row, and its derivatives from the predictions alone.

With β = α − 1, t = −β log p and d = p e^t the Jacobian is J = diag(d) − ddᵀ/⟨d, 1⟩, and
∂p/∂α = r − d ⟨r, 1⟩/⟨d, 1⟩, where r = −p (e^t − 1 − t)/β².
"""

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ...regularizers.tsallis import anchor_of
from ..rows import for_each_block
from ..targets import FloatArray
from ._jit import elementwise, loop
from ._lists import usable
from ._math import exp, log
from ._reduce import highest
from ._simplex import threshold
from .tsallis import Entmax

_anchor_of = elementwise(anchor_of)
_MIN_NORMAL = float(np.finfo(np.float64).tiny)
# An order nearer to one has the same predictions.
_MIN_BETA = 1e-15
# of the terms of (e^t − 1 − t)/t², the last first
_FACTORIALS = tuple(float(math.factorial(n)) for n in range(13, 1, -1))


@loop
def _links(theta: Any, alpha: Any, tolerance: float, out: Any, x: Any) -> None:
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
    small = t if t < 0.5 else 0.0
    series = 1.0 / 87178291200.0  # 1/14!; what is left out is 0.5^13/15! or less
    for factorial in _FACTORIALS:
        series = series * small + 1.0 / factorial
    far = t if t >= 0.5 else 1.0
    return series if t < 0.5 else (e - 1.0 - t) / (far * far)


@loop
def _products(p: Any, v: Any, alpha: Any, out: Any, by_alpha: Any) -> None:
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
        mean = along / (weight if weight != 0 else 1.0)  # a row of zeros is one that is masked
        by_alpha[i] = rest_along - rest * mean
        for j in range(k):
            out[i, j] *= v[i, j] - mean


def _for_all_rows(x: FloatArray, n_threads: int, work: Callable[[slice], None]) -> None:
    """In one piece for one thread, which is cheaper than blocks."""
    if n_threads == 1:
        work(slice(None))
    else:
        for_each_block(x.shape, x.itemsize, n_threads, lambda rows, _: work(rows))


def solve_links(theta: FloatArray, alpha: FloatArray, out: FloatArray, n_threads: int) -> None:
    """Write the predictions of each row; NaN if a row has none, or an order out of range.

    Args:
        theta: scores, (n, k).
        alpha: orders, (n,), from 1 to 2.
        out: (n, k), contiguous.
        n_threads: how many threads to use where they pay.
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
    """Write J v for each row, and ⟨∂p/∂α, v⟩.

    Args:
        p: predictions, (n, k).
        v: the vectors, (n, k).
        alpha: orders, (n,).
        out: J v, (n, k), contiguous.
        by_alpha: the derivatives in the orders, (n,).
        n_threads: how many threads to use where they pay.
    """
    p, v = usable(p), usable(v)

    def work(rows: slice) -> None:
        _products(p[rows], v[rows], alpha[rows], out[rows], by_alpha[rows])

    _for_all_rows(p, n_threads, work)
