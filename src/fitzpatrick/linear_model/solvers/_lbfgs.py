"""L-BFGS by SciPy: for losses without curvature, and where Newton steps stall at kinks.

It works on parameters in units of the curvature at its start, which saves most of its iterations
where features are correlated.
"""

import numpy as np
from scipy.optimize import OptimizeResult, minimize

from ..._array import Array, to_numpy
from .._objective import Objective, Point
from ._progress import Report
from ._status import Result, Status, Stopping

MEMORY = 20
MAX_EVALUATIONS = 50  # in one line search


def lbfgs(objective: Objective, start: Point, stopping: Stopping, report: Report) -> Result:
    """Minimize from ``start``."""
    point = start
    scales = objective.scales(point)
    n_iter = 0
    place = objective.sums.space.place  # SciPy works on NumPy arrays

    def evaluate(flat: Array) -> tuple[float, Array]:
        nonlocal point
        parameters = scales * flat.reshape(start.parameters.shape)
        if not np.array_equal(parameters, to_numpy(point.parameters)):
            point = objective.evaluate(place(parameters))
        return point.value, (scales * to_numpy(point.gradient)).ravel()

    def after_iteration(intermediate_result: OptimizeResult) -> None:  # noqa: ARG001  # SciPy looks for this name
        nonlocal n_iter
        n_iter += 1
        report(n_iter, point.value, point.gradient_norm)
        if stopping.reached(point.value, point.gradient_norm):
            raise StopIteration

    report(0, point.value, point.gradient_norm)
    status = stopping.reached(point.value, point.gradient_norm)
    if status is None and stopping.max_iter > 0:
        options = {
            "maxcor": MEMORY,
            "ftol": 0.0,  # the callback decides
            "gtol": 0.0,
            "maxiter": stopping.max_iter,
            "maxfun": MAX_EVALUATIONS * stopping.max_iter,
            "maxls": MAX_EVALUATIONS,
        }
        x = (to_numpy(start.parameters) / scales).ravel()
        how = {"method": "L-BFGS-B", "jac": True, "callback": after_iteration, "options": options}
        evaluate(minimize(evaluate, x, **how).x)
        status = stopping.reached(point.value, point.gradient_norm)
    if status is None and n_iter >= stopping.max_iter:
        status = Status.MAX_ITER
    status = status or stopping.without_progress(point.value, point.gradient_norm)
    return Result(point, n_iter, status)
