"""What several kernels do to a row, or begin with."""

from typing import Any

import numpy as np

from ._jit import loop, part
from ._math import exp


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
    """The largest entry of a row; NaN is ignored.

    In eight independent chains, since LLVM does not vectorise it by itself.
    """
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


@loop
def exponentials(theta: Any, top: Any, e: Any) -> None:
    """Write the largest score of each row, and exp(θ − max θ), row after row, to a flat array."""
    n, k = theta.shape
    for i in range(n):
        top[i] = highest(theta[i])
        row = e[i * k : (i + 1) * k]
        for j in range(k):
            row[j] = theta[i, j] - top[i]
    for m in range(n * k):
        e[m] = exp(e[m])
