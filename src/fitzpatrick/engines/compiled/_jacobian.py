"""The Jacobian of a link on the simplex, times vectors, from the predictions alone.

It is diag(d) − ddᵀ/⟨d, 1⟩, where d is the slope of the predictions, which formulas know.
"""

from typing import Any

from ..rows import for_each_block
from ..targets import FloatArray, Scratch
from ._jit import loop, part
from ._lists import usable


@part
def _slope(formula: Any, p: float) -> float:
    d = formula.slope(p, 0.0) if p > 0 else 0.0
    return d + (p - p)  # NaN where p is


@loop
def _jacobian(formula: Any, p: Any, v: Any, out: Any) -> None:
    n, k = p.shape
    for i in range(n):
        weight, along = 0.0, 0.0
        for j in range(k):
            d = _slope(formula, p[i, j])
            weight += d
            along += d * v[i, j]
        mean = along / (weight if weight != 0 else 1.0)  # a row of zeros is one that is masked
        for j in range(k):
            d = _slope(formula, p[i, j])
            out[i, j] = d * (v[i, j] - mean)


def multiply_by_jacobian(
    formula: Any, p: FloatArray, v: FloatArray, out: FloatArray, n_threads: int
) -> None:
    """Write J v for each row.

    Args:
        formula: has the method ``slope(p, y)``, which is ∂p/∂s at a target y.
        p: predictions, (n, k).
        v: the vectors, (n, k).
        out: (n, k), contiguous.
        n_threads: how many threads to use where they pay.
    """
    p, v = usable(p), usable(v)
    if n_threads == 1:
        _jacobian(formula, p, v, out)
        return

    def work(rows: slice, _: Scratch) -> None:
        _jacobian(formula, p[rows], v[rows], out[rows])

    for_each_block(p.shape, p.itemsize, n_threads, work)
