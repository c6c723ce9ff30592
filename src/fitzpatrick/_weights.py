"""Weights of samples, as the estimators and the metrics take them."""

from typing import Any

import numpy as np
from sklearn.utils.validation import _check_sample_weight

from ._array import Array


def check_weights(sample_weight: Any, X: Array) -> Array | None:
    """Weights of the rows of X in float64, finite and non-negative; None for ones."""
    if sample_weight is None:
        return None
    if not np.asarray(sample_weight).any():
        raise ValueError(
            "sample_weight is zero for all samples; give at least one a positive weight"
        )
    return _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
