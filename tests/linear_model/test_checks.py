"""scikit-learn's own checks of estimators."""

import contextlib
from typing import Any
from unittest import SkipTest

import numpy as np
import pytest
from scipy.special import expit, logit
from sklearn.utils.estimator_checks import estimator_checks_generator, parametrize_with_checks
from sklearn.utils.validation import column_or_1d

from fitzpatrick.linear_model import (
    FitzpatrickClassifier,
    FitzpatrickClassifierCV,
    ProportionRegressor,
    ProportionRegressorCV,
)

# they feed targets off the simplex, which the default loss is not defined for
CHECKS_OFF_THE_SIMPLEX = (
    "check_fit_score_takes_y",
    "check_estimators_overwrite_params",
    "check_dont_overwrite_parameters",
    "check_estimators_fit_returns_self",
    "check_readonly_memmap_input",
    "check_n_features_in_after_fitting",
    "check_positive_only_tag_during_fit",
    "check_estimators_dtypes",
    "check_sample_weights_not_an_array",
    "check_sample_weights_list",
    "check_sample_weights_pandas_series",
    "check_sample_weights_shape",
    "check_sample_weights_not_overwritten",
    "check_sample_weight_equivalence_on_dense_data",
    "check_sample_weight_equivalence_on_sparse_data",
    "check_dtype_object",
    "check_pipeline_consistency",
    "check_estimators_nan_inf",
    "check_estimator_sparse_tag",
    "check_estimator_sparse_array",
    "check_estimator_sparse_matrix",
    "check_estimators_pickle",
    "check_f_contiguous_array_estimator",
    "check_regressors_train",
    "check_regressor_data_not_an_array",
    "check_regressor_multioutput",
    "check_regressors_no_decision_function",
    "check_regressors_int",
    "check_non_transformer_estimators_n_iter",
    "check_methods_sample_order_invariance",
    "check_methods_subset_invariance",
    "check_fit2d_1feature",
    "check_dict_unchanged",
    "check_fit_idempotent",
    "check_fit_check_is_fitted",
    "check_n_features_in",
    "check_fit2d_predict1d",
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
    if error is None:
        return ""
    return f"{error}\n{chain(error.__cause__ or error.__context__)}"


def test_on_the_simplex_checks_pass_or_fail_for_their_reason() -> None:
    found = set()
    for estimator, check in estimator_checks_generator(ProportionRegressor()):
        name = check.func.__name__
        if name not in CHECKS_OFF_THE_SIMPLEX:
            with contextlib.suppress(SkipTest):
                check(estimator)
            continue
        found.add(name)
        with pytest.raises(Exception, match=r"\w") as caught:
            check(estimator)
        reasons = chain(caught.value)
        assert "y must have shape (n, k)" in reasons or "not in the domain" in reasons, name
    assert found == set(CHECKS_OFF_THE_SIMPLEX)
