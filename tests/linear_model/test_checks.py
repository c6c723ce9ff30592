"""scikit-learn's own checks of estimators."""

from typing import Any
from unittest import SkipTest

import numpy as np
from scipy.special import expit, logit
from sklearn.utils.estimator_checks import estimator_checks_generator, parametrize_with_checks
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


def chain(error: BaseException | None) -> str:
    """The messages of an error and of those that led to it."""
    return f"{error}\n{chain(error.__cause__ or error.__context__)}" if error is not None else ""


def test_on_the_simplex_checks_fail_for_want_of_proportions_alone() -> None:
    passed = 0
    for estimator, check in estimator_checks_generator(ProportionRegressor()):
        try:
            check(estimator)
        except SkipTest:
            continue
        except Exception as error:
            reasons = chain(error)
            off = "y must have shape (n, k)" in reasons or "not in the domain" in reasons
            assert off, check.func.__name__
        else:
            passed += 1
    assert passed >= 10
