"""The estimators with one penalty, and what those with several share with them."""

import math
from abc import ABC, abstractmethod
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar, Self

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils._set_output import ADAPTERS_MANAGER
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.validation import _get_feature_names, check_is_fitted

from .. import engines
from .._array import Array, as_library, is_foreign, namespace, to_numpy
from .._weights import check_weights
from ..losses import Loss, get_loss, loss_names
from . import _checks
from ._checks import FitParameters, FitSettings
from ._inference import Summary, summarize
from ._path import FittedModel, PenaltyPath
from ._sums import Data, TrainingData, with_zero_score
from ._vectors import cast
from .solvers import Status

# A gradient of labels has the size of the loss at zero scores, and rounding errors of eps.
MIN_START = 1e3 * float(np.finfo(float).eps)


@dataclass(eq=False, repr=False)
class ScoreModel(BaseEstimator, ABC):  # type: ignore[misc]  # scikit-learn has no types
    """Predictions from scores θ(x), by a loss."""

    loss: str | Loss = "fitzpatrick_logistic"

    @abstractmethod
    def _scores(self, X: Any, method: str) -> Array:
        """θ of features, for the public method of that name."""

    @abstractmethod
    def _predictions(self, theta: Array, loss: Loss) -> Array:
        """What metrics compare with targets, shape (n, k)."""

    @property
    def _fitted_loss(self) -> Loss:
        return Loss(get_loss(self.loss_).regularizer, self.tightness_)

    @abstractmethod
    def _check_targets(self, X: Array, y: Any, weights: Array | None, loss: Loss) -> Data:
        """The data of a fit: targets, and weights times the weights of their classes."""

    @abstractmethod
    def _check_more_targets(
        self, y: Any, X: Array, n_classes: int, loss: Loss
    ) -> tuple[Array, float]:
        """Targets of samples that were not in the fit, as scorers take them, and rounding."""

    @abstractmethod
    def _as_given(self, targets: Array) -> Array:
        """Targets of :class:`Data` in the form in which ``fit`` got them, dense or CSR."""

    def set_output(self, *, transform: str | None = None) -> Self:
        """Ask for predictions in a data frame, as scikit-learn's transformers are asked.

        The columns are named by the columns of y that a regressor was fitted with, and by the
        classes of a classifier. Predictions of one number or one class per sample stay arrays.

        Args:
            transform: ``"pandas"``, ``"polars"``, or ``"default"`` for NumPy arrays; None changes
                nothing.
        """
        outputs = ("default", "pandas", "polars")
        if transform not in (*outputs, None):
            raise ValueError(f"transform must be None or one of {outputs}, got {transform!r}")
        if transform is not None:
            self._sklearn_output_config = {"transform": transform}  # which clone() copies
        return self

    def _in_container(self, prediction: Array, X: Any, names: Any) -> Any:
        """An array (n, k), or the data frame that :meth:`set_output` asks for."""
        output = getattr(self, "_sklearn_output_config", {}).get("transform", "default")
        if output == "default":
            return prediction
        adapter, names = ADAPTERS_MANAGER.adapters[output], to_numpy(names)
        if output == "polars":
            names = names.astype(str)  # which alone may be names there
        return adapter.create_container(to_numpy(prediction), X, names)


