"""scikit-learn's own checks of estimators."""

from typing import Any

from sklearn.utils.estimator_checks import parametrize_with_checks

import fitzpatrick as fp
from fitzpatrick.linear_model import (
    FitzpatrickClassifier,
    FitzpatrickClassifierCV,
    ProportionRegressor,
    ProportionRegressorCV,
)

OFF_THE_SIMPLEX = "feeds targets off the simplex, which this loss is not defined for"
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


def expected_failures(estimator: Any) -> dict[str, str]:
    """Checks that cannot pass, with the reason."""
    domain = fp.get_loss(estimator.loss).regularizer.domain
    if isinstance(estimator, ProportionRegressor) and isinstance(domain, fp.sets.Simplex):
        return dict.fromkeys(CHECKS_OFF_THE_SIMPLEX, OFF_THE_SIMPLEX)
    return {}


@parametrize_with_checks(
    [
        FitzpatrickClassifier(),
        ProportionRegressor(),
        ProportionRegressor(loss="squared"),
        FitzpatrickClassifierCV(alphas=[0.1, 1.0], cv=2, tol=1e-10),
        ProportionRegressorCV(loss="squared", alphas=[0.1, 1.0], cv=2, tol=1e-10),
    ],
    expected_failed_checks=expected_failures,
)
def test_scikit_learn_check(estimator: Any, check: Any) -> None:
    check(estimator)
