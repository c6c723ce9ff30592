r"""Projections onto :math:`\{p \in [0, 1]^k, \sum_i p_i = b\}`, sparsemax with a budget b.

They are :math:`p = \min(1, (x - \tau)_+)`. With m = ⌈b⌉ and :math:`x_{(m)}` the m-th largest score,
τ is between :math:`x_{(m)} - 1` and :math:`x_{(m)}`: scores are shifted by that one, and those
further away than 1 are cut off, so that their size costs no digits.
"""

from collections.abc import Callable

import numpy as np

from .._array import Array, eps, is_jax, namespace, precision_bits, quiet, row_sum

State = tuple[Array, ...]

# Bisections before Newton's steps, which then mostly know the entries that are free.
_BISECTIONS = 8


def _is_free(p: Array) -> Array:
    """1 where an entry moves with its score, else 0; NaN where it is NaN."""
    xp = namespace(p)
    return xp.ceil(p) - xp.floor(p)


def _solve(step: Callable[[State], State], state: State, max_steps: int) -> State:
    """Take steps until the last entry of the state, whether a row goes on, is false everywhere."""
    if not is_jax(state[0]):
        for _ in range(max_steps):
            state = step(state)
            if not bool(state[-1].any()):
                break
        return state
    from jax import lax

    def step_and_count(counted: tuple[State, int]) -> tuple[State, int]:
        return step(counted[0]), counted[1] + 1

    def goes_on(counted: tuple[State, int]) -> Array:
        return counted[0][-1].any() & (counted[1] < max_steps)

    found: State = lax.while_loop(goes_on, step_and_count, (state, 0))[0]
    return found


def _at_place(x: Array, place: Array) -> Array:
    """The largest score of each row, the second largest, …, for places (…, 1) from 1."""
    xp, k = namespace(x), x.shape[-1]
    place = k - xp.where(xp.isnan(place), xp.ones_like(place), place)
    places = xp.astype(place, xp.int32 if is_jax(x) else xp.int64)
    if isinstance(x, np.ndarray):
        ordered: Array = np.partition(x, np.unique(places))  # takes a fraction of a sort
    else:
        ordered = xp.sort(x, axis=-1)
    return xp.take_along_axis(ordered, places, axis=-1)


@quiet
def project_to_budget(x: Array, budget: Array) -> Array:
    """The nearest point of each row, for budgets that broadcast to (…, 1).

    A score of −∞ is 0. Where fewer scores than the budget are finite, each of them is 1.

    Example:
        >>> import numpy as np
        >>> project_to_budget(np.asarray([2.0, 0.9, 0.6, -1.0]), np.asarray([2.0])).round(2)
        array([1.  , 0.65, 0.35, 0.  ])
    """
    xp = namespace(x)
    budget = budget + xp.zeros_like(x[..., :1])
    pivot = _at_place(x, xp.clip(xp.ceil(budget), 1, x.shape[-1]))
    # an infinite pivot is cut off, and all finite scores with it
    largest = float(xp.finfo(x.dtype).max)
    z = xp.clip(x - xp.clip(pivot, -largest, largest), -1, 1)

    def step(state: State) -> State:
        low, high, tau, width, _ = state
        p = xp.clip(z - tau, 0, 1)
        excess, free = row_sum(p) - budget, row_sum(_is_free(p))
        low, high = xp.where(excess >= 0, tau, low), xp.where(excess <= 0, tau, high)
        move = excess / xp.where(free == 0, xp.ones_like(free), free)
        middle = low + (high - low) / 2
        # Newton's step, unless it leaves the bracket, or the one before did not halve it
        is_good = (tau + move >= low) & (tau + move <= high) & (high - low <= width / 2)
        following = xp.where(is_good & (free > 0), tau + move, middle)
        # the sum is exact to some rounding errors, and so is τ, which is below 1
        is_done = (xp.abs(excess) <= eps(z) * (1 + budget)) | (
            (free > 0) & (xp.abs(move) <= eps(z) / 2)
        )
        return low, high, xp.where(is_done, tau, following), high - low, ~is_done & (low < high)

    low = 0 * row_sum(z) - 1  # a NaN stays in its row
    for i in range(1, 1 + _BISECTIONS):
        middle = low + 0.5**i
        low = xp.where(row_sum(xp.clip(z - middle, 0, 1)) >= budget, middle, low)
    start = low, low + 0.5**_BISECTIONS, low, 4 + 0 * low, low == low
    tau = _solve(step, start, 2 * precision_bits(z))[2]
    return xp.clip(z - tau, 0, 1)


@quiet
def budget_product(p: Array, v: Array) -> Array:
    """The Jacobian in the scores, times v, from the projections p."""
    free = _is_free(p)
    count = row_sum(free)
    return free * (v - row_sum(free * v) / namespace(p).where(count == 0, 1.0, count))


@quiet
def budget_slope(p: Array) -> Array:
    """∂p/∂b: free entries share what is added."""
    free = _is_free(p)
    count = row_sum(free)
    return free / namespace(p).where(count == 0, 1.0, count)