@dataclass(eq=False, repr=False)
class LinearModel(FitParameters, ScoreModel):
    """Scores X Wᵀ + b, learned with a loss, a penalty and a solver.

    The parameters are fields: scikit-learn reads them off the constructor that these make.
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = _checks.CONSTRAINTS

    def _check_data(
        self, X: Any, y: Any, sample_weight: Any, settings: FitSettings
    ) -> TrainingData:
        """The data of a fit, checked; names of features and targets are remembered."""
        X = _checks.check_features(X, owner=self)
        return self._check_targets(X, y, check_weights(sample_weight, X), settings.loss)

    def _fit_final(
        self,
        data: TrainingData,
        settings: FitSettings,
        alpha: float,
        start: tuple[Array, Array] | None = None,
    ) -> None:
        """Fit, set the fitted attributes, and warn if the fit did not converge."""
        path = PenaltyPath(data.sums(settings), settings)
        model = path.fit(alpha, start)
        self._set_model(model, settings.loss, path.sums.space.like)
        if not model.status.converged:
            self._warn(
                f"stopped after {model.n_iter} iterations at gradient norm "
                f"{model.gradient_norm:.3g}: {model.status.value}"
            )

    def _set_model(self, model: FittedModel, loss: Loss, like: Array) -> None:
        """Set the attributes of a fit, with coefficients where ``like`` is and in its dtype."""
        self.loss_: Any = self.loss
        self.tightness_ = loss.tightness
        self.coef_, self.intercept_ = (
            cast(as_library(array, like), like.dtype) for array in (model.coef, model.intercept)
        )
        self.objective_ = model.objective
        self.gradient_norm_ = model.gradient_norm
        self.n_iter_ = model.n_iter
        self._status_name = model.status.name
        # kept for the covariance of the coefficients: set_params may change the parameters later
        self._fitted_with = float(model.alpha), bool(self.standardize), bool(self.fit_intercept)

    @property
    def status_(self) -> Status:
        """How the solver ended; the value is a sentence."""
        # kept by name, since skops does not persist enums
        return Status[self._status_name]

    def _warn(self, problem: str) -> None:
        _checks.warn(
            f"{type(self).__name__}: {problem}. Increase max_iter (now {self.max_iter}), use "
            "standardized features (standardize=True), strengthen the penalty (alpha), or accept "
            f"less precision with a larger tol (now {self.tol:g}).",
            ConvergenceWarning,
        )

    def _scores(self, X: Any, method: str) -> Array:
        """θ, with one column per row of coef_, for the public method of that name."""
        check_is_fitted(self)
        X = _checks.check_features(X, owner=self, reset=False)
        if is_foreign(X) or is_foreign(self.coef_):
            _checks.check_same_place(X, self.coef_, f"{type(self).__name__}.{method}()")
        return X @ self.coef_.T + self.intercept_

    def summary(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        *,
        groups: Any = None,
        level: float = 0.95,
        reference: int = 0,
    ) -> Summary:
        """Coefficients with standard errors and intervals, and average marginal effects.

        The model keeps no data, so that X and y are given again. Needs pandas. Features that are
        constant have no coefficient in a standardized model, and no row in the tables.

        Args:
            X: the features of the fit.
            y: its targets.
            sample_weight: its weights.
            groups: cluster of each sample, for errors that are robust to clusters; by default each
                sample is its own.
            level: of the confidence intervals.
            reference: the class, by its place, that the coefficients of the others are compared
                with, where the loss is on the simplex and only differences are known.
        """
        check_is_fitted(self)
        return summarize(self, X, y, sample_weight, groups, level, reference)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.array_api_support = True
        return tags


@dataclass(eq=False, repr=False)
class SinglePenalty(LinearModel):
    """The parameters of an estimator with one alpha and one tightness."""

    alpha: float = 1.0
    _: KW_ONLY
    tightness: float | None = None
    warm_start: bool = False

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn from features X (n, d), dense or sparse.

        Args:
            X: features.
            y: labels (n,) of a classifier; targets (n, k) of a regressor, dense or sparse, or (n,)
                for one column of targets, where the domain of the loss is not the simplex.
            sample_weight: weights (n,) of the samples.
        """
        with _checks.unchanged_on_failure(self):
            settings = _checks.check_settings(self, self.tightness)
            data = self._check_data(X, y, sample_weight, settings)
            start = self._warm_start((data.n_scores, self.n_features_in_))
            self._fit_final(data, settings, float(self.alpha), start)
        return self

    def _warm_start(self, shape: tuple[int, int]) -> tuple[Array, Array] | None:
        if not (self.warm_start and hasattr(self, "coef_")):
            return None
        if (fitted := tuple(self.coef_.shape)) != shape:
            raise ValueError(
                f"warm_start=True continues from coefficients of shape {fitted}, and "
                f"these data need {shape}; set warm_start=False to begin anew"
            )
        coef, intercept = to_numpy(self.coef_), to_numpy(self.intercept_)
        return coef.astype(np.float64), intercept.astype(np.float64)


