"""The first pass of both logistic kernels."""

from typing import Any

from ._jit import loop
from ._math import exp
from ._reduce import highest


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
