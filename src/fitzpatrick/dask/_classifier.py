"""Classification on Dask."""

from dataclasses import dataclass
from typing import Any

import dask.array as da

from .. import linear_model
from ..linear_model._classifier import ClassModel
from ..linear_model._settings import FitSettings
from . import _scores
from ._chunks import Encoding
from ._data import ChunkedData
from ._estimator import OnDask, lazy
from ._search import Search
from ._targets import ClassTotals, LabelCheck


@dataclass(eq=False, repr=False)
class ClassModelOnDask(OnDask, ClassModel):
    """Targets that are class labels."""

    _target_check = LabelCheck()
    _score_of_chunks = _scores.ACCURACY

    def _learn_targets(self, y: Any, found: ClassTotals, data: ChunkedData) -> None:
        classes, totals = found.labels, found.totals
        self._check_classes(classes)
        self.classes_ = classes
        weights = None if self.class_weight is None else self._class_weights(totals, classes)
        data.encoding = Encoding(classes, weights)
        data.n_classes, data.binary = len(classes), len(classes) == 2

    def _check_data(self, X: Any, y: Any, sample_weight: Any, settings: FitSettings) -> ChunkedData:
        self._check_domain(settings.loss)
        return super()._check_data(X, y, sample_weight, settings)

    def _names(self, method: str, prediction: da.Array) -> Any:
        return self.classes_ if method in ("predict_proba", "predict_log_proba") else None

    decision_function = lazy(ClassModel.decision_function)
    predict = lazy(ClassModel.predict)
    predict_proba = lazy(ClassModel.predict_proba)
    predict_log_proba = lazy(ClassModel.predict_log_proba)


@dataclass(eq=False, repr=False)
class FitzpatrickClassifier(ClassModelOnDask, linear_model.FitzpatrickClassifier):
    r"""Linear classifier on chunks of rows, with a Fitzpatrick or Fenchel-Young loss.

    The model, its other parameters and its attributes are those of
    :class:`fitzpatrick.linear_model.FitzpatrickClassifier`, and so are the coefficients.

    Args:
        n_threads: threads of each task; None is one, since workers run several tasks at a time.
        persist: whether chunks, targets, scores and Hessians stay on the workers while the fit
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

    Other parameters, and the attributes, are those of
    :class:`fitzpatrick.linear_model.FitzpatrickClassifierCV`, with the dev set for one fold.

    Args:
        scoring: ``"accuracy"``, the default, or a name of
            :func:`fitzpatrick.metrics.metric_names`.
        n_threads: as in :class:`FitzpatrickClassifier`.
        persist: as in :class:`FitzpatrickClassifier`.
        cv: not used on Dask, where ``fit`` asks for a dev set.
        n_jobs: not used on Dask, where workers share each fit.

    Example:
        >>> import dask.array as da
        >>> from fitzpatrick.dask import FitzpatrickClassifierCV
        >>> X = da.linspace(-1.0, 1.0, 30, chunks=10)[:, None]
        >>> y = X[:, 0] > 0
        >>> model = FitzpatrickClassifierCV(alphas=[0.1, 1.0]).fit(X, y, dev=(X, y))
        >>> model.scores_.shape
        (1, 2)
    """
