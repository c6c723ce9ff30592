"""From labels to proportions."""

import warnings
from typing import Any

import numpy as np
from scipy import sparse

from ._array import Array
from ._validation import check_sparse

__all__ = ["label_proportions"]

SUM_TOLERANCE = 0.02  # shares are rounded where they are printed: thirds of two digits sum to .99
EXACT_SUM = 1e-6  # a sum this close to one is not reported


def label_proportions(Y: Any, *, empty: str = "raise") -> Array:
    """Divide each row of an indicator or count matrix by its sum.

    Args:
        Y: non-negative numbers, shape (n, k), dense or SciPy sparse: 1 where a sample has a label,
            or how often it has it.
        empty: rows without any label have no proportions. ``"raise"`` names them in an error,
            ``"zero"`` leaves them zero and names them in a warning.

    Returns:
        Proportions in float64, or in float32 for a float32 Y. They are a dense array, CSR for a
        sparse Y, a pandas data frame for a data frame.

    Example:
        >>> import numpy as np
        >>> label_proportions(np.asarray([[1, 1, 0], [0, 3, 1]]))
        array([[0.5 , 0.5 , 0.  ],
               [0.  , 0.75, 0.25]])
        >>> label_proportions(np.asarray([[1, 1], [0, 0]]))
        Traceback (most recent call last):
        ...
        ValueError: 1 of 2 rows of Y has no label: row 1; drop such rows from X and Y, ...
    """
    if empty not in ("raise", "zero"):
        raise ValueError(f"empty must be 'raise' or 'zero', got {empty!r}")
    if hasattr(Y, "iloc"):
        proportions = label_proportions(Y.to_numpy(), empty=empty)
        return type(Y)(proportions, index=Y.index, columns=Y.columns)
    check_sparse(Y, "Y")
    is_sparse = sparse.issparse(Y)
    Y = sparse.csr_array(Y) if is_sparse else np.asarray(Y)
    if Y.ndim != 2:
        raise ValueError(f"Y must have shape (n, k), one column per label, got {Y.shape}")
    if Y.dtype.kind not in "fiub":
        raise TypeError(f"Y must hold numbers, got dtype {Y.dtype}")
    _check_counts(Y)
    with np.errstate(over="ignore"):
        # sparse arrays of float32 are summed in float32 whatever the dtype asked for
        totals = Y.astype(np.float64, copy=False).sum(axis=1)
    if not np.isfinite(totals).all():
        row = np.flatnonzero(~np.isfinite(totals))[0]
        raise ValueError(f"the sum of row {row} of Y overflows; divide the row by its maximum")
    _report_empty(np.flatnonzero(totals == 0), len(totals), empty)
    dtype = np.float32 if Y.dtype == np.float32 else np.float64
    divisor = np.where(totals == 0, 1.0, totals)
    if is_sparse:
        proportions = Y.astype(dtype)  # a copy, of the indices too
        proportions.data /= np.repeat(divisor, np.diff(Y.indptr))
        return proportions
    return (Y / divisor[:, None]).astype(dtype, copy=False)


def _check_counts(Y: Array) -> None:
    values = Y.data if sparse.issparse(Y) else Y
    valid = np.isfinite(values) & (values >= 0)
    if valid.all():
        return
    at = np.argwhere(~valid)[0]
    row = np.searchsorted(Y.indptr, at[0], side="right") - 1 if sparse.issparse(Y) else at[0]
    column = Y.indices[at[0]] if sparse.issparse(Y) else at[1]
    raise ValueError(
        f"Y must hold indicators or counts, finite and non-negative, got {values[tuple(at)]} in "
        f"row {row}, column {column}"
    )


def _report_empty(rows: Array, n_rows: int, empty: str) -> None:
    if rows.size == 0:
        return
    some = ", ".join(map(str, rows[:10])) + (", …" if rows.size > 10 else "")
    what = (
        f"{rows.size} of {n_rows} rows of Y "
        f"{'has' if rows.size == 1 else 'have'} no label: row{'s' * (rows.size > 1)} {some}"
    )
    if empty == "raise":
        raise ValueError(
            f"{what}; drop such rows from X and Y, keep = Y.sum(axis=1) > 0, or pass empty='zero'"
        )
    warnings.warn(f"{what}; their proportions are left zero", stacklevel=3)
