"""Checks at the edge of the estimators: parameters, features, targets, weights."""

import inspect
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
from sklearn.utils._param_validation import Interval, StrOptions, validate_parameter_constraints
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import column_or_1d, validate_data

from .._array import Array, dtype_name, is_foreign, is_torch, namespace, to_numpy
from .._validation import check_sparse
from ..losses import Loss, get_loss
from ..preprocessing import EXACT_SUM, SUM_TOLERANCE, label_proportions
from ..sets._base import membership_tolerance
from ._vectors import entries

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
    """Checked parameters, with a loss that gives the solver something to work with."""

    loss: Loss

    def __post_init__(self) -> None:
        if self.solver == "newton-cg" and not self.loss.regularizer.has_curvature:
            raise ValueError(
                f"solver='newton-cg' needs curvature, and the Hessian of {self.loss!r} is zero; "
                "use solver='lbfgs' or 'auto'"
            )


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
    given = {field.name: getattr(estimator, field.name) for field in fields(FitParameters)}
    return FitSettings(get_loss(estimator.loss, tightness), **given)


def check_parameters(caller: str, loss: Loss, **given: Any) -> FitSettings:
    """The parameters of a function of that name."""
    for name in given.keys() - {field.name for field in fields(FitParameters)}:
        raise TypeError(f"{caller}() got an unexpected keyword argument {name!r}")
    rules = {name: rule for name, rule in CONSTRAINTS.items() if name in given}
    validate_parameter_constraints(rules, {name: given[name] for name in rules}, caller)
    return FitSettings(loss, **given)


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


def check_features(X: Any, dtype: Any = None, *, owner: Any = None, reset: bool = True) -> Array:
    """X as a C-ordered float array, or as CSR or CSC with sorted entries, one per place.

    By default floats keep their dtype, and other numbers become float64. An owner is an estimator,
    which remembers the number and the names of its features; without ``reset`` X is compared with
    these. Arrays of other libraries stay where they are, with an owner if scikit-learn's
    ``array_api_dispatch`` is on. Lazy ones (JAX, Dask) become NumPy arrays, unless they have one.
    """
    if dtype is not None and np.dtype(dtype).name not in ("float32", "float64"):
        raise ValueError(f"dtype must be float32 or float64, got {np.dtype(dtype).name}")
    X = X.detach() if is_torch(X) else X
    check_sparse(X, "X")
    form = {"accept_sparse": ("csr", "csc"), "order": "C", "ensure_all_finite": False}
    if owner is not None:
        xp, _ = get_namespace(X)
        X = validate_data(owner, X, reset=reset, dtype=(xp.float64, xp.float32), **form)
        if is_foreign(X) and array_api_compat.is_lazy_array(X):
            raise TypeError(
                f"X is a {type(X).__module__}.{type(X).__name__}, and the solvers need arrays with "
                "values that can be changed in place; use np.asarray(X), or arrays of PyTorch or "
                "CuPy"
            )
    elif is_foreign(X) and not array_api_compat.is_lazy_array(X):
        # as scikit-learn does if its configuration allows it
        xp = namespace(X)
        if X.ndim != 2:
            raise ValueError(f"Expected 2D array, got an array of shape {tuple(X.shape)} instead")
        if dtype is not None or dtype_name(X) not in ("float32", "float64"):
            X = xp.astype(X, getattr(xp, np.dtype(dtype or np.float64).name), copy=False)
    else:
        dtype = (np.float64, np.float32) if dtype is None else dtype
        X = to_numpy(X) if is_foreign(X) else X
        X = check_array(X, input_name="X", dtype=dtype, **form)
    if sparse.issparse(X) and not X.has_canonical_format:
        X = X.copy()  # which may be the user's
        X.sum_duplicates()
    check_finite(X, "X", "drop the row or fill the gap")
    numbers = entries(X)
    if reset and (size := math.prod(numbers.shape)):
        xp = namespace(numbers)
        check_largest(max(-float(xp.min(numbers)), float(xp.max(numbers))), size, numbers)
    return X


def check_same_place(X: Array, coef: Array, method: str) -> None:
    """Raise unless features to predict from are of the library and on the device of the fit."""
    places = [(type(array), array_api_compat.device(array)) for array in (X, coef)]
    if places[0] != places[1]:
        given, fitted = (f"{kind.__module__}.{kind.__name__} on {at}" for kind, at in places)
        raise ValueError(
            f"X of {method} must use the same namespace and the same device as X of fit(): it is "
            f"{given}, and the model was fitted to {fitted}; convert X, or fit again"
        )


def check_largest_weight(largest: float, n_samples: int) -> None:
    """Raise if sums of squares of weighted gradients could overflow."""
    if largest > MAX_TOTAL_WEIGHT / n_samples:
        raise ValueError(
            f"a sample has the weight {largest:.3g}, and sums of squares overflow; divide the "
            "weights of all samples and alpha by the same number, which leaves the coefficients as "
            "they are"
        )


