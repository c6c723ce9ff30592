"""Checks at the edge of the estimators: parameters, features, targets, weights."""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from numbers import Integral, Real
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils.validation import _check_sample_weight, validate_data

from .._array import Array
from ..losses import Loss, get_loss
from ..sets import Simplex
from ._design import constant_columns
from ._fitting import SOLVERS, Settings

MAX_ALPHAS = 1000


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


def check_settings(estimator: Any) -> Settings:
    """The parameters that all estimators share."""
    loss = get_loss(estimator.loss)
    settings = Settings(
        loss=loss,
        fit_intercept=bool(estimator.fit_intercept),
        standardize=bool(estimator.standardize),
        solver=estimator.solver,
        tol=_positive("tol", estimator.tol),
        max_iter=_integer("max_iter", estimator.max_iter, least=1),
        verbose=_integer("verbose", estimator.verbose, least=0),
        n_threads=(
            None
            if estimator.n_threads is None
            else _integer("n_threads", estimator.n_threads, least=1)
        ),
    )
    names = ["auto", *SOLVERS]
    if settings.solver not in names:
        raise ValueError(f"unknown solver {settings.solver!r}; the names are {', '.join(names)}")
    if settings.solver == "newton-cg" and not settings.has_curvature:
        raise ValueError(
            f"solver='newton-cg' needs curvature, and the Hessian of the loss {estimator.loss!r} "
            "is zero; use solver='lbfgs' or 'auto'"
        )
    return settings


def _positive(name: str, value: Any) -> float:
    if not _is_real(value) or not 0 < value < math.inf:
        raise ValueError(f"{name} must be a positive number, got {value!r}")
    return float(value)


def _integer(name: str, value: Any, *, least: int) -> int:
    if not isinstance(value, Integral) or value < least:
        raise ValueError(f"{name} must be an integer of at least {least}, got {value!r}")
    return int(value)


def _is_real(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool)


def check_alpha(alpha: Any, name: str = "alpha") -> float:
    """One strength of the penalty."""
    if not _is_real(alpha):
        raise ValueError(
            f"{name} must be one number, got {alpha!r}; to choose among several, use the "
            "estimator whose name ends in CV"
        )
    if not 0 <= alpha < math.inf:
        raise ValueError(f"{name} must be a finite number of at least 0, got {alpha!r}")
    return float(alpha)


def check_alphas(alphas: Any) -> Array:
    """A grid of penalties, in the order given."""
    if isinstance(alphas, (Real, str)) or np.ndim(alphas) != 1 or len(alphas) == 0:
        raise ValueError(
            f"alphas must be a sequence of numbers such as [0.1, 1.0, 10.0], got {alphas!r}"
        )
    if len(alphas) > MAX_ALPHAS:
        raise ValueError(
            f"alphas holds {len(alphas)} values and at most {MAX_ALPHAS} are allowed: one model is "
            "fitted per value and fold; np.logspace(-4, 4, 9) covers eight orders of magnitude"
        )
    grid = np.asarray([check_alpha(alpha, f"alphas[{i}]") for i, alpha in enumerate(alphas)])
    if len(np.unique(grid)) < len(grid):
        raise ValueError(f"alphas must differ from each other, got {grid.tolist()}")
    return grid


def check_features(estimator: Any, X: Any, *, reset: bool) -> Array:
    """X as a C-ordered float array, or as CSR or CSC."""
    return validate_data(
        estimator,
        X,
        reset=reset,
        accept_sparse=("csr", "csc"),
        dtype=(np.float64, np.float32),
        order="C",
    )


def check_weights(sample_weight: Any, X: Array) -> Array | None:
    """Weights of the rows in float64, None for ones."""
    if sample_weight is None:
        return None
    weights = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
    if not weights.any():
        raise ValueError(
            "sample_weight is zero for all samples; give at least one a positive weight"
        )
    return weights


def check_not_constant(X: Array, weights: Array | None) -> None:
    """Raise for columns that ``standardize`` cannot scale."""
    columns = constant_columns(X, weights)
    if columns.size:
        some = ", ".join(map(str, columns[:5])) + (", …" if columns.size > 5 else "")
        raise ValueError(
            f"standardize=True divides by standard deviations, and {columns.size} of the "
            f"{X.shape[1]} columns of X are constant (columns {some}); drop them, for instance "
            "with sklearn.feature_selection.VarianceThreshold(), or set standardize=False"
        )


def check_proportions(y: Any, loss: Loss, n_samples: int) -> Array:
    """Targets (n, k) in the domain of the loss, dense or CSR; the loss's own check follows."""
    if y is None:
        raise ValueError("requires y to be passed, but the target y is None")
    y = sparse.csr_array(y) if sparse.issparse(y) else np.asarray(y)
    if y.dtype.kind not in "fiub":
        y = np.asarray(y, dtype=np.float64)
    if y.ndim not in (1, 2):
        raise ValueError(f"y must have shape (n, k), got {y.shape}")
    if y.shape[0] != n_samples:
        raise ValueError(
            "Found input variables with inconsistent numbers of samples: "
            f"X has {n_samples} rows and y has {y.shape[0]}"
        )
    check_finite(y)
    if y.ndim == 1 and isinstance(loss.regularizer.domain, Simplex):
        raise ValueError(
            f"y must have shape (n, k) with proportions in each row, got shape {y.shape}; for "
            "class labels use FitzpatrickClassifier"
        )
    return y


def check_finite(y: Array) -> None:
    """Raise with the place of the first NaN or infinity."""
    values = y.tocoo().data if sparse.issparse(y) else y
    finite = np.isfinite(values)
    if finite.all():
        return
    at = np.argwhere(~finite)[0]
    value = values[tuple(at)]
    if sparse.issparse(y):
        coo = y.tocoo()
        at = np.asarray([coo.row[at[0]], coo.col[at[0]]])
    what = "NaN" if np.isnan(value) else "infinity"
    where = f"row {at[0]}" + (f", column {at[1]}" if at.size > 1 else "")
    raise ValueError(f"Input y contains {what} in {where}; drop the row or give it a target")
