"""From one penalty to the next: where to start, which solver to use, and what to do if it stalls.

Where Newton steps stall at kinks on the way from zero to the minimum of a weak penalty, the minima
of stronger penalties lead there: each one starts near the next, and few kinks are in between.
"""

import math
import time
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from .._array import Array
from ._objective import Objective, Point
from ._settings import FitSettings
from ._vectors import norm
from .solvers import Report, Result, Status, Stopping, lbfgs, newton_cg

Solver = Callable[[Objective, Point, Stopping, Report], Result]
SOLVERS: dict[str, Solver] = {"newton-cg": newton_cg, "lbfgs": lbfgs}

ALPHA_RATIO = 10.0  # of a penalty to the next on the way from strong to weak
WEAK_PENALTY = 1e-6  # relative to the strongest; from there on kinks are avoided


class Continuation:
    """Fits of one objective to several alphas, one after the other.

    Args:
        objective: of any alpha.
        stopping: of any alpha.
        settings: the loss, the solver, and whom to tell of iterations.
    """

    def __init__(self, objective: Objective, stopping: Stopping, settings: FitSettings) -> None:
        self._objective = objective
        self._stopping = stopping
        self._use_newton = settings.solver != "lbfgs" and settings.loss.regularizer.has_curvature
        self._settings = settings
        self._began = 0.0
        self._extrapolation = Extrapolation(objective)

    def minimize(self, alpha: float, origin: Point, *, from_zero: bool) -> Result:
        """The minimum at alpha, from a point that may be that of another alpha.

        Args:
            alpha: strength of the penalty.
            origin: where to start.
            from_zero: whether the origin is zero, for want of a better one.
        """
        self._began = time.perf_counter()
        if not self._use_newton:
            return self._solve(lbfgs, alpha, origin)
        leads = from_zero and alpha > 0 and self._objective.has_kinks
        # where curvature sees the kinks around, few penalties are so weak that leading is faster
        is_weak = alpha < WEAK_PENALTY * self._strongest
        avoids_kinks = leads and (is_weak or not self._objective.sees_kinks)
        result = self._solve(newton_cg, alpha, origin, avoids_kinks=avoids_kinks)
        if result.status is Status.STALLED and leads:
            self._note("Newton steps stalled; stronger penalties lead to this one")
            result = self._by_stronger_penalties(alpha, origin, result.n_iter)
        if result.status is Status.STALLED:
            self._note("Newton steps stalled; L-BFGS takes over")
            result = self._solve(lbfgs, alpha, result.point, result.n_iter)
            if result.status is Status.CONVERGED:
                result = replace(result, status=Status.SWITCHED)
        return result

    @property
    def _strongest(self) -> float:
        """A penalty like the largest curvature of the loss, which leaves little to learn."""
        objective = self._objective
        return objective.rows.total_weight * float(np.max(objective.space.spectrum))

    def _by_stronger_penalties(self, alpha: float, zero: Point, n_iter: int) -> Result:
        """Newton's method at alphas that fall to the one wanted."""
        steps = max(0, math.ceil(math.log(self._strongest / alpha, ALPHA_RATIO)))
        self._extrapolation = Extrapolation(self._objective)
        point = zero
        for step in range(steps, -1, -1):
            result = self._solve(newton_cg, alpha * ALPHA_RATIO**step, point, n_iter)
            if result.status is Status.STALLED and step > 0:
                result = self._solve(lbfgs, alpha * ALPHA_RATIO**step, result.point, result.n_iter)
            point, n_iter = result.point, result.n_iter
        return result

    def _solve(
        self,
        solver: Solver,
        alpha: float,
        origin: Point,
        n_iter: int = 0,
        *,
        avoids_kinks: bool = False,
    ) -> Result:
        """Run one solver; ``n_iter`` iterations have been made before."""
        rest = max(0, self._stopping.max_iter - n_iter)
        stopping = replace(self._stopping, alpha=alpha, max_iter=rest, avoids_kinks=avoids_kinks)
        objective = self._objective.with_alpha(alpha)
        settings = self._settings
        report = Report(alpha, self._began, n_iter, settings.callback, settings.verbose)
        result = solver(objective, self._start(objective, origin), stopping, report)
        self._extrapolation.learn(result.point)
        return replace(result, n_iter=n_iter + result.n_iter)

    def _note(self, sentence: str) -> None:
        if self._settings.verbose:
            print(sentence)

    def _start(self, objective: Objective, origin: Point) -> Point:
        """Where the minimum is expected, unless f is higher there than at the origin."""
        origin = objective.move(origin)
        expected = self._extrapolation.predict(objective, origin)
        if expected is None:
            return origin
        point = objective.evaluate(expected)
        return point if point.value < origin.value else origin


class Extrapolation:
    """Where the minimum of the next alpha is, from the minima so far.

    There are two ways: one step by M, which is good while the penalty dominates, and the line
    through the last two minima in log alpha, which is good where they run away to infinity. The one
    that came nearer the last time is taken.
    """

    def __init__(self, objective: Objective) -> None:
        # a change of the parameters counts by what it does to the scores
        self._lengths = objective.space.place(np.sqrt(objective.space.spectrum)[:, None])
        self._minima: list[Point] = []
        self._candidates: list[Array] = []
        self._best = 0

    def predict(self, objective: Objective, origin: Point) -> Array | None:
        """The parameters to start with, or None before the first minimum."""
        if not self._minima or self._minima[-1].alpha == objective.alpha:
            return None
        self._candidates = [objective.predict(origin)]
        line = self._line(objective.alpha)
        if line is None:
            return self._candidates[0]
        self._candidates.append(line)
        return self._candidates[self._best]

    def _line(self, alpha: float) -> Array | None:
        if len(self._minima) < 2:
            return None
        before, last = self._minima
        if not 0 < alpha < last.alpha < before.alpha:
            return None
        part = math.log(alpha / last.alpha) / math.log(last.alpha / before.alpha)
        return last.parameters + part * (last.parameters - before.parameters)

    def learn(self, minimum: Point) -> None:
        """Keep a minimum, and see which way led nearer to it."""
        if self._minima and self._minima[-1].alpha == minimum.alpha:
            self._minima.pop()
        if len(self._candidates) > 1:
            misses = [
                norm(self._lengths * (candidate - minimum.parameters))
                for candidate in self._candidates
            ]
            self._best = int(np.argmin(misses))
        self._minima = [*self._minima[-1:], minimum]
