"""Weights of samples, as the estimators and the metrics take them."""

from typing import Any

import numpy as np
from sklearn.utils.validation import _check_sample_weight

from ._array import Array, is_foreign, to_numpy


def check_weights(sample_weight: Any, X: Array) -> Array | None:
    """Weights of the rows of X in float64, finite and non-negative; None for ones."""
    if sample_weight is None:
        return None
    if is_foreign(sample_weight):
        sample_weight = to_numpy(sample_weight)
    check_any_weight(bool(np.asarray(sample_weight).any()))
    return check_each_weight(sample_weight, X)


def check_any_weight(found: bool) -> None:
    """Raise unless a positive weight was found."""
    if not found:
        raise ValueError(
            "sample_weight is zero for all samples; give at least one a positive weight"
        )


def check_each_weight(sample_weight: Any, X: Array) -> Array:
    """Checked weights of some of the samples, which may all be zero."""
    given = np.asarray(sample_weight)  # it may only look like an array
    if given.shape == X.shape[:1] and not given.any():
        return np.zeros(X.shape[0])  # scikit-learn raises
    rows = np.broadcast_to(0.0, X.shape[:1])  # X itself may be on a device
    return _check_sample_weight(sample_weight, rows, dtype=np.float64, ensure_non_negative=True)
