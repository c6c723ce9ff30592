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
    if not np.asarray(sample_weight).any():
        raise ValueError(
            "sample_weight is zero for all samples; give at least one a positive weight"
        )
    rows = np.broadcast_to(0.0, X.shape[:1])  # wherever X is
    return _check_sample_weight(sample_weight, rows, dtype=np.float64, ensure_non_negative=True)
