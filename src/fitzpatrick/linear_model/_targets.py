"""Checks of targets at the edge of the estimators; what they say works for data frames, too."""

import warnings
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils import assert_all_finite, check_array, check_consistent_length
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import column_or_1d

from .._array import Array, is_foreign, to_numpy
from ..losses import Loss
from ..preprocessing import EXACT_SUM, SUM_TOLERANCE
from ..sets._base import membership_tolerance

NORMALIZE = "label_proportions(y) of fitzpatrick.preprocessing divides each row by its sum"


def check_labels(y: Any, X: Array) -> Array:
    """Class labels (n,), in NumPy."""
    y = label_column(y, X)
    check_classes(y)
    return y


def label_column(y: Any, X: Array) -> Array:
    """One finite entry per row of X, in NumPy."""
    y = _on_host(y)
    try:
        y = column_or_1d(y, warn=True)
    except ValueError as error:
        raise ValueError(
            f"{error} A classifier takes one label per sample: for proportions use "
            "ProportionRegressor, for 0/1 indicators of several labels ProportionRegressor with "
            "label_proportions(y) of fitzpatrick.preprocessing, and for one-hot rows "
            "np.asarray(y).argmax(axis=1)"
        ) from error
    assert_all_finite(y, input_name="y")
    check_consistent_length(X, y)
    return y


def check_classes(y: Array) -> None:
    """Raise unless labels stand for classes."""
    try:
        check_classification_targets(y)
    except ValueError as error:
        raise ValueError(
            f"{error} For proportions and other numbers use ProportionRegressor"
        ) from error


def check_proportions(y: Any, loss: Loss, X: Array) -> Array:
    """Targets (n, k), or (n,) off the simplex, in float64: dense NumPy or CSR.

    Whether they are in the domain of the loss is checked where they are bound to it.
    """
    y, rounding = exact_proportions(y, loss, X)
    warn_of_rounding(rounding, stacklevel=7)
    return y


def exact_proportions(y: Any, loss: Loss, X: Array) -> tuple[Array, float]:
    """The same, and how far a row was from a sum of one that few printed digits explain."""
    y = check_numbers(y)
    check_consistent_length(X, y)
    on_simplex = loss.regularizer.domain.has_labels
    if y.ndim == 1 and on_simplex:
        raise ValueError(
            f"y must have shape (n, k) with proportions in each row, got shape {y.shape}; for "
            "class labels use FitzpatrickClassifier, for one share per sample loss='sigmoid'"
        )
    if sparse.issparse(y):
        y = sparse.csr_array(y)
    check_finite(y, "y", "drop the row or give it a target")
    return _sum_to_one(y, loss) if on_simplex else (y.astype(np.float64, copy=False), 0.0)


def _on_host(y: Any) -> Any:
    if y is None:
        raise ValueError("requires y to be passed, but the target y is None")
    return to_numpy(y) if is_foreign(y) else y


def check_numbers(y: Any) -> Array:
    """Numbers in a dtype that the losses take, dense NumPy or CSR."""
    y = _on_host(y)
    try:
        y = check_array(
            y,
            accept_sparse="csr",
            dtype="numeric",
            ensure_2d=False,
            ensure_all_finite=False,
            input_name="y",
        )
    except ValueError as error:
        entries = (y.data if sparse.issparse(y) else np.asarray(y, dtype=object)).ravel()
        words = [str(entry) for entry in entries if isinstance(entry, str)]
        if not words:
            raise
        raise ValueError(
            f"y holds text such as {words[0]!r}, and a regressor takes numbers; for class names "
            "use FitzpatrickClassifier, for numbers that were read as text y.astype(float)"
        ) from error
    if y.dtype.kind != "f":
        return y
    native = np.float64 if y.dtype.itemsize > 8 else y.dtype.newbyteorder("=")
    return y.astype(native, copy=False)


def check_finite(array: Array, name: str, remedy: str) -> None:
    """Raise with the place of the first NaN or infinity, and what to do about it."""
    if np.isfinite(array.data if sparse.issparse(array) else array).all():
        return
    entries = sparse.coo_array(array if array.ndim == 2 else array[:, None])
    at = int(np.flatnonzero(~np.isfinite(entries.data))[0])
    value = "NaN" if np.isnan(entries.data[at]) else "infinity"
    raise ValueError(
        f"Input {name} contains {value} in row {entries.row[at]}, column {entries.col[at]}; "
        f"{remedy}"
    )


def warn_of_rounding(rounding: float, *, stacklevel: int) -> None:
    """Say that rows were divided by their sums, and by how much these differed from one."""
    if rounding > 0:
        warnings.warn(
            f"rows of y differ from a sum of one by up to {rounding:.2g}, and each is divided by "
            f"its sum; {NORMALIZE}, without this warning",
            stacklevel=stacklevel,
        )


def _sum_to_one(y: Array, loss: Loss) -> tuple[Array, float]:
    """Proportions in float64, divided by their sums where these are one up to rounding.

    Along an intercept for all classes the objective is flat only if they sum to one. What rounding
    to their own dtype did is undone in silence; what rounding to a few printed digits did is
    returned. Rows that are negative or zero are left for the loss to name.
    """
    entries = y.data if sparse.issparse(y) else y
    exact = y.astype(np.float64, copy=False)
    totals = exact.sum(axis=1)
    off = np.abs(totals - 1)
    if off.max() == 0 or (entries < 0).any():
        return exact, 0.0
    slack = membership_tolerance(entries if y.dtype.kind == "f" else np.empty(0))
    if off.max() > max(slack, SUM_TOLERANCE):
        if not totals.all() and off[totals != 0].max(initial=0) <= slack:
            return exact, 0.0
        _raise_off_the_simplex(entries, totals, loss)
    rounding = float(off.max()) if off.max() > max(slack, EXACT_SUM) else 0.0
    if not sparse.issparse(exact):
        return np.asarray(exact / totals[:, None]), rounding
    data = exact.data / np.repeat(totals, np.diff(exact.indptr))
    return sparse.csr_array((data, exact.indices, exact.indptr), shape=y.shape), rounding


def _raise_off_the_simplex(entries: Array, totals: Array, loss: Loss) -> None:
    domain = loss.regularizer.domain
    row = int(np.argmax(np.abs(totals - 1) > SUM_TOLERANCE))
    if np.isin(entries, (0, 1)).all():
        raise ValueError(
            f"y is not in the domain {domain!r}: it holds 0/1 indicators, {totals[row]:g} of them "
            f"in row {row}, not proportions; {NORMALIZE}; for each label by itself use "
            "loss='sigmoid'"
        )
    raise ValueError(
        f"y is not in the domain {domain!r}: in row {row} it sums to {totals[row]:.10g}, not 1; "
        f"{NORMALIZE}"
    )
