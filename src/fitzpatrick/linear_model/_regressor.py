"""Regression on proportions and on other targets in the domain of a loss."""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from scipy import sparse
from sklearn.base import RegressorMixin
from sklearn.utils.validation import _get_feature_names

from .. import engines
from .._array import Array
from ..losses import Loss, get_loss, loss_names
from ._base import Data, LinearModel, SinglePenalty
from ._problem import FittedModel
from ._targets import check_proportions


@dataclass(eq=False, repr=False)
class ProportionModel(RegressorMixin, LinearModel):  # type: ignore[misc]  # scikit-learn has no types
    """Targets and predictions (n, k) in the domain of the loss."""

    def _check_targets(self, X: Array, y: Any, weights: Array | None, loss: Loss) -> Data:
        self._target_names = _get_feature_names(y)
        y = check_proportions(y, loss, X)
        self._is_single = y.ndim == 1
        if self._is_single:
            y = y.reshape(-1, 1)
        return Data(X, y, y.shape[1], weights, binary=False)

    def _check_more_targets(self, y: Any, X: Array, n_classes: int, loss: Loss) -> Array:
        y = check_proportions(y, loss, X)
        engines.bind(loss, y.reshape(-1, 1) if y.ndim == 1 else y, n_classes)  # checks them
        return y

    def _as_given(self, targets: Array) -> Array:
        return targets[:, 0] if self._is_single else targets

    def predict_scores(self, X: Any) -> Array:
        """Scores θ = X Wᵀ + b, shape (n, k)."""
        return self._scores(X, "predict_scores")

    def predict(self, X: Any) -> Array:
        """Predictions ŷ(θ), shape (n, k), or (n,) after a fit with y of shape (n,)."""
        scores = self._scores(X, "predict")
        prediction = get_loss(self.loss_).link(scores)
        if self._is_single:
            return prediction[:, 0]
        names = np.asarray([f"y{j}" for j in range(prediction.shape[1])])
        return self._in_container(prediction, X, getattr(self, "target_names_in_", names))

    @property
    def target_names_in_(self) -> Array:
        """The names of the columns of y in the fit; not there unless y was a data frame."""
        if self._target_names is None:
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
    their model is that of :class:`FitzpatrickClassifier`, with its single row, at ``alpha / 2``.
    Parameters and attributes that are not listed here are those of :class:`FitzpatrickClassifier`.

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
            loss: that of the fit.
            parameters: further ones of the constructor, such as ``tightness``.
        """
        regressor = cls(loss, model.alpha, **parameters)
        regressor._set_model(model, get_loss(loss, regressor.tightness), model.coef)
        regressor._is_single, regressor._target_names = False, None
        regressor.n_features_in_ = model.coef.shape[1]
        return regressor
