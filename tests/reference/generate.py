"""Recomputes the reference data: ``python -m tests.reference.generate [regularizer ...]``.

Each regularizer and each input dtype has three files in ``data/``: one with all rows for tightness
0 and 1, one with a third of the rows for the other tightnesses, and one with a few rows, and odd
ones, for many tightnesses (the last two not for perceptrons, whose loss does not depend on it).
The rows are sorted by their size k and concatenated: ``k`` (n,), ``y`` and ``theta`` (Σk,), and
for every case ``<case>.value`` (n,) and ``<case>.y_star`` (Σk,), the doubles nearest to the exact
results. All cases of a file share their inputs.

The inputs are part of the data: classes, proportions with zeros and with tiny entries, targets next
to the link, and scores that are tied, extreme or far apart. A regularizer without a file takes
those of another one on its domain.
"""

from __future__ import annotations

import sys

import numpy as np

from tests.helpers import DTYPES

from . import data_path
from .recipe import ENDS, MANY, OTHERS, REGULARIZERS, Regularizer, recompute


def write(regularizer: Regularizer, tightnesses: tuple[float, ...], dtype: str) -> None:
    """Recompute one file."""
    cases, is_few = regularizer.cases(tightnesses), tightnesses == MANY
    path = data_path(cases[0], dtype, is_few=is_few)
    sources = [
        data_path(other.cases(tightnesses)[0], dtype, is_few=is_few)
        for other in (regularizer, *REGULARIZERS)
        if other.domain == regularizer.domain
    ]
    with np.load(next(source for source in sources if source.exists())) as stored:
        arrays = {name: stored[name] for name in ("k", "y", "theta")}
    ends = np.cumsum(arrays["k"], dtype=int)[:-1]
    rows = list(zip(*(np.split(arrays[name], ends) for name in ("y", "theta")), strict=True))
    for case in cases:
        found = [recompute(case, y, theta) for y, theta in rows]
        arrays[f"{case}.value"] = np.array([value for value, _ in found])
        arrays[f"{case}.y_star"] = np.concatenate([y_star for _, y_star in found])
    np.savez_compressed(path, **arrays)
    print(path.name, len(rows), "rows")


def main(names: list[str]) -> None:
    """Recompute the data of the named regularizers, or of all of them."""
    for regularizer in REGULARIZERS:
        if names and regularizer.name not in names:
            continue
        for dtype in DTYPES:
            for tightnesses in (ENDS,) if regularizer.is_perceptron else (ENDS, OTHERS, MANY):
                write(regularizer, tightnesses, dtype)


if __name__ == "__main__":
    main(sys.argv[1:])
