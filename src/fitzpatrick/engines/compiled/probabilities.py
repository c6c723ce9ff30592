"""Class probabilities of the logistic family, row by row.

The formulas are those of ``regularizers/_probabilities.py``. All entries but the largest have
p ≤ ½, and their ω needs no care; the largest is done by itself.
"""

import math
from typing import Any

import numpy as np

from ..rows import for_each_block
from ..targets import FloatArray, Scratch
from ._jit import loop
from ._math import MIN_TARGET, exp, log, near_omega, omega_step, wright_omega

_MASKED, _LOWEST = -1e100, -600.0
# Beyond this e^c is too large for sums; the core works in logarithms.
MAX_TIGHTNESS = 100.0


@loop
def _fill(theta: Any, tightness: float, p: Any, gap: Any, best: Any, out: Any) -> None:
    """Write the probabilities of the rows of θ; ``p`` and ``gap`` are flat, ``best`` is by row."""
    n, k = theta.shape
    shift = math.log(tightness) - tightness
    for i in range(n):
        at, top = 0, -np.inf
        for j in range(k):
            if theta[i, j] > top:
                at, top = j, theta[i, j]
        best[i] = at
        for j in range(k):
            gap[i * k + j] = theta[i, j] - top
    for m in range(n * k):
        p[m] = exp(gap[m])
    for i in range(n):
        row, distance = p[i * k : (i + 1) * k], gap[i * k : (i + 1) * k]
        undefined = 0 * distance[best[i]]  # NaN where the largest score is infinite
        row[best[i]] = 0.0
        others = 0.0
        for j in range(k):
            others += row[j]
        inverse, log_total = 1 / (1 + others), log(1 + others)
        for j in range(k):
            row[j] *= inverse
            distance[j] = log_total - max(distance[j], _MASKED)
        row[best[i]] = undefined - inverse  # negative: it is for the last loop
    for m in range(n * k):
        rest = max(1 - p[m], 0.5)
        z = max(log(rest) + gap[m] + shift, _LOWEST)
        omega = near_omega(z)
        omega = omega_step(omega, z - omega - log(omega))
        gap[m] = p[m] * rest * (1 + tightness / omega)
    for i in range(n):
        row, at = gap[i * k : (i + 1) * k], best[i]
        own = -p[i * k + at]
        rest = 0.0
        for j in range(k):
            rest += p[i * k + j]
        rest = max(rest + own, MIN_TARGET)
        omega = wright_omega(max(log(rest) - log(own) + shift, _LOWEST))
        near = rest + own * exp(tightness + min(omega, 1.0))
        row[at] = own * (near if omega < 1 else rest * (1 + tightness / omega))
        total = 0.0
        for j in range(k):
            total += row[j]
        for j in range(k):
            out[i, j] = row[j] / total


def fill_probabilities(theta: FloatArray, tightness: float, n_threads: int) -> FloatArray:
    """The probabilities of float32 or float64 scores (n, k), for 0 < c ≤ MAX_TIGHTNESS."""
    out = np.empty_like(theta)

    def work(rows: slice, _: Scratch) -> None:
        block = theta[rows]
        p, gap = np.empty((2, block.size))
        _fill(block, tightness, p, gap, np.empty(len(block), np.intp), out[rows])

    for_each_block(theta.shape, theta.itemsize, n_threads, work)
    return out