@dataclass(eq=False, repr=False)
class ClassModel(ClassifierMixin, ScoreModel):  # type: ignore[misc]  # scikit-learn has no types
    """Targets that are class labels, predictions that are labels or probabilities."""

    _: KW_ONLY
    class_weight: dict[Any, float] | str | None = None

    def _check_targets(self, X: Array, y: Any, weights: Array | None, loss: Loss) -> Data:
        self._check_domain(loss)
        y = _checks.label_column(y, X)
        _checks.check_classes(y)
        classes, labels = np.unique(y, return_inverse=True)
        totals = np.bincount(labels, weights=weights)
        by_class = self._learn_classes(classes, totals, loss)
        if is_foreign(X) and classes.dtype.kind in "fiub":
            # numbers go with features of another library; words stay in NumPy, as predictions do
            self.classes_ = as_library(classes, X)
        if by_class is not None:
            weights = by_class[labels] if weights is None else by_class[labels] * weights
        return Data(X, labels, len(classes), weights, binary=len(classes) == 2)

    def _check_domain(self, loss: Loss) -> None:
        if not loss.regularizer.domain.has_labels:
            raise ValueError(
                f"{type(self).__name__} needs a loss on the simplex, and loss={self.loss!r} has "
                f"the domain {loss.regularizer.domain!r}; use a regressor of proportions with it"
            )

    def _learn_classes(self, classes: Array, totals: Array, loss: Loss) -> Array | None:
        """Set the classes, of samples with these total weights, and return their own weights."""
        if len(classes) < 2:
            raise ValueError(
                f"{type(self).__name__} needs at least two classes, and y holds one class only: "
                f"{classes.tolist()[0]!r}"
            )
        start, k = math.inf, len(classes)
        if loss.tightness > 1:  # or no loss is flat at zero scores, from where fits start
            start = float(loss.value(np.arange(k), np.zeros((k, k))).max())
        if start < MIN_START:
            _checks.warn(
                f"at tightness {loss.tightness:g} the loss of a class label at zero scores is "
                f"{start:.1g}, near rounding errors: the fit may end before it has begun; choose a "
                "smaller tightness",
                ConvergenceWarning,
            )
        self.classes_ = classes
        if self.class_weight is None:
            return None
        if self.class_weight == "balanced":  # all classes get the same total weight
            present = totals > 0
            return totals.sum() / (present.sum() * np.where(present, totals, 1.0))
        by_class = compute_class_weight(self.class_weight, classes=classes, y=classes)
        if not (np.isfinite(by_class) & (by_class >= 0)).all():
            raise ValueError(
                f"class_weight must hold finite numbers of at least 0, got {self.class_weight!r}"
            )
        if not (by_class * totals).any():
            raise ValueError(
                "class_weight is zero for the classes of all samples of positive weight; give "
                "at least one of them a positive weight"
            )
        return by_class

    def _check_more_targets(
        self, y: Any, X: Array, n_classes: int, loss: Loss
    ) -> tuple[Array, float]:
        y = _checks.label_column(y, X)
        unknown = np.setdiff1d(y, to_numpy(self.classes_))
        if unknown.size:
            raise ValueError(
                f"y holds classes that are not in the samples of the fit: {unknown[:5].tolist()}"
            )
        return y, 0.0

    def _as_given(self, targets: Array) -> Array:
        return to_numpy(self.classes_)[targets]

    def decision_function(self, X: Any) -> Array:
        """Scores, shape (n, k); with two classes (n,), how far ``classes_[1]`` is ahead."""
        scores = self._scores(X, "decision_function")
        if scores.shape[1] == 2:
            return scores[:, 1] - scores[:, 0]
        return scores[:, 0] if scores.shape[1] == 1 else scores

    def predict(self, X: Any) -> Array:
        """The class of the largest score, for each sample.

        Where a reference by class is part of the loss, it is the class of the largest prediction.
        """
        scores, loss = self._scores(X, "predict"), self._fitted_loss
        xp = namespace(scores)
        if not loss.regularizer.keeps_order:
            best = xp.argmax(self._predictions(_of_each_class(scores), loss), axis=1)
        elif scores.shape[1] == 1:
            best = xp.astype(scores[:, 0] > 0, xp.int64)
        else:
            best = xp.argmax(scores, axis=1)
        if is_foreign(self.classes_):
            return xp.take(self.classes_, best)
        return self.classes_[to_numpy(best)]

    def predict_proba(self, X: Any) -> Array:
        """Class probabilities, shape (n, k), as ``loss.probabilities`` has them.

        At tightness 0, and for sparsemax at any, they are the link of the scores; the order of the
        classes is the same. The perceptron has the link alone.
        """
        theta = _of_each_class(self._scores(X, "predict_proba"))
        return self._in_container(self._predictions(theta, self._fitted_loss), X, self.classes_)

    def predict_link(self, X: Any) -> Array:
        """The link ŷ(θ) of the scores, shape (n, k)."""
        theta = _of_each_class(self._scores(X, "predict_link"))
        return self._in_container(self._fitted_loss.link(theta), X, self.classes_)

    def predict_log_proba(self, X: Any) -> Array:
        """Logarithms of :meth:`predict_proba`: −inf where the loss has a sparse link."""
        theta = _of_each_class(self._scores(X, "predict_log_proba"))
        probabilities = self._predictions(theta, self._fitted_loss)
        with np.errstate(divide="ignore"):
            return self._in_container(namespace(probabilities).log(probabilities), X, self.classes_)

    def _predictions(self, theta: Array, loss: Loss) -> Array:
        is_proper = loss.regularizer.has_probabilities
        return loss.probabilities(theta) if is_proper else loss.link(theta)


