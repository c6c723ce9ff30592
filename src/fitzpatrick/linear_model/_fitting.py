"""One fit, or a path of fits from strong to weak penalties, on inputs that have been checked."""

import functools
import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np

from .._array import Array
from ..losses import Loss
from ..sets import Simplex
from ._design import Design, make_design
from ._objective import Objective, Point
from ._rows import Rows
from ._threads import blas_threads, limited_blas
from ._walk import SOLVERS as SOLVERS
from ._walk import Walk
from .solvers import Outcome, Result, Stopping

# Iterations without a smaller gradient norm or objective; at kinks the former goes up and down.
_PATIENCE, _PATIENCE_AT_KINKS = 20, 200


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
        return self.loss.regularizer.has_curvature

    @property
    def has_kinks(self) -> bool:
        """Whether the Hessian may jump: not where the link is smooth, or linear."""
        return self.loss.regularizer.has_kinks


@dataclass(frozen=True, eq=False)
class Fitted:
    """Coefficients (k, d) and intercepts (k,) on the scale of X, and how the solver ended."""

    coef: Array
    intercept: Array
    result: Outcome


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
        """The models of several alphas, each started where the one before suggests."""
        design = self.design
        operations = 2.0 * self.X.shape[0] * design.n_parameters * self.n_scores
        with limited_blas(blas_threads(self.settings.n_threads, operations)):
            walk = Walk(self.objective.afresh(), self.stopping, self.settings)
            alphas = list(alphas)
            origin, from_zero = self._origin(alphas[0], start)
            results: list[Result] = []
            for alpha in alphas:
                results.append(walk.to(alpha, origin, from_zero=from_zero and not results))
                origin = results[-1].point
            return [self._fitted(design, result) for result in results]

    def _origin(self, alpha: float, start: tuple[Array, Array] | None) -> tuple[Point, bool]:
        """Where to begin, and whether that is zero: so unless the given start is lower."""
        zero = self.at_zero
        if start is None:
            return zero, True
        given = self.objective.evaluate(self.design.from_original(*start))
        objective = self.objective.with_alpha(alpha)
        if objective.move(given).value < objective.move(zero).value:
            return given, False
        return zero, True

    @functools.cached_property
    def design(self) -> Design:
        """The features as the solvers see them, made once for all fits."""
        with limited_blas(self.settings.n_threads):
            design = make_design(
                self.X,
                self.weights,
                fit_intercept=self.settings.fit_intercept,
                standardize=self.settings.standardize,
                n_scores=self.n_scores,
            )
            return self.place(design)

    @functools.cached_property
    def objective(self) -> Objective:
        """The objective without a penalty."""
        return Objective(
            self.design,
            self.rows,
            self.weights,
            0.0,
            self.n_scores,
            has_kinks=self.settings.has_kinks,
        )

    @functools.cached_property
    def at_zero(self) -> Point:
        """The objective at zero parameters, the same for every alpha."""
        return self.objective.evaluate(self.objective.zero())

    @functools.cached_property
    def stopping(self) -> Stopping:
        """When a fit may end."""
        design, eps = self.design, float(np.finfo(self.design.dtype).eps)
        return Stopping(
            tol=self.settings.tol,
            reference=self.at_zero.gradient_norm,
            # of a sum over the samples of features times numbers of at most 1
            noise=eps * self.objective.total_weight * math.sqrt(float(design.spectrum.sum())),
            max_iter=self.settings.max_iter,
            eps=eps,
            patience=_PATIENCE_AT_KINKS if self.settings.has_kinks else _PATIENCE,
        )

    def _fitted(self, design: Design, result: Result) -> Fitted:
        coef, intercept = design.to_original(result.point.parameters)
        if self.n_scores > 1 and isinstance(self.settings.loss.regularizer.domain, Simplex):
            intercept = intercept - intercept.mean()  # any constant gives the same model
        return Fitted(coef, intercept, result.outcome)
