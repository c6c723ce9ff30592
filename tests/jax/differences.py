"""Central differences: points off the kinks, and steps to both sides of them."""

from __future__ import annotations

import numpy as np

from tests.helpers import assert_close

from .cases import inside

# Two rows, off the kinks of the piecewise quadratic losses.
SCORES = np.asarray([[0.3, -0.45, 0.2, -0.1], [1.3, 0.55, -2.0, 0.4]])
LOGITS = np.asarray([[0.1, 0.4, -0.3, -0.9], [-0.6, 0.2, 0.7, -0.2]])
STEPS = np.asarray([[0.4, -0.7, 1.1, 0.6], [-0.8, 0.3, 0.5, 1.2]])
# The error of a central difference is of the size of STEP², and its rounding 1e-16/STEP.
STEP = 1e-5


def along(point, direction):
    """Rows at a point and a step to either side of it, in one array of N rows."""
    return np.concatenate([point, point + STEP * direction, point - STEP * direction])


def slope_of(values):
    """Central differences of what was computed at such rows."""
    _, ahead, back = np.split(np.asarray(values), 3)
    return (ahead - back) / (2 * STEP)


def here(values):
    """What was computed at the point itself."""
    return np.asarray(values)[: len(SCORES)]


def assert_is_slope(derivative, values):
    assert_close(here(derivative), slope_of(values), rtol=1e-6, atol=1e-8)


def target_rows(name):
    """Targets inside the domain, and directions from one to another."""
    y = inside(name, LOGITS)
    return y, inside(name, LOGITS[::-1]) - y
