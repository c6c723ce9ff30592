"""Batches of targets and scores for a property, drawn by hypothesis."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

import fitzpatrick as fp
from tests.contracts.cases import Case
from tests.helpers import FLOOR_IN_EPS, RELATIVE, Library, eps, scores, targets, to_numpy

# JAX compiles each operation anew for each shape, so it sees one shape and fewer draws; what is
# special to a library is in its elementary functions, which every row goes through.
EXAMPLES = {"numpy": 10, "torch": 3, "jax": 1}
CLASSES = {"numpy": (1, 2, 3, 7), "torch": (1, 4), "jax": (4,)}
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

    @property
    def losses(self) -> tuple[fp.FenchelYoungLoss, fp.FitzpatrickLoss]:
        return self.case.losses(self.xp, self.k)

    @property
    def domain(self) -> fp.sets.ConvexSet:
        return self.losses[0].regularizer.domain

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


def check_all(
    case: Case,
    xp: Library,
    dtype: str,
    check: Callable[[Batch], None],
    scales: tuple[float, ...] = SCALES,
) -> None:
    """Run a check on the batches that hypothesis draws."""

    @settings(max_examples=EXAMPLES[xp.name])
    @given(
        seed=st.integers(0, 2**32 - 1),
        k=st.sampled_from(CLASSES[xp.name]),
        scale=st.sampled_from(scales),
    )
    def run(seed: int, k: int, scale: float) -> None:
        check(Batch(case, xp, dtype, k, np.random.default_rng(seed), scale))

    run()
