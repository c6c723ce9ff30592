r"""Derivatives, all of them, in one place.

With the maximizer :math:`y^\star` of a loss of tightness c at (y, θ), and J its Jacobian in θ,
which is what ``hessian_product`` applies,

.. math::
    \mathrm{d}L &= \langle y^\star - y, \mathrm{d}\theta\rangle
                 + \langle (1 - c) \nabla\Psi(y) + c \nabla\Psi(y^\star) - \theta,
                   \mathrm{d}y\rangle \\
    \mathrm{d}y^\star &= J\,(\mathrm{d}\theta + c\,\nabla^2\Psi(y^\star)\,\mathrm{d}y).

Two functions carry these rules: :func:`value`, and :func:`value_and_maximizer`, in terms of which
the rules are written, so that they can be differentiated again, in either mode. (The third
derivative and those above it are JAX's, of the formulas in the core.) Targets are an array of the
shape of the scores, or integer labels without its last axis.
"""

import functools
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array
from jax.custom_derivatives import SymbolicZero

from .._array import is_integer
from ..losses import Loss

# A point at which every potential is smooth.
_INSIDE = 0.5


def _is_zero(tangent: Any) -> bool:
    """True if the argument is not being differentiated, so that its term can be left out."""
    return isinstance(tangent, SymbolicZero)


@functools.partial(jax.custom_jvp, nondiff_argnums=(0,))
def value(loss: Loss, targets: Array, scores: Array) -> Array:
    """The loss of each row, shape (…)."""
    solve = loss.solve_labels if is_integer(targets) else loss.solve
    out: Array = solve(targets, scores).value()
    return out


@functools.partial(jax.custom_jvp, nondiff_argnums=(0,))
def value_and_maximizer(loss: Loss, targets: Array, scores: Array) -> tuple[Array, Array]:
    """The loss, and y*, shape (…, k); with labels y* − e_label, which keeps its digits."""
    if is_integer(targets):
        at_labels = loss.solve_labels(targets, scores)
        return at_labels.value(), at_labels.gradient()
    solution = loss.solve(targets, scores)
    return solution.value(), solution.y_star


def _differential(loss: Loss, primals: Any, tangents: Any) -> tuple[Array, Array, Array]:
    """The loss, its maximizer as above, and dL."""
    targets, scores = primals
    targets_dot, scores_dot = tangents
    out, moving = value_and_maximizer(loss, targets, scores)
    out_dot = jnp.zeros_like(out)
    if not _is_zero(scores_dot):
        gradient = moving
        if not is_integer(targets):  # targets of removed classes cannot move
            gradient -= jnp.where(_removed(targets, scores), 0, targets)
        out_dot += jnp.sum(gradient * scores_dot, axis=-1)
    if not (_is_zero(targets_dot) or is_integer(targets)):
        slope = _target_gradient(loss, moving, targets, scores)
        out_dot += jnp.sum(slope * targets_dot, axis=-1)
    return out, moving, out_dot


def _removed(targets: Array, scores: Array) -> Array:
    """Where a score of −∞ takes a class out, and with it its target, which stays at 0."""
    return (scores == -jnp.inf) & (targets == 0)


def _target_gradient(loss: Loss, y_star: Array, targets: Array, scores: Array) -> Array:
    """(1 − c) ∇Ψ(y) + c ∇Ψ(y*) − θ, and 0 for a removed class."""
    removed = _removed(targets, scores)
    slope = jnp.zeros_like(scores)
    for weight, z in ((1 - loss.tightness, targets), (loss.tightness, y_star)):
        if weight != 0:
            # a removed class is given harmless values, so that further derivatives are 0 there too
            inside = jnp.where(removed, _INSIDE, z)
            slope = slope + weight * loss.regularizer.potential_gradient(inside)
    return jnp.where(removed, 0, slope - jnp.where(removed, 0, scores))


@functools.partial(value.defjvp, symbolic_zeros=True)
def _value_jvp(loss: Loss, primals: Any, tangents: Any) -> tuple[Array, Array]:
    out, _, out_dot = _differential(loss, primals, tangents)
    return out, out_dot


@functools.partial(value_and_maximizer.defjvp, symbolic_zeros=True)
def _value_and_maximizer_jvp(
    loss: Loss, primals: Any, tangents: Any
) -> tuple[tuple[Array, Array], tuple[Array, Array]]:
    targets, scores = primals
    targets_dot, scores_dot = tangents
    out, moving, out_dot = _differential(loss, primals, tangents)
    push = jnp.zeros_like(scores) if _is_zero(scores_dot) else scores_dot
    if is_integer(targets):
        moving_dot = loss.solve_labels(targets, scores).hessian_product(push)
    else:
        if not (_is_zero(targets_dot) or loss.tightness == 0):
            push = push + loss.tightness * _pull_of_targets(loss, moving, targets_dot)
        moving_dot = loss.solve(targets, scores).hessian_product(push)
    return (out, moving), (out_dot, moving_dot)


def _pull_of_targets(loss: Loss, y_star: Array, targets_dot: Array) -> Array:
    """∇²Ψ(y*) dy; 0 where ∇²Ψ is infinite, on the boundary, where y* does not move."""
    gradient = loss.regularizer.potential_gradient
    _, curvature = jax.jvp(gradient, (y_star,), (jnp.ones_like(y_star),))
    still = ~jnp.isfinite(curvature)
    inside = jnp.where(still, _INSIDE, y_star)
    pull: Array
    _, pull = jax.jvp(gradient, (inside,), (jnp.where(still, 0, targets_dot),))
    return pull
