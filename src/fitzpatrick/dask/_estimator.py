"""What the estimators on Dask share: fits on chunks, and predictions and scores that stay lazy."""

import copy
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from functools import wraps
from typing import Any, ClassVar, TypeVar, cast

import dask.array as da
import numpy as np
from dask.base import is_dask_collection
from dask.dataframe import from_dask_array
from sklearn.utils.validation import check_is_fitted, validate_data

from ..linear_model._base import LinearModel
from ..linear_model._checks import CONSTRAINTS
from ..linear_model._settings import FitSettings
from . import _scores
from ._collections import is_array, meta, read_inputs
from ._data import ChunkedData
from ._rounds import Rounds, as_delayed
from ._targets import TargetCheck

Method = TypeVar("Method", bound=Callable[..., Any])


@dataclass(eq=False, repr=False)
class OnDask(LinearModel):
    """Fits on chunks of rows, and predictions for them.

    What was fitted is in memory, and so are predictions for arrays in memory.
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = CONSTRAINTS | {"persist": ["boolean"]}
    _target_check: ClassVar[TargetCheck]
    _score_of_chunks: ClassVar[_scores.Score]

    _: KW_ONLY
    persist: bool = True

    def _check_data(self, X: Any, y: Any, sample_weight: Any, settings: FitSettings) -> ChunkedData:
        inputs = read_inputs(X, y, sample_weight)
        validate_data(self, meta(X), reset=True, skip_check_array=True)
        data = ChunkedData.read(inputs, self._target_check, settings, persist=self.persist)
        self._learn_targets(y, data.summary.targets, data)
        return data

    @abstractmethod
    def _learn_targets(self, y: Any, found: Any, data: ChunkedData) -> None:
        """Set what the targets say, in the estimator and in the data.

        Args:
            y: as it was given.
            found: what the check of the targets found.
            data: of the fit.
        """

    def _predict_later(self, method: str, X: Any) -> Any:
        """A prediction for a collection by the method of that name."""
        check_is_fitted(self)
        validate_data(self, meta(X), reset=False, skip_check_array=True)
        rows = X if is_array(X) else X.to_dask_array()
        if len(rows.chunks[1]) > 1:
            raise ValueError(
                f"X has {len(rows.chunks[1])} chunks of columns, and a chunk must hold whole rows; "
                "use X.rechunk({1: -1})"
            )
        model = for_workers(self)
        example = getattr(model, method)(np.zeros((1, rows.shape[1]), dtype=rows.dtype))
        prediction = rows.map_blocks(
            _scores.predict_chunk,
            model,
            method,
            example[:0],
            token=f"fitzpatrick-{method}",
            chunks=(rows.chunks[0], *((size,) for size in example.shape[1:])),
            drop_axis=None if example.ndim == 2 else 1,
            meta=example[:0],
        )
        return self._in_frame(prediction, X, self._names(method, prediction))

    def _names(self, method: str, prediction: da.Array) -> Any:
        """The columns of a prediction in a data frame; None where it stays an array."""
        return None

    def _in_frame(self, prediction: da.Array, X: Any, names: Any) -> Any:
        """An array, or the data frame that :meth:`set_output` asks for."""
        output = getattr(self, "_sklearn_output_config", {}).get("transform", "default")
        if output == "default" or names is None:
            return prediction
        if output != "pandas":
            raise ValueError(
                f"predictions of Dask collections come as arrays or in pandas, not in {output}; "
                "use set_output(transform='pandas') or 'default'"
            )
        index = None if is_array(X) else X.index
        return from_dask_array(prediction, columns=[str(name) for name in names], index=index)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        """The accuracy of a classifier, R² of a regressor.

        For collections it is an array without axes, computed later.
        """
        if not is_dask_collection(X):
            return super().score(X, y, sample_weight)
        check_is_fitted(self)
        validate_data(self, meta(X), reset=False, skip_check_array=True)
        inputs = read_inputs(X, y, sample_weight)
        rounds = Rounds(inputs, keeps=False, n_threads=self.n_threads)
        model = rounds.send("model", for_workers(self))
        numbers = list(range(rounds.n_chunks))
        tasks = [given.tasks for given in inputs]
        statistic = self._score_of_chunks.statistic
        parts = rounds.map("score", _scores.score_chunk, numbers, statistic, model, *tasks)
        merged = rounds.merge(parts, _scores.merge_statistics)
        score = rounds.apply("score", self._score_of_chunks.finish, merged)
        return da.from_delayed(as_delayed([score])[0], shape=(), dtype=np.float64)


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
