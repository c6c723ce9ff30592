"""Models of several penalties: where each fit starts, its solver, and what to do if it stalls.

Where Newton steps stall at kinks on the way from zero to the minimum of a weak penalty, the minima
of stronger penalties lead there: each one starts near the next, and few kinks are in between.
"""

import math
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from .._array import Array, eps
from .._weights import check_weights
from ..losses import Loss, get_loss
from ._checks import (
    FitSettings,
    check_features,
    check_grid,
    check_parameters,
    check_targets,
    warn_of_rounding,
)
from ._objective import Objective, Point
from ._preconditioner import Preconditioner
from ._sums import Data, SampleSums, TrainingData
from ._threads import blas_threads, limited_blas
from ._vectors import norm
from .solvers import Report, Result, Status, Stopping, lbfgs, newton_cg

Coefficients = tuple[Array, Array]  # and intercepts

# Iterations without a smaller gradient norm or objective; at kinks the former goes up and down.
PATIENCE, PATIENCE_AT_KINKS = 20, 200
ALPHA_RATIO = 10.0  # of a penalty to the next on the way from strong to weak
WEAK_PENALTY = 1e-6  # relative to the strongest; from there on kinks are avoided

CLEAR_RISE = 0.05  # above the least error so far
SMALL_RISE = 0.005  # above a least error that lies MAX_WITHOUT_GAIN penalties back
MAX_WITHOUT_GAIN = 2
MIN_AFTER_FIRST = 3  # errors that have to follow if the first one is the least


@dataclass(frozen=True, eq=False)
class FittedModel:
    """The linear model of one penalty, and how the solver ended.

    Attributes:
        alpha: strength of the penalty.
        coef: W, shape (k, d), on the scale of X.
        intercept: b, shape (k,).
        objective: the objective at the end.
        gradient_norm: norm of its gradient there, in the parameters as the solver sees them.
        n_iter: iterations of the solver.
        status: how it ended; the value is a sentence.
    """

    alpha: float
    coef: Array
    intercept: Array
    objective: float
    gradient_norm: float
    n_iter: int
    status: Status


