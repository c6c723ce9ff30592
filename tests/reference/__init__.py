"""Stored reference values of every loss, and the recipe that recomputes any of them.

>>> [points.y.shape[1] for points in load("fitzpatrick_logistic", "float64")]
[2, 3, 4, 5, 6, 7, 8, 40]
>>> value, y_star = recompute("fitzpatrick_squared", [0.0, 1.0], [4.0, 1.0])
>>> value, y_star.tolist()
(4.0, [2.0, 1.0])
>>> value, y_star = recompute("fitzpatrick_squared@3", [0.0, 1.0], [4.0, 1.0])
>>> value, y_star.tolist()
(2.0, [1.0, 1.0])

The files are written by ``python -m tests.reference.generate``; ``recipe`` says what the values
are, how a target is read and how a case is named.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np

from .recipe import CASES, END_CASES, recompute, regularizer_of

__all__ = [
    "CASES",
    "END_CASES",
    "Points",
    "data_path",
    "load",
    "recompute",
    "regularizer_of",
]


class Points(NamedTuple):
    """n rows of one size k.

    ``y`` and ``theta`` are (n, k) of the dtype asked for. ``value`` (n,) and ``y_star`` (n, k)
    are float64, correctly rounded; ``y_star`` is the link of ``theta`` at tightness 0, and a row
    of NaN where the maximizer is not unique.
    """

    y: np.ndarray
    theta: np.ndarray
    value: np.ndarray
    y_star: np.ndarray


def data_path(case: str, dtype: str, *, is_few: bool = False) -> Path:
    """The file that holds a case: one for tightness 0 and 1, one for the others, one for many."""
    part = ".few" if is_few else "" if case in END_CASES else ".others"
    return Path(__file__).parent / "data" / f"{regularizer_of(case).name}{part}.{dtype}.npz"


def load(
    case: str, dtype: str | np.dtype | type = "float64", *, is_few: bool = False
) -> tuple[Points, ...]:
    """The stored points of a case, one ``Points`` for each size k, by increasing k.

    ``is_few`` reads the few rows that are stored for the tightnesses of ``recipe.MANY``.
    """
    dtype = np.dtype(dtype).name
    with np.load(data_path(case, dtype, is_few=is_few)) as stored:
        sizes = stored["k"].astype(int)
        flat = [stored[name] for name in ("y", "theta", f"{case}.y_star")]
        value = stored[f"{case}.value"]
    groups = []
    for k in np.unique(sizes):
        rows = sizes == k
        y, theta, y_star = (array[np.repeat(rows, sizes)].reshape(-1, k) for array in flat)
        groups.append(Points(y, theta, value[rows], y_star))
    return tuple(groups)
