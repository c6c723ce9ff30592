"""Boosted trees as scikit-learn estimators."""

import copy
from dataclasses import KW_ONLY, dataclass
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from scipy import sparse
from sklearn.model_selection import train_test_split
from sklearn.utils import check_array, check_random_state
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import _check_feature_names, _check_n_features, check_is_fitted

from .. import metrics
from .._array import quiet
from .._weights import check_weights
from ..linear_model._checks import CONSTRAINTS, unchanged_on_failure
from ..linear_model._estimators import ClassModel, ProportionModel, ScoreModel
from ..losses import Loss, get_loss
from ._libraries import LIBRARIES, Samples
from ._objectives import FLOOR, Objective, weights_of

# Shares of classes that never occur start here, where every potential is finite.
_MIN_SHARE = 1e-6
_ABOVE_ZERO = Interval(Integral, 1, None, closed="left")


@dataclass(eq=False, repr=False)
class BoostedModel(ScoreModel):
    """Scores that are sums of trees, learned with a loss."""

    _: KW_ONLY
    tightness: float | None = None
    library: str = "lightgbm"
    n_estimators: int = 100
    learning_rate: float = 0.1
    num_leaves: int = 31
    max_depth: int = -1
    min_child_samples: int = 20
    reg_lambda: float = 0.0
    subsample: float = 1.0
    colsample: float = 1.0
    hessian: str | float = "diagonal"
    floor: float = FLOOR
    categorical_features: Any = None
    early_stopping_rounds: int | None = None
    validation_fraction: float = 0.1
    metric: str | None = None
    warm_start: bool = False
    random_state: int | None = None
    n_jobs: int | None = None
    verbose: int = 0
    library_params: dict[str, Any] | None = None

    # what scikit-learn checks; the rest is the library's to check
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **CONSTRAINTS,
        "library": [StrOptions(set(LIBRARIES))],
        "n_estimators": [_ABOVE_ZERO],
        "learning_rate": [Interval(Real, 0, None, closed="neither")],
        "early_stopping_rounds": [_ABOVE_ZERO, None],
        "metric": [StrOptions(set(metrics.metric_names())), None],
    }

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Grow trees.

        Args:
            X: features (n, d): an array, a sparse array or a data frame, with missing values and
                categories as the library takes them.
            y: class labels (n,) of a classifier; targets (n, k) of a regressor, dense or sparse.
            sample_weight: weights (n,) of the samples.
        """
        with unchanged_on_failure(self):
            self._fit(X, y, sample_weight)
        return self

    def _fit(self, X: Any, y: Any, sample_weight: Any) -> None:
        self._validate_params()
        before = copy.copy(self) if self.warm_start and hasattr(self, "booster_") else None
        loss, library = get_loss(self.loss, self.tightness), LIBRARIES[self.library]
        X = self._check_features(X, reset=True)
        if X.shape[0] < 2:
            raise ValueError("X has n_samples = 1; trees need at least two samples to split")
        data = self._check_targets(X, y, check_weights(sample_weight, X), loss)
        targets, k, weights = data.targets, data.n_classes, data.weights
        self.loss_, self.tightness_ = self.loss, loss.tightness
        self.library_, self.n_classes_in_ = self.library, k
        rows, held_out = np.arange(X.shape[0]), None
        if self.early_stopping_rounds is not None:
            share, classes = self.validation_fraction, targets if targets.ndim == 1 else None
            rows, held_out = train_test_split(
                rows, test_size=share, random_state=self.random_state, stratify=classes
            )
        if before is None:
            parts = []
            start = _start(loss, targets[rows], k, None if weights is None else weights[rows])
        else:
            self._check_warm_start(before)
            parts, start = before.booster_, before.start_

        def samples(at: np.ndarray, judge: Any) -> Samples:
            own = X.iloc[at] if hasattr(X, "iloc") else X[at]
            scores = start + np.zeros((len(at), 1))
            for part in parts:
                scores += library.scores(part, own).reshape(scores.shape)
            return Samples(own, scores, None if weights is None else weights[at], judge)

        options = None, self.hessian, self.floor, self._n_threads
        growing, watched = samples(rows, Objective(loss, targets[rows], k, *options)), None
        if held_out is not None:
            watched = samples(held_out, self._judge(loss, targets[held_out], k))
        n_rounds = sum(map(library.rounds, parts))
        part = library.train(growing, watched, self._library_parameters(n_rounds))
        self.booster_: list[Any] = [*parts, part]
        self.start_: np.ndarray = start
        self.n_iter_ = n_rounds + library.rounds(part)

    def _check_warm_start(self, before: Self) -> None:
        """Raise unless the last fit had the same loss, library, features and targets."""
        names = ("library_", "n_classes_in_", "n_features_in_", "feature_names_in_", "classes_")
        found = [[np.asarray(getattr(m, name, None)) for name in names] for m in (self, before)]
        is_same = self._fitted_loss == before._fitted_loss
        if not (is_same and all(map(np.array_equal, *found))):
            raise ValueError(
                "warm_start=True adds to trees of other features, classes, another loss, tightness "
                "or library; set warm_start=False to begin anew"
            )

    @property
    def _n_threads(self) -> int | None:
        return self.n_jobs if self.n_jobs and self.n_jobs > 0 else None

    def _library_parameters(self, n_rounds: int) -> dict[str, Any]:
        """The parameters, with a seed for what follows n rounds, and places of categories.

        Each fit of a warm start has a seed of its own, and so draws other samples and features than
        the one before.
        """
        parameters: dict[str, Any] = self.get_params()
        seed = self.random_state
        if not isinstance(seed, Integral | None):
            seed = check_random_state(seed).randint(2**31)
        if seed is not None or n_rounds > 0:
            parameters["random_state"] = (int(seed or 0) + n_rounds) % 2**31
        if self.categorical_features is not None:
            given = np.asarray(self.categorical_features)
            given = np.flatnonzero(given) if given.dtype == bool else given
            parameters["categorical_features"] = given.tolist()
        return parameters

    def _judge(self, loss: Loss, targets: Any, k: int) -> Any:
        """What early stopping lowers: the mean loss, or a metric of the predictions."""
        objective = Objective(loss, targets, k, n_threads=self._n_threads)
        if self.metric is None:
            return objective.mean_loss
        metric, higher_is_better = metrics._METRICS[self.metric]
        truth = targets.toarray() if sparse.issparse(targets) else targets
        truth = np.eye(k)[truth] if truth.ndim == 1 else truth

        def judge(predictions: Any, data: Any) -> float:
            predicted = self._predictions(objective.scores(predictions), loss)
            value = float(metric(truth, predicted, sample_weight=weights_of(data)))
            return -value if higher_is_better else value

        return judge

    def _check_features(self, X: Any, *, reset: bool) -> Any:
        """A data frame as it is, or a checked array of numbers, dense or CSR; NaN is missing."""
        _check_feature_names(self, X, reset=reset)
        if not (hasattr(X, "columns") and hasattr(X, "iloc")):
            X = check_array(X, accept_sparse="csr", dtype=float, ensure_all_finite="allow-nan")
        _check_n_features(self, X, reset=reset)
        return X

    def _scores(self, X: Any, method: str) -> np.ndarray:
        check_is_fitted(self, "booster_")
        X = self._check_features(X, reset=False)
        library = LIBRARIES[self.library_]
        scores = np.asarray(sum(library.scores(part, X) for part in self.booster_))
        return np.asarray(scores.reshape(-1, self.n_classes_in_) + self.start_)

    def predict_scores(self, X: Any) -> np.ndarray:
        """Scores θ, shape (n, k)."""
        return self._scores(X, "predict_scores")

    @property
    def feature_importances_(self) -> np.ndarray:
        """The share of each feature in the gain of all splits, shape (d,)."""
        check_is_fitted(self, "booster_")
        gain = np.asarray(sum(map(LIBRARIES[self.library_].gains, self.booster_)))
        return gain / (gain.sum() or 1.0)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = True
        return tags


_PARAMETERS = """
    Args:
        loss: a name of :func:`fitzpatrick.loss_names`, or a loss.
        tightness: replaces the loss's own.
        library: ``"lightgbm"`` or ``"xgboost"``.
        n_estimators: rounds; each grows one tree for every target.
        learning_rate: what each tree is multiplied by.
        num_leaves: most leaves of a tree.
        max_depth: most levels of a tree; −1 sets no limit.
        min_child_samples: least samples of a leaf (for XGBoost, the least sum of Hessians is
            ``library_params={"min_child_weight": …}``).
        reg_lambda: penalty on the squares of the leaves.
        subsample: share of the samples that each round sees.
        colsample: share of the features that each tree sees.
        hessian: ``"diagonal"``, ``"majorizer"``, ``"double"``, or a factor of the diagonal; see
            :func:`lightgbm_objective`.
        floor: least entry of the Hessian, in units of 1/(1 + tightness).
        categorical_features: names or places of columns that hold categories; None leaves it to the
            library, which takes the categorical columns of a data frame.
        early_stopping_rounds: stop after this many rounds without a better metric on held-out
            samples, and keep the best round; None grows all.
        validation_fraction: share of the samples that early stopping holds out.
        metric: a name of :func:`fitzpatrick.metrics.metric_names` for early stopping; None is the
            mean loss.
        warm_start: True if another fit adds to the trees of the last one.
        random_state: seed of what is drawn: samples and features for the trees, and those that
            early stopping holds out. None leaves the former to the library, whose own seed is the
            same in each fit, and holds out other samples in each.
        n_jobs: threads, of the loss and of the library; None leaves it to them.
        verbose: rounds from one printed metric to the next; 0 is silent.
        library_params: further parameters of the library, by its own names.

    Attributes:
        booster_: the trees: one model of the library for each fit of a warm start.
        start_: scores that the trees start from: their link is the mean target.
        n_iter_: rounds.
        n_features_in_: d.
        feature_names_in_: names of the features, if X had any.
