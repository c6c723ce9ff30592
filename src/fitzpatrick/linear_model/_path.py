"""Models of several penalties by one call, wherever the features are."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .._array import Array
from .._weights import check_weights
from ..losses import Loss, get_loss
from ._base import Data
from ._checks import check_features, check_grid, check_solver, check_total_weight
from ._problem import Coefficients, FittedModel, ModelCallback, Problem
from ._settings import FitSettings
from ._targets import check_numbers, check_proportions

CLEAR_RISE = 0.05  # above the least error so far
SMALL_RISE = 0.005  # above a least error that lies ...
MAX_WITHOUT_GAIN = 2  # ... so many penalties back
MIN_AFTER_FIRST = 3  # as many have to follow a least error that is the first one


def has_risen(errors: Sequence[float]) -> bool:
    """Whether held-out errors, from strong to weak penalties, have clearly turned upward.

    They have once the last one is 5 % above the least, or 0.5 % above a least that lies two
    penalties back: weaker penalties overfit more, and their fits take longest. On a plateau they
    have not, and not right at the start, where the errors of a few rows may rise before they fall.
    Meant for ``stop`` of :func:`fit_path`.

    Args:
        errors: in the order of the penalties so far, one or more, not negative.

    Example:
        >>> has_risen([0.4, 0.3, 0.31]), has_risen([0.4, 0.3, 0.32]), has_risen([0.3, 0.3, 0.3])
        (False, True, False)
    """
    best = int(np.argmin(errors))
    steps = len(errors) - 1 - best
    if steps < (1 if best > 0 else MIN_AFTER_FIRST):
        return False
    rise = SMALL_RISE if steps >= MAX_WITHOUT_GAIN else CLEAR_RISE
    return errors[-1] > (1 + rise) * errors[best]


@dataclass(frozen=True, eq=False)
class LinearPath:
    """The models of :func:`fit_path`, in the order of its alphas."""

    models: tuple[FittedModel, ...]

    @property
    def alphas(self) -> Array:
        """Shape (m,)."""
        return np.asarray([model.alpha for model in self.models])

    @property
    def coefs(self) -> Array:
        """Coefficients, shape (m, k, d)."""
        return np.stack([model.coef for model in self.models])

    @property
    def intercepts(self) -> Array:
        """Shape (m, k)."""
        return np.stack([model.intercept for model in self.models])


def fit_path(
    X: Any,
    Y: Any,
    loss: str | Loss,
    alphas: Sequence[float] | Array,
    *,
    tightness: float | None = None,
    fit_intercept: bool = True,
    standardize: bool = False,
    sample_weight: Any = None,
    solver: str = "auto",
    tol: float = 1e-8,
    max_iter: int = 1000,
    dtype: Any = None,
    n_threads: int | None = None,
    start: Coefficients | None = None,
    resumable: bool = False,
    callback: ModelCallback | None = None,
    stop: Callable[[FittedModel], bool] | None = None,
) -> LinearPath:
    r"""Minimize :math:`\sum_i w_i L(y_i, W x_i + b) + \tfrac{\alpha}{2}\|W\|^2` for each α in turn.

    Each fit starts where those before it suggest; paths from strong to weak penalties are fastest.

    Args:
        X: features (n, d), dense or sparse. Arrays of other libraries, such as PyTorch tensors on a
            GPU, stay where they are, and everything large is computed there.
        Y: targets (n, k) in the domain of the loss, dense or sparse, or integer labels (n,).
        loss: a name of :func:`fitzpatrick.loss_names`, or a loss object.
        alphas: strengths of the penalty, in the order in which they are fitted.
        tightness: replaces that of a Fitzpatrick loss; None is the loss's own.
        fit_intercept: whether to learn b.
        standardize: whether the model sees features of mean 0 and standard deviation 1.
        sample_weight: w, shape (n,).
        solver: as in :class:`ProportionRegressor`.
        tol: as in :class:`ProportionRegressor`.
        max_iter: as in :class:`ProportionRegressor`.
        dtype: precision of the products, float32 or float64; None is that of X.
        n_threads: threads for matrix products and rows; None leaves it to the libraries.
        start: coefficients (k, d) and intercepts (k,) to start the first fit from.
        resumable: whether each fit depends on the coefficients of the one before alone. A path that
            was interrupted can then be resumed from these by ``start``, bit for bit as if nothing
            had happened; it takes a few more iterations.
        callback: called with each model as soon as it is fitted.
        stop: asked about each model after that; the path ends with the first one for which it
            returns True. :func:`has_risen` is a rule for errors on held-out rows.

    Example:
        >>> from sklearn.datasets import load_iris
        >>> X, y = load_iris(return_X_y=True)
        >>> path = fit_path(X, y, "fitzpatrick_logistic", [10.0, 1.0], tightness=0.5)
        >>> path.coefs.shape, [model.status.converged for model in path.models]
        ((2, 3, 4), [True, True])
    """
    settings = FitSettings(
        get_loss(loss, tightness),
        fit_intercept=fit_intercept,
        standardize=standardize,
        solver=solver,
        tol=tol,
        max_iter=max_iter,
        n_threads=n_threads,
    )
    check_solver(solver, settings.loss)
    X = check_features(X, dtype)
    weights = check_weights(sample_weight, X)
    check_total_weight(weights)
    Y = check_numbers(Y)
    if Y.ndim == 2:
        Y = check_proportions(Y, settings.loss, X)
    n_classes = int(Y.max()) + 1 if Y.ndim == 1 else Y.shape[1]
    problem = Data(X, Y, n_classes, weights, binary=False).problem(settings)
    return path_until(problem, alphas, start, resumable=resumable, callback=callback, stop=stop)


def path_until(
    problem: Problem,
    alphas: Sequence[float],
    start: Coefficients | None,
    *,
    resumable: bool,
    callback: ModelCallback | None,
    stop: Callable[[FittedModel], bool] | None,
) -> LinearPath:
    """The path of :func:`fit_path`, on data that have been checked."""
    grid = check_grid(alphas, "alphas")
    models: list[FittedModel] = []

    def finish(model: FittedModel) -> None:
        models.append(model)
        if callback is not None:
            callback(model)

    def until_stopped() -> Iterator[float]:
        for alpha in grid:
            if stop is None or not models or not stop(models[-1]):
                yield alpha
            else:
                return

    problem.path(until_stopped(), start, finish, resumable=resumable)
    return LinearPath(tuple(models))
