"""Classification with a loss on the simplex."""

from typing import Any, Self

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils.class_weight import compute_sample_weight
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import column_or_1d

from .._array import Array
from ..losses import Loss, get_loss
from ..sets import Simplex
from ._base import LinearModel
from ._checks import check_finite, unchanged_on_failure
from ._rows import BinaryRows


class ClassModel(ClassifierMixin, LinearModel):  # type: ignore[misc]  # scikit-learn has no types
    """Targets that are class labels, predictions that are labels or probabilities."""

    def _check_targets(self, y: Any, loss: Loss, n_samples: int) -> tuple[Array, int, bool]:
        if not isinstance(loss.regularizer.domain, Simplex):
            raise ValueError(
                f"{type(self).__name__} needs a loss on the simplex, and loss={self.loss!r} has "
                f"the domain {loss.regularizer.domain!r}; use ProportionRegressor with it"
            )
        if y is None:
            raise ValueError(
                f"{type(self).__name__} requires y to be passed, but the target y is None"
            )
        y = column_or_1d(y, warn=True)
        if y.dtype.kind == "f":
            check_finite(y)
        check_classification_targets(y)
        if y.shape[0] != n_samples:
            raise ValueError(
                "Found input variables with inconsistent numbers of samples: "
                f"X has {n_samples} rows and y has {y.shape[0]}"
            )
        self.classes_, labels = np.unique(y, return_inverse=True)
        n_classes = len(self.classes_)
        if n_classes < 2:
            raise ValueError(
                f"{type(self).__name__} needs at least two classes, and y holds one class only: "
                f"{self.classes_[0]!r}"
            )
        return labels, n_classes, n_classes == 2

    def _class_weights(self, y: Any, weights: Array | None) -> Array | None:
        if self.class_weight is None:
            return weights
        by_class = compute_sample_weight(self.class_weight, column_or_1d(y))
        return by_class if weights is None else by_class * weights

    def decision_function(self, X: Any) -> Array:
        """Scores, shape (n, k); with two classes (n,), the score of ``classes_[1]``."""
        scores = self._scores(X)
        return scores[:, 0] if scores.shape[1] == 1 else scores

    def predict(self, X: Any) -> Array:
        """The class of the largest score, for each sample."""
        scores = self.decision_function(X)
        best = (scores > 0).astype(np.intp) if scores.ndim == 1 else scores.argmax(axis=1)
        return self.classes_[best]

    def predict_proba(self, X: Any) -> Array:
        """The link of the scores, shape (n, k): zeros where the loss has a sparse link."""
        scores = self._scores(X)
        theta = BinaryRows.pair(scores) if scores.shape[1] == 1 else scores
        return get_loss(self.loss).link(theta)


class FitzpatrickClassifier(ClassModel):
    r"""Linear classifier with a Fitzpatrick or Fenchel-Young loss on the simplex.

    Minimises :math:`\sum_i w_i L(e_{y_i}, W x_i + b) + \tfrac{\alpha}{2}\|W\|^2`. The intercept is
    never penalised. With ``loss="logistic"`` this is scikit-learn's
    ``LogisticRegression(C=1/alpha)``. As there, two classes share one row of coefficients, the
    score of the second class against 0 for the first.

    Args:
        loss: a name of :func:`fitzpatrick.loss_names`, or a loss object, whose domain is the
            simplex.
        alpha: strength of the penalty, at least 0.
        fit_intercept: whether to learn b; without it, b is 0 for features as the model sees them.
        standardize: whether the model sees features of mean 0 and standard deviation 1. A sparse X
            stays sparse, and ``coef_`` and ``intercept_`` are for X as it is given.
        class_weight: weights of the classes as a dict, or ``"balanced"``.
        solver: ``"newton-cg"`` (trust-region Newton with conjugate gradients), ``"lbfgs"`` or
            ``"auto"``: the former wherever the loss has curvature.
        tol: the fit ends when the gradient norm is at most ``tol`` times that at zero coefficients.
        max_iter: most iterations of the solver.
        warm_start: whether to start from the coefficients of the previous fit.
        verbose: print the progress every so many iterations; 0 is silent.
        n_threads: threads for matrix products and rows; None leaves it to the libraries.

    Attributes:
        classes_: the labels, sorted, shape (k,).
        coef_: W, shape (k, d), or (1, d) with two classes, in the dtype of X.
        intercept_: b, one per row of ``coef_``.
        objective_: the objective at the end.
        gradient_norm_: norm of its gradient there.
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

    def __init__(
        self,
        loss: str | Loss = "fitzpatrick_logistic",
        alpha: float = 1.0,
        *,
        fit_intercept: bool = True,
        standardize: bool = False,
        class_weight: dict[Any, float] | str | None = None,
        solver: str = "auto",
        tol: float = 1e-8,
        max_iter: int = 1000,
        warm_start: bool = False,
        verbose: int = 0,
        n_threads: int | None = None,
    ) -> None:
        self.loss = loss
        self.alpha = alpha
        self.fit_intercept = fit_intercept
        self.standardize = standardize
        self.class_weight = class_weight
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
        self.warm_start = warm_start
        self.verbose = verbose
        self.n_threads = n_threads

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn from features X (n, d), dense or sparse, and labels y (n,)."""
        with unchanged_on_failure(self):
            self._fit_one(X, y, sample_weight)
        return self
