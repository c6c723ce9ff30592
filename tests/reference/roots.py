"""A guarded root of an increasing scalar function."""

from __future__ import annotations

from collections.abc import Callable

from mpmath import mpf


def increasing_root(
    function: Callable[[mpf], tuple[mpf, mpf]],
    start: mpf,
    tolerance: mpf,
    bracket: tuple[mpf | None, mpf | None] = (None, None),
) -> mpf:
    """Root of an increasing ``function``, which returns its value and its slope.

    Newton's method, kept honest: a step that leaves the bracket, or that is not half as long as
    the step before, is replaced by a bisection, or by a doubled step while one end of the
    bracket is still unknown. So neither flat nor steep exponentials stall it.
    """
    lower, upper = bracket
    point, last_step = start, mpf(4)
    for _ in range(2000):
        value, slope = function(point)
        if value == 0:
            return point
        if value < 0:
            lower = point
        else:
            upper = point
        step = -value / slope if slope > 0 else None
        if step is not None and abs(step) <= tolerance * (1 + abs(point)):
            return point + step
        if lower is not None and upper is not None:
            if upper - lower <= tolerance * (1 + abs(point)):
                return (lower + upper) / 2
            inside = step is not None and lower < point + step < upper
            if not inside or abs(step) > last_step / 2:
                step = (lower + upper) / 2 - point
        elif step is None or abs(step) > last_step / 2:
            step = 2 * last_step if value < 0 else -2 * last_step
        point, last_step = point + step, abs(step)
    raise ArithmeticError("no root after 2000 steps")
