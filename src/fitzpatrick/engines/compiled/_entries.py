"""Losses on product sets, where every entry is by itself.

The formulas of a regularizer at a tightness say what its entries are. From the score s and the
target y, ``start`` gives a number u, which stands for the maximizer. Where ``needs_refinement`` is
true, ``refine`` gives a better u and how far that was, until all are good. ``finish`` makes of u
the maximizer p and the entry's term of the loss, and ``slope`` is ∂p/∂s at p and y.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from .._row_kernel import BlockTask
from ._jit import loop
from ._kernel import GRADIENT, SLOPE, CompiledKernel
from ._lists import usable

# Entries that are treated at once: their buffers stay in the second-level cache.
_CHUNK = 1 << 12
# A step of Newton's method below this is squared to less than a rounding error.
_LAST_STEP = 1e-9
_MAX_REFINEMENTS = 100


@loop
def _solve(formula: Any, s: Any, y: Any, p: Any, terms: Any) -> None:
    for m in range(len(s)):
        p[m] = formula.start(s[m], y[m])
    if formula.needs_refinement:
        for _ in range(_MAX_REFINEMENTS):
            squares = 0.0
            for m in range(len(s)):
                p[m], step = formula.refine(p[m], s[m], y[m])
                squares += step * step if abs(step) < np.inf else 0.0  # the core has such rows
            if not squares > _LAST_STEP * _LAST_STEP:
                break
        else:
            terms[:] = np.nan
            return
    for m in range(len(s)):
        p[m], terms[m] = formula.finish(p[m], s[m], y[m])


@loop
def entries(
    formula: Any, theta: Any, y: Any, output: int, value: Any, out: Any, buffers: Any
) -> None:
    """Write the loss of each row, and what is asked for; NaN where a row needs the core."""
    n, k = theta.shape
    s, known, p, terms = buffers
    step = max(1, len(s) // k)
    for first in range(0, n, step):
        rows = min(step, n - first)
        size = rows * k
        last = first + rows
        scores, flat = theta[first:last].reshape(size), out[first:last].reshape(size)
        targets = y[first:last].reshape(size)
        for m in range(size):
            s[m] = scores[m]
            known[m] = targets[m]
        _solve(formula, s[:size], known[:size], p[:size], terms[:size])
        for i in range(rows):
            total, is_finite = 0.0, 0.0
            row, row_terms = s[i * k : (i + 1) * k], terms[i * k : (i + 1) * k]
            for j in range(k):
                total += row_terms[j]
                is_finite += row[j] - row[j]  # or NaN
            value[first + i] = total + is_finite
        if output == GRADIENT:
            for m in range(size):
                flat[m] = p[m] - known[m]
        elif output == SLOPE:
            for m in range(size):
                flat[m] = formula.slope(p[m], known[m])
        else:
            for m in range(size):
                flat[m] = p[m]


@dataclass(frozen=True, eq=False)
class EntryKernel(CompiledKernel):
    """Targets of any form."""

    formula: Any

    def _call(self, task: BlockTask) -> None:
        output, rows, theta, value, out, scratch = task
        y = usable(self.targets.dense(rows, scratch))
        size = max(_CHUNK, theta.shape[1])
        buffers = tuple(scratch.stack("entries", 4, (size,), np.float64))
        entries(self.formula, theta, y, int(output), value, out, buffers)