def _of_each_class(scores: Array) -> Array:
    return with_zero_score(scores) if scores.shape[1] == 1 else scores


@dataclass(eq=False, repr=False)
class FitzpatrickClassifier(SinglePenalty, ClassModel):
    r"""Linear classifier with a Fitzpatrick or Fenchel-Young loss on the simplex.

    Minimizes :math:`\sum_i w_i L(e_{y_i}, W x_i + b) + \tfrac{\alpha}{2}\|W\|^2`. The intercept is
    never penalized. With ``loss="logistic"`` this is scikit-learn's
    ``LogisticRegression(C=1/alpha)``. As there, two classes share one row of coefficients, the
    score of the second class against 0 for the first.

    Args:
        loss: a name of :func:`fitzpatrick.loss_names`, or a loss object, whose domain is the
            simplex.
        alpha: strength of the penalty, at least 0. Without any, classes that features separate
            perfectly have no best coefficients: the fit ends at some large ones.
        tightness: c, a number of at least 0 that replaces the tightness of a Fitzpatrick loss: 0 is
            its Fenchel-Young loss, 1 the Fitzpatrick loss, and larger numbers lie beyond. None is
            the loss's own. The best one depends on the data; search it as you search alpha.
        fit_intercept: True to learn b; without it, b is 0 for features as the model sees them.
        standardize: True if the model sees features of mean 0 and standard deviation 1. A sparse X
            stays sparse, and ``coef_`` and ``intercept_`` are for X as it is given. Constant
            features have coefficient 0.
        class_weight: weights of the classes as a dict, which multiply the sample weights, or
            ``"balanced"``: all classes get the same total weight.
        solver: ``"newton-cg"`` (trust-region Newton with conjugate gradients), ``"lbfgs"`` or
            ``"auto"``: the former wherever the loss has curvature.
        tol: the fit ends when the gradient norm, in the parameters as the solver sees them
            (centered, scaled, rotated), is at most ``tol`` times that at zero coefficients, and
            ``gradient_norm_² / (2 alpha)``, which without an intercept bounds how far
            ``objective_`` is above the minimum, at most ``√tol`` of ``objective_``. No gradient is
            asked for that rounding errors in the dtype of X would hide.
        max_iter: most iterations of the solver.
        warm_start: True to start from the coefficients of the previous fit, even if its data and
            classes were others; the optimum is the same.
        verbose: print the progress each time this many iterations have passed; 0 is silent.
        n_threads: threads for matrix products and rows; None leaves it to the libraries.
        callback: called with an :class:`~fitzpatrick.linear_model.Iteration` after each iteration
            of the solver and at its start: its number, the objective, the gradient norm, the
            seconds so far. An error that it raises ends the fit, and the estimator stays as it was.

    Attributes:
        classes_: the labels, sorted, shape (k,).
        coef_: W, shape (k, d), or (1, d) with two classes, in the dtype of X.
        intercept_: b, one per row of ``coef_``.
        loss_: the loss of the fit, which predictions use.
        tightness_: its tightness.
        objective_: the objective at the end.
        gradient_norm_: norm of its gradient there, as ``tol`` sees it.
        n_iter_: iterations of the solver.
        status_: how the solver ended; ``status_.value`` is a sentence.
        n_features_in_: d.
        feature_names_in_: names of the features, if X had any.

    Example:
        >>> from sklearn.datasets import load_iris
        >>> from fitzpatrick.linear_model import FitzpatrickClassifier
        >>> X, y = load_iris(return_X_y=True)
        >>> model = FitzpatrickClassifier(loss="sparsemax").fit(X, y)
        >>> model.predict_proba(X[:1]).round(3)
        array([[1., 0., 0.]])
    """


