"""Checks at the edge of the estimators: parameters, features, targets, weights."""

import math
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import KW_ONLY, dataclass, fields
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any

import array_api_compat
import numpy as np
from scipy import sparse
from sklearn.utils import assert_all_finite, check_array, check_consistent_length
from sklearn.utils._array_api import get_namespace
from sklearn.utils._param_validation import (
    Interval,
    StrOptions,
    validate_parameter_constraints,
)
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import column_or_1d, validate_data

from .._array import Array, dtype_name, is_foreign, is_torch, namespace, to_numpy
from .._validation import check_sparse
from ..losses import Loss, get_loss
from ..preprocessing import EXACT_SUM, SUM_TOLERANCE
from ..sets._base import membership_tolerance

if TYPE_CHECKING:
    from .solvers import IterationCallback

MAX_GRID_SIZE = 1000
NORMALIZE = "label_proportions(y) of fitzpatrick.preprocessing divides each row by its sum"
MAX_TOTAL_WEIGHT = 1e100  # sums of squares of gradients stay far from overflow

# What scikit-learn checks by itself, parameter by parameter; each estimator has some of them.
CONSTRAINTS: dict[str, list[Any]] = {
    "alpha": [Interval(Real, 0, None, closed="left")],
    "tightness": [Interval(Real, 0, None, closed="left"), None],
    "fit_intercept": ["boolean"],
    "standardize": ["boolean"],
    "class_weight": [dict, StrOptions({"balanced"}), None],
    "solver": [StrOptions({"auto", "newton-cg", "lbfgs"})],
    "tol": [Interval(Real, 0, None, closed="neither")],
    "max_iter": [Interval(Integral, 1, None, closed="left")],
    "warm_start": ["boolean"],
    "verbose": [Interval(Integral, 0, None, closed="left")],
    "n_threads": [Interval(Integral, 1, None, closed="left"), None],
    "n_jobs": [Integral, None],
    "refine": [Interval(Integral, 0, None, closed="left")],
    "callback": [callable, None],
}


@dataclass(eq=False, repr=False)
class FitParameters:
    """The parameters that all estimators share, apart from the loss."""

    _: KW_ONLY
    fit_intercept: bool = True
    standardize: bool = False
    solver: str = "auto"
    tol: float = 1e-8
    max_iter: int = 1000
    verbose: int = 0
    n_threads: int | None = None
    callback: "IterationCallback | None" = None


@dataclass(eq=False, repr=False)
class FitSettings(FitParameters):
    """Checked parameters, with the loss."""

    loss: Loss


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
    return _with_curvature(FitSettings(**{**given, "loss": get_loss(estimator.loss, tightness)}))


def check_parameters(caller: str, **given: Any) -> FitSettings:
    """The parameters of a function of that name."""
    rules = {name: rule for name, rule in CONSTRAINTS.items() if name in given}
    validate_parameter_constraints(rules, {name: given[name] for name in rules}, caller)
    return _with_curvature(FitSettings(**given))


def _with_curvature(settings: FitSettings) -> FitSettings:
    """Settings whose loss gives the solver something to work with."""
    if settings.solver == "newton-cg" and not settings.loss.regularizer.has_curvature:
        raise ValueError(
            f"solver='newton-cg' needs curvature, and the Hessian of {settings.loss!r} is zero; "
            "use solver='lbfgs' or 'auto'"
        )
    return settings


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
        check_sparse(X, "X")
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
    """X of an estimator, which remembers the number and the names of its features.

    Arrays of other libraries stay what they are if scikit-learn's ``array_api_dispatch`` is on.
    """
    X = X.detach() if is_torch(X) else X
    check_sparse(X, "X")
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
    """Raise where sums of squares could overflow, from the largest of the weights."""
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
    """Targets as :func:`check_proportions` returns them, and the largest rounding of a sum."""
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
    check_sparse(y, "y")
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
