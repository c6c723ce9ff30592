"""Estimators that choose alpha and the tightness by cross-validation or on a dev set."""

import copy
import inspect
from collections.abc import Callable, Iterator
from dataclasses import KW_ONLY, dataclass, replace
from itertools import zip_longest
from typing import Any, ClassVar, Self

import numpy as np
from joblib import Parallel, delayed
from scipy import sparse
from sklearn.metrics import check_scoring, get_scorer_names
from sklearn.model_selection import check_cv

from .. import metrics
from .._array import Array, as_library, is_foreign
from .._weights import check_weights
from ..losses import Loss, get_loss
from ._checks import (
    FitSettings,
    check_features,
    check_grid,
    check_settings,
    unchanged_on_failure,
    warn_of_rounding,
)
from ._estimators import ClassModel, LinearModel, ProportionModel
from ._path import Coefficients, PenaltyPath
from ._sums import Data, TrainingData, take_rows

DEFAULT_ALPHAS = (1e-4, 1e-3, 1e-2, 1e-1, 1e0, 1e1, 1e2, 1e3, 1e4)  # the paper's
FINEST_STEP = 10 ** (1 / 16)  # between neighboring alphas, which no refinement goes below

HeldOut = tuple[Array, Array, Array | None]  # features, targets as scorers take them, weights
# Of the alphas at each tightness in turn, on one fold: scores, coefficients and intercepts to start
# from at nearby penalties; and the number of fits that did not converge.
FoldScores = tuple[Array, list[Coefficients], int]
Folds = Callable[[], Iterator[tuple[Any, Any]]]  # data to fit, and samples to score


def refined(alphas: Array, mean: Array, near: float = 1.01 * FINEST_STEP) -> Array:
    """Geometric midpoints between the best alpha of each tightness and its neighbors, falling.

    Alphas rise; the mean scores are (alphas, tightnesses). Between neighbors within a factor of
    ``near`` there is none.
    """
    midpoints = set()
    for scores in mean.T:
        best = len(alphas) - 1 - int(np.argmax(scores[::-1]))  # the strongest among equals
        for low in alphas[max(best - 1, 0) : best + 1]:
            high = alphas[np.searchsorted(alphas, low) + 1 :][:1]
            if low > 0 and high.size and high[0] > near * low:
                midpoints.add(float(np.sqrt(low) * np.sqrt(high[0])))
    return np.asarray(sorted(midpoints, reverse=True))


