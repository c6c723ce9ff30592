"""Batches of targets and scores for a property."""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pytest

import fitzpatrick as fp
from tests.contracts.cases import CASES, Case
from tests.helpers import (
    FLOOR_IN_EPS,
    RELATIVE,
    TEST_ALL,
    Library,
    eps,
    scores,
    seeded,
    targets,
    to_numpy,
)

# JAX compiles each operation for each shape and dtype: one shape for all tests keeps that short.
CLASSES = {"numpy": (1, 2, 3, 7), "torch": (4,), "jax": (4,)}
EXAMPLES = 10 if TEST_ALL else 1
ROWS = 35
SCALES = (1e-3, 1.0, 10.0, 1e4)


@dataclass(frozen=True)
class Batch:
    """Targets and scores for one case, with the losses they go to."""

    case: Case
    xp: Library
    dtype: str
    k: int
    rng: np.random.Generator
    scale: float

    @cached_property
    def losses(self) -> tuple[fp.Loss, ...]:
        """The loss of every tightness."""
        return self.case.losses(self.xp, self.k)

    @property
    def omega(self) -> fp.regularizers.Regularizer:
        return self.losses[0].regularizer

    @property
    def domain(self) -> fp.sets.ConvexSet:
        return self.omega.domain

    def array(self, values: Any) -> Any:
        return self.xp.asarray(values, self.dtype)

    def draw_targets(self) -> np.ndarray:
        return targets(self.domain, self.rng, ROWS, self.k, self.dtype)

    def draw_scores(self) -> np.ndarray:
        return scores(self.domain, self.rng, ROWS, self.k, self.dtype, self.scale)

    def draw_direction(self) -> np.ndarray:
        return self.rng.normal(size=(ROWS, self.k)).astype(self.dtype).astype(np.float64)

    def slack(self, *magnitudes: Any) -> np.ndarray:
        """The promised accuracy of numbers that large, times the slack of the case.

        The magnitudes are those of all numbers that a check adds or subtracts, row by row.
        """
        total = sum(np.abs(to_numpy(m)) for m in magnitudes)
        total = np.where(np.isfinite(total), total, 0)
        floor = FLOOR_IN_EPS * eps(self.dtype)
        return self.case.slack * (RELATIVE[self.dtype] * total + floor * (1 + total))


def draw_batch(
    case: Case, xp: Library, dtype: str, seed: int, salt: str = "", scales: Any = SCALES
) -> Batch:
    """A batch of its own for every case, library, dtype and seed (and salt)."""
    key = zlib.crc32(f"{case.name}/{xp.name}/{dtype}/{salt}".encode())
    rng = seeded([key, seed])
    return Batch(case, xp, dtype, int(rng.choice(CLASSES[xp.name])), rng, float(rng.choice(scales)))


def every_batch(cases: list[Case] = CASES, scales: tuple[float, ...] = SCALES) -> Any:
    """Parametrize a test by batches: of each case, as many as EXAMPLES, with scores of a scale."""
    drawn = [(case, seed, scales) for case in cases for seed in range(EXAMPLES)]
    ids = [f"{case.name}-{seed}" for case, seed, _ in drawn]
    return pytest.mark.parametrize("batch", drawn, ids=ids, indirect=True)
