"""Classification with a loss on the simplex."""

from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils.class_weight import compute_class_weight

from .._array import Array, as_library, is_foreign, namespace, to_numpy
from ..losses import Loss, get_loss
from ._base import Data, LinearModel, SinglePenalty
from ._binary import with_zero_score
from ._targets import check_labels, label_column


@dataclass(eq=False, repr=False)
class ClassModel(ClassifierMixin, LinearModel):  # type: ignore[misc]  # scikit-learn has no types
    """Targets that are class labels, predictions that are labels or probabilities."""

    _: KW_ONLY
    class_weight: dict[Any, float] | str | None = None

    def _check_targets(self, X: Array, y: Any, weights: Array | None, loss: Loss) -> Data:
        self._check_domain(loss)
        classes, labels = np.unique(check_labels(y, X), return_inverse=True)
        self._check_classes(classes)
        n_classes = len(classes)
        # numbers go with features of another library; words stay in NumPy, as predictions do
        goes_with_X = is_foreign(X) and classes.dtype.kind in "fiub"
        self.classes_ = as_library(classes, X) if goes_with_X else classes
        if self.class_weight is not None:
            totals = np.bincount(labels, weights=weights)
            by_class = self._class_weights(totals, classes)[labels]
            weights = by_class if weights is None else by_class * weights
        return Data(X, labels, n_classes, weights, binary=n_classes == 2)

    def _check_domain(self, loss: Loss) -> None:
        if not loss.regularizer.domain.has_labels:
            raise ValueError(
                f"{type(self).__name__} needs a loss on the simplex, and loss={self.loss!r} has "
                f"the domain {loss.regularizer.domain!r}; use ProportionRegressor with it"
            )

    def _check_classes(self, classes: Array) -> None:
        if len(classes) < 2:
            raise ValueError(
                f"{type(self).__name__} needs at least two classes, and y holds one class only: "
                f"{classes[0]!r}"
            )

    def _class_weights(self, totals: Array, classes: Array) -> Array:
        """One weight per class; ``"balanced"`` gives all classes the same total weight.

        Args:
            totals: weight of the samples of each class.
            classes: the labels.
        """
        if self.class_weight == "balanced":
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

    def _check_more_targets(self, y: Any, X: Array, n_classes: int, loss: Loss) -> Array:
        y = label_column(y, X)
        unknown = np.setdiff1d(y, to_numpy(self.classes_))
        if unknown.size:
            raise ValueError(
                f"y holds classes that are not in the samples of the fit: {unknown[:5].tolist()}"
            )
        return y

    def _as_given(self, targets: Array) -> Array:
        return to_numpy(self.classes_)[targets]

    def decision_function(self, X: Any) -> Array:
        """Scores, shape (n, k); with two classes (n,), the score of ``classes_[1]``."""
        scores = self._scores(X, "decision_function")
        return scores[:, 0] if scores.shape[1] == 1 else scores

    def predict(self, X: Any) -> Array:
        """The class of the largest score, for each sample."""
        scores = self._scores(X, "predict")
        xp = namespace(scores)
        if scores.shape[1] == 1:
            best = xp.astype(scores[:, 0] > 0, xp.int64)
        else:
            best = xp.argmax(scores, axis=1)
        if is_foreign(self.classes_):
            return xp.take(self.classes_, best)
        return self.classes_[to_numpy(best)]

    def predict_proba(self, X: Any) -> Array:
        """The link of the scores, shape (n, k): zeros where the loss has a sparse link."""
        return self._in_container(self._probabilities(X, "predict_proba"), X, self.classes_)

    def _probabilities(self, X: Any, method: str) -> Array:
        scores = self._scores(X, method)
        theta = with_zero_score(scores) if scores.shape[1] == 1 else scores
        return get_loss(self.loss_).link(theta)

    def predict_log_proba(self, X: Any) -> Array:
        """Logarithms of :meth:`predict_proba`: −inf where the loss has a sparse link."""
        probabilities = self._probabilities(X, "predict_log_proba")
        with np.errstate(divide="ignore"):
            return self._in_container(namespace(probabilities).log(probabilities), X, self.classes_)


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
        fit_intercept: whether to learn b; without it, b is 0 for features as the model sees them.
        standardize: whether the model sees features of mean 0 and standard deviation 1. A sparse X
            stays sparse, and ``coef_`` and ``intercept_`` are for X as it is given. Constant
            features have coefficient 0.
        class_weight: weights of the classes as a dict, which multiply those of the samples, or
            ``"balanced"``: all classes get the same total weight.
        solver: ``"newton-cg"`` (trust-region Newton with conjugate gradients), ``"lbfgs"`` or
            ``"auto"``: the former wherever the loss has curvature.
        tol: the fit ends when the gradient norm, in the parameters as the solver sees them
            (centered, scaled, rotated), is at most ``tol`` times that at zero coefficients, and
            ``gradient_norm_² / (2 alpha)``, which without an intercept bounds how far
            ``objective_`` is above the minimum, at most ``√tol`` of ``objective_``. No gradient is
            asked for that rounding errors in the dtype of X would hide.
        max_iter: most iterations of the solver.
        warm_start: whether to start from the coefficients of the previous fit, whatever its data
            and classes were; the optimum is the same.
        verbose: print the progress every so many iterations; 0 is silent.
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
