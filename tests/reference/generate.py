"""Writes the reference data: ``python -m tests.reference.generate [regularizer ...]``.

Each regularizer and each input dtype gives three files in ``data/``: one with all rows for
tightness 0 and 1, one with a third of the rows of every kind for the other tightnesses, and one
with a few rows of every kind, and odd ones, for many tightnesses (the last two not for
perceptrons, whose loss does not depend on it). The rows are sorted by their size k and
concatenated: ``k`` (n,), ``y`` and ``theta`` (Σk,), and for every case ``<case>.value`` (n,)
and ``<case>.y_star`` (Σk,), the doubles nearest to the exact results. All cases of a file share
their inputs.
"""

from __future__ import annotations

import sys
import time
import zlib

import numpy as np

from . import DTYPES, data_path
from .points import Example, sample, sample_more
from .recipe import ENDS, MANY, OTHERS, REGULARIZERS, Regularizer, rounded

# Of the rows of each kind, one of this many is stored for the tightnesses other than 0 and 1.
THINNING = 3
# And one of this many for many tightnesses.
FEW = 15


def draw(regularizer: Regularizer, dtype: str) -> list[list[Example]]:
    """All rows, kind by kind."""
    seed = zlib.crc32(f"{regularizer.name}/{dtype}".encode())
    return list(sample(regularizer, np.dtype(dtype), seed))


def thinned(kind: list[Example], thinning: int = THINNING) -> list[Example]:
    """One row of ``thinning``, and the one with the tiniest target."""
    sizes = [np.abs(y[y != 0]).min(initial=np.inf) for y, _ in kind]
    tiniest = int(np.argmin(sizes))
    return [example for row, example in enumerate(kind) if row % thinning == 0 or row == tiniest]


def few(regularizer: Regularizer, kinds: list[list[Example]], dtype: str) -> list[list[Example]]:
    """A few rows of every kind but the large ones, and odd rows."""
    seed = zlib.crc32(f"{regularizer.name}/{dtype}/more".encode())
    odd = sample_more(regularizer, np.dtype(dtype), seed)
    return [*(thinned(kind, FEW) for kind in kinds[:-1]), odd]


def generate(
    cases: tuple[str, ...], kinds: list[list[Example]], dtype: str
) -> dict[str, np.ndarray]:
    """All arrays of one file."""
    examples = sorted((row for kind in kinds for row in kind), key=lambda row: len(row[0]))
    arrays = {
        "k": np.array([len(y) for y, _ in examples], dtype=np.uint8),
        "y": np.concatenate([y for y, _ in examples]).astype(dtype),
        "theta": np.concatenate([theta for _, theta in examples]).astype(dtype),
    }
    for case in cases:
        rows = [rounded(case, y, theta) for y, theta in examples]
        arrays[f"{case}.value"] = np.array([value for value, _ in rows])
        arrays[f"{case}.y_star"] = np.concatenate([y_star for _, y_star in rows])
    return arrays


def write(
    cases: tuple[str, ...], kinds: list[list[Example]], dtype: str, *, is_few: bool = False
) -> None:
    """Writes one file and says so."""
    start = time.perf_counter()
    arrays = generate(cases, kinds, dtype)
    path = data_path(cases[0], dtype, is_few=is_few)
    path.parent.mkdir(exist_ok=True)
    np.savez_compressed(path, **arrays)
    seconds, size = time.perf_counter() - start, path.stat().st_size / 1024
    print(f"{path.name:40s} {len(arrays['k'])} rows {size:6.1f} KiB {seconds:6.1f} s")


def main(names: list[str]) -> None:
    """Generates the data of the named regularizers, or of all of them."""
    for regularizer in REGULARIZERS:
        if names and regularizer.name not in names:
            continue
        for dtype in DTYPES:
            kinds = draw(regularizer, dtype)
            write(regularizer.cases(ENDS), kinds, dtype)
            if not regularizer.is_perceptron:
                write(regularizer.cases(OTHERS), [thinned(kind) for kind in kinds], dtype)
                rows = few(regularizer, kinds, dtype)
                write(regularizer.cases(MANY), rows, dtype, is_few=True)


if __name__ == "__main__":
    main(sys.argv[1:])
