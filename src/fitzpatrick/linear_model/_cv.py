"""Estimators that choose alpha by cross-validation or on a dev set."""

import copy
from typing import Any, ClassVar, Self

import numpy as np
from joblib import Parallel, delayed
from scipy import sparse
from sklearn.metrics import check_scoring
from sklearn.model_selection import check_cv
from sklearn.utils import _safe_indexing

from .. import metrics
from .._array import Array
from .._weights import check_weights
from ..losses import Loss
from ._base import Data, LinearModel
from ._checks import check_alphas, check_settings, unchanged_on_failure
from ._classifier import ClassModel
from ._fitting import Settings
from ._regressor import ProportionModel

DEFAULT_ALPHAS = (1e-4, 1e-3, 1e-2, 1e-1, 1e0, 1e1, 1e2, 1e3, 1e4)  # the paper's


class CrossValidated(LinearModel):
    """Fit a path of penalties on the training part of each fold, score it on the other part."""

    _default_scoring: ClassVar[str]

    def _fit_cv(self, X: Any, y: Any, sample_weight: Any, groups: Any, dev: Any) -> None:
        settings = check_settings(self)
        alphas = check_alphas(self.alphas)
        y = y if y is None or sparse.issparse(y) else np.asarray(y)
        data = self._check_data(X, y, sample_weight, settings)
        scorer = self._scorer()
        if dev is None:
            weights = check_weights(sample_weight, data.X)
            splitter = check_cv(self.cv, y, classifier=isinstance(self, ClassModel))
            jobs = [
                (
                    data.take(train),
                    (data.X[held_out], _safe_indexing(y, held_out), _take(weights, held_out)),
                )
                for train, held_out in splitter.split(data.X, y, groups)
            ]
        else:
            jobs = [(data, _check_dev(dev))]
        results = Parallel(n_jobs=self.n_jobs)(
            delayed(_score_path)(self, part, settings, alphas, scorer, held_out)
            for part, held_out in jobs
        )
        self.alphas_ = alphas
        self.scores_ = np.asarray([scores for scores, _ in results])
        self._choose()
        self._store(data.problem(settings).fit(self.alpha_), data.X.dtype)
        unfinished = sum(count for _, count in results)
        if unfinished:
            self._warn(f"{unfinished} of {self.scores_.size} fits of the path did not converge")

    def _choose(self) -> None:
        """The best mean score; among equals the strongest penalty."""
        mean = self.scores_.mean(axis=0)
        if np.isnan(mean).any():
            raise ValueError(
                f"scoring={self.scoring!r} gave NaN for alphas "
                f"{self.alphas_[np.isnan(mean)].tolist()}; choose another metric"
            )
        self.best_score_ = float(mean.max())
        self.alpha_ = float(self.alphas_[mean == mean.max()].max())

    def _scorer(self) -> Any:
        scoring = self._default_scoring if self.scoring is None else self.scoring
        if isinstance(scoring, str) and scoring in metrics.metric_names():
            return metrics.get_scorer(scoring)
        return check_scoring(self, scoring=scoring)


def _take(weights: Array | None, rows: Array) -> Array | None:
    return None if weights is None else weights[rows]


def _check_dev(dev: Any) -> tuple[Any, Any, None]:
    if not (isinstance(dev, tuple) and len(dev) == 2):
        raise ValueError(f"dev must be a pair (X_dev, y_dev), got {type(dev).__name__}")
    return *dev, None


def _score_path(
    model: CrossValidated,
    data: Data,
    settings: Settings,
    alphas: Array,
    scorer: Any,
    held_out: tuple[Any, Any, Array | None],
) -> tuple[Array, int]:
    """Scores of all alphas, fitted from strong to weak, and how many fits did not converge."""
    X, y, weights = held_out
    extra = {} if weights is None else {"sample_weight": weights}
    order = np.argsort(-alphas)
    scores = np.empty(len(alphas))
    unfinished = 0
    probe = copy.copy(model)
    if isinstance(X, np.ndarray):  # a fold of the checked X: nothing to compare names with
        probe.__dict__.pop("feature_names_in_", None)
    for i, fitted in zip(order, data.problem(settings).path(alphas[order]), strict=True):
        probe._keep(fitted, data.X.dtype)
        scores[i] = scorer(probe, X, y, **extra)
        unfinished += not fitted.result.status.converged
    return scores, unfinished