def check_largest(largest: float, size: int, like: Array) -> None:
    """Raise if sums of ``size`` squares of entries up to ``largest`` would overflow."""
    if largest > math.sqrt(namespace(like).finfo(like.dtype).max / max(size, 1)):
        raise ValueError(
            f"X holds an entry of size {largest:.3g}, and sums of squares overflow {like.dtype}; "
            "rescale the features, for instance with sklearn.preprocessing.MaxAbsScaler()"
        )


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


def check_targets(y: Any, loss: Loss, X: Array) -> tuple[Array, int, float]:
    """Labels (n,) or targets (n, k), k, and the rounding that :func:`exact_proportions` returns."""
    y = check_numbers(y)
    if y.ndim == 2:
        y, rounding = exact_proportions(y, loss, X)
        return y, int(y.shape[1]), rounding
    y = label_column(y, X)
    if y.dtype.kind not in "iu":
        raise ValueError(
            f"y of shape {y.shape} must hold classes, integers from 0 on, got {y.dtype}; targets "
            "have shape (n, k), and a column of them y[:, None]"
        )
    if y.min() < 0:
        row = int(np.argmax(y < 0))
        raise ValueError(f"label {y[row]} in row {row} is out of range: classes count from 0 on")
    return y, int(y.max()) + 1, 0.0


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

    Binding them to the loss checks that they are in its domain.
    """
    y, rounding = exact_proportions(y, loss, X)
    warn_of_rounding(rounding)
    return y


def exact_proportions(y: Any, loss: Loss, X: Array) -> tuple[Array, float]:
    """Targets as :func:`check_proportions` returns them, and the largest rounding of a sum."""
    y = check_numbers(y)
    check_consistent_length(X, y)
    on_simplex = loss.regularizer.domain.has_labels
    if y.ndim == 1 and on_simplex:
        raise ValueError(
            f"y must have shape (n, k) with proportions in each row, got shape {y.shape}; for "
            "class labels use FitzpatrickClassifier or BoostedClassifier, for one share per sample "
            "loss='sigmoid'"
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
        form = {"accept_sparse": "csr", "ensure_2d": False, "ensure_all_finite": False}
        y = check_array(y, dtype="numeric", input_name="y", **form)
    except ValueError as error:
        numbers = (y.data if sparse.issparse(y) else np.asarray(y, dtype=object)).ravel()
        words = [str(entry) for entry in numbers if isinstance(entry, str)]
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
    xp = namespace(entries(array))
    if bool(xp.all(xp.isfinite(entries(array)))):
        return
    array = to_numpy(array) if is_foreign(array) else array
    found = sparse.coo_array(array if array.ndim == 2 else array[:, None])
    at = int(np.flatnonzero(~np.isfinite(found.data))[0])
    value = "NaN" if np.isnan(found.data[at]) else "infinity"
    raise ValueError(
        f"Input {name} contains {value} in row {found.row[at]}, column {found.col[at]}; {remedy}"
    )


def warn_of_rounding(rounding: float) -> None:
    """Say that rows were divided by their sums, and by how much these differed from one."""
    if rounding > 0:
        warn(
            f"rows of y differ from a sum of one by up to {rounding:.2g}, and each is divided by "
            f"its sum; {NORMALIZE}, without this warning"
        )


def warn(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn at the line that called this package."""
    package = __name__.partition(".")[0]
    frame, level = inspect.currentframe(), 1
    while frame and frame.f_globals.get("__name__", "").partition(".")[0] == package:
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)


def _sum_to_one(y: Array, loss: Loss) -> tuple[Array, float]:
    """Proportions in float64, divided by their sums where these are one up to rounding.

    Along an intercept for all classes the objective is flat only if they sum to one. What rounding
    to their own dtype did is undone in silence; what rounding to a few printed digits did is
    returned. Rows that are negative or zero are left for the loss to name.
    """
    numbers = entries(y)
    exact = y.astype(np.float64, copy=False)
    totals = exact.sum(axis=1)
    off = np.abs(totals - 1)
    if off.max() == 0 or (numbers < 0).any():
        return exact, 0.0
    slack = membership_tolerance(numbers if y.dtype.kind == "f" else np.empty(0))
    if off.max() > max(slack, SUM_TOLERANCE):
        if not totals.all() and off[totals != 0].max(initial=0) <= slack:
            return exact, 0.0
        row = int(np.argmax(off > SUM_TOLERANCE))
        problem = f"in row {row} it sums to {totals[row]:.10g}, not 1; {NORMALIZE}"
        if np.isin(numbers, (0, 1)).all():
            problem = (
                f"it holds 0/1 indicators, {totals[row]:g} of them in row {row}, not proportions; "
                f"{NORMALIZE}; for each label by itself use loss='sigmoid'"
            )
        raise ValueError(f"y is not in the domain {loss.regularizer.domain!r}: {problem}")
    rounding = float(off.max()) if off.max() > max(slack, EXACT_SUM) else 0.0
    return label_proportions(exact), rounding
