r"""The entmax15 pair, row by row: Newton's method on a row that stays in cache.

With s = θ − τ and R = 2 (entmax15) or R = 3 (its Fitzpatrick twin), both maximisers are p = q² with
q = a/R and :math:`\|a\| = R`, where a = (s)₊, but :math:`a = (s + \sqrt{s^2 + 12 y})/2` at the
entries with y > 0 of the twin. Entries with y = 0 have the losses 2q³/3 and q³, the others

.. math:: \tfrac23 (\sqrt y - q)^2 (2 \sqrt y + q) + y (-s)_+ \qquad \text{and} \qquad (p - y)^2/q .

The norm is convex in τ, so that Newton's method increases to the root from any lower bound.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from .._blocks import FloatArray, Scratch
from .._output import Output
from ._jit import loop, part
from ._lists import drop, put, support_lists, take
from ._reduce import highest
from ._rows import CompiledKernel

GRADIENT, CURVATURE = int(Output.GRADIENT), int(Output.SLOPE)
# A step below this is rounding.
_LEAST_STEP = 1e-15


@part
def _norm_of_others(x: Any, size: int, tau: float) -> tuple[float, float]:
    """Sums of a² and of a da/ds over a = (x − τ)₊."""
    squares, slope = 0.0, 0.0
    for j in range(size):
        above = x[j] - tau
        above = above if above > 0 else 0.0
        squares += above * above
        slope += above
    return squares, slope


@part
def _norm_of_support(x: Any, targets: Any, begin: int, end: int, tau: float) -> tuple[float, float]:
    """The same over the twin's entries with y > 0; da/ds = a/√(s² + 12 y)."""
    squares, slope = 0.0, 0.0
    for m in range(begin, end):
        y, s = targets[m], x[m - begin] - tau
        root = math.sqrt(s * s + 12 * y)
        larger = (abs(s) + root) / 2
        inverse = 1 / (larger * root)
        a = larger if s > 0 else 3 * y * root * inverse  # without cancellation
        squares += a * a
        slope += a * a * larger * inverse
    return squares, slope


@loop
def threshold(
    x: Any,
    size: int,
    own: Any,
    targets: Any,
    begin: int,
    end: int,
    lower: float,
    reach: float,
    tolerance: float,
) -> tuple[float, float]:
    """τ such that the norm of all a is R; NaN where an entry makes no sense.

    It is a sum of two numbers, whose digits many small entries need to sum to one.

    Args:
        x: entries with a = (x − τ)₊.
        size: how many.
        own: the twin's entries with y > 0.
        targets: y.
        begin: where the targets of those begin.
        end: where they end.
        lower: a lower bound of τ.
        reach: R.
        tolerance: the error that τ may have.
    """
    tau, before = lower, 0.0
    while True:
        squares, slope = _norm_of_others(x, size, tau)
        own_squares, own_slope = _norm_of_support(own, targets, begin, end, tau)
        squares += own_squares
        norm = math.sqrt(squares)
        excess = (squares - reach * reach) / (norm + reach)  # of the norm, with its digits
        step = excess * norm / (slope + own_slope)
        # steps are the errors that they remove, each about the square of the one before
        ratio = step / before if before > 0 else 1.0
        if not (step > _LEAST_STEP and step * ratio * ratio > tolerance):
            return tau, step  # also where that is NaN
        tau += step
        before = step


