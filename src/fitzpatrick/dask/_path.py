"""Models of several penalties by one call, on Dask."""

from collections.abc import Callable, Sequence
from typing import Any

from ..linear_model._checks import check_solver
from ..linear_model._path import LinearPath, path_until
from ..linear_model._problem import Coefficients, FittedModel, ModelCallback
from ..linear_model._settings import FitSettings
from ..linear_model._targets import warn_of_rounding
from ..losses import Loss, get_loss
from ._collections import read_inputs
from ._data import ChunkedData
from ._targets import NumberCheck, TargetColumns


def fit_path(
    X: Any,
    Y: Any,
    loss: str | Loss,
    alphas: Sequence[float],
    *,
    tightness: float | None = None,
    fit_intercept: bool = True,
    standardize: bool = False,
    sample_weight: Any = None,
    solver: str = "auto",
    tol: float = 1e-8,
    max_iter: int = 1000,
    n_threads: int | None = None,
    persist: bool = True,
    start: Coefficients | None = None,
    resumable: bool = False,
    callback: ModelCallback | None = None,
    stop: Callable[[FittedModel], bool] | None = None,
) -> LinearPath:
    r"""Minimize :math:`\sum_i w_i L(y_i, W x_i + b) + \tfrac{\alpha}{2}\|W\|^2` for each α in turn.

    This is :func:`fitzpatrick.linear_model.fit_path` on chunks of rows, with the same models.

    Args:
        X: features (n, d): a ``dask.array`` with chunks of whole rows, or a ``dask.dataframe``.
        Y: targets (n, k) in the domain of the loss, or integer labels (n,), with the chunks of X.
        loss: a name of :func:`fitzpatrick.loss_names`, or a loss object.
        alphas: strengths of the penalty, in the order in which they are fitted.
        tightness: replaces that of a Fitzpatrick loss; None is the loss's own.
        fit_intercept: whether to learn b.
        standardize: whether the model sees features of mean 0 and standard deviation 1.
        sample_weight: w, shape (n,), with the chunks of X.
        solver: as in :class:`ProportionRegressor`.
        tol: as in :class:`ProportionRegressor`.
        max_iter: as in :class:`ProportionRegressor`.
        n_threads: as in :class:`FitzpatrickClassifier`.
        persist: as in :class:`FitzpatrickClassifier`.
        start: coefficients (k, d) and intercepts (k,) to start the first fit from.
        resumable: whether each fit depends on the coefficients of the one before alone.
        callback: called with each model as soon as it is fitted.
        stop: asked about each model after that; the path ends with the first one for which it
            returns True.

    Example:
        >>> import dask.array as da
        >>> from sklearn.datasets import load_iris
        >>> X, y = load_iris(return_X_y=True)
        >>> X = da.from_array(X, chunks=(50, 4))
        >>> path = fit_path(X, y, "fitzpatrick_logistic", [10.0, 1.0], tightness=0.5)
        >>> path.coefs.shape
        (2, 3, 4)
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
    inputs = read_inputs(X, Y, sample_weight)
    data = ChunkedData.read(inputs, NumberCheck(), settings, persist=persist)
    found = data.summary.targets
    assert isinstance(found, TargetColumns)
    warn_of_rounding(found.rounding, stacklevel=3)
    data.n_classes = found.n_classes
    problem = data.problem(settings)
    return path_until(problem, alphas, start, resumable=resumable, callback=callback, stop=stop)
