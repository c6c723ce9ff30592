"""Checks at the edge of the estimators: parameters, features, weights."""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import fields
from numbers import Integral, Real
from typing import Any

import array_api_compat
import numpy as np
from scipy import sparse
from sklearn.utils import check_array
from sklearn.utils._array_api import get_namespace
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import validate_data

from .._array import Array, dtype_name, is_foreign, is_torch, namespace
from ..losses import Loss, get_loss
from ._continuation import SOLVERS
from ._settings import FitSettings

MAX_GRID_SIZE = 1000
MAX_TOTAL_WEIGHT = 1e100  # sums of squares of gradients stay far from overflow

# What scikit-learn checks by itself, parameter by parameter; each estimator has some of them.
CONSTRAINTS: dict[str, list[Any]] = {
    "alpha": [Interval(Real, 0, None, closed="left")],
    "tightness": [Interval(Real, 0, None, closed="left"), None],
    "fit_intercept": ["boolean"],
    "standardize": ["boolean"],
    "class_weight": [dict, StrOptions({"balanced"}), None],
    "solver": [StrOptions({"auto", *SOLVERS})],
    "tol": [Interval(Real, 0, None, closed="neither")],
    "max_iter": [Interval(Integral, 1, None, closed="left")],
    "warm_start": ["boolean"],
    "verbose": [Interval(Integral, 0, None, closed="left")],
    "n_threads": [Interval(Integral, 1, None, closed="left"), None],
    "n_jobs": [Integral, None],
    "callback": [callable, None],
}


@contextmanager
def unchanged_on_failure(estimator: Any) -> Iterator[None]:
    """Put the attributes back as they were if the block raises, an interrupt included."""
    before = dict(vars(estimator))
    try:
        yield
    except BaseException:
        vars(estimator).clear()
        vars(estimator).update(before)
        raise


def check_settings(estimator: Any, tightness: float | None = None) -> FitSettings:
    """The parameters that all estimators share."""
    estimator._validate_params()
    given = {field.name: getattr(estimator, field.name) for field in fields(FitSettings)}
    settings = FitSettings(**{**given, "loss": get_loss(estimator.loss, tightness)})
    check_solver(settings.solver, settings.loss)
    return settings


def check_solver(solver: str, loss: Loss) -> None:
    """Raise for a solver that there is not, or that the loss gives nothing to work with."""
    if solver not in ("auto", *SOLVERS):
        raise ValueError(
            f"solver must be 'auto', {' or '.join(map(repr, SOLVERS))}, got {solver!r}"
        )
    if solver == "newton-cg" and not loss.regularizer.has_curvature:
        raise ValueError(
            f"solver='newton-cg' needs curvature, and the Hessian of {loss!r} is zero; use "
            "solver='lbfgs' or 'auto'"
        )


def check_grid(values: Any, name: str) -> Array:
    """Different numbers of at least 0, in the order given."""
    grid = np.asarray(values)
    if grid.ndim != 1 or grid.size == 0 or grid.dtype.kind not in "fiu":
        raise ValueError(
            f"{name} must be a sequence of numbers such as [0.1, 1.0, 10.0], got {values!r}"
        )
    if len(grid) > MAX_GRID_SIZE:
        raise ValueError(
            f"{name} holds {len(grid)} values and at most {MAX_GRID_SIZE} are allowed: one model "
            "is fitted per value and fold; np.logspace(-4, 4, 9) covers eight orders of magnitude"
        )
    grid = grid.astype(np.float64)
    valid = np.isfinite(grid) & (grid >= 0)
    if not valid.all():
        at = int(valid.argmin())
        raise ValueError(f"{name}[{at}] must be a finite number of at least 0, got {grid[at]:g}")
    if len(np.unique(grid)) < len(grid):
        raise ValueError(f"{name} must differ from each other, got {grid.tolist()}")
    return grid


def check_features(X: Any, dtype: Any = None) -> Array:
    """X as a C-ordered float array, or as CSR or CSC with sorted entries, one per place.

    Arrays of other libraries stay where they are, but for lazy ones (JAX, Dask): those become
    NumPy arrays.

    Args:
        X: features (n, d).
        dtype: float32 or float64; by default that of X, and float64 for other numbers.
    """
    if is_foreign(X) and array_api_compat.is_lazy_array(X):
        X = np.asarray(X)
    if is_foreign(X):
        X = _check_foreign(X, dtype)
    else:
        dtypes = (np.float64, np.float32) if dtype is None else dtype
        X = check_array(X, input_name="X", accept_sparse=("csr", "csc"), dtype=dtypes, order="C")
        X = merge_duplicates(X)
    check_squares(X)
    return X


