"""Sparse losses in 60 digits, for rows of few different entries, however long they are."""

from collections.abc import Iterable
from typing import Any

import numpy as np
from mpmath import mp, mpf, sqrt


def solve_by_groups(
    name: str, tightness: float, y: np.ndarray[Any, Any], theta: np.ndarray[Any, Any]
) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """The losses and maximizers of sparsemax or entmax15 rows, by bisection for τ."""
    values, rows = [], []
    with mp.workdps(60):
        for targets, scores in zip(y, theta, strict=True):
            # two numbers in one, since rows are sorted much slower
            found, index, counts = np.unique(
                scores + 1j * targets, return_inverse=True, return_counts=True
            )
            pairs = zip(found.real.tolist(), found.imag.tolist(), strict=True)
            value, points = _solve(name, mpf(tightness), pairs, counts.tolist())
            values.append(float(value))
            rows.append(np.asarray([float(p) for p in points])[index])
    return np.asarray(values), np.asarray(rows)


def _solve(
    name: str, c: Any, pairs: Iterable[tuple[float, float]], counts: Any
) -> tuple[Any, list[Any]]:
    pairs = [(mpf(t), mpf(y)) for t, y in pairs]

    def point(s: Any, y: Any) -> Any:
        if name == "sparsemax":
            return max((s + c * y) / (1 + c), mpf(0))
        reach = 2 + c
        if c * y == 0:
            return (max(s, mpf(0)) / reach) ** 2
        return ((s + sqrt(s * s + 4 * reach * c * y)) / (2 * reach)) ** 2

    low, high = max(t for t, _ in pairs) - 3 - c, max(t for t, _ in pairs) + 3 + c
    for _ in range(210):
        tau = (low + high) / 2
        total = sum(n * point(t - tau, y) for (t, y), n in zip(pairs, counts, strict=True))
        low, high = (tau, high) if total > 1 else (low, tau)
    points = [point(t - tau, y) for t, y in pairs]
    loss = mpf(0)
    for (t, y), p, n in zip(pairs, points, counts, strict=True):
        s = t - tau
        # Ω(y) − Ω(p) − c D(y, p) + ⟨p − y, s⟩, since both sum to one
        if name == "sparsemax":
            entry = (y * y - p * p) / 2 - c * (y - p) ** 2 / 2
        else:
            psi = mpf(4) / 3 * (y**1.5 - p**1.5)
            entry = psi - c * (psi - 2 * sqrt(p) * (y - p))
        loss += n * (entry + (p - y) * s)
    return loss, points