"""


@dataclass(eq=False, repr=False)
class BoostedProportionRegressor(ProportionModel, BoostedModel):
    __doc__ = f"""Boosted trees for targets in the domain of a loss: proportions, shares, counts.

    The model is x ↦ ŷ(θ(x)), with the link ŷ and scores θ that are sums of trees.
{_PARAMETERS}
    Example:
        >>> import numpy as np
        >>> X = np.linspace(0, 1, 200)[:, None]
        >>> Y = np.hstack([X > 0.5, X <= 0.5]) * 0.8 + 0.1
        >>> model = BoostedProportionRegressor("sparsemax", n_estimators=50).fit(X, Y)
        >>> model.predict([[0.2], [0.9]]).round(2)
        array([[0.1, 0.9],
               [0.9, 0.1]])
    """


@dataclass(eq=False, repr=False)
class BoostedClassifier(ClassModel, BoostedModel):
    __doc__ = f"""Boosted trees for classes, with a loss on the simplex.

    ``class_weight`` is as in :class:`~fitzpatrick.linear_model.FitzpatrickClassifier`.
{_PARAMETERS}        classes_: the labels, sorted.

    Example:
        >>> from sklearn.datasets import load_iris
        >>> X, y = load_iris(return_X_y=True)
        >>> model = BoostedClassifier(n_estimators=20).fit(X, y)
        >>> model.predict(X[:2])
        array([0, 0])
    """


def _start(loss: Loss, targets: Any, k: int, weights: np.ndarray | None) -> np.ndarray:
    """Scores whose link is the mean target, shape (k,)."""
    column = np.ones(targets.shape[0]) if weights is None else weights
    total = np.bincount(targets, column, k) if targets.ndim == 1 else targets.T @ column
    mean = np.asarray(total) / column.sum()
    domain = loss.regularizer.domain
    if domain.has_labels:
        mean = np.maximum(mean, _MIN_SHARE)
        mean = mean / mean.sum()
    elif domain.coordinates is not None:
        low, high = domain.coordinates.bounds
        mean = np.clip(mean, low + _MIN_SHARE, high - _MIN_SHARE)
    start = np.asarray(quiet(loss.regularizer.potential_gradient)(mean), dtype=np.float64)
    return start - start.mean() if domain.has_labels else start