class PenaltyPath:
    """Fits of one loss to several alphas, one after the other.

    The next minimum is looked for in two ways: one step by M, which is good while the penalty
    dominates, and the line through the last two minima in log alpha, which is good where they run
    away to infinity. The one that came nearer the last time is taken.
    """

    def __init__(self, sums: SampleSums, settings: FitSettings) -> None:
        self.sums = sums
        self.settings = settings
        self._omega = settings.loss.regularizer
        self._use_newton = settings.solver != "lbfgs" and self._omega.has_curvature
        operations = 2.0 * sums.n_samples * sums.space.n_parameters * sums.n_scores
        self._n_threads = blas_threads(settings.n_threads, operations)
        # a change of the parameters counts by what it does to the scores
        self._lengths = sums.space.place(np.sqrt(sums.space.spectrum)[:, None])
        self._began = 0.0
        self._forget()
        with limited_blas(self._n_threads):
            self._zero = self.objective.evaluate(self.objective.zero())
        precision = eps(sums.space.like)
        self._stopping = Stopping(
            tol=settings.tol,
            reference=self._zero.gradient_norm,
            # of a sum over the samples of features times numbers of at most 1
            noise=precision * sums.total_weight * math.sqrt(float(sums.space.spectrum.sum())),
            max_iter=settings.max_iter,
            eps=precision,
            cancellation=sums.space.cancellation,
            patience=PATIENCE_AT_KINKS if self._omega.has_kinks else PATIENCE,
        )

    def _forget(self) -> None:
        """Begin without what has been learned of the curvature, and without minima."""
        preconditioner = Preconditioner(self.sums, has_kinks=self._omega.has_kinks)
        self.objective = Objective(self.sums, preconditioner, sees_kinks=self._omega.has_mean_slope)
        self._forget_minima()

    def _forget_minima(self) -> None:
        self._minima: list[Point] = []  # the last two
        self._candidates: list[Array] = []  # for the next
        self._best = 0  # the candidate that came nearer the last time

    def fit(self, alpha: float, start: Coefficients | None = None) -> FittedModel:
        """The model of one alpha, from zero or from given coefficients and intercepts."""
        return next(self.models([alpha], start))

    def models(
        self, alphas: Iterable[float], start: Coefficients | None = None, *, resumable: bool = False
    ) -> Iterator[FittedModel]:
        """The models of several alphas, each started where those before suggest.

        In a resumable path each fit knows the coefficients of the one before, and nothing else.
        """
        result = None
        for alpha in map(float, alphas):
            with limited_blas(self._n_threads):
                if result is None or resumable:
                    self._forget()
                    origin = self._origin(alpha, start)
                else:
                    origin = result.point
                result = self._minimize(alpha, origin)
            model = self._model(alpha, result)
            start = model.coef, model.intercept
            yield model

    def _origin(self, alpha: float, start: Coefficients | None) -> Point:
        """Zero, unless the given start is lower."""
        if start is None:
            return self._zero
        objective = replace(self.objective, alpha=alpha)
        given = objective.evaluate(self.sums.space.from_original(*start))
        return given if given.value < self._zero.value else self._zero  # which no penalty changes

    def _model(self, alpha: float, result: Result) -> FittedModel:
        point = result.point
        coef, intercept = self.sums.space.to_original(point.parameters)
        if self.sums.n_scores > 1 and self._omega.domain.has_labels:
            intercept = intercept - intercept.mean()  # any constant gives the same model
        return FittedModel(
            alpha, coef, intercept, point.value, point.gradient_norm, result.n_iter, result.status
        )

    def _minimize(self, alpha: float, origin: Point) -> Result:
        """The minimum at alpha, from zero or from the minimum at another alpha."""
        self._began = time.perf_counter()
        if not self._use_newton:
            return self._solve(lbfgs, alpha, origin)
        leads = origin is self._zero and alpha > 0 and self._omega.has_kinks
        # where curvature sees the kinks around, few penalties are so weak that leading is faster
        is_weak = alpha < WEAK_PENALTY * self._strongest
        avoids_kinks = leads and (is_weak or not self._omega.has_mean_slope)
        result = self._solve(newton_cg, alpha, origin, avoids_kinks=avoids_kinks)
        if result.status is Status.STALLED and leads:
            self._note("Newton steps stalled; stronger penalties lead to this one")
            result = self._by_stronger_penalties(alpha, result.n_iter)
        if result.status is Status.STALLED:
            self._note("Newton steps stalled; L-BFGS takes over")
            result = self._solve(lbfgs, alpha, result.point, result.n_iter)
            if result.status is Status.CONVERGED:
                result = replace(result, status=Status.SWITCHED)
        return result

    @property
    def _strongest(self) -> float:
        """A penalty like the largest curvature of the loss, which leaves little to learn."""
        return self.sums.total_weight * float(np.max(self.sums.space.spectrum))

    def _by_stronger_penalties(self, alpha: float, n_iter: int) -> Result:
        """Newton's method from zero, at alphas that fall to the one wanted."""
        steps = max(0, math.ceil(math.log(self._strongest / alpha, ALPHA_RATIO)))
        self._forget_minima()
        point = self._zero
        for step in range(steps, -1, -1):
            result = self._solve(newton_cg, alpha * ALPHA_RATIO**step, point, n_iter)
            if result.status is Status.STALLED and step > 0:
                result = self._solve(lbfgs, alpha * ALPHA_RATIO**step, result.point, result.n_iter)
            point, n_iter = result.point, result.n_iter
        return result

    def _solve(
        self,
        solver: Callable[[Objective, Point, Stopping, Report], Result],
        alpha: float,
        origin: Point,
        n_iter: int = 0,
        *,
        avoids_kinks: bool = False,
    ) -> Result:
        """Run one solver; ``n_iter`` iterations have been made before."""
        rest = max(0, self._stopping.max_iter - n_iter)
        stopping = replace(self._stopping, alpha=alpha, max_iter=rest, avoids_kinks=avoids_kinks)
        objective = replace(self.objective, alpha=alpha)
        settings = self.settings
        report = Report(alpha, self._began, n_iter, settings.callback, settings.verbose)
        result = solver(objective, self._start(objective, origin), stopping, report)
        self._learn(result.point)
        return replace(result, n_iter=n_iter + result.n_iter)

    def _note(self, sentence: str) -> None:
        if self.settings.verbose:
            print(sentence)

    def _start(self, objective: Objective, origin: Point) -> Point:
        """Where the minimum is expected, unless f is higher there than at the origin."""
        origin = objective.move(origin)
        expected = self._expected(objective, origin)
        if expected is None:
            return origin
        point = objective.evaluate(expected)
        return point if point.value < origin.value else origin

    def _expected(self, objective: Objective, origin: Point) -> Array | None:
        """Parameters of the next minimum by what came nearer the last time; None for the first."""
        if not self._minima or self._minima[-1].alpha == objective.alpha:
            return None
        self._candidates = [objective.predict(origin)]
        before, last = self._minima[0], self._minima[-1]
        if not 0 < objective.alpha < last.alpha < before.alpha:
            return self._candidates[0]
        part = math.log(objective.alpha / last.alpha) / math.log(last.alpha / before.alpha)
        self._candidates.append(last.parameters + part * (last.parameters - before.parameters))
        return self._candidates[self._best]

    def _learn(self, minimum: Point) -> None:
        """Keep a minimum, and see which way led nearer to it."""
        if self._minima and self._minima[-1].alpha == minimum.alpha:
            self._minima.pop()
        if len(self._candidates) > 1:
            changes = (found - minimum.parameters for found in self._candidates)
            self._best = int(np.argmin([norm(self._lengths * change) for change in changes]))
        self._minima = [*self._minima[-1:], minimum]


