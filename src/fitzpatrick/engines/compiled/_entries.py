"""Losses on product sets, where every entry is by itself.

The formulas of a regularizer at a tightness say what its entries are. ``finish`` makes of the score
s and the target y the maximizer p and the entry's term of the loss, and ``slope`` is ∂p/∂s at p and
y. Where p is a root, ``last_step`` is positive: then ``start`` gives a number u, which stands for
the maximizer, and another that the rest needs, and ``refine`` a better u and how far that was,
until no step is longer. ``finish`` knows both numbers.

Each of them is a loop of its own: a processor overlaps the turns of a short loop, while those of a
long one wait for their own results.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..rows import BlockTask
from ._jit import loop
from ._kernel import GRADIENT, SLOPE, CompiledKernel, usable

# Entries that are treated at once: their buffers stay in the first-level cache.
_CHUNK = 1 << 10
_MAX_STEPS = 20


@loop
def _write(formula, s, y, output, out, u, known, terms):
    """Write what is asked for about a chunk, and the terms of the loss."""
    lost = 0.0
    if formula.last_step > 0:
        for m in range(len(s)):
            u[m], known[m] = formula.start(s[m], y[m])
        for _ in range(_MAX_STEPS):
            squares = 0.0
            for m in range(len(s)):
                u[m], step = formula.refine(u[m], known[m], y[m])
                squares += step * step if abs(step) < np.inf else 0.0  # the core has such rows
            if not squares > formula.last_step * formula.last_step:
                break
        else:
            lost = np.nan
    times = 1.0 if output == GRADIENT else 0.0
    for m in range(len(s)):
        p, term = formula.finish(u[m], known[m], s[m], y[m])
        # NaN where the core has to help: with infinite scores, or where p underflows
        terms[m] = term + (s[m] - s[m] + lost) + (term - term)
        out[m] = p - times * y[m]
    if output == SLOPE:
        for m in range(len(s)):
            p, _ = formula.finish(u[m], known[m], s[m], y[m])
            out[m] = formula.slope(p, y[m])


@loop
def entries(formula, theta, y, output, value, out, buffers):
    """Write the loss of each row, and what is asked for; NaN where a row needs the core.

    Scores, targets and outputs are flat: Numba would take as long for ``reshape`` as for the rest.
    """
    n = len(value)
    k = max(1, len(theta) // max(n, 1))
    u, known, terms = buffers
    step = max(1, len(u) // k)
    for first in range(0, n, step):
        last = min(first + step, n)
        begin, end = first * k, last * k
        _write(formula, theta[begin:end], y[begin:end], output, out[begin:end], u, known, terms)
        for i in range(first, last):
            row = terms[(i - first) * k : (i - first + 1) * k]
            total = 0.0
            for j in range(k):
                total += row[j]
            value[i] = total


@dataclass(frozen=True, eq=False)
class EntryKernel(CompiledKernel):
    """Targets of any form."""

    formula: Any

    def run(self, task: BlockTask) -> None:
        output, rows, theta, value, out, scratch, _ = task
        y = usable(self.targets.dense(rows, scratch))
        buffers = tuple(scratch.stack("entries", 3, (max(_CHUNK, theta.shape[1]),), np.float64))
        assert out is not None  # ``compute`` gives a buffer if no array is asked for
        flat = theta.reshape(-1), y.reshape(-1), int(output), value, out.reshape(-1)
        entries(self.formula, *flat, buffers)
