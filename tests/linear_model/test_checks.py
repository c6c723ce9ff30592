"""scikit-learn's own checks of estimators."""

from typing import Any

import numpy as np
from scipy.special import expit, logit
from sklearn.utils.estimator_checks import parametrize_with_checks
from sklearn.utils.validation import column_or_1d

from fitzpatrick.linear_model import (
    FitzpatrickClassifier,
    FitzpatrickClassifierCV,
    ProportionRegressor,
    ProportionRegressorCV,
)


class LogOddsRegressor(ProportionRegressor):
    """Two proportions by the logarithm of their ratio, which may be any number.

    With it those checks run on the simplex that feed numbers off it.
    """

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        if y is not None:
            y = np.asarray(column_or_1d(y, warn=True), dtype=np.float64)
            p = np.where(np.isfinite(y), expit(y), y)
            y = np.column_stack([p, 1 - p])
        return super().fit(X, y, sample_weight)

    def predict(self, X: Any) -> Any:
        return logit(super().predict(X)[:, 0])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.single_output = True
        tags.target_tags.multi_output = False
        tags.array_api_support = False  # of the two lines of NumPy here
        return tags


@parametrize_with_checks(
    [
        FitzpatrickClassifier(),
        LogOddsRegressor(),
        ProportionRegressor(loss="squared"),
        FitzpatrickClassifierCV(alphas=[1.0], cv=2, tol=1e-10),
        ProportionRegressorCV(loss="squared", alphas=[1.0], cv=2, tol=1e-10),
    ]
)
def test_scikit_learn_check(estimator: Any, check: Any, monkeypatch) -> None:
    monkeypatch.setenv("SCIPY_ARRAY_API", "1")  # or its checks of other array libraries do not run
    check(estimator)
