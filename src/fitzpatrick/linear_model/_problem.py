"""One fit, or a path of fits from strong to weak penalties, on inputs that have been checked."""

import functools
import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from .._array import Array, eps
from ._continuation import Continuation
from ._objective import Objective, Point
from ._rows import Rows
from ._settings import FitSettings
from ._threads import blas_threads, limited_blas
from .solvers import Result, Status, Stopping

# Iterations without a smaller gradient norm or objective; at kinks the former goes up and down.
PATIENCE, PATIENCE_AT_KINKS = 20, 200

Coefficients = tuple[Array, Array]  # and intercepts


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


ModelCallback = Callable[[FittedModel], None]


@dataclass(frozen=True, eq=False)
class Problem:
    """Everything but alpha: the samples, wherever they are, and settings."""

    rows: Rows
    settings: FitSettings

    def fit(self, alpha: float, start: Coefficients | None = None) -> FittedModel:
        """The model of one alpha, from zero or from given coefficients and intercepts."""
        return self.path([alpha], start)[0]

    def path(
        self,
        alphas: Iterable[float],
        start: Coefficients | None = None,
        callback: ModelCallback | None = None,
        *,
        resumable: bool = False,
    ) -> list[FittedModel]:
        """The models of several alphas, each started where those before suggest.

        In a resumable path each fit knows the coefficients of the one before, and nothing else.
        """
        rows = self.rows
        operations = 2.0 * rows.n_samples * rows.space.n_parameters * rows.n_scores
        models: list[FittedModel] = []
        with limited_blas(blas_threads(self.settings.n_threads, operations)):
            for alpha in map(float, alphas):
                if resumable or not models:
                    continuation = Continuation(
                        self.objective.afresh(), self.stopping, self.settings
                    )
                    origin, from_zero = self._origin(alpha, start)
                result = continuation.minimize(alpha, origin, from_zero=from_zero)
                origin, from_zero = result.point, False
                models.append(self._model(alpha, result))
                start = models[-1].coef, models[-1].intercept
                if callback is not None:
                    callback(models[-1])
        return models

    def _origin(self, alpha: float, start: Coefficients | None) -> tuple[Point, bool]:
        """Where to begin, and whether that is zero: so unless the given start is lower."""
        zero = self.at_zero
        if start is None:
            return zero, True
        given = self.objective.evaluate(self.rows.space.from_original(*start))
        objective = self.objective.with_alpha(alpha)
        if objective.move(given).value < objective.move(zero).value:
            return given, False
        return zero, True

    @functools.cached_property
    def objective(self) -> Objective:
        """The objective without a penalty."""
        omega = self.settings.loss.regularizer
        return Objective(self.rows, 0.0, has_kinks=omega.has_kinks, sees_kinks=omega.has_mean_slope)

    @functools.cached_property
    def at_zero(self) -> Point:
        """The objective at zero parameters, the same for every alpha."""
        return self.objective.evaluate(self.objective.zero())

    @functools.cached_property
    def stopping(self) -> Stopping:
        """When a fit may end."""
        rows, precision = self.rows, eps(self.rows.space.like)
        return Stopping(
            tol=self.settings.tol,
            reference=self.at_zero.gradient_norm,
            # of a sum over the samples of features times numbers of at most 1
            noise=precision * rows.total_weight * math.sqrt(float(rows.space.spectrum.sum())),
            max_iter=self.settings.max_iter,
            eps=precision,
            cancellation=rows.space.cancellation,
            patience=PATIENCE_AT_KINKS if self.objective.has_kinks else PATIENCE,
        )

    def _model(self, alpha: float, result: Result) -> FittedModel:
        coef, intercept = self.rows.space.to_original(result.point.parameters)
        if self.rows.n_scores > 1 and self.settings.loss.regularizer.domain.has_labels:
            intercept = intercept - intercept.mean()  # any constant gives the same model
        point = result.point
        return FittedModel(
            alpha, coef, intercept, point.value, point.gradient_norm, result.n_iter, result.status
        )
