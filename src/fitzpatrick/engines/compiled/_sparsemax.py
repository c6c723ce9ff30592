r"""The sparsemax pair, row by row: Newton's method on a row that stays in cache.

With x = θ (sparsemax) or x = θ + y (its Fitzpatrick twin) and T = 1 or 2, both maximisers are
:math:`p = (x - \tau)_+ / T` with :math:`\sum_i (x_i - \tau)_+ = T`, and both losses are
:math:`\sum_i \tfrac{T}{2} (y_i - p_i)^2 + y_i (\tau - x_i)_+`.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..._root import SHORT_STEP, STEP_BACK
from .._blocks import FloatArray, Scratch
from .._output import Output
from .._threshold import MAX_STEPS
from ._jit import loop, part
from ._lists import drop, give, put, support_lists, take
from ._reduce import highest
from ._rows import CompiledKernel

_EPS = float(np.finfo(np.float64).eps)
GRADIENT, CURVATURE = int(Output.GRADIENT), int(Output.SLOPE)
# Of more entries with y > 0 the highest does not raise the lower bound of τ by much.
_FEW = 64


@loop
def threshold(x: Any, lower: float, total: float) -> tuple[float, float]:
    """τ such that Σ (x − τ)₊ = T, from a lower bound; NaN where an entry is NaN.

    Newton's method increases to τ from any lower bound, and drops entries as it goes. τ is the sum
    of two numbers, whose digits many small entries need.
    """
    k = len(x)
    sum_of_all = 0.0
    for j in range(k):
        sum_of_all += x[j]
    if np.isnan(sum_of_all):
        return np.nan, np.nan
    tau = max(lower, (sum_of_all - total) / k)
    step = 0.0
    for _ in range(MAX_STEPS):
        excess, count = -total, 0.0
        for j in range(k):
            above = x[j] - tau
            excess += above if above > 0 else 0.0
            count += 1.0 if above > 0 else 0.0
        if count == 0.0:
            return tau, 0.0
        step = excess / count
        slack = _EPS * (abs(tau) + abs(step))
        if abs(step) <= SHORT_STEP * slack:
            break
        # beyond the root, where rounding may carry τ, entries are lost: no step back is longer
        tau += max(step, -STEP_BACK * slack)
    return tau, step


@loop
def sparsemax(
    theta: Any,
    starts: Any,
    columns: Any,
    targets: Any,
    total: float,
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
        total: T.
        what: which array to write.
        value: (n,).
        out: (n, k).
        x: buffer of k.
        own: buffer of k.
    """
    n, k = theta.shape
    shift = total == 2.0
    for i in range(n):
        begin, end = starts[i], starts[i + 1]
        top, own_top = highest(theta[i]), 0.0
        for j in range(k):
            x[j] = theta[i, j] - top
        take(x, columns, begin, end, own)
        if shift:
            for m in range(begin, end):  # after the highest is taken off, which may be huge
                own[m - begin] += targets[m]
            if end - begin < _FEW:
                for m in range(end - begin):
                    own_top = max(own_top, own[m])
            give(own, columns, begin, end, x)
        tau, rest = threshold(x, own_top - total, total)
        others = drop(x, columns, begin, end)
        loss = total / 2 * _write_others(x, others, tau, rest, total, what, i, out)
        loss += _write_support(own, targets, begin, end, tau, rest, total, what)
        value[i] = loss if tau == tau else np.nan
        put(own, columns, begin, end, i, out)


@part
def _write_others(
    x: Any, size: int, tau: float, rest: float, total: float, what: int, i: int, out: Any
) -> float:
    """Write what is asked for at the entries with y = 0 of row i, and return Σ p²."""
    squares = 0.0
    for j in range(size):
        gap = (x[j] - tau) - rest
        p = (gap if gap > 0 else 0.0) / total
        squares += p * p
        out[i, j] = p
    if what == CURVATURE:
        for j in range(size):
            out[i, j] = (1.0 if (x[j] - tau) - rest > 0 else 0.0) / total
    return squares


@part
def _write_support(
    x: Any, targets: Any, begin: int, end: int, tau: float, rest: float, total: float, what: int
) -> float:
    """The same at the entries with y > 0, in place of x: their loss."""
    loss = 0.0
    for m in range(begin, end):
        y, gap = targets[m], (x[m - begin] - tau) - rest
        p = (gap if gap > 0 else 0.0) / total
        loss += total / 2 * (y - p) * (y - p) - y * (gap if gap < 0 else 0.0)
        curvature = (1.0 if gap > 0 else 0.0) / total
        x[m - begin] = p - y if what == GRADIENT else (curvature if what == CURVATURE else p)
    return loss


@dataclass(frozen=True, eq=False)
class SparsemaxRows(CompiledKernel):
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
        total = 2.0 if self.loss.tightness == 1 else 1.0
        buffers = scratch.stack("rows", 2, theta.shape[1:], np.float64)
        sparsemax(theta, *lists, total, what, value, out, *buffers)
