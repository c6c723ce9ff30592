"""Writes the reference data: ``python -m tests.reference.generate [pair ...]``.

Each pair of losses and each input dtype gives one file in ``data/``, with rows sorted by their
size k and concatenated: ``k`` (n,), ``y`` and ``theta`` (Σk,), and for every case of the pair
``<case>.value`` (n,) and ``<case>.y_star`` (Σk,), the doubles nearest to the exact results.
The two losses of a pair share their inputs.
"""

from __future__ import annotations

import sys
import time
import zlib

import numpy as np

from . import DTYPES, data_path
from .points import sample
from .recipe import PAIRS, Pair, rounded


def generate(pair: Pair, dtype: str) -> dict[str, np.ndarray]:
    """All arrays of one file."""
    seed = zlib.crc32(f"{pair.name}/{dtype}".encode())
    examples = sorted(sample(pair, np.dtype(dtype), seed), key=lambda example: len(example[0]))
    arrays = {
        "k": np.array([len(y) for y, _ in examples], dtype=np.uint8),
        "y": np.concatenate([y for y, _ in examples]).astype(dtype),
        "theta": np.concatenate([theta for _, theta in examples]).astype(dtype),
    }
    for case in pair.cases:
        rows = [rounded(case, y, theta) for y, theta in examples]
        arrays[f"{case}.value"] = np.array([value for value, _ in rows])
        arrays[f"{case}.y_star"] = np.concatenate([y_star for _, y_star in rows])
    return arrays


def main(names: list[str]) -> None:
    """Generates the named pairs, or all of them."""
    for pair in PAIRS:
        if names and pair.name not in names:
            continue
        for dtype in DTYPES:
            start = time.perf_counter()
            arrays = generate(pair, dtype)
            path = data_path(pair.name, dtype)
            path.parent.mkdir(exist_ok=True)
            np.savez_compressed(path, **arrays)
            seconds, size = time.perf_counter() - start, path.stat().st_size / 1024
            print(f"{path.name:40s} {len(arrays['k'])} rows {size:6.1f} KiB {seconds:6.1f} s")


if __name__ == "__main__":
    main(sys.argv[1:])
