"""The registry as seen from JAX, seeded inputs, and central differences."""

from __future__ import annotations

import functools
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np

import fitzpatrick as fp
import fitzpatrick.jax as fj
from fitzpatrick.losses import ends, regularizers_by_name
from tests.helpers import assert_close, scores, seeded, targets

# before JAX 0.8 it was an experiment
enable_x64 = jax.enable_x64 if hasattr(jax, "enable_x64") else jax.experimental.enable_x64

NAMES = fp.loss_names()
SIMPLEX = [name for name in NAMES if fp.get_loss(name).regularizer.domain.has_labels]
FITZPATRICK = [
    ends(name)[-1] for name, omega in regularizers_by_name().items() if omega.has_curvature
]

# One shape for most tests: JAX compiles every operation once per shape.
N, K = 6, 4

# Two rows, off the kinks of the piecewise quadratic losses.
SCORES = np.asarray([[0.3, -0.45, 0.2, -0.1], [1.3, 0.55, -2.0, 0.4]])
LOGITS = np.asarray([[0.1, 0.4, -0.3, -0.9], [-0.6, 0.2, 0.7, -0.2]])
STEPS = np.asarray([[0.4, -0.7, 1.1, 0.6], [-0.8, 0.3, 0.5, 1.2]])
# The error of a central difference is of the size of STEP², and its rounding 1e-16/STEP.
STEP = 1e-5


def function(
    name: str, tightness: float | None = None, ending: str = "loss"
) -> Callable[..., jax.Array]:
    """A loss at targets; None is its own tightness."""
    loss = getattr(fj, f"{name}_{ending}")
    return loss if tightness is None else functools.partial(loss, tightness=tightness)


on_labels = functools.partial(function, ending="loss_with_integer_labels")


def second_order(name: str, tightness: float | None) -> Callable[..., tuple[jax.Array, ...]]:
    """Gradients in scores and targets, and the Hessian times a direction in both modes."""

    @jax.jit
    def products(
        theta: jax.Array, y: jax.Array, theta_dot: jax.Array, y_dot: jax.Array
    ) -> tuple[jax.Array, ...]:
        def gradient(theta: jax.Array, y: jax.Array) -> tuple[jax.Array, jax.Array]:
            losses, pull = jax.vjp(function(name, tightness), theta, y)
            return pull(jnp.ones_like(losses))

        direction = (theta_dot, y_dot)
        slopes, forward = jax.jvp(gradient, (theta, y), direction)
        reverse = jax.vjp(gradient, theta, y)[1](direction)
        return (*slopes, *forward, *reverse)

    return products


def draw(name: str, scale: float = 2.0) -> tuple[np.ndarray, np.ndarray]:
    """Targets on and off the boundary, and scores of many sizes, as NumPy arrays."""
    rng, domain = seeded(0), fp.get_loss(name).regularizer.domain
    y = targets(domain, rng, N, K, "float64")
    return y, scores(domain, rng, N, K, "float64", scale)


def inside(name: str, z: np.ndarray) -> np.ndarray:
    """Points in the interior of the domain, one for each row of numbers."""
    domain = fp.get_loss(name).regularizer.domain
    if domain.has_labels:
        return np.exp(z) / np.exp(z).sum(axis=-1, keepdims=True)
    lower, upper = domain.bounds
    if np.isfinite(upper):
        return lower + (upper - lower) / (1 + np.exp(-z))
    return lower + np.exp(z) if np.isfinite(lower) else z


def target_rows(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Targets inside the domain, and directions from one to another."""
    y = inside(name, LOGITS)
    return y, inside(name, LOGITS[::-1]) - y


def along(point: np.ndarray, direction: np.ndarray) -> np.ndarray:
    """Rows at a point and a step to either side of it, in one array of N rows."""
    return np.concatenate([point, point + STEP * direction, point - STEP * direction])


def here(values: jax.Array) -> np.ndarray:
    """What was computed at the point itself."""
    return np.asarray(values)[: len(SCORES)]


def assert_is_slope(derivative: jax.Array, values: jax.Array, atol: float = 1e-8) -> None:
    """Against central differences of what was computed at such rows."""
    _, ahead, back = np.split(np.asarray(values), 3)
    assert_close(here(derivative), (ahead - back) / (2 * STEP), rtol=1e-6, atol=atol)
