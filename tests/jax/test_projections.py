"""Projections under jaxopt's names: nearest points, batches, and derivatives in all parameters."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.test_util import check_grads

import fitzpatrick as fp
import fitzpatrick.jax as fj
from tests.helpers import assert_close, seeded

# each with its parameter by name, and the largest violation of a point
CASES = {
    "non_negative": ({}, lambda p: max(0, -p.min())),
    "box": ({"hyperparams": (-0.5, 0.5)}, lambda p: max(0, np.abs(p).max() - 0.5)),
    "simplex": ({"value": 2.0}, lambda p: max(-p.min(), abs(p.sum() - 2))),
    "l1_ball": ({"max_value": 1.5}, lambda p: max(0, np.abs(p).sum() - 1.5)),
    "l1_sphere": ({"value": 1.5}, lambda p: abs(np.abs(p).sum() - 1.5)),
    "l2_ball": ({"max_value": 0.7}, lambda p: max(0, np.linalg.norm(p) - 0.7)),
    "l2_sphere": ({"value": 0.7}, lambda p: abs(np.linalg.norm(p) - 0.7)),
}
DIFFERENCES = {"rtol": 1e-6, "atol": 1e-8}  # central ones, of smooth functions of size one


@pytest.mark.parametrize("name", CASES)
def test_projections(name):
    """In the set, and nearer than other points of it; rows as each by itself; derivatives."""
    parameter, violation = CASES[name]
    project = jax.jit(functools.partial(getattr(fj, f"projection_{name}"), **parameter))
    x = seeded(1).normal(size=(56, 4))
    p, alone = np.asarray(project(x)), jax.jit(jax.vmap(project))(x)
    assert max(map(violation, p)) < 1e-12
    distances = np.linalg.norm(x[:6, None] - p, axis=-1)
    assert np.all(distances >= np.diag(distances)[:, None] - 1e-12)
    assert_close(alone, p, rtol=0, atol=1e-14)
    if not name.endswith("sphere"):
        check_grads(project, (x[:2],), order=1, modes=["rev"], eps=1e-6, **DIFFERENCES)


def test_transport_and_birkhoff():
    """Derivatives in the matrix and in marginals, whose directions keep their totals equal."""
    x, dx, weights = seeded(5).normal(size=(3, 3, 4))
    a, b = np.asarray([0.5, 1.0, 1.5]), np.asarray([0.75, 0.75, 0.5, 1.0])
    da, db = np.asarray([1.0, -0.5, -0.5]), np.asarray([0.5, -0.5, 1.0, -1.0])

    @jax.jit
    def total(t):
        p = fj.projection_transport(x + t * dx, (a + t * da, b + t * db))
        return jnp.sum(p * weights), p

    slope = jax.jit(jax.grad(total, has_aux=True))(0.0)[0]
    p, h = total(0.0)[1], 1e-6
    assert_close(p, fp.sets.Transport(tuple(a), tuple(b)).project(x), rtol=0, atol=1e-13)
    assert_close(slope, (total(h)[0] - total(-h)[0]) / (2 * h), **DIFFERENCES)
    square = x[:, :3]
    found = jax.jit(fj.projection_birkhoff)(square)
    assert_close(found, fp.sets.Birkhoff().project(square), rtol=0, atol=1e-13)


def test_parameters_may_be_traced_and_differentiated_and_errors():
    slope = jax.jit(jax.grad(lambda radius: jnp.sum(fj.projection_simplex(jnp.ones(4), radius))))
    assert_close(slope(2.0), 1.0, rtol=0, atol=1e-12)
    with pytest.raises(ValueError, match=r"shape \(…, 2, 2\) to go with the marginals"):
        fj.projection_transport(jnp.zeros((3, 2)), (jnp.ones(2), jnp.ones(2)))
    with pytest.raises(ValueError, match="x must be a vector"):
        fj.projection_simplex(1.0)
