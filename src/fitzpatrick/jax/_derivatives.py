r"""Derivatives, all of them, in one place.

With the maximiser :math:`y^\star` of a loss at (y, θ), and J its Jacobian in θ, which is what
``hessian_product`` applies,

.. math::
    \mathrm{d}L &= \langle y^\star - y, \mathrm{d}\theta\rangle
                 + \langle \nabla\Psi(z) - \theta, \mathrm{d}y\rangle, \qquad
                   z = y \text{ (Fenchel-Young)},\; y^\star \text{ (Fitzpatrick)} \\
    \mathrm{d}y^\star &= J\,(\mathrm{d}\theta + \nabla^2\Psi(y^\star)\,\mathrm{d}y), \qquad
                   \text{the last term for Fitzpatrick alone.}

Two functions carry these rules, :func:`value` and :func:`maximizer`; since each rule is written in
terms of the two, it can be differentiated again, in either mode. Targets are an array of the shape
of the scores, or integer labels without its last axis.
"""

import functools
from typing import Any

import jax
import jax.numpy as jnp
from jax.custom_derivatives import SymbolicZero

from ..losses import FenchelYoungLoss, Loss

__all__ = ["maximizer", "value"]

# A point at which every potential is smooth.
_INSIDE = 0.5


def _are_labels(targets: jax.Array) -> bool:
    return bool(jnp.issubdtype(targets.dtype, jnp.integer))


def _is_zero(tangent: Any) -> bool:
    """Whether the argument is not being differentiated, so that its term can be left out."""
    return isinstance(tangent, SymbolicZero)


@functools.partial(jax.custom_jvp, nondiff_argnums=(0,))
def value(loss: Loss, targets: jax.Array, scores: jax.Array) -> jax.Array:
    """The loss of each row, shape (…)."""
    solve = loss.solve_labels if _are_labels(targets) else loss.solve
    out: jax.Array = solve(targets, scores).value()
    return out


@functools.partial(jax.custom_jvp, nondiff_argnums=(0,))
def maximizer(loss: Loss, targets: jax.Array, scores: jax.Array) -> jax.Array:
    """y*, shape (…, k); with labels y* − e_label, which moves alike and keeps its digits."""
    out: jax.Array
    if _are_labels(targets):
        out = loss.solve_labels(targets, scores).gradient()
    else:
        out = loss.solve(targets, scores).y_star
    return out


def _score_gradient(loss: Loss, targets: jax.Array, scores: jax.Array) -> jax.Array:
    """y* − y."""
    moving = maximizer(loss, targets, scores)
    return moving if _are_labels(targets) else moving - targets


def _target_gradient(loss: Loss, targets: jax.Array, scores: jax.Array) -> jax.Array:
    """∇Ψ(z) − θ; 0 where a score of −∞ keeps the class, and so its target, at 0."""
    is_fenchel_young = isinstance(loss, FenchelYoungLoss)
    z = targets if is_fenchel_young else maximizer(loss, targets, scores)
    removed = (scores == -jnp.inf) & (targets == 0)
    # a removed class is given harmless values, so that further derivatives are 0 there as well
    slope = loss.regularizer.potential_gradient(jnp.where(removed, _INSIDE, z))
    return jnp.where(removed, 0, slope - jnp.where(removed, 0, scores))


@functools.partial(value.defjvp, symbolic_zeros=True)
def _value_jvp(loss: Loss, primals: Any, tangents: Any) -> tuple[jax.Array, jax.Array]:
    targets, scores = primals
    targets_dot, scores_dot = tangents
    out = value(loss, targets, scores)
    out_dot = jnp.zeros_like(out)
    if not _is_zero(scores_dot):
        out_dot += jnp.sum(_score_gradient(loss, targets, scores) * scores_dot, axis=-1)
    if not (_is_zero(targets_dot) or _are_labels(targets)):
        out_dot += jnp.sum(_target_gradient(loss, targets, scores) * targets_dot, axis=-1)
    return out, out_dot


@functools.partial(maximizer.defjvp, symbolic_zeros=True)
def _maximizer_jvp(loss: Loss, primals: Any, tangents: Any) -> tuple[jax.Array, jax.Array]:
    targets, scores = primals
    targets_dot, scores_dot = tangents
    out = maximizer(loss, targets, scores)
    push = jnp.zeros_like(out) if _is_zero(scores_dot) else scores_dot
    if _are_labels(targets):
        return out, loss.solve_labels(targets, scores).hessian_product(push)
    if not (_is_zero(targets_dot) or isinstance(loss, FenchelYoungLoss)):
        push = push + _pull_of_targets(loss, out, targets_dot)
    return out, loss.solve(targets, scores).hessian_product(push)


def _pull_of_targets(loss: Loss, y_star: jax.Array, targets_dot: jax.Array) -> jax.Array:
    """∇²Ψ(y*) dy; 0 where ∇²Ψ is infinite, on the boundary, where y* does not move."""
    gradient = loss.regularizer.potential_gradient
    _, curvature = jax.jvp(gradient, (y_star,), (jnp.ones_like(y_star),))
    still = ~jnp.isfinite(curvature)
    inside = jnp.where(still, _INSIDE, y_star)
    pull: jax.Array
    _, pull = jax.jvp(gradient, (inside,), (jnp.where(still, 0, targets_dot),))
    return pull