@dataclass(eq=False, repr=False)
class ProportionModel(RegressorMixin, ScoreModel):  # type: ignore[misc]  # scikit-learn has no types
    """Targets and predictions (n, k) in the domain of the loss."""

    def _check_targets(self, X: Array, y: Any, weights: Array | None, loss: Loss) -> Data:
        self._target_names = _get_feature_names(y)
        y = _checks.check_proportions(y, loss, X)
        self._is_single = y.ndim == 1
        if self._is_single:
            y = y.reshape(-1, 1)
        return Data(X, y, y.shape[1], weights, binary=False)

    def _check_more_targets(
        self, y: Any, X: Array, n_classes: int, loss: Loss
    ) -> tuple[Array, float]:
        y, rounding = _checks.exact_proportions(y, loss, X)
        rows = y.reshape(-1, 1) if y.ndim == 1 else y
        engines.bind(loss.regularizer, loss.tightness, rows, n_classes)  # checks them
        return y, rounding

    def _as_given(self, targets: Array) -> Array:
        return targets[:, 0] if self._is_single else targets

    def predict_scores(self, X: Any) -> Array:
        """Scores θ = X Wᵀ + b, shape (n, k)."""
        return self._scores(X, "predict_scores")

    def predict(self, X: Any) -> Array:
        """Predictions ŷ(θ), shape (n, k), or (n,) after a fit with y of shape (n,)."""
        prediction = self._predictions(self._scores(X, "predict"), self._fitted_loss)
        if self._is_single:
            return prediction[:, 0]
        names = np.asarray([f"y{j}" for j in range(prediction.shape[1])])
        return self._in_container(prediction, X, getattr(self, "target_names_in_", names))

    def _predictions(self, theta: Array, loss: Loss) -> Array:
        return loss.link(theta)

    @property
    def target_names_in_(self) -> Array:
        """The names of the columns of y in the fit; not there unless y was a data frame."""
        if getattr(self, "_target_names", None) is None:
            raise AttributeError("y had no names of columns in the fit")
        return self._target_names

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """The coefficient of determination R² of the predictions, averaged over the classes."""
        y = y.toarray() if sparse.issparse(y) else y
        return float(super().score(X, y, sample_weight))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        # parameters may be wrong until fit says so
        known = isinstance(self.loss, Loss) or self.loss in loss_names()
        tags.target_tags.single_output = not (
            known and get_loss(self.loss).regularizer.domain.has_labels
        )
        return tags


@dataclass(eq=False, repr=False)
class ProportionRegressor(SinglePenalty, ProportionModel):
    r"""Linear model x ↦ ŷ(Wx + b) for targets that are proportions.

    Minimizes :math:`\sum_i w_i L(y_i, W x_i + b) + \tfrac{\alpha}{2}\|W\|^2`. The intercept is
    never penalized. ``loss="squared"`` is scikit-learn's ``Ridge(alpha)``, and ``"poisson"`` its
    ``PoissonRegressor(alpha / n)`` for n samples. Two proportions have two rows of coefficients:
    :class:`FitzpatrickClassifier`, with its single row, is the same model at ``alpha / 2``.
    Parameters and attributes that are not listed here are as in :class:`FitzpatrickClassifier`.

    Args:
        loss: a name of :func:`fitzpatrick.loss_names`, or a loss object. Its domain is where the
            targets live: rows on the simplex for ``logistic``, ``sparsemax``, ``entmax15`` and
            their Fitzpatrick losses, the unit cube for ``sigmoid`` and ``sparse_sigmoid``,
            non-negative numbers for ``poisson``, all numbers for ``squared``. Rows on the simplex
            that sum to one within 0.02, as rounded shares do, are divided by their sums, with a
            warning if one is off by more than 1e-6.
        alpha: strength of the penalty, at least 0.

    Attributes:
        coef_: W, shape (k, d), in the dtype of X.
        intercept_: b, shape (k,).
        target_names_in_: names of the columns of y, if it was a data frame.

    Example:
        >>> import numpy as np
        >>> from fitzpatrick.linear_model import ProportionRegressor
        >>> X = np.asarray([[0.0], [1.0], [2.0], [3.0]])
        >>> Y = np.asarray([[1.0, 0.0], [0.7, 0.3], [0.4, 0.6], [0.0, 1.0]])
        >>> model = ProportionRegressor(loss="fitzpatrick_sparsemax", alpha=0.1).fit(X, Y)
        >>> model.predict([[1.5]]).round(2)
        array([[0.53, 0.47]])
    """

    @classmethod
    def from_model(cls, model: FittedModel, loss: str | Loss, **parameters: Any) -> Self:
        """A regressor as a fit leaves it, with a model of :func:`fit_path` or of a file.

        Args:
            model: coefficients and how they were found.
            loss: the loss of the fit.
            parameters: further ones of the constructor, such as ``tightness``.
        """
        regressor = cls(loss, model.alpha, **parameters)
        regressor._set_model(model, get_loss(loss, regressor.tightness), model.coef)
        regressor._is_single, regressor._target_names = False, None
        regressor.n_features_in_ = model.coef.shape[1]
        return regressor