@dataclass(eq=False, repr=False)
class CrossValidated(LinearModel):
    """Fit a path of penalties on the training part of each fold, score it on the other part."""

    _default_scoring: ClassVar[str]

    alphas: Any = DEFAULT_ALPHAS
    _: KW_ONLY
    tightnesses: Any = None
    refine: int = 3
    cv: Any = None
    scoring: Any = None
    n_jobs: int | None = None

    def fit(
        self, X: Any, y: Any, sample_weight: Any = None, *, groups: Any = None, dev: Any = None
    ) -> Self:
        """Choose alpha and the tightness, then fit all of X and y with them.

        Args:
            X: features (n, d), dense or sparse.
            y: targets as the estimator without CV takes them.
            sample_weight: weights of the samples in the fits, and in the scores wherever the scorer
                takes them: the metrics of this package do, a function without an argument
                ``sample_weight`` does not.
            groups: groups of the samples, for splitters that ask for them.
            dev: (X_dev, y_dev) or (X_dev, y_dev, weights) to score the models on instead of folds;
                the model is then fitted on X and y alone.
        """
        with unchanged_on_failure(self):
            settings = check_settings(self)
            self._check_held_out(groups, dev)
            alphas = np.sort(check_grid(self.alphas, "alphas"))
            candidates = [settings]
            self.__dict__.pop("tightnesses_", None)  # of an earlier fit
            if self.tightnesses is not None:
                self.tightnesses_ = check_grid(self.tightnesses, "tightnesses")
                losses = (get_loss(self.loss, float(c)) for c in self.tightnesses_)
                candidates = [replace(settings, loss=loss) for loss in losses]
            scorer = self._scorer()
            data = self._check_data(X, y, sample_weight, settings)
            folds = self._folds(data, settings.loss, sample_weight, groups, dev)
            scores, unfinished = self._search(alphas, candidates, scorer, folds)
            chosen = self._choose(scores, candidates)
            self.scores_ = scores[:, :, 0] if self.tightnesses is None else scores
            self._fit_final(data, chosen, self.alpha_)
            if is_foreign(self.coef_):
                for name in {"alphas_", "tightnesses_", "scores_"} & vars(self).keys():
                    setattr(self, name, as_library(getattr(self, name), self.coef_))
            if unfinished:
                self._warn(f"{unfinished} of {scores.size} fits of the path did not converge")
        return self

    def _search(
        self, alphas: Array, candidates: list[FitSettings], scorer: Any, folds: Folds
    ) -> tuple[Array, int]:
        """Scores (folds, alphas, tightnesses) of a rising grid and of its refinements.

        Sets ``alphas_``, and also returns the number of fits that did not converge.
        """
        found: dict[float, tuple[Array, list[list[Coefficients]]]] = {}
        new, unfinished = alphas[::-1], 0
        for rounds_left in range(self.refine, -1, -1):
            # a path of midpoints starts at the next stronger penalty
            stronger = [alpha for alpha in found if alpha > new[0]]
            starts = found[min(stronger)][1] if stronger else []
            jobs = (
                delayed(self._score_fold)(*fold, candidates, scorer, new, start)
                for fold, start in zip_longest(folds(), starts)
            )
            parts: list[FoldScores] = Parallel(n_jobs=self.n_jobs)(jobs)
            unfinished += sum(part[2] for part in parts)
            for i, alpha in enumerate(new):
                every = slice(i, None, len(new))  # tightness
                of_alpha = np.stack([part[0][every] for part in parts])
                found[float(alpha)] = of_alpha, [part[1][every] for part in parts]
            self.alphas_ = np.sort(list(found))
            scores = np.stack([found[alpha][0] for alpha in self.alphas_], axis=1)
            self._check_scores(scores.mean(axis=0))
            new = refined(self.alphas_, scores.mean(axis=0)) if rounds_left else new[:0]
            if new.size == 0:
                break
        return scores, unfinished

    def _check_held_out(self, groups: Any, dev: Any) -> None:
        """Raise unless these arguments of ``fit`` say what the models are scored on."""
        if dev is not None and not is_dev_set(dev):
            raise ValueError(
                "dev must be a pair (X_dev, y_dev) or a triple with weights, got "
                f"{type(dev).__name__}"
            )

    def _folds(self, data: Any, loss: Loss, sample_weight: Any, groups: Any, dev: Any) -> Folds:
        """What makes pairs of data to fit and samples to score, one at a time."""
        weights = check_weights(sample_weight, data.X)
        if dev is not None:
            held_out = self._check_dev(dev, data.n_classes, loss)
            return lambda: iter([(data, held_out)])
        rows_of_folds = self._split(data, weights, groups)

        def folds() -> Iterator[tuple[Data, HeldOut]]:
            for train, rows in rows_of_folds:
                y = self._as_given(data.targets[rows])
                weights_of_rows = None if weights is None else weights[rows]
                yield data.take(train), (take_rows(data.X, rows), y, weights_of_rows)

        return folds

    def _score_fold(
        self,
        data: TrainingData,
        held_out: Any,
        candidates: list[FitSettings],
        scorer: Any,
        alphas: Array,
        starts: list[Coefficients] | None,
    ) -> FoldScores:
        """Fit the alphas, from strong to weak, at each tightness, and score the models.

        ``starts`` has the coefficients to start with at each tightness.
        """
        fits, models = [], []
        for j, settings in enumerate(candidates):
            path = PenaltyPath(data.sums(settings), settings)
            for fitted in path.models(alphas, None if starts is None else starts[j]):
                model = copy.copy(self)
                model.__dict__.pop("feature_names_in_", None)  # the checked X has none to compare
                model._set_model(fitted, settings.loss, path.sums.space.like)
                fits.append(fitted)
                models.append(model)
        scores = self._score_models(models, held_out, scorer, candidates[0].loss, data.n_classes)
        ends = [(fit.coef.astype(np.float32), fit.intercept.astype(np.float32)) for fit in fits]
        return np.asarray(scores), ends, sum(not fit.status.converged for fit in fits)

    def _score_models(
        self, models: list[Self], held_out: Any, scorer: Any, loss: Loss, n_classes: int
    ) -> Any:
        X, y, weights = held_out
        y = y.toarray() if sparse.issparse(y) else y
        if is_foreign(X) and y.dtype.kind in "fiub":  # scorers compare arrays of one library
            y, weights = as_library(y, X), None if weights is None else as_library(weights, X)
        weighted = weights is not None and _takes_weights(scorer)
        extra = {"sample_weight": weights} if weighted else {}
        return [scorer(model, X, y, **extra) for model in models]

    def _split(self, data: Data, weights: Array | None, groups: Any) -> list[tuple[Array, Array]]:
        """Rows of the two parts of each fold."""
        y = self._as_given(data.targets)
        splitter = check_cv(self.cv, y, classifier=isinstance(self, ClassModel))
        X = np.empty((len(y), 0)) if is_foreign(data.X) else data.X
        folds = list(splitter.split(X, y, groups))
        if not folds:
            raise ValueError(f"cv={self.cv!r} makes no folds; give a number of folds or a splitter")
        for i, (train, held_out) in enumerate(folds):
            _check_fold(i, "training", data.weights, train)
            _check_fold(i, "held-out", weights, held_out)
        return folds

    def _check_dev(self, dev: Any, n_classes: int, loss: Loss) -> HeldOut:
        try:
            X = check_features(dev[0], owner=self, reset=False)
            y, rounding = self._check_more_targets(dev[1], X, n_classes, loss)
            warn_of_rounding(rounding)
            return X, y, check_weights(dev[2] if len(dev) == 3 else None, X)
        except ValueError as error:
            raise ValueError(f"dev: {error}") from error

    def _check_scores(self, mean: Array) -> None:
        """Raise unless one alpha is the best by mean scores (alphas, tightnesses)."""
        bad = np.isnan(mean) | np.isposinf(mean)
        if bad.any() or np.isneginf(mean).all():
            alphas = self.alphas_[~np.isfinite(mean).all(axis=1)].tolist()
            raise ValueError(
                f"scoring={self.scoring!r} gave no finite score for alphas {alphas}; choose "
                "another metric"
            )

    def _choose(self, scores: Array, candidates: list[FitSettings]) -> FitSettings:
        """The best mean score; among equals the strongest penalty, then the first tightness."""
        mean = scores.mean(axis=0)
        self.best_score_ = float(mean.max())
        best = np.argwhere(mean == mean.max())
        alpha, tightness = best[np.argmax(self.alphas_[best[:, 0]])]
        self.alpha_ = float(self.alphas_[alpha])
        return candidates[int(tightness)]

    def _scorer(self) -> Any:
        scoring = self._default_scoring if self.scoring is None else self.scoring
        if isinstance(scoring, str) and scoring in metrics.metric_names():
            return metrics.get_scorer(scoring)
        if isinstance(scoring, str) and scoring not in (others := get_scorer_names()):
            raise ValueError(
                f"unknown scoring={scoring!r}; {metrics.names_near(scoring, others)}, and the "
                "names of sklearn.metrics.get_scorer_names()"
            )
        return check_scoring(self, scoring=scoring)


