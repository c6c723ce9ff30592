r"""The root that couples the entries of a row on the simplex.

On the simplex a maximizer is elementwise up to one number per row,
:math:`p_i = p(\theta_i - \tau)`, where :math:`\tau` solves
:math:`g(\tau) = \sum_i p(\theta_i - \tau) = 1`. For every loss of the package :math:`g^\beta`
(:math:`\log g` for :math:`\beta = 0`) is convex and decreasing for the potential's own power
:math:`\beta`, so that Newton's method started on the left of the root increases to it and needs no
safeguard.
"""

import math
from collections.abc import Callable

from ._array import (
    Array,
    Map,
    Point,
    eps,
    is_concrete,
    is_jax,
    may_stop_early,
    namespace,
    precision_bits,
    row_max,
    row_sum,
)

# In rounding errors of τ: how far back a step may lead, and which steps forward are too short.
STEP_BACK, SHORT_STEP = 4, 8
# More steps than this are compiled as a loop: each holds all formulas of an entry, which take a
# second to compile if there are special functions among them.
MAX_UNROLLED_STEPS = 3
# How many candidates for τ share one sum over all shards, and how many such sums find τ, by bits of
# precision: one or two more than were ever needed in a search over sizes and score scales.
CANDIDATES = 4
SECTION_ROUNDS = {53: 8, 24: 6}


State = tuple[Array, ...]


def iterate(step: Callable[[State], State], state: State, max_steps: int) -> State:
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


def find_root_in_jax(
    residual: Map,
    improve: Callable[[State], State],
    state: State,
    max_steps: int,
    divide: Callable[[Map, Array], Array],
) -> Array:
    """The root that :func:`iterate` finds while JAX traces, in a loop that is compiled once.

    A loop cannot be differentiated backward. Its root can, any number of times, given ``divide``,
    which solves the linear equations of the residual's slope.
    """
    from jax import lax

    def find_root(_: Map, start: Array) -> Array:
        return iterate(improve, (start, *state[1:]), max_steps)[0]

    return lax.custom_root(residual, state[0], find_root, divide)


def newton_steps(theta: Array) -> int:
    """Number of Newton steps that reach the precision of ``theta`` on any input.

    In a Newton step on a convex decreasing function the value falls by a factor v and the slope by
    a factor w with v + w <= 1. From the left end of the bracket to the root the slope falls by 2k
    at most (a maximizer's own slope changes, too) and the value by k over the precision, so that n
    steps can be needed only while (2k)^(-1/n) + (eps/k)^(1/n) < 1. Two more steps cover rounding.
    """
    slope_bits = 1 + math.log2(theta.shape[-1])
    value_bits = slope_bits + precision_bits(theta)
    n = 1
    while 2 ** (-slope_bits / n) + 2 ** (-value_bits / n) < 1:
        n += 1
    return n + 2


def piecewise_linear_steps(theta: Array) -> int:
    """Newton steps for a piecewise linear function: each drops an entry, or is the last."""
    return min(int(theta.shape[-1]) + 1, newton_steps(theta))


def solve_tau(
    point: Point, tau: Array, power: Array | float, steps: int, bend: float = 1.0
) -> Array:
    r"""Newton's method for Σ p(τ) = 1 on :math:`g^\beta`, with β the power, or on log g.

    From a τ, (…, 1), not above the root, and for τ ↦ (p, −∂p/∂τ), entry by entry. The bend is the
    length in τ over which log p has a curvature of one. NumPy and JAX stop once every row has
    converged: after one more step τ is within some rounding errors of the root.
    """
    has_loop = is_jax(tau) and steps > MAX_UNROLLED_STEPS
    is_early = has_loop or may_stop_early(tau)
    start = tau

    def improve(state: State) -> State:
        now, before, is_first, _ = state
        step = newton_step(*point(now), power)
        now, goes_on = advance(now, step, start)
        if not is_early:
            return now, before, is_first, goes_on
        is_far, before = _look_ahead(step, before, is_first, power, bend)
        return now, before, is_first & False, goes_on & is_far

    def first_state(tau: Array) -> State:
        everywhere = tau == tau
        return tau, namespace(tau).zeros_like(tau), everywhere, everywhere

    def divide(slope: Map, excess: Array) -> Array:
        return excess / slope(namespace(excess).ones_like(excess))

    state = first_state(tau)
    for taken in range(steps):
        tau = state[0]
        if has_loop and not is_concrete(tau):
            residual, rest = lambda t: row_sum(point(t)[0]) - 1, steps - taken
            return find_root_in_jax(residual, improve, first_state(tau), rest, divide)
        state = improve(state)
        if is_early and is_concrete(state[-1]) and not state[-1].any():
            break
    return state[0]


