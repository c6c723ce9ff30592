"""By-products of a loss at the scores of its rows, for evaluation: see ``torch.RowStats``."""

import numpy as np

from ._jit import loop, part
from ._math import log
from ._rows import exponentials

# Below this e^d is 0, and d times it, too.
_LOWEST = -800.0


@part
def finish_row(theta, top, e, score, best, stats):
    """Write those of a row: log-sum-exp, entropy, ⟨y, θ⟩, and 1 if no score is above the best.

    From e^d with d = θ − top, and from the score of the class with the largest target.
    """
    total, along = 0.0, 0.0
    for j in range(len(e)):
        total += e[j]
        along += e[j] * max(theta[j] - top, _LOWEST)
    if total < np.inf and -np.inf < top < np.inf:
        logarithm = log(total)
        stats[0], stats[1] = top + logarithm, logarithm - along / total
    else:  # ∞ − ∞, unless a score is NaN
        for j in range(len(theta)):
            if theta[j] != theta[j]:
                top = np.nan
        stats[0], stats[1] = top, np.nan
    stats[2] = score
    stats[3] = 1.0 if best >= top else 0.0


@loop
def finish_stats(theta, starts, columns, values, top, e, stats):
    """Write those of some rows, (n, 4), from their exponentials and the lists of their targets."""
    n, k = theta.shape
    for i in range(n):
        score, most, best = 0.0, 0.0, -np.inf
        for m in range(starts[i], starts[i + 1]):
            x = float(theta[i, columns[m]])
            score += values[m] * x
            if values[m] > most:
                most, best = values[m], x
        finish_row(theta[i], top[i], e[i * k : (i + 1) * k], score, best, stats[i])


@loop
def row_stats(theta, starts, columns, values, top, e, stats):
    """Write those of all rows; the buffers are for some of them."""
    n, step = len(theta), len(top)
    for first in range(0, n, step):
        last = min(first + step, n)
        exponentials(theta[first:last], top, e)
        lists = starts[first : last + 1], columns, values
        finish_stats(theta[first:last], *lists, top, e, stats[first:last])
