"""Projections onto convex sets, with the names and signatures of jaxopt.

Vectors are the last axis, and there may be more axes before it. All of them jit, vmap and
differentiate, in their parameters too. An empty set is an error; where JAX traces the values, the
result is NaN. Projections onto transport plans are exact, by Newton's method, and take no solver.
Half precision is computed in float32, and a result has the dtype of the points.
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array
from jax.typing import ArrayLike

from .._array import is_concrete, working_precision
from ..regularizers.negentropy import SoftmaxFormulas
from ..regularizers.sinkhorn import EntropyEntries
from ..sets import Simplex
from ..sets._base import membership_tolerance
from ..sets.potentials import Entries, solve_potentials, solve_sums, tangent
from ..sets.transport import PositivePart
from ._arguments import _as_array
from ._polyhedron import nearest_of_rows

__all__ = [
    "kl_projection_birkhoff",
    "kl_projection_transport",
    "projection_affine_set",
    "projection_birkhoff",
    "projection_box",
    "projection_box_section",
    "projection_halfspace",
    "projection_hypercube",
    "projection_hyperplane",
    "projection_l1_ball",
    "projection_l1_sphere",
    "projection_l2_ball",
    "projection_l2_sphere",
    "projection_linf_ball",
    "projection_non_negative",
    "projection_polyhedron",
    "projection_simplex",
    "projection_sparse_simplex",
    "projection_transport",
]


def _as_points(x: ArrayLike, name: str = "x") -> tuple[Array, Callable[[Array], Array]]:
    """Points in working precision, and the cast of a result to the dtype they came in."""
    points = _as_array(x, name)
    if jnp.iscomplexobj(points):
        raise TypeError(f"{name} must be real, got {points.dtype}")
    if not jnp.issubdtype(points.dtype, jnp.floating):
        points = points.astype(jnp.result_type(float))
    if points.ndim == 0:
        raise ValueError(f"{name} must be a vector, or vectors along the last axis, got a number")
    return working_precision(points), lambda out: out.astype(points.dtype)


def _where_empty(is_empty: Array, out: Array, message: str) -> Array:
    """Raise if a set is empty; where JAX traces the values, NaN in place of its points."""
    if is_concrete(is_empty) and bool(jnp.any(is_empty)):
        raise ValueError(message)
    return jnp.where(is_empty, jnp.nan, out)


def _as_radius(value: ArrayLike, name: str = "value") -> Array:
    radius = jnp.asarray(value)
    return _where_empty(radius < 0, radius, f"the set is empty: {name} must not be negative")


def projection_non_negative(x: ArrayLike, hyperparams: Any = None) -> Array:  # noqa: ARG001  # jaxopt's
    """Projection onto x ≥ 0; ``hyperparams`` is not used."""
    points, restore = _as_points(x)
    return restore(jnp.maximum(points, 0))


def projection_box(x: ArrayLike, hyperparams: tuple[ArrayLike, ArrayLike]) -> Array:
    """Projection onto lower ≤ x ≤ upper, for ``hyperparams=(lower, upper)``.

    Example:
        >>> print(projection_box(jnp.asarray([-1.0, 0.3, 2.0]), (0.0, 1.0)))
        [0.  0.3 1. ]
    """
    points, restore = _as_points(x)
    lower, upper = (jnp.asarray(bound) for bound in hyperparams)
    message = "the box is empty: a lower bound is above the upper one"
    return restore(_where_empty(lower > upper, jnp.clip(points, lower, upper), message))


def projection_hypercube(x: ArrayLike, unit: ArrayLike = 1.0) -> Array:
    """Projection onto 0 ≤ x ≤ unit."""
    return projection_box(x, (0.0, unit))


def projection_linf_ball(x: ArrayLike, max_value: ArrayLike = 1.0) -> Array:
    """Projection onto ‖x‖_∞ ≤ max_value."""
    points, restore = _as_points(x)
    radius = _as_radius(max_value, "max_value")
    return restore(jnp.clip(points, -radius, radius))


def projection_simplex(x: ArrayLike, value: ArrayLike | None = 1.0) -> Array:
    """Projection onto x ≥ 0, Σ x = value; None stands for 1.

    Example:
        >>> print(projection_simplex(jnp.asarray([1.0, 0.5, -3.0])))
        [0.75 0.25 0.  ]
    """
    points, restore = _as_points(x)
    total = _as_radius(1.0 if value is None else value)
    is_point = total == 0
    p: Array = Simplex().project(points / jnp.where(is_point, 1, total))
    return restore(jnp.where(is_point, 0, total * p))


def projection_sparse_simplex(
    x: ArrayLike, max_nz: int, use_approx_max_nz: bool = False, value: ArrayLike | None = 1.0
) -> Array:
    """Projection onto x ≥ 0, Σ x = value with at most ``max_nz`` entries that are not zero.

    Args:
        x: (…, n).
        max_nz: how many entries may differ from zero, between 1 and n.
        use_approx_max_nz: True to find the largest entries with ``jax.lax.approx_max_k``.
        value: the sum; None stands for 1.

    Example:
        >>> print(projection_sparse_simplex(jnp.asarray([0.25, 0.5, 0.125]), 2))
        [0.375 0.625 0.   ]
    """
    points, restore = _as_points(x)
    if not 1 <= max_nz <= points.shape[-1]:
        raise ValueError(f"max_nz must be between 1 and {points.shape[-1]}, got {max_nz}")
    top = jax.lax.approx_max_k if use_approx_max_nz else jax.lax.top_k
    values, indices = top(points, max_nz)
    p = projection_simplex(values, value)
    return restore(jnp.put_along_axis(jnp.zeros_like(points), indices, p, axis=-1, inplace=False))


def projection_l1_sphere(x: ArrayLike, value: ArrayLike = 1.0) -> Array:
    """Projection onto ‖x‖₁ = value."""
    points, restore = _as_points(x)
    return restore(jnp.where(points < 0, -1, 1) * projection_simplex(jnp.abs(points), value))


def projection_l1_ball(x: ArrayLike, max_value: ArrayLike = 1.0) -> Array:
    """Projection onto ‖x‖₁ ≤ max_value.

    Example:
        >>> print(projection_l1_ball(jnp.asarray([-2.0, 1.5])))
        [-0.75  0.25]
    """
    points, restore = _as_points(x)
    is_inside = jnp.sum(jnp.abs(points), axis=-1, keepdims=True) <= jnp.asarray(max_value)
    return restore(jnp.where(is_inside, points, projection_l1_sphere(points, max_value)))


def _root_of_size(x: Array) -> Array:
    """√max |x_i| of each row, 1 for zero, as a constant; x over it, twice, has squares."""
    top = jnp.max(jnp.abs(jax.lax.stop_gradient(x)), axis=-1, keepdims=True)
    return jnp.sqrt(jnp.where(top > 0, top, 1))


def _polar(x: Array) -> tuple[Array, Array]:
    """x/‖x‖₂ and ‖x‖₂; of zero both are zero, and so is the derivative of the latter."""
    root = _root_of_size(x)
    x = x / root / root
    square = jnp.sum(x * x, axis=-1, keepdims=True)
    has_size = square != 0  # NaN is not taken for zero
    norm = jnp.sqrt(jnp.where(has_size, square, 1))
    return x / norm, jnp.where(has_size, norm * root * root, 0)


def projection_l2_sphere(x: ArrayLike, value: ArrayLike = 1.0) -> Array:
    """Projection onto ‖x‖₂ = value; zero stays where it is."""
    points, restore = _as_points(x)
    return restore(_polar(points)[0] * _as_radius(value))


def projection_l2_ball(x: ArrayLike, max_value: ArrayLike = 1.0) -> Array:
    """Projection onto ‖x‖₂ ≤ max_value.

    Example:
        >>> print(projection_l2_ball(jnp.asarray([3.0, 4.0])).round(3))
        [0.6 0.8]
    """
    points, restore = _as_points(x)
    direction, norm = _polar(points)
    is_inside = norm <= jnp.asarray(max_value)
    return restore(jnp.where(is_inside, points, direction * _as_radius(max_value)))


def _from_plane(x: Array, hyperparams: tuple[ArrayLike, ArrayLike]) -> tuple[Array, ...]:
    """The vector from the nearest point of ⟨a, x⟩ = b to x, and ⟨a, x⟩ − b in some unit, (…, 1)."""
    a, b = (jnp.asarray(parameter, x.dtype) for parameter in hyperparams)
    root = _root_of_size(a)
    a, b = a / root / root, b / root[..., 0] / root[..., 0]
    distance = (jnp.sum(a * x, axis=-1) - b)[..., None]
    return distance / jnp.sum(a * a, axis=-1, keepdims=True) * a, distance


def projection_hyperplane(x: ArrayLike, hyperparams: tuple[ArrayLike, ArrayLike]) -> Array:
    """Projection onto ⟨a, x⟩ = b, for ``hyperparams=(a, b)``.

    Example:
        >>> print(projection_hyperplane(jnp.asarray([1.0, 2.0]), (jnp.asarray([1.0, 1.0]), 1.0)))
        [0. 1.]
    """
    points, restore = _as_points(x)
    return restore(points - _from_plane(points, hyperparams)[0])


def projection_halfspace(x: ArrayLike, hyperparams: tuple[ArrayLike, ArrayLike]) -> Array:
    """Projection onto ⟨a, x⟩ ≤ b, for ``hyperparams=(a, b)``."""
    points, restore = _as_points(x)
    offset, distance = _from_plane(points, hyperparams)
    return restore(jnp.where(distance > 0, points - offset, points))


def _where_found(is_inside: Array, p: Array, x: Array, message: str, raises: bool) -> Array:
    """p, and NaN for points x that have NaN, or that no point of the set was found for."""
    is_known = ~jnp.any(jnp.isnan(x), axis=-1)
    if raises:
        p = _where_empty((is_known & ~is_inside)[..., None], p, message)
    return jnp.where((is_known & is_inside)[..., None], p, jnp.nan)


def _as_equations(rows: ArrayLike, levels: ArrayLike, x: Array, names: str) -> Any:
    matrix, vector = (jnp.asarray(given, x.dtype) for given in (rows, levels))
    if matrix.ndim != 2 or matrix.shape[1] != x.shape[-1] or vector.shape != matrix.shape[:1]:
        raise ValueError(
            f"{names} must have shapes (m, {x.shape[-1]}) and (m,) to go with x, got "
            f"{matrix.shape} and {vector.shape}"
        )
    return matrix, vector


def projection_affine_set(x: ArrayLike, hyperparams: tuple[ArrayLike, ArrayLike]) -> Array:
    """Projection onto A x = b, for ``hyperparams=(A, b)``; rows of A may be dependent.

    Example:
        >>> equations = jnp.asarray([[1.0, 1.0, 0.0], [0.0, 1.0, 1.0]]), jnp.asarray([1.0, 1.0])
        >>> print(jnp.array_str(projection_affine_set(jnp.zeros(3), equations), precision=3))
        [0.333 0.667 0.333]
    """
    matrix, vector = hyperparams
    nothing = jnp.zeros((0, _as_points(x)[0].shape[-1])), jnp.zeros(0)
    return projection_polyhedron(x, (matrix, vector, *nothing))


def projection_polyhedron(
    x: ArrayLike,
    hyperparams: tuple[ArrayLike, ArrayLike, ArrayLike, ArrayLike],
    check_feasible: bool = True,
) -> Array:
    """Projection onto A x = b, G x ≤ h, for ``hyperparams=(A, b, G, h)``.

    By a dual active-set method, which ends after finitely many steps: some for each inequality that
    holds with equality at the answer, which is exact up to rounding errors. Meant for up to a few
    hundred rows.

    Args:
        x: (…, n).
        hyperparams: A (m, n), b (m,), G (l, n) and h (l,); m or l may be 0.
        check_feasible: True for an error where the polyhedron is empty, False for NaN. Where JAX
            traces the values, it is NaN.

    Example:
        >>> budget = jnp.ones((1, 3)), jnp.ones(1)
        >>> at_most = jnp.eye(3), jnp.full(3, 0.5)
        >>> p = projection_polyhedron(jnp.asarray([2.0, 0.5, 0.1]), (*budget, *at_most))
        >>> print(jnp.array_str(p, precision=3))
        [0.5 0.45 0.05]
    """
    points, restore = _as_points(x)
    equations = _as_equations(*hyperparams[:2], points, "A and b")
    inequalities = _as_equations(*hyperparams[2:], points, "G and h")
    rows, levels = map(jnp.concatenate, zip(equations, inequalities, strict=True))
    if len(levels) == 0:
        return restore(points)
    p, is_inside = nearest_of_rows(points, rows, levels, len(equations[1]))
    message = "the polyhedron is empty: no point fulfils A x = b and G x <= h"
    return restore(_where_found(is_inside, p, points, message, check_feasible))


def projection_box_section(
    x: ArrayLike,
    hyperparams: tuple[ArrayLike, ArrayLike, ArrayLike, ArrayLike],
    check_feasible: bool = False,
) -> Array:
    """Projection onto alpha ≤ x ≤ beta, ⟨w, x⟩ = c, for ``hyperparams=(alpha, beta, w, c)``.

    Exact: x + τ w, clipped, is linear in τ between breakpoints, which are sorted.

    Args:
        x: (…, n).
        hyperparams: bounds, which may be infinite, and weights, all of which broadcast to x; and a
            number c, or one for each row.
        check_feasible: True for an error where the set is empty, False for NaN. Where JAX traces
            the values, it is NaN.

    Example:
        >>> hyperparams = jnp.zeros(3), jnp.ones(3), jnp.asarray([1.0, 1.0, 2.0]), 2.0
        >>> print(projection_box_section(jnp.asarray([0.2, 0.9, 0.0]), hyperparams))
        [0.36 1.   0.32]
    """
    points, restore = _as_points(x)
    alpha, beta, w, c = (jnp.asarray(parameter, points.dtype) for parameter in hyperparams)
    alpha, beta, w = (jnp.broadcast_to(bound, points.shape) for bound in (alpha, beta, w))
    c = jnp.broadcast_to(c, points.shape[:-1])[..., None]
    # entries end at the top where τ is large, and begin at the bottom
    top, bottom = jnp.where(w > 0, beta, alpha), jnp.where(w > 0, alpha, beta)
    is_before, is_past = _sides(*map(jax.lax.stop_gradient, (points, w, bottom, top, c)))
    is_free = ~(is_before | is_past) & (w != 0)
    fixed = jnp.where(is_past, top, jnp.where(is_before, bottom, 0))
    fixed = jnp.where(w == 0, 0, fixed)  # which may be infinite
    rest = c - jnp.sum(w * jnp.where(is_free, points, fixed), axis=-1, keepdims=True)
    square = jnp.sum(jnp.where(is_free, w * w, 0), axis=-1, keepdims=True)
    tau = rest / jnp.where(square > 0, square, 1)
    p = jnp.where(is_free, points + tau * w, jnp.where(w == 0, points, fixed))
    p = jnp.clip(p, alpha, beta)
    products = w * p
    error = jnp.abs(jnp.sum(products, axis=-1) - c[..., 0])
    size = jnp.sum(jnp.abs(products) + jnp.abs(w * points), axis=-1) + jnp.abs(c[..., 0])
    is_inside = error <= membership_tolerance(p) * size
    message = "the box section is empty: no point of the box alpha <= x <= beta has ⟨w, x⟩ = c"
    return restore(_where_found(is_inside, p, points, message, check_feasible))


def _sides(x: Array, w: Array, bottom: Array, top: Array, c: Array) -> tuple[Array, Array]:
    """Which entries of the projection are at the bottom, and which at the top of their box."""
    divisor = jnp.where(w == 0, 1, w)
    first, last = (jnp.where(w == 0, jnp.inf, (end - x) / divisor) for end in (bottom, top))
    breakpoints = jnp.sort(jnp.concatenate([first, last], axis=-1), axis=-1)
    n_breakpoints = breakpoints.shape[-1]

    def end_of(count: Array) -> Array:
        """The breakpoint, from 1 on."""
        at = jnp.clip(count - 1, 0, n_breakpoints - 1)
        found = jnp.take_along_axis(breakpoints, at, axis=-1)
        return jnp.where(count < 1, -jnp.inf, jnp.where(count > n_breakpoints, jnp.inf, found))

    def is_below(tau: Array) -> Array:
        p = jnp.where(tau <= first, bottom, jnp.where(tau >= last, top, x + tau * w))
        return jnp.sum(jnp.where(w == 0, 0, w * p), axis=-1, keepdims=True) <= c

    count = jnp.zeros_like(c, int)  # of the breakpoints before τ
    for bit in reversed(range(n_breakpoints.bit_length())):
        trial = count + 2**bit
        count = jnp.where((trial <= n_breakpoints) & is_below(end_of(trial)), trial, count)
    return first >= end_of(count + 1), last <= end_of(count)


def projection_transport(sim_matrix: ArrayLike, marginals: tuple[ArrayLike, ArrayLike]) -> Array:
    """Projection onto plans P ≥ 0 with row sums a and column sums b, ``marginals=(a, b)``.

    Exact, by Newton's method. Marginals are positive, with the same total; they may be traced.

    Args:
        sim_matrix: (…, n, m).
        marginals: row sums (n,) and column sums (m,).

    Example:
        >>> marginals = jnp.asarray([1.0, 2.0]), jnp.asarray([0.5, 1.5, 1.0])
        >>> scores = jnp.asarray([[2.0, 0.0, 0.0], [0.0, 1.0, 1.0]])
        >>> print(jnp.array_str(projection_transport(scores, marginals), precision=3))
        [[0.5   0.375 0.125]
         [0.    1.125 0.875]]
    """
    return _onto_plans(PositivePart(), sim_matrix, marginals)


def kl_projection_transport(sim_matrix: ArrayLike, marginals: tuple[ArrayLike, ArrayLike]) -> Array:
    """The plan with the least KL(P ‖ exp(sim_matrix)), by Sinkhorn and Newton.

    The arguments are those of :func:`projection_transport`.

    Example:
        >>> marginals = jnp.asarray([1.0, 2.0]), jnp.asarray([0.5, 1.5, 1.0])
        >>> scores = jnp.asarray([[2.0, 0.0, 0.0], [0.0, 1.0, 1.0]])
        >>> print(jnp.array_str(kl_projection_transport(scores, marginals), precision=3))
        [[0.428 0.343 0.229]
         [0.072 1.157 0.771]]
    """
    entries = EntropyEntries(SoftmaxFormulas(jnp.zeros(())))
    return _onto_plans(entries, sim_matrix, marginals)


def _onto_plans(
    entries: Entries, sim_matrix: ArrayLike, marginals: tuple[ArrayLike, ArrayLike]
) -> Array:
    """The plan whose entries are p(s), at s = scores − u − v."""
    x, restore = _as_points(sim_matrix, "sim_matrix")
    a, b = (jnp.asarray(sums, x.dtype) for sums in marginals)
    if x.shape[-2:] != a.shape + b.shape:
        raise ValueError(
            f"sim_matrix must have shape (…, n, m) to go with marginals (n,) and (m,), got "
            f"{x.shape}, {a.shape} and {b.shape}"
        )
    totals = jnp.sum(a), jnp.sum(b)
    is_off = jnp.abs(totals[0] - totals[1]) > membership_tolerance(x) * totals[0]
    is_empty = is_off | jnp.any(a <= 0) | jnp.any(b <= 0)
    a = _where_empty(is_empty, a, "marginals must be positive and have the same total")
    fixed = [jax.lax.stop_gradient(array) for array in (x, a, b)]
    s = solve_potentials(entries, *fixed)
    p, d = entries.point(s)
    # zeros, but not to those who differentiate
    dx, da, db = (array - still for array, still in zip((x, a, b), fixed, strict=True))
    alpha, beta = solve_sums(d, da + jnp.zeros_like(d[..., 0]), db + jnp.zeros_like(d[..., 0, :]))
    return restore(p + tangent(d, dx) + d * (alpha[..., None] + beta[..., None, :]))


def _unit_marginals(sim_matrix: ArrayLike) -> tuple[Array, Array]:
    shape = jnp.shape(sim_matrix)
    if len(shape) < 2 or shape[-1] != shape[-2]:
        raise ValueError(f"sim_matrix must be square, (…, n, n), got {shape}")
    return jnp.ones(shape[-1]), jnp.ones(shape[-1])


def projection_birkhoff(sim_matrix: ArrayLike) -> Array:
    """Projection onto doubly stochastic matrices, (…, n, n).

    Example:
        >>> scores = jnp.asarray([[0.9, 0.1], [0.3, 0.5]])
        >>> print(jnp.array_str(projection_birkhoff(scores), precision=3))
        [[0.75 0.25]
         [0.25 0.75]]
    """
    return projection_transport(sim_matrix, _unit_marginals(sim_matrix))


def kl_projection_birkhoff(sim_matrix: ArrayLike) -> Array:
    """The doubly stochastic matrix with the least KL(P ‖ exp(sim_matrix)), (…, n, n)."""
    return kl_projection_transport(sim_matrix, _unit_marginals(sim_matrix))