def _look_ahead(
    step: Array, before: Array, is_first: Array, power: Array | float, bend: float
) -> tuple[Array, Array]:
    """True where one more step would still leave an error that counts; and the step to remember.

    A step squares the error: with r the ratio of two steps, |step| r² is left after the second. The
    step that follows squares it again, times a curvature that grows at most like the square root
    of the number of classes. The first step is not compared, since it may start where the function
    is straight. Beyond the power 1/2 the function has kinks, or bends as sharply. Converged rows
    store ∞, so that two rounding errors are never compared.
    """
    xp = namespace(step)
    is_alone = before == 0
    ratio = xp.where(is_alone, 1.0, step / xp.where(is_alone, 1.0, before))
    is_far = (xp.abs(step) * ratio**2 > bend * math.sqrt(eps(step)) / 256) | (power > 0.5)
    return is_far, xp.where(is_first, 0.0, xp.where(is_far, step, xp.inf))


def advance(tau: Array, step: Array, start: Array | float = 0.0) -> tuple[Array, Array]:
    """τ after a step, and True where the step was longer than rounding errors.

    A rounding error may carry τ above the root, where small entries are lost. The step back is then
    as long as the mass of all of them, and taken in full it would give that mass to each. So a step
    back is taken however short it is, as far as τ has digits, but never by more than the rounding
    error. What remains is a short step forward, for which τ has no digits. A τ far smaller than its
    start has the rounding error of the start.
    """
    xp = namespace(tau)
    slack = eps(tau) * (xp.abs(tau) + xp.abs(step))
    is_long = (step > SHORT_STEP * slack) | (step < -slack / 2)
    furthest = -STEP_BACK * xp.maximum(slack, eps(tau) * abs(start) + 0 * slack)
    return xp.where(is_long, tau + xp.maximum(step, furthest), tau), is_long


def newton_step(p: Array, slope: Array, power: Array | float) -> Array:
    """One step for Σ p = 1 in τ, shape (…, 1); the power may be one for each row."""
    xp = namespace(p)
    total = row_sum(p)
    if not isinstance(power, (int, float)):
        logarithm = xp.log(total)
        z = power * logarithm
        ratio = xp.where(z == 0, 1.0, -xp.expm1(-z) / xp.where(z == 0, 1.0, z))
        excess = total * logarithm * ratio
    elif power == 0:
        excess = total * xp.log(total)
    elif power == 1:
        excess = total - 1
    else:
        excess = -total * xp.expm1(-power * xp.log(total)) / power
    return excess / row_sum(slope)


def shift_to_root(
    point: Point, theta: Array, start: Array, power: Array | float, steps: int, bend: float = 1.0
) -> Array:
    """s = θ − τ with Σ p(s) = 1, for s ↦ (p, ∂p/∂s).

    A last step is taken in s itself: where s is much smaller than τ it has the digits that τ
    cannot hold, and that many small entries need to sum to one.
    """
    tau = solve_tau(lambda tau: point(theta - tau), start, power, steps, bend)
    s = theta - tau
    return s if steps == 0 else s - newton_step(*point(s), power)


def solve_total(
    point: Point, tau: Array, bracket: tuple[Array, Array], total: Array | float
) -> Array:
    """τ with Σ p(τ) = total, for τ ↦ (p, −∂p/∂τ), p decreasing and otherwise arbitrary.

    Newton's steps, and bisections where they leave the bracket of τ, (…, 1), or are more than half
    of the step before.
    """
    xp = namespace(tau)

    def step(state: State) -> State:
        low, high, tau, before, _ = state
        p, slope = point(tau)
        excess, rise = row_sum(p) - total, row_sum(slope)
        low, high = xp.where(excess >= 0, tau, low), xp.where(excess <= 0, tau, high)
        move = excess / xp.where(rise > 0, rise, 1.0)
        is_good = (tau + move >= low) & (tau + move <= high) & (2 * xp.abs(move) <= before)
        following = xp.where(is_good & (rise > 0), tau + move, low + (high - low) / 2)
        # the sum is exact to some rounding errors, or τ is
        is_done = (xp.abs(excess) <= eps(p) * (1 + total)) | xp.isnan(excess)
        is_done = is_done | ((rise > 0) & (xp.abs(move) <= eps(p) / 2))
        following = xp.where(is_done, tau, following)
        return low, high, following, xp.abs(following - tau), ~is_done & (low < high)

    start = *bracket, tau, xp.inf * xp.ones_like(tau), tau == tau
    return iterate(step, start, 4 * precision_bits(tau))[2]