@loop
def entmax15(
    theta: Any,
    starts: Any,
    columns: Any,
    targets: Any,
    is_fitzpatrick: bool,
    tolerance: float,
    what: int,
    value: Any,
    out: Any,
    x: Any,
    own: Any,
) -> None:
    """Write the loss of each row, and what is asked for; NaN where a row needs the core.

    Args:
        theta: scores, (n, k).
        starts: where the support of each row begins, n + 1 numbers.
        columns: the entries with y > 0.
        targets: y there.
        is_fitzpatrick: which of the two losses.
        tolerance: the error that τ may have.
        what: which array to write.
        value: (n,).
        out: (n, k).
        x: buffer of k.
        own: buffer of k.
    """
    n, k = theta.shape
    reach = 3.0 if is_fitzpatrick else 2.0
    for i in range(n):
        begin, end = starts[i], starts[i + 1]
        top, total = highest(theta[i]), 0.0
        for j in range(k):
            x[j] = theta[i, j] - top
            total += x[j]
        if np.isnan(total):
            value[i] = np.nan
            continue
        lower = max(-reach, total / k - reach / math.sqrt(k))
        take(x, columns, begin, end, own)
        if is_fitzpatrick:
            size = drop(x, columns, begin, end)
            tau = threshold(x, size, own, targets, begin, end, lower, reach, tolerance)
            loss = _write_others(x, size, tau, reach, what, i, out)
            loss += _fitzpatrick(own, targets, begin, end, tau, what)
        else:
            tau = threshold(x, k, own, targets, begin, begin, lower, reach, tolerance)
            size = drop(x, columns, begin, end)
            loss = _write_others(x, size, tau, reach, what, i, out) * (2 / 3)
            loss += _fenchel_young(own, targets, begin, end, tau, what)
        value[i] = loss
        put(own, columns, begin, end, i, out)


@part
def _write_others(
    x: Any, size: int, tau: tuple[float, float], reach: float, what: int, i: int, out: Any
) -> float:
    """Write what is asked for at the entries with y = 0 of row i, and return Σ q³."""
    cubes = 0.0
    inverse = 1 / reach
    for j in range(size):
        q = (x[j] - tau[0] - tau[1]) * inverse
        q = q if q > 0 else 0.0
        cubes += q * q * q
        out[i, j] = q * q
    if what == CURVATURE:
        for j in range(size):
            q = (x[j] - tau[0] - tau[1]) * inverse
            out[i, j] = (q if q > 0 else 0.0) * 2 * inverse
    return cubes


@part
def _fenchel_young(
    x: Any, targets: Any, begin: int, end: int, tau: tuple[float, float], what: int
) -> float:
    """The same at the entries with y > 0, in place of x: their loss."""
    loss = 0.0
    for m in range(begin, end):
        y, s = targets[m], x[m - begin] - tau[0] - tau[1]
        root, q = math.sqrt(y), (s if s > 0 else 0.0) / 2
        below = s if s < 0 else 0.0
        loss += (root - q) * (root - q) * (2 * root + q) * (2 / 3) - y * below
        p = q * q
        x[m - begin] = p - y if what == GRADIENT else (q if what == CURVATURE else p)
    return loss


@part
def _fitzpatrick(
    x: Any, targets: Any, begin: int, end: int, tau: tuple[float, float], what: int
) -> float:
    """The same for the twin; for s < 0 the loss is (y − p)(2q − s), by the equation of q."""
    loss = 0.0
    for m in range(begin, end):
        y, s = targets[m], x[m - begin] - tau[0] - tau[1]
        larger = (abs(s) + math.sqrt(s * s + 12 * y)) / 6
        q = larger if s > 0 else y / (3 * larger)
        p = q * q
        rising = (p - y) * (p - y) / q
        loss += (y - p) * (2 * q - s) if s < 0 else rising
        curvature = 2 * q * p / (3 * p + y)
        x[m - begin] = p - y if what == GRADIENT else (curvature if what == CURVATURE else p)
    return loss


@dataclass(frozen=True, eq=False)
class Entmax15Rows(CompiledKernel):
    """Targets of any form."""

    def _call(
        self,
        rows: slice,
        theta: FloatArray,
        what: int,
        value: FloatArray,
        out: FloatArray,
        scratch: Scratch,
    ) -> None:
        lists = support_lists(self.targets, rows, scratch)
        is_fitzpatrick = self.loss.tightness == 1
        tolerance = float(np.finfo(theta.dtype).eps) / 16
        buffers = scratch.stack("rows", 2, theta.shape[1:], np.float64)
        entmax15(theta, *lists, is_fitzpatrick, tolerance, what, value, out, *buffers)
