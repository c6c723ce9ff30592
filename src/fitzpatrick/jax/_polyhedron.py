r"""The nearest point of a polyhedron, by the dual active-set method of Goldfarb and Idnani.

It begins with the nearest point of the equations. The inequality that is violated most comes in,
and the point moves towards it as far as the active rows leave it free. Multipliers stay
non-negative: a row whose multiplier reaches zero is active no more. Every move increases the
distance from x, so that there are finitely many, and none is left where the polyhedron is empty.
The answer is the nearest point of the equations of the active rows, which has a derivative.
"""

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from .._array import eps
from ..sets._base import membership_tolerance

# Steps for each row and column. One brings a row in or drops one; most rows come in once at most.
_STEPS = 10
_NONE = -1


class _State(NamedTuple):
    y: Array
    multipliers: Array
    is_active: Array
    entering: Array  # the row that comes in, over one step or several
    goes_on: Array
    n_steps: Array


def _nearest_of_equations(x: Array, rows: Array, levels: Array) -> Array:
    """The nearest point to x with rows · y = levels, or least squares; rows may be dependent."""
    inverse = jnp.linalg.pinv(rows)
    for _ in range(2):  # the second time for digits that large distances cost
        x = x - (x @ rows.T - levels) @ inverse.T
    return x


@partial(jax.jit, static_argnames="n_equations")
def nearest_of_rows(x: Array, rows: Array, levels: Array, n_equations: int) -> tuple[Array, Array]:
    """The points next to x, and whether they fulfil all rows.

    Args:
        x: (…, n).
        rows: (m, n), first the equations, then the inequalities ≤.
        levels: (m,).
        n_equations: how many rows are equations.
    """
    square = jnp.sum(rows * rows, axis=-1)
    norm = jnp.sqrt(jnp.where(square > 0, square, 1))
    rows, levels = rows / norm[:, None], levels / norm

    def project(point: Array) -> Array:
        is_active = _active_rows(*jax.lax.stop_gradient((point, rows, levels)), n_equations)
        held = jnp.where(is_active[:, None], rows, 0)
        return _nearest_of_equations(point, held, jnp.where(is_active, levels, 0))

    p = jax.vmap(project)(x.reshape(-1, x.shape[-1])).reshape(x.shape)
    excess = p @ rows.T - levels
    excess = jnp.where(jnp.arange(len(levels)) < n_equations, jnp.abs(excess), excess)
    # x is as large as the terms that cancel in p
    size = jnp.max(jnp.maximum(jnp.abs(p), jnp.abs(x)), axis=-1, keepdims=True) + jnp.abs(levels)
    return p, jnp.all(excess <= membership_tolerance(p) * size, axis=-1)


def _active_rows(x: Array, rows: Array, levels: Array, n_equations: int) -> Array:
    """Which rows, of length one or zero, hold with equality at the point next to one x."""
    m, n = rows.shape
    is_equation = jnp.arange(m) < n_equations
    if n_equations == m:
        return is_equation
    rounding = 4 * (m + n) * eps(x)

    def step(state: _State) -> _State:
        excess = rows @ state.y - levels
        slack = rounding * (jnp.abs(levels) + jnp.linalg.norm(state.y) + jnp.linalg.norm(x))
        violations = jnp.where(state.is_active, -jnp.inf, excess - slack)
        is_new = state.entering == _NONE
        entering = jnp.where(is_new, jnp.argmax(violations), state.entering)
        is_done = is_new & ~(violations[entering] > 0)
        held = jnp.where(state.is_active[:, None], rows, 0)
        fall = rows[entering] @ jnp.linalg.pinv(held)  # of the multipliers
        free = rows[entering] - fall @ held
        square = free @ free
        is_free = square > rounding**2
        can_leave = state.is_active & ~is_equation & (fall > 0)
        limits = jnp.where(can_leave, state.multipliers / jnp.where(can_leave, fall, 1), jnp.inf)
        leaving = jnp.argmin(limits)
        whole = jnp.where(is_free, excess[entering] / jnp.where(is_free, square, 1), jnp.inf)
        length = jnp.minimum(whole, limits[leaving])
        moves = ~is_done & (length < jnp.inf)
        length = jnp.where(moves, length, 0)
        multipliers = (state.multipliers - length * fall).at[entering].add(length)
        is_whole = whole <= limits[leaving]
        changed = jnp.where(is_whole, entering, leaving)
        return _State(
            state.y - jnp.where(is_free, length, 0) * free,
            jnp.where(is_whole, multipliers, multipliers.at[leaving].set(0)),
            jnp.where(moves, state.is_active.at[changed].set(is_whole), state.is_active),
            jnp.where(is_whole, _NONE, entering),
            moves,
            state.n_steps + 1,
        )

    start_levels = jnp.where(is_equation, levels, 0)  # others may be infinite
    start = _nearest_of_equations(x, jnp.where(is_equation[:, None], rows, 0), start_levels)
    # for vmap and shard_map, whose states vary as x does
    like = 0 * x[0]
    zeros = jnp.zeros_like(levels) + like
    zero = like.astype(int)
    state = _State(start, zeros, is_equation | (zeros > 0), _NONE + zero, like == 0, zero)
    found = jax.lax.while_loop(
        lambda state: state.goes_on & (state.n_steps < _STEPS * (m + n)), step, state
    )
    return found.is_active