def _check_foreign(X: Array, dtype: Any) -> Array:
    """The checks of scikit-learn for an array of another library, whatever its configuration."""
    X = X.detach() if is_torch(X) else X
    xp = namespace(X)
    if X.ndim != 2:
        raise ValueError(f"Expected 2D array, got an array of shape {tuple(X.shape)} instead")
    if dtype is None:
        dtype = X.dtype if dtype_name(X) in ("float32", "float64") else xp.float64
    else:
        dtype = getattr(xp, np.dtype(dtype).name)
    X = xp.astype(X, dtype, copy=False)
    if not bool(xp.all(xp.isfinite(X))):
        raise ValueError("Input X contains NaN or infinity")
    return X


def check_own_features(estimator: Any, X: Any, *, reset: bool) -> Array:
    """The same for an estimator, which remembers the number and the names of its features.

    Arrays of other libraries stay what they are if scikit-learn's ``array_api_dispatch`` is on.
    """
    X = X.detach() if is_torch(X) else X
    xp, _ = get_namespace(X)
    X = validate_data(
        estimator,
        X,
        reset=reset,
        accept_sparse=("csr", "csc"),
        dtype=(xp.float64, xp.float32),
        order="C",
    )
    if is_foreign(X):
        _check_eager(X)
    X = merge_duplicates(X)
    if reset:
        check_squares(X)
    return X


def check_same_place(X: Array, coef: Array, method: str) -> None:
    """Raise unless features to predict from are of the library and on the device of the fit."""
    places = [(type(array), array_api_compat.device(array)) for array in (X, coef)]
    if places[0] != places[1]:
        given, fitted = (f"{kind.__module__}.{kind.__name__} on {at}" for kind, at in places)
        raise ValueError(
            f"X of {method} must use the same namespace and the same device as that of fit(): it "
            f"is {given}, and the model was fitted to {fitted}; convert X, or fit again"
        )


def _check_eager(X: Array) -> None:
    """Raise for arrays that are computed later, as JAX's may be, or cannot be changed in place."""
    if array_api_compat.is_lazy_array(X):
        raise TypeError(
            f"X is a {type(X).__module__}.{type(X).__name__}, and the solvers need arrays with "
            "values that can be changed in place; use np.asarray(X), or arrays of PyTorch or CuPy"
        )


def check_total_weight(weights: Array | None) -> None:
    """Raise where sums of squares of weighted gradients could overflow."""
    if weights is None:
        return
    check_largest_weight(float(weights.max()), len(weights))


def check_largest_weight(largest: float, n_samples: int) -> None:
    """The same, from the largest of the weights."""
    if largest > MAX_TOTAL_WEIGHT / n_samples:
        raise ValueError(
            f"a sample has the weight {largest:.3g}, and sums of squares overflow; divide the "
            "weights of all samples and alpha by the same number, which leaves the coefficients as "
            "they are"
        )


def merge_duplicates(X: Array) -> Array:
    """Sparse features with one entry per place, sorted; others as they are."""
    if sparse.issparse(X) and not X.has_canonical_format:
        X = X.copy()  # which may be the user's
        X.sum_duplicates()
    return X


def check_squares(X: Array) -> None:
    """Raise where sums of squares of features would overflow."""
    entries = X.data if sparse.issparse(X) else X
    check_largest(largest_entry(X), math.prod(entries.shape), entries)


def largest_entry(X: Array) -> float:
    """The largest absolute value."""
    entries = X.data if sparse.issparse(X) else X
    xp = namespace(entries)
    size = math.prod(entries.shape)
    return max(-float(xp.min(entries)), float(xp.max(entries))) if size else 0.0


def check_largest(largest: float, size: int, like: Array) -> None:
    """Raise where sums of so many squares of entries up to ``largest`` would overflow."""
    if largest > math.sqrt(namespace(like).finfo(like.dtype).max / max(size, 1)):
        raise ValueError(
            f"X holds an entry of size {largest:.3g}, and sums of squares overflow {like.dtype}; "
            "rescale the features, for instance with sklearn.preprocessing.MaxAbsScaler()"
        )
