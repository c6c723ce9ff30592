"""Reductions over a row that LLVM does not vectorise by itself."""

from typing import Any

import numpy as np

from ._jit import loop, part


@part
def divided_sum(value: Any, divisor: float, out: Any) -> float:
    """The sum of the losses of rows over a number, by which their outputs are divided, too."""
    total = 0.0
    for i in range(len(value)):
        total += value[i]
    if divisor != 1:
        for i in range(out.shape[0]):
            for j in range(out.shape[1]):
                out[i, j] /= divisor
    return total / divisor


@loop
def highest(x: Any) -> float:
    """The largest entry of a row, in eight independent chains; NaN is ignored."""
    a = b = c = d = e = f = g = h = -np.inf
    n = len(x) // 8
    for i in range(n):
        j = 8 * i
        a = max(a, x[j])
        b = max(b, x[j + 1])
        c = max(c, x[j + 2])
        d = max(d, x[j + 3])
        e = max(e, x[j + 4])
        f = max(f, x[j + 5])
        g = max(g, x[j + 6])
        h = max(h, x[j + 7])
    top = max(max(max(a, b), max(c, d)), max(max(e, f), max(g, h)))
    for j in range(8 * n, len(x)):
        top = max(top, x[j])
    return top
