r"""Sets of classes that hold the right one with a probability that you choose.

Split conformal prediction: the scores of a classifier on samples that it was not fitted to say how
wrong it can be, and the set of a new sample is every class that is no worse. For exchangeable
samples the right class is in the set with at least the probability asked for, whatever the
classifier.

Two measures of how bad a class is:

- ``"probability"``: one minus its probability.
- ``"support"``: :math:`\beta\,\|(\theta - \theta_j)_+\|_{1/\beta}` with β = α − 1. That is the
  temperature above which the class is in the support of α-entmax: the set is the support of a
  sparse link, at a temperature found on the calibration samples (Campos et al., "Sparse Activations
  as Conformal Predictors", AISTATS 2025).
"""

import math
from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone
from sklearn.model_selection import train_test_split
from sklearn.utils import assert_all_finite, check_consistent_length, get_tags
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, column_or_1d

from .losses import get_loss

__all__ = ["ConformalClassifier"]


@dataclass(eq=False, repr=False)
class ConformalClassifier(MetaEstimatorMixin, ClassifierMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    r"""A classifier with sets of classes that hold the right one often enough.

    Args:
        estimator: a classifier with ``predict_proba``, or ``decision_function`` for
            ``measure="support"``; any of scikit-learn's will do.
        coverage: the probability that a set holds the right class, between 0 and 1.
        measure: ``"probability"`` or ``"support"``.
        alpha: the order of the sparse link for ``"support"``, 1 < α ≤ 2; None takes the link of the
            estimator's own loss where that is sparse, and 2 (sparsemax) elsewhere.
        calibration_size: share of the samples of ``fit`` that calibrate, and are not fitted to.
        prefit: True if the estimator is fitted already; all samples then calibrate.
        random_state: seed of the split.

    Attributes:
        classes_: the labels, sorted.
        estimator_: the fitted classifier.
        threshold_: what a class may score at most. For ``"support"`` it is the temperature; it is
            infinite where there are too few samples for the coverage, and sets hold every class.
        n_calibration_: how many samples calibrated it.

    Example:
        >>> from sklearn.datasets import load_digits
        >>> from fitzpatrick.linear_model import FitzpatrickClassifier
        >>> X, y = load_digits(return_X_y=True)
        >>> base = FitzpatrickClassifier("fitzpatrick_sparsemax", standardize=True)
        >>> model = ConformalClassifier(base, coverage=0.95, measure="support", random_state=0)
        >>> sets = model.fit(X[:1200], y[:1200]).predict_set(X[1200:])
        >>> sets.shape
        (597, 10)
    """

    estimator: Any
    coverage: float = 0.9
    _: KW_ONLY
    measure: str = "probability"
    alpha: float | None = None
    calibration_size: float = 0.25
    prefit: bool = False
    random_state: Any = None

    def fit(self, X: Any, y: Any) -> Self:
        """Fit the estimator to one part of the samples, and calibrate on the other."""
        if not 0 < self.coverage < 1:
            raise ValueError(f"coverage must be between 0 and 1, got {self.coverage!r}")
        if self.measure not in ("probability", "support"):
            raise ValueError(f"measure must be 'probability' or 'support', got {self.measure!r}")
        if self.alpha is not None and not 1 < self.alpha <= 2:
            raise ValueError(f"alpha must be above 1 and at most 2, got {self.alpha!r}")
        if y is None:
            raise ValueError("y should be a 1d array: it is None; give the labels of the samples")
        y = column_or_1d(y, warn=True)
        assert_all_finite(y, input_name="y")
        check_classification_targets(y)
        check_consistent_length(X, y)
        if self.prefit:
            check_is_fitted(self.estimator)
            self.estimator_ = self.estimator
        else:
            X_train, X, y_train, y = train_test_split(
                X, y, test_size=self.calibration_size, random_state=self.random_state, stratify=y
            )
            self.estimator_ = clone(self.estimator).fit(X_train, y_train)
        self.classes_ = np.asarray(self.estimator_.classes_)
        for name in ("n_features_in_", "feature_names_in_"):
            if hasattr(self.estimator_, name):
                setattr(self, name, getattr(self.estimator_, name))
        known = np.isin(y, self.classes_)
        if not known.all():
            raise ValueError(
                f"y holds a class that the estimator was not fitted to: {y[~known].tolist()[0]!r}"
            )
        places = np.searchsorted(self.classes_, y)
        scores = np.sort(self._badness(X)[np.arange(len(y)), places])
        self.n_calibration_ = len(scores)
        # the new sample is one of n + 1 that may come in any order; a rounding error is no rank
        rank = math.ceil((len(scores) + 1) * self.coverage * (1 - 4 * np.finfo(float).eps))
        self.threshold_ = float(scores[rank - 1]) if rank <= len(scores) else math.inf
        return self

    def _badness(self, X: Any) -> np.ndarray:
        """How bad each class is for each sample, (n, k)."""
        if self.measure == "probability":
            return 1 - np.asarray(self.estimator_.predict_proba(X))
        theta = np.asarray(self.estimator_.decision_function(X), dtype=np.float64)
        if theta.ndim == 1:
            theta = np.column_stack([np.zeros_like(theta), theta])
        if (
            theta.shape[1] != len(self.classes_)
            or getattr(self.estimator_, "decision_function_shape", "ovr") == "ovo"
        ):
            raise ValueError(
                "measure='support' needs one score per class, and decision_function gives "
                f"{theta.shape[1]} for {len(self.classes_)} classes, or compares pairs of them"
            )
        beta = self._order() - 1
        bad = np.empty_like(theta)
        for j in range(theta.shape[1]):
            ahead = np.maximum(theta - theta[:, j : j + 1], 0)
            top = ahead.max(axis=1, keepdims=True)
            safe = np.where(top > 0, top, 1)
            powers = ((ahead / safe) ** (1 / beta)).sum(axis=1, keepdims=True) ** beta
            bad[:, j] = beta * (safe * powers)[:, 0]
        return bad

    def _order(self) -> float:
        if self.alpha is not None:
            return float(self.alpha)
        loss = getattr(self.estimator_, "loss_", None)
        alpha = get_loss(loss).regularizer.entmax_alpha if loss is not None else None
        return alpha if alpha is not None and alpha > 1 else 2.0

    def predict_set(self, X: Any) -> np.ndarray:
        """True where a class is in a sample's set, shape (n, k), in the order of ``classes_``."""
        check_is_fitted(self, "threshold_")
        inside: np.ndarray = self._badness(X) <= self.threshold_
        return inside

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = get_tags(self.estimator).input_tags.sparse
        return tags

    def predict(self, X: Any) -> np.ndarray:
        """The estimator's own class for each sample."""
        check_is_fitted(self, "threshold_")
        return np.asarray(self.estimator_.predict(X))
