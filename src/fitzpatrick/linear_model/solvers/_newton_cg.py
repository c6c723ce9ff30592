r"""Trust-region Newton-CG.

Each step minimizes the quadratic model :math:`\langle g, s\rangle + \tfrac12\langle s, Hs\rangle`
within :math:`\|s\|_M \le \Delta` by conjugate gradients preconditioned by M (Steihaug's method):
it stops where the residual is small against the gradient or the path leaves the region. A step that
does not lower f enough is shortened along its own direction, which costs no further Hessian
products, and the region shrinks to the step that worked. Where that happens, H is from then on the
mean Hessian over steps like the last one, if the loss has such means: it sees the kinks ahead.
"""

import math
from collections import deque

from ..._array import Array, namespace
from .._objective import Objective, Point
from .._preconditioner import Map
from .._vectors import copy, inner
from ._progress import Report
from ._status import Result, Status, Stopping

MIN_DECREASE = 1e-4  # the part of the decrease that the model predicts, which a step has to bring
POOR_MODEL, GOOD_MODEL = 0.25, 0.5  # below: the region shrinks; above, at its boundary: it grows
RADIUS_GROWTH = 4.0
MIN_PROGRESS = 1e-3  # a gradient norm that is smaller by less is no nearer to the minimum
MIN_STEP = 1e-8  # a step shortened beyond this has met a kink, not curvature
# A shortened step has met kinks. While one is among the last six, curvature is averaged over steps
# like the last; where kinks are to be avoided, the third one ends the solver.
SHORTENED_WINDOW, MAX_SHORTENED = 6, 3
MAX_CG_RESIDUAL = 0.1  # that CG leaves at most, relative to the gradient
MIN_CURVATURE = 1e-16  # curvature below this, relative to M's, is none
MAX_CG_STEPS = 200


def newton_cg(objective: Objective, start: Point, stopping: Stopping, report: Report) -> Result:
    """Minimize from ``start``; if steps stall, the status says that there was no progress."""
    point = start
    radius = math.inf
    previous = step = None
    noise = math.sqrt(stopping.eps) / 16
    best = start
    lowest, smallest, progress = start.value, math.inf, 0  # the last iteration that got nearer
    shortened: deque[bool] = deque(maxlen=SHORTENED_WINDOW)
    for iteration in range(stopping.max_iter + 1):
        norm = point.gradient_norm
        report(iteration, point.value, norm)
        status = stopping.reached(point.value, norm)
        if status is None and iteration == stopping.max_iter:
            status = Status.MAX_ITER
        if status is not None:
            return Result(point, iteration, status)
        if point.value < lowest - noise * abs(lowest):
            lowest, progress = point.value, iteration
        if norm < (1 - MIN_PROGRESS) * smallest:
            smallest, progress = norm, iteration
        if norm < best.gradient_norm:
            best = point
        at_kinks = (
            stopping.avoids_kinks
            and sum(shortened) >= MAX_SHORTENED
            and stopping.without_progress(point.value, norm) is Status.STALLED
        )
        if at_kinks or iteration - progress >= stopping.patience:
            break
        crosses_kinks = any(shortened)
        hessian, precondition = objective.curvature(point, step if crosses_kinks else None)
        step, length, at_boundary, predicted = steihaug(
            point.gradient, hessian, precondition, radius, _forcing(point, previous, stopping)
        )
        slope = inner(point.gradient, step)
        part = 1.0
        while part >= MIN_STEP:
            trial = objective.evaluate(point.parameters + part * step)
            model = -part * slope - part**2 * (-slope - predicted)
            actual = decrease(point, trial, part * step, noise)
            if actual >= MIN_DECREASE * model:
                break
            part *= _shortening(part * slope, trial.value - point.value)
        else:
            break
        shortened.append(part < 1)
        if part < 1:
            radius = part * length
        elif actual < POOR_MODEL * model:
            radius = length / 2
        elif actual > GOOD_MODEL * model and at_boundary:
            radius *= RADIUS_GROWTH
        step *= part
        point, previous = trial, norm
    if best.value <= point.value + noise * abs(point.value):  # rounding errors dominate the values
        point = best
    return Result(point, iteration, stopping.without_progress(point.value, point.gradient_norm))


def _forcing(point: Point, previous: float | None, stopping: Stopping) -> float:
    """How far CG brings its residual down.

    As the last step brought down the gradient: little while f is far from its quadratic model, and
    ever more towards the end, which makes the convergence superlinear.
    """
    norm = point.gradient_norm
    enough = 0.5 * stopping.threshold(point.value) / norm
    if previous is None:
        wanted = math.sqrt(norm / stopping.reference) if stopping.reference > 0 else 0.5
    else:
        wanted = math.pow(norm / previous, 1.5)
    return max(min(MAX_CG_RESIDUAL, wanted), enough)


def decrease(before: Point, after: Point, step: Array, noise: float) -> float:
    """f(before) − f(after), by the trapezoid rule on the slopes where the values cancel."""
    difference = before.value - after.value
    if not math.isfinite(after.value):
        return -math.inf
    if abs(difference) > noise * abs(before.value):
        return difference
    return -0.5 * inner(before.gradient + after.gradient, step)


def _shortening(slope: float, increase: float) -> float:
    """Factor to the minimum of the parabola through both values and the slope, safeguarded."""
    if not math.isfinite(increase):
        return 0.1
    curvature = 2 * (increase - slope)
    return 0.5 if curvature <= 0 else min(0.5, max(0.1, -slope / curvature))


def steihaug(
    gradient: Array, hessian: Map, precondition: Map, radius: float, target: float
) -> tuple[Array, float, bool, float]:
    """Step, its M-norm, whether it ends at the boundary, and the decrease the model predicts."""
    step = namespace(gradient).zeros_like(gradient)
    residual = copy(gradient)
    z = precondition(residual)
    residual_z = inner(residual, z)
    if not residual_z > 0:  # rounding errors dominate M, as with features of very different scales
        z, precondition = residual, copy
        residual_z = inner(residual, residual)
    direction = -z
    goal = target**2 * residual_z
    step_m, step_direction_m, direction_m = 0.0, 0.0, residual_z
    predicted = 0.0
    for _ in range(MAX_CG_STEPS):
        product = hessian(direction)
        curvature = inner(direction, product)
        a = residual_z / curvature if curvature > MIN_CURVATURE * direction_m else math.inf
        # each step is longer than the one before, but for rounding errors
        added = 2 * a * step_direction_m + a * a * direction_m if a < math.inf else math.inf
        longer = step_m + max(0.0, added)
        if not longer < radius**2:
            if math.isinf(radius):  # no curvature and no boundary: go one unit of M-length
                radius = math.sqrt(step_m) + 1.0
            root = step_direction_m**2 + direction_m * (radius**2 - step_m)
            a = (math.sqrt(root) - step_direction_m) / direction_m
            step += a * direction
            predicted += a * residual_z - a * a * max(curvature, 0.0) / 2
            return step, radius, True, predicted
        step += a * direction
        residual += a * product
        predicted += a * residual_z / 2
        z = precondition(residual)
        residual_z, previous = inner(residual, z), residual_z
        step_m = longer
        if residual_z <= goal:
            break
        beta = residual_z / previous
        step_direction_m = beta * (step_direction_m + a * direction_m)
        direction_m = residual_z + beta**2 * direction_m
        direction = beta * direction - z
    return step, math.sqrt(step_m), False, predicted
