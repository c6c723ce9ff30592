r"""Class probabilities of the logistic family, row by row.

The formulas are those of ``regularizers/_probabilities.py``: with :math:`p = e^{-d}` the soft
argmax, :math:`q \propto p\,H(d)` and :math:`H(d) = (1 - p)(1 + c/\omega)`. At one tightness H is a
smooth function of one number, so that it is tabulated: a polynomial for each of equal parts of each
octave of d. All entries but the largest have p ≤ ½, where d keeps the digits of 1 − p; the largest
is computed from the sum of the others.
"""

import functools
import math

import numpy as np

from ...special import wright_omega as core_wright_omega
from ..rows import for_each_block
from ..targets import FloatArray, Scratch
from ._jit import loop
from ._math import MIN_TARGET, as_float, as_int, exp, log, wright_omega
from ._rows import highest

_LOWEST = -600.0
# Beyond this e^c is too large for sums; the core works in logarithms.
MAX_TIGHTNESS = 100.0
# Octaves from d = ½, below log 2, to d = 1024, where p is zero; coefficients of a polynomial.
_OCTAVES, _TERMS = 11, 8
_HALF_BITS, _ONE_BITS = 0x3FE0000000000000, 0x3FF0000000000000
_BLOCK_BYTES = 1 << 17


@functools.lru_cache(maxsize=16)
def _tabulate(tightness: float) -> tuple[FloatArray, int]:
    """Coefficients of H, one row for each part of an octave, and the logarithm of their number.

    Up to d = c, H falls like :math:`e^{c - d}`. A polynomial of degree 7 over half a part on either
    side has the digits of float64 if that is 0.09 or less.
    """
    digits = max(4, math.ceil(math.log2(tightness / 0.18)))
    parts = 1 << digits
    low = np.ldexp(1.0, np.arange(_OCTAVES) - 1)[:, None] * (1 + np.arange(parts) / parts)
    width = np.repeat(np.ldexp(1.0, np.arange(_OCTAVES) - 1 - digits), parts)[:, None]
    nodes = np.polynomial.chebyshev.chebpts1(_TERMS)
    d = low.reshape(-1, 1) + width * (nodes + 1) / 2
    rest = -np.expm1(-d)
    omega = core_wright_omega(d + np.log(rest) + (math.log(tightness) - tightness))
    near = rest + np.exp(np.minimum(omega, 1) + tightness - d)
    values = np.where(omega < 1, near, rest * (1 + tightness / np.maximum(omega, 1)))
    basis = np.linalg.inv(np.polynomial.polynomial.polyvander(nodes, _TERMS - 1))
    return np.ascontiguousarray(values @ basis.T), digits


@loop
def _fill(theta, tightness, table, digits, e, d, rows, out):
    """Write the probabilities of the rows of θ; e, d are flat buffers, rows four of n numbers."""
    n, k = theta.shape
    top, others, total, own = rows
    for i in range(n):
        top[i] = highest(theta[i])
        for j in range(k):
            d[i * k + j] = theta[i, j] - top[i]
    for m in range(n * k):
        e[m] = exp(d[m])
    for i in range(n):
        first = 0
        while first < k - 1 and d[i * k + first] != 0:
            first += 1
        e[i * k + first] = 0.0
        rest = 0.0
        for j in range(k):
            rest += e[i * k + j]
        others[i] = rest
        own[i] = first
    shift = math.log(tightness) - tightness
    for i in range(n):
        total[i] = log(1 + others[i])
        omega = wright_omega(max(log(max(others[i], MIN_TARGET)) + shift, _LOWEST))
        near = others[i] + exp(tightness + min(omega, 1.0))
        own_share = near if omega < 1 else others[i] * (1 + tightness / omega)
        # NaN where the largest score is infinite
        top[i] = own_share / (1 + others[i]) + 0 * top[i]
    for i in range(n):
        for j in range(k):
            d[i * k + j] = total[i] - d[i * k + j]
    last, drop = len(table) - 1, 52 - digits
    low_bits, scale = (1 << drop) - 1, float(2 << digits)
    for m in range(n * k):
        bits = as_int(d[m])
        at = min(max((bits - _HALF_BITS) >> drop, 0), last)
        x = (as_float((bits & low_bits) | _ONE_BITS) - 1) * scale - 1
        part = table[at]
        h = part[_TERMS - 1]
        for term in range(_TERMS - 2, -1, -1):
            h = h * x + part[term]
        e[m] *= h
    for i in range(n):
        row = e[i * k : (i + 1) * k]
        row[int(own[i])] = top[i]
        weight = 0.0
        for j in range(k):
            weight += row[j]
        weight = 1 / weight
        for j in range(k):
            out[i, j] = row[j] * weight


def fill_probabilities(theta: FloatArray, tightness: float, n_threads: int) -> FloatArray:
    """The probabilities of float32 or float64 scores (n, k), for 0 < c ≤ MAX_TIGHTNESS."""
    out = np.empty_like(theta)
    table, digits = _tabulate(tightness)

    def work(rows: slice, scratch: Scratch) -> None:
        block = theta[rows]
        e, d = scratch.stack("entries", 2, (block.size,), np.float64)
        of_rows = tuple(scratch.stack("rows", 4, (len(block),), np.float64))
        _fill(block, tightness, table, digits, e, d, of_rows, out[rows])

    for_each_block(theta.shape, theta.itemsize, n_threads, work, _BLOCK_BYTES)
    return out
