"""The registry as seen from JAX: functions by name, and seeded inputs."""

from __future__ import annotations

import functools
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np

import fitzpatrick as fp
import fitzpatrick.jax as fj
from fitzpatrick.sets import ConvexSet, Orthant, Reals, Simplex
from tests.helpers import scores, targets

NAMES = fp.loss_names()
SIMPLEX = [name for name in NAMES if isinstance(fp.get_loss(name).regularizer.domain, Simplex)]
LINKS = [name for name in NAMES if isinstance(fp.get_loss(name), fp.FenchelYoungLoss)]

# One loss of each kind, for what the front end does alike for all: compiling takes the time.
SOME = ["fitzpatrick_logistic", "fitzpatrick_entmax15", "sparsemax", "sigmoid"]

# One shape for most tests: JAX compiles every operation once per shape.
N, K = 6, 4


def domain(name: str) -> ConvexSet:
    return fp.get_loss(name).regularizer.domain


def function(name: str) -> Callable[..., jax.Array]:
    return getattr(fj, f"{name}_loss")


def on_labels(name: str) -> Callable[..., jax.Array]:
    return getattr(fj, f"{name}_loss_with_integer_labels")


@functools.cache
def evaluate(name: str) -> Callable[..., tuple[jax.Array, jax.Array]]:
    """Losses and gradients, compiled once for all tests."""

    @jax.jit
    def both(theta: jax.Array, y: jax.Array) -> tuple[jax.Array, jax.Array]:
        losses, pull = jax.vjp(lambda theta: function(name)(theta, y), theta)
        (gradient,) = pull(jnp.ones_like(losses))
        return losses, gradient

    return both


def draw(name: str, dtype: str = "float64", scale: float = 10.0, seed: int = 0):
    """Targets on and off the boundary, and scores of many sizes, as NumPy arrays."""
    rng = np.random.default_rng(seed)
    y = targets(domain(name), rng, N, K, dtype).astype(dtype)
    return y, scores(domain(name), rng, N, K, dtype, scale).astype(dtype)


def inside(name: str, z: jax.Array) -> jax.Array:
    """A smooth map onto the interior of the domain, along which targets can move."""
    of = domain(name)
    if isinstance(of, Simplex):
        return jax.nn.softmax(z)
    if isinstance(of, Reals):
        return z
    return jnp.exp(z) if isinstance(of, Orthant) else jax.nn.sigmoid(z)
