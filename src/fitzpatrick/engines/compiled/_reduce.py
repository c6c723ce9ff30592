"""Reductions over a row that LLVM does not vectorise by itself."""

from typing import Any

import numpy as np

from ._jit import loop


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
