"""The registry as seen from JAX: functions by name, seeded inputs, and what is compiled once."""

from __future__ import annotations

import functools
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np

import fitzpatrick as fp
import fitzpatrick.jax as fj
from fitzpatrick.losses import ends, regularizers_by_name
from fitzpatrick.sets import ConvexSet
from tests.helpers import TEST_ALL, scores, seeded, targets

# before JAX 0.8 it was an experiment
enable_x64 = jax.enable_x64 if hasattr(jax, "enable_x64") else jax.experimental.enable_x64

NAMES = fp.loss_names()
LINKS = list(regularizers_by_name())
SIMPLEX = [name for name in NAMES if fp.get_loss(name).regularizer.domain.has_labels]
FITZPATRICK = [
    ends(name)[-1] for name, omega in regularizers_by_name().items() if omega.has_curvature
]

# One loss of each kind, for what the front end does alike for all: compiling takes the time.
SOME = ["fitzpatrick_logistic", "fitzpatrick_entmax15", "sparsemax", "sigmoid", "squared"]

# A loss at a tightness; None is its own.
Case = tuple[str, float | None]
OTHERS = (0.25, 0.5, 2.0)
ALL_OTHERS: list[Case] = [(name, tightness) for name in FITZPATRICK for tightness in OTHERS]
# The losses take turns at the other tightnesses.
IN_TURN: list[Case] = [(name, OTHERS[i % len(OTHERS)]) for i, name in enumerate(FITZPATRICK)]
CASES: list[Case] = [(name, None) for name in NAMES]
CASES += ALL_OTHERS if TEST_ALL else []

# One shape for most tests: JAX compiles every operation once per shape.
N, K = 6, 4


def domain(name: str) -> ConvexSet:
    return fp.get_loss(name).regularizer.domain


def function(name: str, tightness: float | None = None) -> Callable[..., jax.Array]:
    loss = getattr(fj, f"{name}_loss")
    return loss if tightness is None else functools.partial(loss, tightness=tightness)


def on_labels(name: str, tightness: float | None = None) -> Callable[..., jax.Array]:
    loss = getattr(fj, f"{name}_loss_with_integer_labels")
    return loss if tightness is None else functools.partial(loss, tightness=tightness)


def evaluate(
    name: str, tightness: float | None = None
) -> Callable[..., tuple[jax.Array, jax.Array, jax.Array]]:
    """Losses and their gradients in scores and targets, compiled once for all tests."""
    return _evaluate(name, tightness)  # the cache tells a default from the same value


@functools.cache
def _evaluate(
    name: str, tightness: float | None
) -> Callable[..., tuple[jax.Array, jax.Array, jax.Array]]:
    @jax.jit
    def all_three(theta: jax.Array, y: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
        losses, pull = jax.vjp(function(name, tightness), theta, y)
        return (losses, *pull(jnp.ones_like(losses)))

    return all_three


@functools.cache
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


def forget() -> None:
    """Drop what was compiled."""
    _evaluate.cache_clear()
    second_order.cache_clear()


def draw(
    name: str, dtype: str = "float64", scale: float = 10.0, seed: int = 0
) -> tuple[np.ndarray, np.ndarray]:
    """Targets on and off the boundary, and scores of many sizes, as NumPy arrays."""
    rng = seeded(seed)
    y = targets(domain(name), rng, N, K, dtype).astype(dtype)
    return y, scores(domain(name), rng, N, K, dtype, scale).astype(dtype)


def inside(name: str, z: np.ndarray) -> np.ndarray:
    """Points in the interior of the domain, one for each row of numbers."""
    of = domain(name)
    if of.has_labels:
        return np.exp(z) / np.exp(z).sum(axis=-1, keepdims=True)
    lower, upper = of.bounds
    if np.isfinite(upper):
        return lower + (upper - lower) / (1 + np.exp(-z))
    return lower + np.exp(z) if np.isfinite(lower) else z
