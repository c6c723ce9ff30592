r"""Losses on the simplex whose maximizers are sparse, row by row, in a row that stays in cache.

With s = x − τ, entries with y = 0 have :math:`p = (s/R)_+^{1/\beta}`, where R is 1/β + c, or that
with s less by 1/β. The formulas of a regularizer at a tightness c say what Newton's method for
Σ p = 1 needs, in whatever unit suits them, and what comes of its root:

- ``power`` is β, ``reach`` how far τ is below a score whose p is one, and ``equal(k)`` how far it
  is below k equal scores;
- ``shifts`` is true if ``shift(y)`` is added to the scores of entries with y > 0;
- ``bends`` is true if p depends on y at those entries in another way, too;
- ``part(s)`` and ``own_part(s, y)`` are an entry's parts of the sum and of its slope in s, for
  y = 0 and for y > 0, and ``step(sum, slope)`` is Newton's step for τ;
- ``others(s)`` and ``own(s, y)`` are p and the loss of an entry, for y = 0 over ``cost``;
- ``slope(p, y)`` is ∂p/∂s.

A power of the sum is convex in τ, so that Newton's method increases to the root from any lower
bound.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..._root import SHORT_STEP, STEP_BACK
from ..rows import BlockTask
from ._jit import loop, part
from ._kernel import GRADIENT, SLOPE, CompiledKernel, support_lists
from ._rows import are_classes, divided_sum, drop, give, highest, put, take

_EPS = float(np.finfo(np.float64).eps)
_TOLERANCE = {char: float(np.finfo(char).eps) / 16 for char in "fd"}
# Of more entries with y > 0 the highest does not raise the lower bound of τ by much.
_FEW = 64
# More Newton steps than rows of any length need.
MAX_STEPS = 200


@loop
def threshold(formula, x, size, own, targets, begin, end, lower, tolerance):
    """τ such that Σ p = 1; NaN where an entry makes no sense.

    It is a sum of two numbers, whose digits many small entries need to sum to one. The search
    begins at ``lower``, a lower bound. The first entries of x, as many as ``size``, are treated as
    those with y = 0, and those of ``own`` by themselves, with their targets from begin to end.
    """
    tau, before, step = lower, 0.0, 0.0
    for _ in range(MAX_STEPS):
        total, slope = 0.0, 0.0
        for j in range(size):
            one, rise = formula.part(x[j] - tau)
            total += one
            slope += rise
        own_total, own_slope = 0.0, 0.0
        for m in range(begin, end):
            one, rise = formula.own_part(own[m - begin] - tau, targets[m])
            own_total += one
            own_slope += rise
        step = formula.step(total + own_total, slope + own_slope)
        # errors are squared in each step up to α = 1.5; beyond, the function has bends as sharp as
        # kinks, and those of the piecewise linear one vanish
        left = abs(step)
        if formula.power <= 0.5 and before > 0:
            left *= (step / before) * (step / before)
        slack = _EPS * (abs(tau) + abs(step))
        # a step back gives every tie at τ all of it, so that none is too short to be repeated
        is_long = (step > SHORT_STEP * slack) | (step < -slack / 2)
        if not (is_long and left > tolerance):
            break  # also where that is NaN
        # beyond the root, where rounding may carry τ, entries are lost: no step back is longer
        tau += max(step, -STEP_BACK * slack)
        before = step
    return tau, step


@loop
def simplex(
    formula, theta, starts, columns, targets, tolerance, output, divisor, value, out, x, own
):
    """Write the loss of each row, and what is asked for; NaN where a row needs the core.

    Returns the sum of the losses, divided; NaN, with nothing written, where a label is no class.
    The buffers x and own hold k numbers.
    """
    n, k = theta.shape
    if len(columns) == n and not are_classes(columns, k):
        return np.nan
    reach, cost, equal = formula.reach, formula.cost, formula.equal(k)
    for i in range(n):
        begin, end = starts[i], starts[i + 1]
        top, total, own_top = highest(theta[i]), 0.0, 0.0
        for j in range(k):
            x[j] = theta[i, j] - top
            total += x[j]
        if np.isnan(total):
            value[i] = np.nan
            continue
        take(x, columns, begin, end, own)
        if formula.shifts:
            for m in range(begin, end):  # after the highest is taken off, which may be huge
                shift = formula.shift(targets[m])
                own[m - begin] += shift
                total += shift
            if end - begin < _FEW:
                for m in range(end - begin):
                    own_top = max(own_top, own[m])
            give(own, columns, begin, end, x)
        lower = max(own_top - reach, total / k - equal)
        if formula.bends:
            size = drop(x, columns, begin, end)
            tau = threshold(formula, x, size, own, targets, begin, end, lower, tolerance)
        else:
            tau = threshold(formula, x, k, own, targets, begin, begin, lower, tolerance)
            size = drop(x, columns, begin, end)
        loss = cost * _write_others(formula, x, size, tau, output, i, out)
        loss += _write_own(formula, own, targets, begin, end, tau, output)
        value[i] = loss if tau[1] == tau[1] else np.nan
        put(own, columns, begin, end, i, out)
    return divided_sum(value, divisor, out)


@part
def _write_others(formula, x, size, tau, output, i, out):
    """Write what is asked for at the entries with y = 0 of row i, and return the sum of losses."""
    loss = 0.0
    for j in range(size):
        p, term = formula.others((x[j] - tau[0]) - tau[1])
        loss += term
        out[i, j] = p
    if output == SLOPE:
        for j in range(size):
            p, _ = formula.others((x[j] - tau[0]) - tau[1])
            out[i, j] = formula.slope(p, 0.0)
    return loss


@part
def _write_own(formula, x, targets, begin, end, tau, output):
    """Write what is asked for at the entries with y > 0, in place of x, and sum their losses."""
    loss = 0.0
    times = 1.0 if output == GRADIENT else 0.0
    for m in range(begin, end):
        y = targets[m]
        p, term = formula.own((x[m - begin] - tau[0]) - tau[1], y)
        loss += term
        x[m - begin] = p - times * y
    if output == SLOPE:
        for m in range(begin, end):
            x[m - begin] = formula.slope(x[m - begin], targets[m])
    return loss


@dataclass(frozen=True, eq=False)
class SimplexKernel(CompiledKernel):
    """Targets of any form."""

    formula: Any

    @property
    def link_formula(self) -> Any:
        """What knows the slope of the link, at c = 0."""
        return self.formula

    def run(self, task: BlockTask, divisor: float = 1.0) -> float:
        """Compute a block and return the sum of the losses; it is divided, and so are the outputs.

        NaN where a row needs the core, or has a label that is no class.
        """
        output, rows, theta, value, out, scratch, _ = task
        lists = support_lists(self.targets, rows, scratch)
        tolerance = _TOLERANCE[theta.dtype.char]
        x, own = scratch.stack("rows", 2, theta.shape[1:], np.float64)
        outputs = int(output), divisor, value, out
        return float(simplex(self.formula, theta, *lists, tolerance, *outputs, x, own))
