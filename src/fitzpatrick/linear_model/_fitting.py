"""One fit, or a path of fits from strong to weak penalties, on inputs that have been checked."""

import functools
import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

import numpy as np

from .._array import Array
from ..losses import Loss
from ..regularizers import Bernoulli, Indicator, Negentropy
from ..sets import Reals, Simplex
from ._design import Design, make_design
from ._objective import Objective
from ._rows import Rows
from ._threads import blas_threads, limited_blas
from .solvers import Report, Result, Stopping, lbfgs, newton_cg

SOLVERS = {"newton-cg": newton_cg, "lbfgs": lbfgs}


@dataclass(frozen=True)
class Settings:
    """What the estimators' parameters of the same names ask for."""

    loss: Loss
    fit_intercept: bool
    standardize: bool
    solver: str
    tol: float
    max_iter: int
    verbose: int
    n_threads: int | None

    @property
    def has_curvature(self) -> bool:
        """Whether Newton steps make sense: not for the perceptron."""
        return not isinstance(self.loss.regularizer, Indicator)

    @property
    def has_kinks(self) -> bool:
        """Whether the Hessian may jump: not where the link is smooth, or linear."""
        return not isinstance(self.loss.regularizer, (Negentropy, Bernoulli)) and not isinstance(
            self.loss.regularizer.domain, Reals
        )


@dataclass(frozen=True, eq=False)
class Fitted:
    """Coefficients (k, d) and intercepts (k,) on the scale of X, and how the solver ended."""

    coef: Array
    intercept: Array
    result: Result


@dataclass(frozen=True, eq=False)
class Problem:
    """Everything but alpha: rows of positive weight, their targets, and the settings.

    ``place`` may take the design elsewhere, such as to another device, where the rows are as well.
    """

    X: Array
    rows: Rows
    n_scores: int
    weights: Array | None
    settings: Settings
    place: Callable[[Design], Design] = lambda design: design

    def fit(self, alpha: float, start: tuple[Array, Array] | None = None) -> Fitted:
        """The model of one alpha, from zero or from given coefficients and intercepts."""
        return self.path([alpha], start)[0]

    def path(
        self, alphas: Iterable[float], start: tuple[Array, Array] | None = None
    ) -> list[Fitted]:
        """The models of several alphas, each started at the one before."""
        design = self.design
        operations = 2.0 * self.X.shape[0] * design.n_parameters * self.n_scores
        with limited_blas(blas_threads(self.settings.n_threads, operations)):
            objective, stopping = self.objective, self.stopping
            parameters = objective.zero() if start is None else design.from_original(*start)
            results: list[tuple[float, Result]] = []
            for alpha in alphas:
                result = self._solve(
                    objective.with_alpha(alpha), extrapolate(results, alpha, parameters), stopping
                )
                results.append((alpha, result))
            return [self._fitted(design, result) for _, result in results]

    @functools.cached_property
    def design(self) -> Design:
        """The features as the solvers see them, made once for all fits."""
        with limited_blas(self.settings.n_threads):
            return self.place(
                make_design(
                    self.X,
                    self.weights,
                    fit_intercept=self.settings.fit_intercept,
                    standardize=self.settings.standardize,
                    n_scores=self.n_scores,
                )
            )

    @functools.cached_property
    def objective(self) -> Objective:
        """The objective without a penalty."""
        return Objective(
            self.design, self.rows, self.weights, 0.0, self.n_scores, self.settings.has_kinks
        )

    @functools.cached_property
    def stopping(self) -> Stopping:
        """When a fit may end."""
        return Stopping(
            self.settings.tol,
            self.objective.evaluate(self.objective.zero()).gradient_norm,
            self.settings.max_iter,
            float(np.finfo(self.design.dtype).eps),
        )

    def _solve(self, objective: Objective, start: Array, stopping: Stopping) -> Result:
        name = self.settings.solver
        if name == "auto":
            name = "newton-cg" if self.settings.has_curvature else "lbfgs"
        return SOLVERS[name](objective, start, stopping, Report(self.settings.verbose))

    def _fitted(self, design: Design, result: Result) -> Fitted:
        coef, intercept = design.to_original(result.parameters)
        if self.n_scores > 1 and isinstance(self.settings.loss.regularizer.domain, Simplex):
            intercept = intercept - intercept.mean()  # any constant gives the same model
        return Fitted(coef, intercept, replace(result, parameters=None))


def extrapolate(results: list[tuple[float, Result]], alpha: float, start: Array) -> Array:
    """Where to begin: the path so far, continued linearly in log alpha."""
    if not results:
        return start
    last_alpha, last = results[-1]
    if len(results) < 2 or not 0 < alpha < last_alpha < results[-2][0]:
        return last.parameters
    before_alpha, before = results[-2]
    part = math.log(alpha / last_alpha) / math.log(last_alpha / before_alpha)
    return last.parameters + part * (last.parameters - before.parameters)