class ProportionRegressorCV(CrossValidated, ProportionModel):
    r"""A :class:`ProportionRegressor` that chooses its alpha.

    For each fold a path of models is fitted from the strongest penalty to the weakest, each started
    at the one before; the alpha with the best mean score is fitted to all samples.

    Args:
        loss: a name of :func:`fitzpatrick.loss_names`, or a loss object.
        alphas: the strengths to choose from.
        fit_intercept: whether to learn b; without it, b is 0 for features as the model sees them.
        standardize: whether the model sees features of mean 0 and standard deviation 1, measured on
            the training part of each fold.
        cv: a number of folds, any scikit-learn splitter, an iterable of pairs of indices, or None
            for five folds. A fixed dev set goes to :meth:`fit`, or here as a ``PredefinedSplit``.
        scoring: a name of :func:`fitzpatrick.metrics.metric_names`, a scorer or the name of one of
            scikit-learn's; higher is better. By default minus the
            squared error summed over classes.
        solver: as in :class:`ProportionRegressor`.
        tol: as in :class:`ProportionRegressor`.
        max_iter: as in :class:`ProportionRegressor`.
        verbose: print the progress of every fit; 0 is silent.
        n_threads: threads of each fit.
        n_jobs: folds that are fitted at a time, by joblib.

    Attributes:
        alpha_: the chosen strength.
        alphas_: the strengths that were tried.
        scores_: shape (folds, alphas), higher is better.
        best_score_: mean score of ``alpha_`` over the folds.
        coef_, intercept_, objective_, gradient_norm_, n_iter_, status_: of the final fit, as in
            :class:`ProportionRegressor`.

    Example:
        >>> import numpy as np
        >>> from fitzpatrick.linear_model import ProportionRegressorCV
        >>> X = np.linspace(-1.0, 1.0, 30)[:, None]
        >>> Y = np.hstack([1 - X, 1 + X]) / 2
        >>> model = ProportionRegressorCV(alphas=[0.01, 1.0, 100.0], cv=3).fit(X, Y)
        >>> model.alpha_, model.scores_.shape
        (0.01, (3, 3))
    """

    _default_scoring = "squared_error"

    def __init__(
        self,
        loss: str | Loss = "fitzpatrick_logistic",
        alphas: Any = DEFAULT_ALPHAS,
        *,
        fit_intercept: bool = True,
        standardize: bool = False,
        cv: Any = None,
        scoring: Any = None,
        solver: str = "auto",
        tol: float = 1e-8,
        max_iter: int = 1000,
        verbose: int = 0,
        n_threads: int | None = None,
        n_jobs: int | None = None,
    ) -> None:
        self.loss = loss
        self.alphas = alphas
        self.fit_intercept = fit_intercept
        self.standardize = standardize
        self.cv = cv
        self.scoring = scoring
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
        self.verbose = verbose
        self.n_threads = n_threads
        self.n_jobs = n_jobs

    def fit(
        self, X: Any, y: Any, sample_weight: Any = None, *, groups: Any = None, dev: Any = None
    ) -> Self:
        """Choose alpha, then fit all of X and y with it.

        Args:
            X: features (n, d), dense or sparse.
            y: targets (n, k), dense or sparse.
            sample_weight: weights of the samples, in the fits and in the scores.
            groups: groups of the samples, for splitters that ask for them.
            dev: a pair (X_dev, y_dev) to score the alphas on instead of folds; the model is then
                fitted on X and y alone.
        """
        with unchanged_on_failure(self):
            self._fit_cv(X, y, sample_weight, groups, dev)
        return self


class FitzpatrickClassifierCV(CrossValidated, ClassModel):
    r"""A :class:`FitzpatrickClassifier` that chooses its alpha.

    For each fold a path of models is fitted from the strongest penalty to the weakest, each started
    at the one before; the alpha with the best mean score is fitted to all samples.

    Args:
        loss: a name of :func:`fitzpatrick.loss_names`, or a loss object on the simplex.
        alphas: the strengths to choose from.
        fit_intercept: whether to learn b; without it, b is 0 for features as the model sees them.
        standardize: whether the model sees features of mean 0 and standard deviation 1, measured on
            the training part of each fold.
        class_weight: weights of the classes as a dict, or ``"balanced"``.
        cv: a number of folds, any scikit-learn splitter, an iterable of pairs of indices, or None
            for five folds. A fixed dev set goes to :meth:`fit`, or here as a ``PredefinedSplit``.
        scoring: a name of :func:`fitzpatrick.metrics.metric_names`, a scorer or the name of one of
            scikit-learn's; higher is better. By default the accuracy.
        solver: as in :class:`FitzpatrickClassifier`.
        tol: as in :class:`FitzpatrickClassifier`.
        max_iter: as in :class:`FitzpatrickClassifier`.
        verbose: print the progress of every fit; 0 is silent.
        n_threads: threads of each fit.
        n_jobs: folds that are fitted at a time, by joblib.

    Attributes:
        alpha_: the chosen strength.
        alphas_: the strengths that were tried.
        scores_: shape (folds, alphas), higher is better.
        best_score_: mean score of ``alpha_`` over the folds.
        coef_, intercept_, objective_, gradient_norm_, n_iter_, status_: of the final fit, as in
            :class:`FitzpatrickClassifier`.

    Example:
        >>> from sklearn.datasets import load_iris
        >>> from fitzpatrick.linear_model import FitzpatrickClassifierCV
        >>> X, y = load_iris(return_X_y=True)
        >>> model = FitzpatrickClassifierCV(loss="fitzpatrick_sparsemax", standardize=True)
        >>> model.fit(X, y).best_score_ > 0.9
        True
    """

    _default_scoring = "accuracy"

    def __init__(
        self,
        loss: str | Loss = "fitzpatrick_logistic",
        alphas: Any = DEFAULT_ALPHAS,
        *,
        fit_intercept: bool = True,
        standardize: bool = False,
        class_weight: dict[Any, float] | str | None = None,
        cv: Any = None,
        scoring: Any = None,
        solver: str = "auto",
        tol: float = 1e-8,
        max_iter: int = 1000,
        verbose: int = 0,
        n_threads: int | None = None,
        n_jobs: int | None = None,
    ) -> None:
        self.loss = loss
        self.alphas = alphas
        self.fit_intercept = fit_intercept
        self.standardize = standardize
        self.class_weight = class_weight
        self.cv = cv
        self.scoring = scoring
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
        self.verbose = verbose
        self.n_threads = n_threads
        self.n_jobs = n_jobs

    def fit(
        self, X: Any, y: Any, sample_weight: Any = None, *, groups: Any = None, dev: Any = None
    ) -> Self:
        """Choose alpha, then fit all of X and y with it.

        Args:
            X: features (n, d), dense or sparse.
            y: labels (n,).
            sample_weight: weights of the samples, in the fits and in the scores.
            groups: groups of the samples, for splitters that ask for them.
            dev: a pair (X_dev, y_dev) to score the alphas on instead of folds; the model is then
                fitted on X and y alone.
        """
        with unchanged_on_failure(self):
            self._fit_cv(X, y, sample_weight, groups, dev)
        return self
