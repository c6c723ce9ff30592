"""scikit-learn's own checks of estimators."""

from typing import Any

from sklearn.utils.estimator_checks import parametrize_with_checks

from fitzpatrick.linear_model import (
    FitzpatrickClassifier,
    FitzpatrickClassifierCV,
    ProportionRegressor,
    ProportionRegressorCV,
)


@parametrize_with_checks(
    [
        FitzpatrickClassifier(),
        ProportionRegressor(loss="squared"),
        FitzpatrickClassifierCV(alphas=[1.0], cv=2, tol=1e-10),
        ProportionRegressorCV(loss="squared", alphas=[1.0], cv=2, tol=1e-10),
    ]
)
def test_scikit_learn_check(estimator: Any, check: Any, monkeypatch) -> None:
    monkeypatch.setenv("SCIPY_ARRAY_API", "1")  # or its checks of other array libraries do not run
    check(estimator)