def shift_to_total(point: Point, theta: Array, bracket: tuple[Array, Array], total: float) -> Array:
    """s = θ − τ with Σ p(s) = total, for s ↦ (p, ∂p/∂s), p increasing and otherwise arbitrary."""
    xp, (low, high) = namespace(theta), bracket
    tau = solve_total(lambda tau: point(theta - tau), low + (high - low) / 2, bracket, total)
    s = theta - tau
    p, slope = point(s)
    rise = row_sum(slope)
    # the last step in s itself, which has digits that τ cannot hold
    move = (row_sum(p) - total) / xp.where(rise > 0, rise, 1.0)
    is_short = xp.abs(move) <= SHORT_STEP * eps(theta) * (xp.abs(tau) + 1)
    return s - xp.where(is_short & (rise > 0), move, 0.0)


def shift_shard_to_root(
    point: Point,
    theta: Array,
    bracket: tuple[Array, Array | None],
    power: Array | float,
    steps: int,
    sum_shards: Map,
) -> Array:
    """s = θ − τ for scores θ that are a part of the classes, from sums over all parts.

    The scores are less by the maximum of all parts. The bracket has a τ not above the root, and one
    not below it, (…, 1), or None: then some Newton steps are taken, 0 where the first is exact.
    ``sum_shards`` gives the sums over all parts of numbers (…, m), m for each row.
    """

    def sums_at(tau: Array) -> Array:
        """Σ p, then Σ ∂p/∂s over all parts, at m candidates for τ, (…, 2m)."""
        points = [point(theta - tau[..., i : i + 1]) for i in range(tau.shape[-1])]
        ordered = [row_sum(part) for parts in zip(*points, strict=True) for part in parts]
        return sum_shards(namespace(tau).concat(ordered, axis=-1))

    tau, above = bracket
    if above is None:
        for _ in range(1 + steps):
            sums = sums_at(tau)
            tau, _ = advance(tau, newton_step(sums[..., :1], sums[..., 1:], power))
    else:
        for _ in range(SECTION_ROUNDS[precision_bits(theta)]):
            tau, above = _section(sums_at, tau, above, power)
        # a rounding error above the root the last step would lose entries, below it it would not
        tau = tau - STEP_BACK * eps(tau) * namespace(tau).abs(tau)
    s = theta - tau
    if above is None and steps == 0:
        return s
    p, slope = point(s)
    sums = sum_shards(namespace(s).concat([row_sum(p), row_sum(slope)], axis=-1))
    return s - newton_step(sums[..., :1], sums[..., 1:], power)


def _section(sums_at: Map, below: Array, above: Array, power: Array | float) -> tuple[Array, Array]:
    """A smaller bracket of the root, from the sums at a few points of a bracket.

    The tangents of a convex function at any point meet zero below its root, its chord above.
    """
    xp = namespace(below)
    shares = xp.arange(CANDIDATES, dtype=below.dtype, device=below.device) / CANDIDATES
    tau = below + (above - below) * shares
    sums = sums_at(tau)
    total, slope = sums[..., :CANDIDATES], sums[..., CANDIDATES:]
    is_left = total >= 1
    tangents = tau + newton_step(total[..., None], slope[..., None], power)[..., 0]
    # a step without a slope is NaN, and no better than what is known
    raised = row_max(xp.where(tangents > below, tangents, below))
    left = row_max(xp.where(is_left, tau, below))
    right = -row_max(-xp.where(is_left, above, tau))
    height = _excess(-row_max(-xp.where(is_left, total, xp.inf)), power)
    depth = _excess(row_max(xp.where(is_left, -xp.inf, total)), power)
    chord = left + (right - left) * (height / (height - depth))
    lowered = xp.where((chord > left) & (chord < right), chord, right)
    return raised, xp.where(lowered > raised, lowered, raised)


def _excess(total: Array, power: Array | float) -> Array:
    r""":math:`g^\beta - 1`, or log g, which is convex in τ."""
    return namespace(total).log(total) if power == 0 else total**power - 1
