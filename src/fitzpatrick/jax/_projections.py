"""Projections onto convex sets, with the names and signatures of jaxopt.

Vectors are the last axis, and there may be more axes before it. All of them jit, vmap and
differentiate, in their parameters too.
"""

from typing import Any

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike

from ..sets import Birkhoff, Simplex
from ..sets.potentials import solve_potentials, solve_sums, tangent
from ..sets.transport import PositivePart
from ._arguments import _as_array

__all__ = [
    "projection_birkhoff",
    "projection_box",
    "projection_l1_ball",
    "projection_l1_sphere",
    "projection_l2_ball",
    "projection_l2_sphere",
    "projection_non_negative",
    "projection_simplex",
    "projection_transport",
]


def _as_points(x: ArrayLike, name: str = "x") -> jax.Array:
    points = _as_array(x, name)
    if not jnp.issubdtype(points.dtype, jnp.floating):
        points = points.astype(jnp.result_type(float))
    if points.ndim == 0:
        raise ValueError(f"{name} must be a vector, or vectors along the last axis, got a number")
    return points


def projection_non_negative(x: ArrayLike, hyperparams: Any = None) -> jax.Array:  # noqa: ARG001  # jaxopt's
    """Projection onto x ≥ 0; ``hyperparams`` is not used."""
    return jnp.maximum(_as_points(x), 0)


def projection_box(x: ArrayLike, hyperparams: tuple[ArrayLike, ArrayLike]) -> jax.Array:
    """Projection onto lower ≤ x ≤ upper, for ``hyperparams=(lower, upper)``.

    Example:
        >>> print(projection_box(jnp.asarray([-1.0, 0.3, 2.0]), (0.0, 1.0)))
        [0.  0.3 1. ]
    """
    lower, upper = hyperparams
    return jnp.clip(_as_points(x), lower, upper)


def projection_simplex(x: ArrayLike, value: ArrayLike = 1.0) -> jax.Array:
    """Projection onto x ≥ 0, Σ x = value, for a positive value.

    Example:
        >>> print(projection_simplex(jnp.asarray([1.0, 0.5, -3.0])))
        [0.75 0.25 0.  ]
    """
    total = jnp.asarray(value)
    p: jax.Array = total * Simplex().project(_as_points(x) / total)
    return p


def projection_l1_sphere(x: ArrayLike, value: ArrayLike = 1.0) -> jax.Array:
    """Projection onto ‖x‖₁ = value."""
    points = _as_points(x)
    return jnp.where(points < 0, -1, 1) * projection_simplex(jnp.abs(points), value)


def projection_l1_ball(x: ArrayLike, max_value: ArrayLike = 1.0) -> jax.Array:
    """Projection onto ‖x‖₁ ≤ max_value.

    Example:
        >>> print(projection_l1_ball(jnp.asarray([-2.0, 1.5])))
        [-0.75  0.25]
    """
    points = _as_points(x)
    is_inside = jnp.sum(jnp.abs(points), axis=-1, keepdims=True) <= jnp.asarray(max_value)
    return jnp.where(is_inside, points, projection_l1_sphere(points, max_value))


def _norm(points: jax.Array) -> jax.Array:
    """‖x‖₂, with a derivative of zero at zero."""
    square = jnp.sum(points * points, axis=-1, keepdims=True)
    return jnp.where(square > 0, jnp.sqrt(jnp.where(square > 0, square, 1)), 0)


def projection_l2_sphere(x: ArrayLike, value: ArrayLike = 1.0) -> jax.Array:
    """Projection onto ‖x‖₂ = value; zero stays where it is."""
    points = _as_points(x)
    norm = _norm(points)
    return points * (jnp.asarray(value) / jnp.where(norm > 0, norm, 1))


def projection_l2_ball(x: ArrayLike, max_value: ArrayLike = 1.0) -> jax.Array:
    """Projection onto ‖x‖₂ ≤ max_value.

    Example:
        >>> print(projection_l2_ball(jnp.asarray([3.0, 4.0])).round(3))
        [0.6 0.8]
    """
    points = _as_points(x)
    is_inside = _norm(points) <= jnp.asarray(max_value)
    return jnp.where(is_inside, points, projection_l2_sphere(points, max_value))


def projection_transport(
    sim_matrix: ArrayLike, marginals: tuple[ArrayLike, ArrayLike]
) -> jax.Array:
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
    x = _as_points(sim_matrix, "sim_matrix")
    a, b = (jnp.asarray(sums, x.dtype) for sums in marginals)
    if x.ndim < 2 or x.shape[-2:] != (a.shape[-1], b.shape[-1]):
        raise ValueError(
            f"sim_matrix must have shape (…, {a.shape[-1]}, {b.shape[-1]}) to go with the "
            f"marginals, got {x.shape}"
        )
    fixed = [jax.lax.stop_gradient(array) for array in (x, a, b)]
    p, d = PositivePart().point(solve_potentials(PositivePart(), *fixed))
    # zeros, but not to those who differentiate
    dx, da, db = (array - still for array, still in zip((x, a, b), fixed, strict=True))
    alpha, beta = solve_sums(d, da + jnp.zeros_like(d[..., 0]), db + jnp.zeros_like(d[..., 0, :]))
    out: jax.Array = p + tangent(d, dx) + d * (alpha[..., None] + beta[..., None, :])
    return out


def projection_birkhoff(sim_matrix: ArrayLike) -> jax.Array:
    """Projection onto doubly stochastic matrices, (…, n, n).

    Example:
        >>> scores = jnp.asarray([[0.9, 0.1], [0.3, 0.5]])
        >>> print(jnp.array_str(projection_birkhoff(scores), precision=3))
        [[0.75 0.25]
         [0.25 0.75]]
    """
    p: jax.Array = Birkhoff().project(_as_points(sim_matrix, "sim_matrix"))
    return p