def is_dev_set(dev: Any) -> bool:
    """True if it has features, targets and, at most, weights."""
    return isinstance(dev, (tuple, list)) and len(dev) in (2, 3)


def _check_fold(index: int, part: str, weights: Array | None, rows: Array) -> None:
    if weights is not None and not weights[rows].any():
        raise ValueError(
            f"no sample in the {part} part of fold {index} has a positive weight; shuffle the "
            "folds, such as with cv=KFold(shuffle=True), or drop the samples of weight 0"
        )


def _takes_weights(scorer: Any) -> bool:
    """True if a scorer, or the metric that one of scikit-learn's scorers calls, has weights."""
    parameters = inspect.signature(getattr(scorer, "_score_func", scorer)).parameters
    return "sample_weight" in parameters or any(
        parameter.kind is parameter.VAR_KEYWORD for parameter in parameters.values()
    )


@dataclass(eq=False, repr=False)
class ProportionRegressorCV(CrossValidated, ProportionModel):
    r"""A :class:`ProportionRegressor` that chooses its alpha, and its tightness if asked to.

    For each fold and tightness a path of models is fitted from the strongest penalty to the
    weakest, each started at the one before. The search then goes on between the best alpha and its
    neighbors, and the pair with the best mean score is fitted to all samples. Parameters that are
    not listed here are documented in :class:`ProportionRegressor`, and so are the attributes of the
    final fit.

    Args:
        alphas: the strengths to begin with, in any order.
        refine: how many times the best alpha's distance to its neighbors is halved: the geometric
            midpoints on both sides are scored, and the best of all is the next to refine. No step
            becomes smaller than a factor of 10^(1/16), which four rounds reach from powers of ten.
            With 0 the choice is among ``alphas`` alone. On a coarse grid the losses of a pair meet
            their best alphas at different distances, since the tighter loss has less curvature and
            wants a weaker penalty; refined choices can be compared.
        tightnesses: the numbers c of the loss to choose from, such as ``[0, 0.5, 1, 2]``, together
            with the alphas; None is the loss's own alone.
        standardize: as in :class:`ProportionRegressor`; measured on the training part of each fold.
        cv: a number of folds, any scikit-learn splitter, an iterable of pairs of indices, or None
            for five folds. Folds by number are consecutive samples, so that an order in the data
            matters; ``KFold(5, shuffle=True)`` has none. A fixed dev set goes to :meth:`fit`, or
            here as a ``PredefinedSplit``.
        scoring: a name of :func:`fitzpatrick.metrics.metric_names`, a scorer or the name of one of
            scikit-learn's; higher is better. By default minus the squared error summed over
            classes.
        verbose: as in :class:`FitzpatrickClassifier`, for every fit in turn: the fits of the
            folds, in other processes with ``n_jobs``, then the fit with the chosen pair.
        callback: likewise.
        n_threads: threads of each fit.
        n_jobs: folds that are fitted at a time, by joblib.

    Attributes:
        alpha_: the chosen strength.
        alphas_: all strengths that were tried, rising: the grid and its refinements. Each one was
            tried at each tightness.
        tightness_: the chosen tightness; the loss's own where ``tightnesses`` is None.
        tightnesses_: those that were tried; not there where ``tightnesses`` is None.
        scores_: shape (folds, alphas), and (folds, alphas, tightnesses) where ``tightnesses`` is
            not None; higher is better.
        best_score_: mean score of the chosen pair over the folds.

    Example:
        >>> import numpy as np
        >>> from fitzpatrick.linear_model import ProportionRegressorCV
        >>> X = np.linspace(-1.0, 1.0, 30)[:, None]
        >>> Y = np.hstack([1 - X, 1 + X]) / 2
        >>> model = ProportionRegressorCV(alphas=[0.01, 1.0, 100.0], cv=3, refine=0).fit(X, Y)
        >>> model.alpha_, model.scores_.shape
        (0.01, (3, 3))
    """

    _default_scoring = "squared_error"


@dataclass(eq=False, repr=False)
class FitzpatrickClassifierCV(CrossValidated, ClassModel):
    r"""A :class:`FitzpatrickClassifier` that chooses its alpha, and its tightness if asked to.

    It does so as :class:`ProportionRegressorCV` does, with the same parameters and attributes, and
    the final fit is a :class:`FitzpatrickClassifier`.

    Args:
        standardize: as in :class:`FitzpatrickClassifier`; measured on the training part of each
            fold.
        class_weight: as in :class:`FitzpatrickClassifier`; ``"balanced"`` is measured once, on all
            samples, for all folds. Scores do not count it.
        cv: as in :class:`ProportionRegressorCV`; folds by number are stratified by class.
        scoring: as in :class:`ProportionRegressorCV`, by default the accuracy; our metrics compare
            probabilities with one-hot rows.

    Example:
        >>> from sklearn.datasets import load_iris
        >>> from fitzpatrick.linear_model import FitzpatrickClassifierCV
        >>> X, y = load_iris(return_X_y=True)
        >>> model = FitzpatrickClassifierCV(loss="fitzpatrick_sparsemax", standardize=True)
        >>> model.fit(X, y).best_score_ > 0.9
        True
    """

    _default_scoring = "accuracy"
