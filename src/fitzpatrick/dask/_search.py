"""The choice of alpha and the tightness on a dev set, on Dask."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from .. import metrics
from .._array import Array
from ..linear_model._base import TrainingData
from ..linear_model._cv import CrossValidated, Grid, is_dev_set
from ..losses import Loss
from . import _scores
from ._collections import read_inputs
from ._data import ChunkedData
from ._estimator import OnDask, for_workers
from ._rounds import ChunkError, Rounds
from ._scores import Mean

Scorer = Callable[..., float]


@dataclass(frozen=True, eq=False)
class PathScores:
    """The mean scores of several models on a chunk.

    Args:
        scorer: a mean over samples.
        loss: the domain of the targets is that of this loss.
        n_classes: k.
    """

    scorer: Scorer
    loss: Loss
    n_classes: int

    def __call__(self, models: list[Any], X: Array, y: Any, weights: Array | None) -> Mean:
        y = models[0]._check_more_targets(y, X, self.n_classes, self.loss)
        y = y.toarray() if hasattr(y, "toarray") else y
        scores = [self.scorer(model, X, y, sample_weight=weights) for model in models]
        return Mean(float(len(y) if weights is None else weights.sum()), np.asarray(scores))


@dataclass(eq=False, repr=False)
class Search(OnDask, CrossValidated):
    """Fit a path of penalties, and score all of its models in one round over the dev set."""

    def _score_grid(
        self, data: TrainingData, grid: Grid, sample_weight: Any, groups: Any, dev: Any
    ) -> tuple[Array, int]:
        assert isinstance(data, ChunkedData)
        models, unfinished = [], 0
        for settings in grid.candidates:
            for model in data.problem(settings).path(grid.path):
                fitted = for_workers(self)
                fitted._set_model(model, settings.loss, data.like)
                models.append(fitted)
                unfinished += not model.status.converged
        statistic = PathScores(grid.scorer, grid.candidates[0].loss, data.n_classes)
        found = self._score_models(models, dev, statistic).reshape(len(grid.candidates), -1)
        scores = np.empty((1, *found.T.shape))
        scores[0, grid.order] = found.T
        return scores, unfinished

    def _check_held_out(self, groups: Any, dev: Any) -> None:
        if not is_dev_set(dev):
            raise ValueError(
                f"{type(self).__name__} on Dask chooses on a dev set: give fit() "
                "dev=(X_dev, y_dev), or a triple with weights"
            )
        unused = {"groups": groups, "cv": self.cv, "n_jobs": self.n_jobs}
        for name, value in unused.items():
            if value is not None:
                raise ValueError(f"{name} is not used on Dask, and must be None, got {value!r}")

    def _scorer(self) -> Any:
        """A mean over samples, which adds up over chunks."""
        scoring = self._default_scoring if self.scoring is None else self.scoring
        if scoring == "accuracy" and self._default_scoring == "accuracy":
            return _scores.accuracy_of
        if isinstance(scoring, str) and scoring in metrics.metric_names():
            return metrics.get_scorer(scoring)
        raise ValueError(
            f"scoring={scoring!r} is no mean over samples that adds up over chunks; use "
            f"{self._default_scoring!r} or one of {', '.join(metrics.metric_names())}"
        )

    def _score_models(self, models: list[Any], dev: Any, statistic: PathScores) -> Array:
        """The mean score of each model on the dev set, in one round."""
        try:
            inputs = read_inputs(*dev, *[None] * (3 - len(dev)))
            rounds = Rounds(inputs, keeps=False, n_threads=self.n_threads)
            given = rounds.send("models", models)
            numbers, tasks = list(range(rounds.n_chunks)), [part.tasks for part in inputs]
            parts = rounds.map("score", _scores.score_chunk, numbers, statistic, given, *tasks)
            found = rounds.run(rounds.merge(parts, _scores.merge_statistics))[0]
        except ChunkError as error:
            raise ChunkError(f"dev: {error}") from error
        if found is None:
            raise ValueError("dev: no sample has a positive weight; there is nothing to score")
        scores: Array = found.mean
        return scores
