"""Regression on proportions, on Dask."""

from dataclasses import dataclass
from typing import Any

import dask.array as da
import numpy as np
from dask.base import is_dask_collection
from sklearn.utils.validation import _get_feature_names

from .. import engines, linear_model
from .._array import Array
from ..linear_model._regressor import ProportionModel
from ..linear_model._targets import exact_proportions, warn_of_rounding
from ..losses import Loss
from . import _scores
from ._collections import is_array
from ._data import ChunkedData
from ._estimator import OnDask, lazy
from ._search import Search
from ._targets import ProportionCheck, TargetColumns


@dataclass(eq=False, repr=False)
class ProportionModelOnDask(OnDask, ProportionModel):
    """Targets (n, k) in the domain of the loss."""

    _target_check = ProportionCheck()
    _score_of_chunks = _scores.R2

    def _learn_targets(self, y: Any, found: TargetColumns, data: ChunkedData) -> None:
        warn_of_rounding(found.rounding, stacklevel=6)
        is_frame = is_dask_collection(y) and not is_array(y) and y.ndim == 2
        self._target_names = _get_feature_names(y._meta) if is_frame else None
        self._is_single = found.ndim == 1
        data.n_classes = found.n_classes

    def _check_more_targets(self, y: Any, X: Array, n_classes: int, loss: Loss) -> Array:
        y, _ = exact_proportions(y, loss, X)
        engines.bind(loss, y.reshape(-1, 1) if y.ndim == 1 else y, n_classes)  # checks them
        return y

    def _names(self, method: str, prediction: da.Array) -> Any:
        if prediction.ndim == 1 or method == "predict_scores":
            return None
        names = [f"y{j}" for j in range(prediction.shape[1])]
        return getattr(self, "target_names_in_", np.asarray(names))

    predict_scores = lazy(ProportionModel.predict_scores)
    predict = lazy(ProportionModel.predict)


@dataclass(eq=False, repr=False)
class ProportionRegressor(ProportionModelOnDask, linear_model.ProportionRegressor):
    r"""Linear model x ↦ ŷ(Wx + b) on chunks of rows, for targets that are proportions.

    The model, its other parameters and its attributes are those of
    :class:`fitzpatrick.linear_model.ProportionRegressor`, and so are the coefficients.

    Args:
        n_threads: as in :class:`FitzpatrickClassifier`.
        persist: as in :class:`FitzpatrickClassifier`.

    Example:
        >>> import dask.array as da
        >>> import numpy as np
        >>> from fitzpatrick.dask import ProportionRegressor
        >>> X = da.from_array(np.asarray([[0.0], [1.0], [2.0], [3.0]]), chunks=(2, 1))
        >>> Y = np.asarray([[1.0, 0.0], [0.7, 0.3], [0.4, 0.6], [0.0, 1.0]])
        >>> model = ProportionRegressor(loss="fitzpatrick_sparsemax", alpha=0.1).fit(X, Y)
        >>> model.predict([[1.5]]).round(2)
        array([[0.53, 0.47]])
    """


@dataclass(eq=False, repr=False)
class ProportionRegressorCV(Search, ProportionModelOnDask, linear_model.ProportionRegressorCV):
    r"""A :class:`ProportionRegressor` that chooses its alpha, and its tightness, on a dev set.

    It does so as :class:`FitzpatrickClassifierCV` does. Other parameters, and the attributes, are
    those of :class:`fitzpatrick.linear_model.ProportionRegressorCV`.

    Args:
        scoring: a name of :func:`fitzpatrick.metrics.metric_names`; by default minus the squared
            error summed over classes.

    Example:
        >>> import dask.array as da
        >>> import numpy as np
        >>> from fitzpatrick.dask import ProportionRegressorCV
        >>> X = da.from_array(np.linspace(-1.0, 1.0, 30)[:, None], chunks=(10, 1))
        >>> Y = da.hstack([1 - X, 1 + X]).rechunk({1: -1}) / 2
        >>> model = ProportionRegressorCV(alphas=[0.01, 1.0, 100.0]).fit(X, Y, dev=(X, Y))
        >>> model.alpha_
        0.01
    """
