"""The data of a fit in chunks: from what reads them to sums over samples that live on workers."""

from dataclasses import dataclass, field
from operator import attrgetter, itemgetter

import numpy as np
from dask.delayed import Delayed
from scipy import sparse

from .._array import Array, eps
from ..linear_model._checks import FitSettings
from ..linear_model._design import ParameterSpace, Scaling, standardization
from ..linear_model._preconditioner import (
    directions_of_gram,
    gram,
    principal_directions,
    rotation_pays,
)
from ..linear_model._sums import LocalSums, SampleSums, TrainingData
from ..linear_model._vectors import entries
from . import _chunks
from ._chunks import ChunkSummary, TargetCheck
from ._rounds import Rounds

MAX_ROTATION_BYTES = 1 << 30  # that one worker may need for the principal directions


@dataclass(eq=False)
class ChunkedSums(SampleSums):
    """Sums over samples in chunks on workers.

    An evaluation, the curvature at a point and a Hessian product are one round each. The scores at
    the latest point and the Hessians of the rows stay on the workers if the chunks do.
    """

    rounds: Rounds
    parts: list[Delayed]  # tasks that have sums over each chunk
    space: ParameterSpace
    n_scores: int
    n_samples: int
    total_weight: float
    _parameters: Array | None = None  # whose scores are these
    _theta: list[Delayed] = field(default_factory=list)
    _hessians: list[Delayed] = field(default_factory=list)

    def evaluate(self, parameters: Array) -> tuple[float, Array | None]:
        theta = self._score(parameters)
        losses = self.rounds.map("gradient", LocalSums.evaluate_at, self.parts, theta)
        evaluation: tuple[float, Array | None]
        evaluation, self._theta = self.rounds.run(losses, _chunks.total_evaluation, theta)
        self._parameters = parameters
        return evaluation

    def _deliver(self, name: str, array: Array) -> Delayed:
        # if nothing is kept, rounds of Hessian products need it as well
        return (self.rounds.send if self.rounds.keeps else self.rounds.share)(name, array)

    def _score(self, parameters: Array) -> list[Delayed]:
        self._theta = []  # of the point before: its memory is needed
        given = self._deliver("parameters", parameters)
        return self.rounds.map("scores", LocalSums.scores_at, self.parts, given)

    def linearize(
        self, parameters: Array, step: Array | None = None
    ) -> tuple[list[Delayed], Array]:
        self._hessians.clear()  # of the point before: their memory is needed
        if self._parameters is not parameters:
            self._theta, self._parameters = self._score(parameters), parameters
        given = [self._theta] if step is None else [self._theta, self._deliver("step", step)]
        hessians = self.rounds.map("hessian", LocalSums.hessian_at, self.parts, *given)
        classes = self.rounds.map("curvature", LocalSums.curvature_of_classes, self.parts, hessians)
        curvature, self._hessians = self.rounds.run(classes, _chunks.total, hessians)
        return self._hessians, np.array(curvature)

    def product(self, hessian: tuple[list[Delayed], Array], direction: Array) -> Array:
        given = hessian[0], self.rounds.send("direction", direction)
        products = self.rounds.map("product", LocalSums.product, self.parts, *given)
        return np.array(self.rounds.run(products, _chunks.total)[0])

    def curvature_of_classes(self, hessian: tuple[list[Delayed], Array]) -> Array:
        return hessian[1]


class ChunkedData(TrainingData):
    """Checked inputs of a fit, on workers: one round reads, checks and measures every chunk."""

    binary = False
    classes: Array | None = None  # labels that become numbers; None if targets stay as they are
    class_weights: Array | None = None
    _design: tuple[list[Delayed], ParameterSpace, int, float] | None = None

    def __init__(
        self,
        inputs: dict[str, list[Delayed]],
        check: TargetCheck,
        settings: FitSettings,
        *,
        persist: bool,
    ) -> None:
        rounds = self.rounds = Rounds(inputs, persist, settings.n_threads)
        given = check, settings.loss, *inputs.values()
        chunks = rounds.map("check", _chunks.check_rows, rounds.numbers, *given)
        parts = rounds.map("summary", ChunkSummary.of, chunks)
        self.summary, self.chunks = rounds.run(parts, _chunks.merged, chunks)
        if self.summary is None:
            raise ValueError("X has no rows; there is nothing to learn from")
        self.summary.check()
        self.n_classes = self.summary.n_classes

    def sums(self, settings: FitSettings) -> ChunkedSums:
        self._design = self._design or self._make_design(settings)
        rounds, (designs, space, n_samples, total_weight) = self.rounds, self._design
        values = settings.loss, self.n_classes, self.binary, settings.n_threads or 1
        parts = rounds.map("bind", _chunks.bind, *values, designs)
        if rounds.keeps:
            _, parts = rounds.run(rounds.map("ready", attrgetter("n_samples"), parts), sum, parts)
        return ChunkedSums(rounds, parts, space, self.n_scores, n_samples, total_weight)

    def _make_design(
        self, settings: FitSettings
    ) -> tuple[list[Delayed], ParameterSpace, int, float]:
        rounds = self.rounds
        chunks = rounds.map("encode", _chunks.encode, self.classes, self.class_weights, self.chunks)
        columns = self.summary.columns
        if self.class_weights is not None:  # weights have changed
            parts = rounds.map("summary", _chunks.columns_of, chunks)
            columns = rounds.run(parts, _chunks.merged)[0]
        assert columns is not None  # or the check of the summary has raised
        fit_intercept, mean = settings.fit_intercept, columns.mean
        like = entries(self.summary.X)
        scaling = mean if fit_intercept else np.zeros_like(mean), np.ones_like(mean)
        if settings.standardize:
            bounds = columns.low, columns.high
            scaling = standardization(mean, columns.variance, *bounds, eps(like))
        basis = self._basis(chunks, scaling, columns.n_samples)
        given = rounds.share("transformation", (scaling, basis))
        designs = rounds.map("design", _chunks.make_design, fit_intercept, chunks, given)
        parts = rounds.map("spectrum", _chunks.weighted_spectrum, designs)
        found, designs = rounds.run(parts, _chunks.total, designs)
        spectrum, weight = found[:-1] / found[-1], float(found[-1])
        is_sparse = sparse.issparse(self.summary.X)
        space = ParameterSpace(spectrum, scaling, fit_intercept, basis, like, is_sparse)
        self.chunks = []  # the designs have taken their place
        return designs, space, columns.n_samples, weight

    def _basis(self, chunks: list[Delayed], scaling: Scaling, n_samples: int) -> Array | None:
        """The principal directions of dense features, if a rotation pays."""
        n_features = self.summary.X.shape[1]
        n_bytes = 8 * n_features * min(n_samples, n_features)
        pays = rotation_pays(n_samples, n_features, self.n_scores)
        if sparse.issparse(self.summary.X) or not pays or n_bytes > MAX_ROTATION_BYTES:
            return None
        rounds = self.rounds
        given = rounds.send("scaling", scaling)
        if n_samples >= n_features:
            parts = rounds.map("gram", _chunks.of_scaled, gram, chunks, given)
            return directions_of_gram(rounds.run(parts, _chunks.total)[0])
        given = principal_directions, rounds.merge(chunks, _chunks.stack), given
        directions = rounds.apply("rotation", _chunks.of_scaled, *given)
        return np.array(rounds.run([directions], itemgetter(0))[0])
