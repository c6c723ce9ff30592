"""The data of a fit in chunks: from tasks that read them to a problem for the solvers."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from .._array import Array, eps
from .._weights import check_any_weight
from ..linear_model._base import TrainingData
from ..linear_model._design import Scaling
from ..linear_model._problem import Problem
from ..linear_model._rotation import directions_of_gram, rotation_pays
from ..linear_model._settings import FitSettings
from . import _chunks
from ._chunks import Binding, Encoding, Transformation
from ._rounds import Input, Rounds, Task
from ._rows import ChunkedRows, ChunkedSpace
from ._statistics import Columns, Summary, merge_summaries
from ._targets import TargetCheck

MAX_ROTATION_BYTES = 1 << 30  # that one worker may need for the principal directions


@dataclass(frozen=True, eq=False)
class ChunkedDesign:
    """The features of all chunks as the solvers see them.

    Attributes:
        space: what the parameters stand for.
        designs: the tasks that have them.
        targets: the tasks that have targets and weights.
        total_weight: Σ w_i.
        counts: samples of each chunk.
    """

    space: ChunkedSpace
    designs: list[Task]
    targets: list[Task]
    total_weight: float
    counts: dict[int, int]


@dataclass(eq=False)
class ChunkedData(TrainingData):
    """Checked inputs of a fit, on workers.

    Args:
        rounds: over the chunks.
        chunks: the tasks that have the rows, checked.
        unread: the same tasks before the first round.
        summary: what is known of them.
        n_classes: k.
        binary: whether two classes share one row of coefficients.
        encoding: what becomes of targets and weights.
    """

    rounds: Rounds
    chunks: list[Task]
    unread: list[Task]
    summary: Summary
    n_classes: int = 0
    binary: bool = False
    encoding: Encoding = field(default_factory=Encoding)
    _designs: dict[tuple[bool, bool], ChunkedDesign] = field(default_factory=dict)

    @classmethod
    def read(
        cls, inputs: Sequence[Input], check: TargetCheck, settings: FitSettings, *, persist: bool
    ) -> "ChunkedData":
        """One round: every chunk is read, checked and measured."""
        rounds = Rounds(inputs, persist, settings.n_threads)
        tasks = [given.tasks for given in inputs]
        numbers = list(range(rounds.n_chunks))
        unread = rounds.map("check", _chunks.check_rows, numbers, check, settings.loss, *tasks)
        parts = rounds.map("summary", _chunks.summarize, _centers(settings), unread)
        summary, chunks = rounds.run(rounds.merge(parts, merge_summaries), unread)
        if summary is None:
            raise ValueError("X has no rows; there is nothing to learn from")
        check_any_weight(summary.n_samples > 0)
        summary.check()
        return cls(rounds, chunks, unread, summary)

    @property
    def n_features(self) -> int:
        return self.summary.n_features

    @property
    def like(self) -> Array:
        return self.summary.like

    def problem(self, settings: FitSettings) -> Problem:
        design = self.design(settings)
        counts = [design.counts.get(index, 0) for index in range(self.rounds.n_chunks)]
        before = np.cumsum([0, *counts]).tolist()
        first = dict(enumerate(before))
        threads = settings.n_threads or 1
        binding = Binding(settings.loss, self.n_classes, self.binary, first, threads)
        given = self.rounds.share("loss", binding)
        samples = self.rounds.map("bind", _chunks.bind, design.designs, design.targets, given)
        if self.rounds.keeps:
            done = self.rounds.merge(self.rounds.map("ready", _chunks.is_ready, samples), all)
            _, samples = self.rounds.run(done, samples)
        rows = ChunkedRows(
            self.rounds, samples, design.space, self.n_scores, sum(counts), design.total_weight
        )
        return Problem(rows, settings)

    def design(self, settings: FitSettings) -> ChunkedDesign:
        """The features as the solvers see them: one design serves every loss and every alpha."""
        key = settings.fit_intercept, settings.standardize
        if key not in self._designs:
            self._designs[key] = self._make_design(settings)
        return self._designs[key]

    def _make_design(self, settings: FitSettings) -> ChunkedDesign:
        rounds = self.rounds
        chunks = rounds.map(
            "encode", _chunks.encode, self.chunks, rounds.share("encoding", self.encoding)
        )
        summary = self._weighted_summary(chunks, settings)
        scaling = self._scaling(summary.columns, settings)
        basis = self._basis(chunks, scaling, summary.n_samples)
        transformation = Transformation(scaling, basis, settings.fit_intercept)
        given = rounds.share("transformation", transformation)
        designs = rounds.map("design", _chunks.make_design, chunks, given)
        targets = rounds.map("targets", _chunks.without_features, chunks)
        parts = rounds.map("spectrum", _chunks.weighted_spectrum, designs, targets)
        kept = [*designs, *targets]
        sums, kept = rounds.run(rounds.merge(parts, _chunks.total), kept)
        designs, targets = kept[: len(designs)], kept[len(designs) :]
        weight = float(sums[-1])
        space = ChunkedSpace(
            sums[:-1] / weight,
            scaling,
            settings.fit_intercept,
            basis,
            self.summary.dtype,
            self.summary.is_sparse,
        )
        self.chunks = self.unread  # the designs have taken their place
        return ChunkedDesign(space, designs, targets, weight, summary.counts)

    def _weighted_summary(self, chunks: list[Task], settings: FitSettings) -> Summary:
        """What is known of the samples; weights of the classes ask for another round."""
        if self.encoding.class_weights is None:
            return self.summary
        parts = self.rounds.map("summary", _chunks.summarize, _centers(settings), chunks)
        summary: Summary = self.rounds.run(self.rounds.merge(parts, merge_summaries))[0]
        return summary

    def _scaling(self, columns: Columns | None, settings: FitSettings) -> Scaling:
        if columns is None or not _centers(settings):
            return Scaling(np.zeros(self.n_features), np.ones(self.n_features))
        return columns.scaling(standardize=settings.standardize, precision=eps(self.like))

    def _basis(self, chunks: list[Task], scaling: Scaling, n_samples: int) -> Array | None:
        """The principal directions of dense features, where a rotation pays."""
        n_features = self.n_features
        n_bytes = 8 * n_features * min(n_samples, n_features)
        pays = rotation_pays(n_samples, n_features, self.n_scores)
        if self.summary.is_sparse or not pays or n_bytes > MAX_ROTATION_BYTES:
            return None
        rounds = self.rounds
        given = rounds.send("scaling", scaling)
        if n_samples >= n_features:
            parts = rounds.map("gram", _chunks.gram_of, chunks, given)
            return directions_of_gram(rounds.run(rounds.merge(parts, _chunks.total))[0])
        stacked = rounds.merge(chunks, _chunks.stack)
        return np.array(
            rounds.run(rounds.apply("rotation", _chunks.directions_of, stacked, given))[0]
        )


def _centers(settings: FitSettings) -> bool:
    return settings.fit_intercept or settings.standardize