def has_risen(errors: Sequence[float]) -> bool:
    """True if held-out errors, from strong to weak penalties, have clearly turned upward.

    They have once the last one is 5 % above the least, or 0.5 % above a least that lies two
    penalties back: weaker penalties overfit more, and their fits take longest. On a plateau they
    have not, and not right at the start, where the errors of a few rows may rise before they fall.
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
    alphas: Sequence[float] | Array | Iterator[float],
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
    callback: Callable[[FittedModel], None] | None = None,
    stop: Callable[[FittedModel], bool] | None = None,
) -> LinearPath:
    r"""Minimize :math:`\sum_i w_i L(y_i, W x_i + b) + \tfrac{\alpha}{2}\|W\|^2` for each α in turn.

    Each fit starts where those before it suggest; paths from strong to weak penalties are fastest.

    Args:
        X: features (n, d), dense or sparse. Arrays of other libraries, such as PyTorch tensors on a
            GPU, stay where they are, and everything large is computed there.
        Y: targets (n, k) in the domain of the loss, dense or sparse, or integer labels (n,).
        loss: a name of :func:`fitzpatrick.loss_names`, or a loss object.
        alphas: strengths of the penalty, in the order in which they are fitted. An iterator is
            asked for the next one after ``callback`` has seen the model before.
        tightness: replaces the tightness of a Fitzpatrick loss; None keeps it.
        fit_intercept: True to learn b.
        standardize: True if the model sees features of mean 0 and standard deviation 1.
        sample_weight: w, shape (n,).
        solver: as in :class:`ProportionRegressor`.
        tol: as in :class:`ProportionRegressor`.
        max_iter: as in :class:`ProportionRegressor`.
        dtype: precision of the products, float32 or float64; None is the dtype of X.
        n_threads: threads for matrix products and rows; None leaves it to the libraries.
        start: coefficients (k, d) and intercepts (k,) to start the first fit from.
        resumable: True if each fit depends on the coefficients of the one before alone. A path that
            was interrupted can then be resumed from these by ``start``, bit for bit as if nothing
            had happened; it takes a few more iterations.
        callback: called with each model as soon as it is fitted.
        stop: asked about each model after that; the path ends with the first one for which it
            returns True.

    Example:
        >>> from sklearn.datasets import load_iris
        >>> X, y = load_iris(return_X_y=True)
        >>> path = fit_path(X, y, "fitzpatrick_logistic", [10.0, 1.0], tightness=0.5)
        >>> path.coefs.shape, [model.status.converged for model in path.models]
        ((2, 3, 4), [True, True])
    """
    settings = check_parameters(
        "fit_path",
        get_loss(loss, tightness),
        fit_intercept=fit_intercept,
        standardize=standardize,
        solver=solver,
        tol=tol,
        max_iter=max_iter,
        n_threads=n_threads,
    )
    X = check_features(X, dtype)
    weights = check_weights(sample_weight, X)
    Y, n_classes, rounding = check_targets(Y, settings.loss, X)
    warn_of_rounding(rounding)
    data = Data(X, Y, n_classes, weights, binary=False)
    return path_of(data, settings, alphas, start, resumable, callback, stop)


def path_of(
    data: TrainingData,
    settings: FitSettings,
    alphas: Sequence[float] | Array | Iterator[float],
    start: Coefficients | None = None,
    resumable: bool = False,
    callback: Callable[[FittedModel], None] | None = None,
    stop: Callable[[FittedModel], bool] | None = None,
) -> LinearPath:
    """The path of :func:`fit_path`, on data that have been checked."""
    if isinstance(alphas, Iterator):
        grid: Iterable[float] = (check_grid([alpha], "alphas")[0] for alpha in alphas)
    else:
        grid = check_grid(alphas, "alphas")
    models: list[FittedModel] = []
    path = PenaltyPath(data.sums(settings), settings)
    shape = path.sums.n_scores, len(path.sums.space.scaling[0])
    if start is not None and (given := [np.shape(part) for part in start]) != [shape, shape[:1]]:
        raise ValueError(
            f"start must hold coefficients of shape {shape} and intercepts of shape {shape[:1]}, "
            f"got {' and '.join(map(str, given))}"
        )
    for model in path.models(grid, start, resumable=resumable):
        models.append(model)
        if callback is not None:
            callback(model)
        if stop is not None and stop(model):
            break
    return LinearPath(tuple(models))
