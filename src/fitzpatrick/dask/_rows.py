"""Samples that live in chunks on workers, as the solvers see them.

An evaluation, the curvature at a point and a Hessian product are one round each. The scores at the
latest point and the Hessians of the rows stay on the workers if the chunks do.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from .._array import Array
from ..linear_model._design import ParameterSpace
from ..linear_model._rows import RowCurvature, Rows
from . import _chunks
from ._rounds import Rounds, Task


@dataclass(eq=False)
class ChunkedSpace(ParameterSpace):
    """The parameters of a model, in NumPy, for features of a dtype, sparse or dense."""

    dtype: Any
    has_sparse_chunks: bool

    @property
    def like(self) -> Array:
        return np.empty(0, dtype=self.dtype)

    @property
    def centers_afterwards(self) -> bool:
        return self.has_sparse_chunks


class ChunkedRows(Rows):
    """Samples in chunks.

    Args:
        rounds: over the chunks.
        samples: the tasks that have them.
        space: what the parameters stand for.
        n_scores: k.
        n_samples: n.
        total_weight: Σ w_i.
    """

    def __init__(
        self,
        rounds: Rounds,
        samples: list[Task],
        space: ParameterSpace,
        n_scores: int,
        n_samples: int,
        total_weight: float,
    ) -> None:
        self.rounds = rounds
        self.samples = samples
        self.space = space
        self.n_scores = n_scores
        self.n_samples = n_samples
        self.total_weight = total_weight
        self._parameters: Array | None = None  # whose scores are these
        self._theta: list[Task] = []

    def evaluate(self, parameters: Array) -> tuple[float, Array | None]:
        theta = self._score(parameters)
        parts = self.rounds.map("gradient", _chunks.evaluate, self.samples, theta)
        result = self.rounds.merge(parts, _chunks.total_evaluation)
        (value, gradient), self._theta = self.rounds.run(result, theta)
        self._parameters = parameters
        if gradient is None:
            return math.inf, None
        return value, np.array(gradient)  # which the worker may still hold

    def _deliver(self, name: str, array: Array) -> Any:
        # if nothing is kept, rounds of Hessian products need it as well
        return (self.rounds.send if self.rounds.keeps else self.rounds.share)(name, array)

    def _score(self, parameters: Array) -> list[Task]:
        self._theta = []  # of the point before: its memory is needed
        given = self._deliver("parameters", parameters)
        return self.rounds.map("scores", _chunks.scores, self.samples, given)

    def curvature(self, parameters: Array, step: Array | None = None) -> "ChunkedCurvature":
        if self._parameters is not parameters:
            self._theta, self._parameters = self._score(parameters), parameters
        given = [self._theta] if step is None else [self._theta, self._deliver("step", step)]
        hessians = self.rounds.map("hessian", _chunks.hessian, self.samples, *given)
        parts = self.rounds.map("curvature", _chunks.curvature, self.samples, hessians)
        result = self.rounds.merge(parts, _chunks.total)
        classes, hessians = self.rounds.run(result, hessians)
        return ChunkedCurvature(self.rounds, self.samples, hessians, np.array(classes))


@dataclass(frozen=True, eq=False)
class ChunkedCurvature(RowCurvature):
    """The Hessians of the rows of all chunks at one point, and their sum over the rows."""

    rounds: Rounds
    samples: list[Task]
    hessians: list[Task]
    classes: Array

    def product(self, direction: Array) -> Array:
        given = self.rounds.send("direction", direction)
        parts = self.rounds.map("product", _chunks.product, self.samples, self.hessians, given)
        return np.array(self.rounds.run(self.rounds.merge(parts, _chunks.total))[0])

    def of_classes(self) -> Array:
        return self.classes
