"""The estimators on Dask: fits and scores on chunks, and predictions that stay lazy."""

import copy
from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass
from functools import partial, wraps
from typing import Any, ClassVar, TypeVar, cast

import numpy as np
from dask.base import is_dask_collection
from dask.dataframe import from_dask_array
from sklearn.metrics import get_scorer
from sklearn.utils.validation import _get_feature_names, check_is_fitted, validate_data

from .. import linear_model, metrics
from .._array import Array
from ..linear_model import _checks, _cv
from ..linear_model._checks import FitSettings
from ..linear_model._estimators import ClassModel, LinearModel, ProportionModel
from ..linear_model._path import LinearPath, path_of
from ..losses import Loss, get_loss
from . import _chunks
from ._chunks import Columns, Statistic
from ._collections import check_whole_rows, is_array, meta, read_inputs
from ._data import ChunkedData
from ._rounds import ChunkError, Rounds

Method = TypeVar("Method", bound=Callable[..., Any])


@dataclass(eq=False, repr=False)
class OnDask(LinearModel):
    """Fits on chunks of rows, and predictions for them.

    What was fitted is in memory, and so are predictions for arrays in memory.
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = _checks.CONSTRAINTS | {
        "persist": ["boolean"]
    }
    _target_check: ClassVar[Any]  # a TargetCheck
    _statistic: ClassVar[Any]  # a Statistic of a chunk
    _score_of: ClassVar[Any]  # from the statistic of all chunks to the score

    _: KW_ONLY
    persist: bool = True

    def _check_data(self, X: Any, y: Any, sample_weight: Any, settings: FitSettings) -> ChunkedData:
        inputs = read_inputs(X, y, sample_weight)
        validate_data(self, meta(X), reset=True, skip_check_array=True)
        data = ChunkedData(inputs, self._target_check, settings, persist=self.persist)
        self._learn_targets(y, data, settings.loss)
        return data

    @abstractmethod
    def _learn_targets(self, y: Any, data: ChunkedData, loss: Loss) -> None:
        """Set what the check of the targets found, in the estimator and in the data."""

    def _predict_later(self, method: str, X: Any) -> Any:
        """A prediction for a collection by the method of that name."""
        check_is_fitted(self)
        validate_data(self, meta(X), reset=False, skip_check_array=True)
        rows = X if is_array(X) else X.to_dask_array()
        check_whole_rows("X", rows)
        output = getattr(self, "_sklearn_output_config", {}).get("transform", "default")
        if output not in ("default", "pandas"):
            raise ValueError(
                f"predictions of Dask collections come as arrays or in pandas, not in {output}; "
                "use set_output(transform='pandas') or 'default'"
            )
        row = np.zeros((1, rows.shape[1]), dtype=rows.dtype)
        example = getattr(for_workers(self).set_output(transform=output), method)(row)
        empty = np.asarray(example)[:0]
        prediction = rows.map_blocks(
            _chunks.predict,
            for_workers(self),
            method,
            empty,
            token=f"fitzpatrick-{method}",
            chunks=(rows.chunks[0], *((size,) for size in empty.shape[1:])),
            drop_axis=None if empty.ndim == 2 else 1,
            meta=empty,
        )
        names = getattr(example, "columns", None)
        if names is None:
            return prediction
        index = None if is_array(X) else X.index
        return from_dask_array(prediction, columns=[str(name) for name in names], index=index)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """The accuracy of a classifier, R² of a regressor."""
        if not is_dask_collection(X):
            return float(super().score(X, y, sample_weight))
        check_is_fitted(self)
        validate_data(self, meta(X), reset=False, skip_check_array=True)
        inputs = read_inputs(X, y, sample_weight)
        found = run_statistic(inputs, for_workers(self), self._statistic, self.n_threads)
        return float("nan") if found is None else float(self._score_of(found))


def run_statistic(
    inputs: dict[str, list[Any]], models: Any, statistic: Statistic, n_threads: int | None
) -> Columns | None:
    """The statistic of a model or several, in one round; None if no sample counts."""
    rounds = Rounds(inputs, keeps=False, n_threads=n_threads)
    X, *others = inputs.values()
    given = statistic, X, rounds.send("models", models), *others
    parts = rounds.map("score", _chunks.score, rounds.numbers, *given)
    found: Columns | None = rounds.run(parts, _chunks.merged)[0]
    return found


def lazy(method: Method) -> Method:
    """A method that predicts, on workers and later where the rows are a collection."""

    @wraps(method)
    def predict(model: OnDask, X: Any) -> Any:
        if is_dask_collection(X):
            return model._predict_later(method.__name__, X)
        return method(model, X)

    predict.__doc__ = f"{method.__doc__} Lazy for a collection."
    return cast(Method, predict)


def for_workers(model: Any) -> Any:
    """A fitted estimator as workers need it: it predicts, and remembers no names."""
    model = copy.copy(model)
    model.callback = None
    for name in ("feature_names_in_", "_sklearn_output_config"):
        model.__dict__.pop(name, None)
    return model


@dataclass(eq=False, repr=False)
class Search(OnDask, _cv.CrossValidated):
    """Fit a path of penalties, and score all of its models in one round over the dev set."""

    def _folds(self, data: Any, loss: Loss, sample_weight: Any, groups: Any, dev: Any) -> _cv.Folds:
        return lambda: iter([(data, dev)])

    def _score_models(
        self, models: list[Any], held_out: Any, scorer: Any, loss: Loss, n_classes: int
    ) -> Array:
        statistic = partial(mean_scores, scorer, loss, n_classes)
        given = [for_workers(model) for model in models]
        try:
            found = run_statistic(read_inputs(*held_out), given, statistic, self.n_threads)
        except ChunkError as error:
            raise ChunkError(f"dev: {error}") from error
        if found is None:
            raise ValueError("dev: no sample has a positive weight; there is nothing to score")
        return found.mean

    def _check_held_out(self, groups: Any, dev: Any) -> None:
        if not _cv.is_dev_set(dev):
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
        if isinstance(scoring, str) and scoring in metrics.mean_metric_names():
            return metrics.get_scorer(scoring)
        if scoring == "accuracy" == self._default_scoring:
            return get_scorer("accuracy")
        raise ValueError(
            f"scoring={scoring!r} is no mean over samples that adds up over chunks; use "
            f"{self._default_scoring!r} or one of {', '.join(metrics.mean_metric_names())}"
        )


def mean_scores(
    scorer: Any,
    loss: Loss,
    n_classes: int,
    models: list[Any],
    X: Array,
    y: Any,
    weights: Array | None,
) -> Columns:
    """The scores of several models on a chunk, by a scorer that is a mean over samples."""
    y, _ = models[0]._check_more_targets(y, X, n_classes, loss)
    y = y.toarray() if hasattr(y, "toarray") else y
    scores = [[scorer(model, X, y, sample_weight=weights) for model in models]]
    weight = float(len(y) if weights is None else weights.sum())
    return Columns.of(np.asarray(scores), np.asarray([weight]))


@dataclass(eq=False, repr=False)
class ClassModelOnDask(OnDask, ClassModel):
    """Targets that are class labels."""

    _target_check = staticmethod(_chunks.labels_of)
    _statistic = staticmethod(_chunks.hits)
    _score_of = staticmethod(lambda found: found.mean[0])

    def _learn_targets(self, y: Any, data: ChunkedData, loss: Loss) -> None:
        found = data.summary
        data.class_weights = self._learn_classes(found.labels, found.totals, loss)
        data.classes = found.labels
        data.n_classes, data.binary = len(found.labels), len(found.labels) == 2

    def _check_data(self, X: Any, y: Any, sample_weight: Any, settings: FitSettings) -> ChunkedData:
        self._check_domain(settings.loss)
        return super()._check_data(X, y, sample_weight, settings)

    decision_function = lazy(ClassModel.decision_function)
    predict = lazy(ClassModel.predict)
    predict_proba = lazy(ClassModel.predict_proba)
    predict_link = lazy(ClassModel.predict_link)
    predict_log_proba = lazy(ClassModel.predict_log_proba)


@dataclass(eq=False, repr=False)
class FitzpatrickClassifier(ClassModelOnDask, linear_model.FitzpatrickClassifier):
    r"""Linear classifier on chunks of rows, with a Fitzpatrick or Fenchel-Young loss.

    The model, its other parameters and its attributes are documented in
    :class:`fitzpatrick.linear_model.FitzpatrickClassifier`. The coefficients are the same.

    Args:
        n_threads: threads of each task; None is one, since workers run several tasks at a time.
        persist: True if chunks, targets, scores and Hessians stay on the workers while the fit
            runs, about d + 2k numbers a row. With False each round reads the chunks again: for
            data beyond the memory of the cluster.

    Example:
        >>> import dask.array as da
        >>> from sklearn.datasets import load_iris
        >>> from fitzpatrick.dask import FitzpatrickClassifier
        >>> X, y = load_iris(return_X_y=True)
        >>> X, y = da.from_array(X, chunks=(50, 4)), da.from_array(y, chunks=50)
        >>> model = FitzpatrickClassifier(loss="sparsemax").fit(X, y)
        >>> model.predict_proba(X)  # lazy
        dask.array<..., shape=(150, 3), dtype=float64, chunksize=(50, 3), chunktype=numpy.ndarray>
        >>> model.predict_proba(X).compute()[0].round(3)
        array([1., 0., 0.])
        >>> float(model.score(X, y)) > 0.9
        True
    """


@dataclass(eq=False, repr=False)
class FitzpatrickClassifierCV(Search, ClassModelOnDask, linear_model.FitzpatrickClassifierCV):
    r"""A :class:`FitzpatrickClassifier` that chooses its alpha, and its tightness, on a dev set.

    Other parameters, and the attributes, are as in
    :class:`fitzpatrick.linear_model.FitzpatrickClassifierCV`, with the dev set as the only fold.

    Args:
        scoring: ``"accuracy"``, the default, or a name of
            :func:`fitzpatrick.metrics.metric_names` but ``"calibration_error"``, which is no mean.
        n_threads: as in :class:`FitzpatrickClassifier`.
        persist: as in :class:`FitzpatrickClassifier`.
        cv: not used on Dask, where ``fit`` asks for a dev set.
        n_jobs: not used on Dask, where workers share each fit.
    """


@dataclass(eq=False, repr=False)
class ProportionModelOnDask(OnDask, ProportionModel):
    """Targets (n, k) in the domain of the loss."""

    _target_check = staticmethod(_chunks.proportions_of)
    _statistic = staticmethod(_chunks.deviations)
    _score_of = staticmethod(_chunks.r2)

    def _learn_targets(self, y: Any, data: ChunkedData, loss: Loss) -> None:
        found = data.summary
        _checks.warn_of_rounding(found.rounding)
        is_frame = is_dask_collection(y) and not is_array(y) and y.ndim == 2
        self._target_names = _get_feature_names(y._meta) if is_frame else None
        self._is_single = found.form["shape of y"] == _chunks.ONE_COLUMN

    predict_scores = lazy(ProportionModel.predict_scores)
    predict = lazy(ProportionModel.predict)


@dataclass(eq=False, repr=False)
class ProportionRegressor(ProportionModelOnDask, linear_model.ProportionRegressor):
    r"""Linear model x ↦ ŷ(Wx + b) on chunks of rows, for targets that are proportions.

    The model, its other parameters and its attributes are documented in
    :class:`fitzpatrick.linear_model.ProportionRegressor`. The coefficients are the same.

    Args:
        n_threads: as in :class:`FitzpatrickClassifier`.
        persist: as in :class:`FitzpatrickClassifier`.
    """


@dataclass(eq=False, repr=False)
class ProportionRegressorCV(Search, ProportionModelOnDask, linear_model.ProportionRegressorCV):
    r"""A :class:`ProportionRegressor` that chooses its alpha, and its tightness, on a dev set.

    It does so as :class:`FitzpatrickClassifierCV` does. Other parameters, and the attributes, are
    as in :class:`fitzpatrick.linear_model.ProportionRegressorCV`.

    Args:
        scoring: a name of :func:`fitzpatrick.metrics.metric_names` but ``"calibration_error"``,
            which is no mean; by default minus the squared error summed over classes.
    """


def fit_path(
    X: Any,
    Y: Any,
    loss: str | Loss,
    alphas: Sequence[float],
    *,
    tightness: float | None = None,
    sample_weight: Any = None,
    persist: bool = True,
    **options: Any,
) -> LinearPath:
    r"""Minimize :math:`\sum_i w_i L(y_i, W x_i + b) + \tfrac{\alpha}{2}\|W\|^2` for each α in turn.

    This is :func:`fitzpatrick.linear_model.fit_path` on chunks of rows: with its parameters but
    ``dtype``, and its models. X is a ``dask.array`` with chunks of whole rows, or a
    ``dask.dataframe``; Y and the weights have its chunks. ``persist`` is as in
    :class:`FitzpatrickClassifier`.

    Example:
        >>> import dask.array as da
        >>> from sklearn.datasets import load_iris
        >>> X, y = load_iris(return_X_y=True)
        >>> X = da.from_array(X, chunks=(50, 4))
        >>> path = fit_path(X, y, "fitzpatrick_logistic", [10.0, 1.0], tightness=0.5)
        >>> path.coefs.shape
        (2, 3, 4)
    """
    names = {"start", "resumable", "callback", "stop"} & options.keys()
    of_path = {name: options.pop(name) for name in names}
    settings = _checks.check_parameters("fit_path", get_loss(loss, tightness), **options)
    inputs = read_inputs(X, Y, sample_weight)
    data = ChunkedData(inputs, _chunks.numbers_of, settings, persist=persist)
    _checks.warn_of_rounding(data.summary.rounding)
    return path_of(data, settings, alphas, **of_path)
