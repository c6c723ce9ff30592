"""Boosted trees as scikit-learn estimators."""

import copy
from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.model_selection import train_test_split
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import (
    _check_feature_names,
    _check_n_features,
    assert_all_finite,
    check_array,
    check_consistent_length,
    check_is_fitted,
    column_or_1d,
)

from .. import metrics
from .._validation import check_sparse
from .._weights import check_weights
from ..linear_model._checks import unchanged_on_failure
from ..losses import Loss, get_loss
from ._libraries import LIBRARIES, Booster, HeldOut
from ._objectives import FLOOR, Derivatives

# Shares of classes that never occur start here, where every potential is finite.
_MIN_SHARE = 1e-6


@dataclass(eq=False, repr=False)
class BoostedModel(BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """Scores that are sums of trees, learned with a loss."""

    loss: str | Loss = "fitzpatrick_logistic"
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

    def _check_targets(self, y: Any, loss: Loss) -> tuple[Any, int]:
        """Class indices (n,) or targets (n, k), and k."""
        raise NotImplementedError

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
        before = copy.copy(self) if self.warm_start and hasattr(self, "booster_") else None
        library = self._library()
        loss = _loss_of(self.loss, self.tightness)
        if y is None:
            raise ValueError("y should be a 1d array or have two axes; it is None")
        _check_feature_names(self, X, reset=True)
        X = _check_features(X)
        _check_n_features(self, X, reset=True)
        if X.shape[0] < 2:
            raise ValueError("X has n_samples = 1; trees need at least two samples to split")
        targets, k = self._check_targets(y, loss)
        check_consistent_length(X, targets)
        weights = check_weights(sample_weight, np.empty((X.shape[0], 0)))
        rows = np.arange(X.shape[0])
        held_out = None
        if self.early_stopping_rounds is not None:
            rows, held_out = train_test_split(
                rows,
                test_size=self.validation_fraction,
                random_state=self.random_state,
                stratify=targets
                if np.ndim(targets) == 1 and not sparse.issparse(targets)
                else None,
            )
        training = Derivatives(
            loss,
            targets[rows],
            n_classes=k,
            hessian=self.hessian,
            floor=self.floor,
            sample_weight=None if weights is None else weights[rows],
        )
        previous, start = None, _start(loss, targets[rows], k, training)
        if before is not None:
            self._check_warm_start(before, library, k)
            previous, start = before.booster_, before.start_
        watch = None
        if held_out is not None:
            judge = self._judge(loss, targets, held_out, weights, k)
            watch = HeldOut(_take(X, held_out), judge)
        self.booster_: Booster = library.train(
            _take(X, rows), training, start, self._parameters(), watch, previous
        )
        self.start_: np.ndarray = start
        self.loss_: Any = self.loss
        self.tightness_ = loss.tightness
        self.n_classes_in_ = k
        self.n_iter_ = sum(map(self.booster_.rounds, self.booster_.parts))

    def _check_warm_start(self, before: Self, library: type[Booster], k: int) -> None:
        """Raise unless the trees of the last fit are of the same library, features and targets."""
        names = ("n_features_in_", "feature_names_in_", "classes_")
        is_same = type(before.booster_) is library and before.n_classes_in_ == k
        for name in names:
            ours, theirs = getattr(self, name, None), getattr(before, name, None)
            is_same = is_same and np.array_equal(np.asarray(ours), np.asarray(theirs))
        if not is_same:
            raise ValueError(
                "warm_start=True adds to trees of other features, classes or another library; set "
                "warm_start=False to begin anew"
            )

    def _parameters(self) -> dict[str, Any]:
        """The parameters as the libraries take them: a seed, and places or names of categories."""
        parameters: dict[str, Any] = self.get_params()
        if not isinstance(self.random_state, int | None):
            parameters["random_state"] = int(check_random_state(self.random_state).randint(2**31))
        if self.categorical_features is not None:
            given = np.asarray(self.categorical_features)
            given = np.flatnonzero(given) if given.dtype == bool else given
            parameters["categorical_features"] = given.tolist()
        return parameters

    def _library(self) -> type[Booster]:
        if self.library not in LIBRARIES:
            raise ValueError(f"library must be one of {sorted(LIBRARIES)}, got {self.library!r}")
        if int(self.n_estimators) < 1:
            raise ValueError(f"n_estimators must be at least 1, got {self.n_estimators}")
        return LIBRARIES[self.library]

    def _judge(self, loss: Loss, targets: Any, held_out: np.ndarray, weights: Any, k: int) -> Any:
        """What early stopping lowers: the mean loss, or a metric of the predictions."""
        weights = None if weights is None else weights[held_out]
        derivatives = Derivatives(loss, targets[held_out], n_classes=k, sample_weight=weights)
        if self.metric is None:
            return derivatives.mean_loss
        if self.metric not in metrics.metric_names():
            raise ValueError(
                f"metric must be None or one of {metrics.metric_names()}, got {self.metric!r}"
            )
        judge, higher_is_better = metrics._METRICS[self.metric]
        truth = _dense_rows(targets[held_out], k)

        def of_scores(predictions: Any) -> float:
            predicted = self._predict_rows(loss, derivatives.scores(predictions))
            value = float(judge(truth, predicted, sample_weight=weights))
            return -value if higher_is_better else value

        return of_scores

    def _predict_rows(self, loss: Loss, theta: np.ndarray) -> np.ndarray:
        return np.asarray(loss.link(theta))

    def _fitted_loss(self) -> Loss:
        return Loss(get_loss(self.loss_).regularizer, self.tightness_)

    def predict_scores(self, X: Any) -> np.ndarray:
        """Scores θ, shape (n, k)."""
        check_is_fitted(self, "booster_")
        _check_feature_names(self, X, reset=False)
        X = _check_features(X)
        _check_n_features(self, X, reset=False)
        scores: np.ndarray = self.booster_.scores(X).reshape(-1, self.n_classes_in_) + self.start_
        return scores

    @property
    def feature_importances_(self) -> np.ndarray:
        """The share of each feature in the gain of all splits, shape (d,)."""
        check_is_fitted(self, "booster_")
        gain = self.booster_.gains(self.n_features_in_)
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
            library, which takes those of a data frame.
        early_stopping_rounds: stop after this many rounds without a better metric on held-out
            samples, and keep the best round; None grows all.
        validation_fraction: share of the samples that early stopping holds out.
        metric: a name of :func:`fitzpatrick.metrics.metric_names` for early stopping; None is the
            mean loss.
        warm_start: True if another fit adds to the trees of the last one.
        random_state: seed.
        n_jobs: threads; None leaves it to the library.
        verbose: print the metric every so many rounds; 0 is silent.
        library_params: further parameters of the library, by its own names.

    Attributes:
        booster_: the trees.
        start_: scores that the trees start from: their link is the mean target.
        n_iter_: rounds.
        n_features_in_: d.
        feature_names_in_: names of the features, if X had any.
"""


@dataclass(eq=False, repr=False)
class BoostedProportionRegressor(RegressorMixin, BoostedModel):  # type: ignore[misc]
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

    def _check_targets(self, y: Any, loss: Loss) -> tuple[Any, int]:
        check_sparse(y, "y")
        y = y.tocsr() if sparse.issparse(y) else np.asarray(y, dtype=np.float64)
        if y.ndim == 1 and loss.regularizer.domain.has_labels:
            raise ValueError(
                f"y must have shape (n, k) with proportions in each row, got shape {y.shape}; "
                "for class labels use BoostedClassifier"
            )
        self._is_single = y.ndim == 1
        y = y[:, None] if y.ndim == 1 else y
        return y, int(y.shape[1])

    def predict(self, X: Any) -> np.ndarray:
        """Predictions ŷ(θ), shape (n, k), or (n,) after a fit with y of shape (n,)."""
        scores = self.predict_scores(X)
        prediction = self._predict_rows(self._fitted_loss(), scores)
        return prediction[:, 0] if self._is_single else prediction

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """The coefficient of determination R² of the predictions, averaged over the targets."""
        y = y.toarray() if sparse.issparse(y) else y
        return float(super().score(X, y, sample_weight))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        tags.target_tags.single_output = not get_loss(self.loss).regularizer.domain.has_labels
        return tags


@dataclass(eq=False, repr=False)
class BoostedClassifier(ClassifierMixin, BoostedModel):  # type: ignore[misc]
    __doc__ = f"""Boosted trees for classes, with a loss on the simplex.
{_PARAMETERS}        classes_: the labels, sorted.

    Example:
        >>> from sklearn.datasets import load_iris
        >>> X, y = load_iris(return_X_y=True)
        >>> model = BoostedClassifier(n_estimators=20).fit(X, y)
        >>> model.predict(X[:2])
        array([0, 0])
    """

    def _check_targets(self, y: Any, loss: Loss) -> tuple[Any, int]:
        if not loss.regularizer.domain.has_labels:
            raise ValueError(
                f"BoostedClassifier needs a loss on the simplex, and loss={self.loss!r} has the "
                f"domain {loss.regularizer.domain!r}; use BoostedProportionRegressor with it"
            )
        y = column_or_1d(y, warn=True)
        assert_all_finite(y, input_name="y")
        check_classification_targets(y)
        self.classes_, labels = np.unique(y, return_inverse=True)
        if len(self.classes_) < 2:
            raise ValueError(
                "BoostedClassifier needs at least two classes, and y holds one class only: "
                f"{self.classes_.tolist()[0]!r}"
            )
        return labels, len(self.classes_)

    def _predict_rows(self, loss: Loss, theta: np.ndarray) -> np.ndarray:
        is_proper = loss.regularizer.has_probabilities
        return np.asarray(loss.probabilities(theta) if is_proper else loss.link(theta))

    def decision_function(self, X: Any) -> np.ndarray:
        """Scores, shape (n, k); with two classes (n,), how far the second is ahead."""
        scores = self.predict_scores(X)
        return scores[:, 1] - scores[:, 0] if scores.shape[1] == 2 else scores

    def predict_proba(self, X: Any) -> np.ndarray:
        """Class probabilities, shape (n, k), as ``loss.probabilities`` has them."""
        scores = self.predict_scores(X)
        return self._predict_rows(self._fitted_loss(), scores)

    def predict_link(self, X: Any) -> np.ndarray:
        """The link ŷ(θ) of the scores, shape (n, k)."""
        scores = self.predict_scores(X)
        return np.asarray(self._fitted_loss().link(scores))

    def predict(self, X: Any) -> np.ndarray:
        """The class of the largest score, for each sample."""
        best = np.argmax(self.predict_scores(X), axis=1)
        chosen: np.ndarray = self.classes_[best]
        return chosen


def _loss_of(loss: str | Loss, tightness: float | None) -> Loss:
    return get_loss(loss) if tightness is None else get_loss(loss, tightness)


def _start(loss: Loss, targets: Any, k: int, training: Derivatives) -> np.ndarray:
    """Scores whose link is the mean target, shape (k,)."""
    weights = training.weights
    if sparse.issparse(targets) or np.ndim(targets) == 2:
        column = np.ones((targets.shape[0], 1)) if weights is None else weights
        mean = np.asarray(targets.T @ column).ravel() / column.sum()
    else:
        mean = np.bincount(targets, None if weights is None else weights[:, 0], k)
        mean = mean / mean.sum()
    domain = loss.regularizer.domain
    if domain.has_labels:
        mean = np.maximum(mean, _MIN_SHARE)
        mean = mean / mean.sum()
    elif domain.coordinates is not None:
        low, high = domain.coordinates.bounds
        mean = np.clip(mean, low + _MIN_SHARE, high - _MIN_SHARE)
    start: np.ndarray = np.asarray(loss.regularizer.potential_gradient(mean), dtype=np.float64)
    return start - start.mean() if domain.has_labels else start


def _dense_rows(targets: Any, k: int) -> np.ndarray:
    if sparse.issparse(targets):
        return np.asarray(targets.toarray())
    return np.asarray(np.eye(k)[targets] if targets.ndim == 1 else targets)


def _check_features(X: Any) -> Any:
    """A data frame as it is, or a checked array of numbers, dense or CSR; NaN is missing."""
    if hasattr(X, "columns") and hasattr(X, "iloc"):
        return X
    return check_array(X, accept_sparse="csr", dtype=np.float64, ensure_all_finite="allow-nan")


def _take(X: Any, rows: np.ndarray) -> Any:
    return X.iloc[rows] if hasattr(X, "iloc") else X[rows]
