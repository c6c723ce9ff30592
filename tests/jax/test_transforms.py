"""Compilation, loops and several devices."""

import os
import pickle
import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import fitzpatrick as fp
import fitzpatrick.jax as fj
from tests.helpers import assert_close

from .cases import K, N, draw


@pytest.mark.parametrize("name", ["fitzpatrick_sigmoid", "sparsemax"])
def test_compiled_once_for_repeated_shapes(name):
    traces = []

    @jax.jit
    def step(theta, y):
        traces.append(theta.shape)
        return jax.value_and_grad(lambda t: getattr(fj, f"{name}_loss")(t, y).sum())(theta)

    for seed in range(3):
        y, theta = draw(name, seed=seed)
        step(theta, y)
    assert traces == [(N, K)]
    step(theta[:2], y[:2])
    assert traces == [(N, K), (2, K)]


def test_gradient_descent_in_a_scan():
    y, theta = draw("fitzpatrick_sparsemax", scale=1.0)

    def step(theta, _):
        gradient = jax.grad(lambda t: fj.fitzpatrick_sparsemax_loss(t, y).sum())(theta)
        theta = theta - gradient
        return theta, fj.fitzpatrick_sparsemax_loss(theta, y)

    _, losses = jax.jit(lambda theta: jax.lax.scan(step, theta, length=20))(jnp.asarray(theta))
    assert losses.shape == (20, N)
    assert np.all(np.diff(np.asarray(losses), axis=0) <= 1e-15)
    assert np.all(losses[-1] <= 0.5 * losses[0])  # which may be zero from the start


def test_derivative_through_a_scan_and_a_checkpoint():
    y, theta = draw("fitzpatrick_sparsemax", scale=1.0)

    def total(theta):
        loss = jax.checkpoint(fj.fitzpatrick_sparsemax_loss)
        return jax.lax.scan(lambda sum_, row: (sum_ + loss(*row), None), 0.0, (theta, y))[0]

    expected = fp.get_loss("fitzpatrick_sparsemax").gradient(y, theta)
    assert_close(jax.jit(jax.grad(total))(jnp.asarray(theta)), expected, rtol=1e-12, atol=1e-14)


SHARDED = """
import jax, jax.numpy as jnp, numpy as np
from jax.sharding import Mesh, PartitionSpec as P
from fitzpatrick.jax import fitzpatrick_sparsemax_loss as loss
if hasattr(jax, "shard_map"):
    from jax import shard_map
else:  # before version 0.7
    from jax.experimental.shard_map import shard_map

assert jax.device_count() == 2, jax.devices()
rng = np.random.default_rng(0)
# so many classes that τ is found in a loop, which each device leaves on its own
theta = jnp.asarray(rng.normal(size=(6, 9)), dtype=jnp.float32)
y = jnp.asarray(rng.dirichlet(np.ones(9), size=6), dtype=jnp.float32)
mesh = Mesh(np.asarray(jax.devices()), ("batch",))
rows = P("batch")

def mean(theta, y):
    return jax.lax.pmean(loss(theta, y).mean(), "batch")

whole = jax.jit(jax.value_and_grad(lambda t: loss(t, y).mean()))(theta)
sharded = jax.jit(shard_map(mean, mesh=mesh, in_specs=(rows, rows), out_specs=P()))
split = jax.jit(jax.value_and_grad(sharded))(theta, y)
mapped = jax.pmap(loss)(theta.reshape(2, 3, 9), y.reshape(2, 3, 9))
for a, b in (*zip(whole, split), (jax.jit(loss)(theta, y).reshape(2, 3), mapped)):
    np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-7)
if hasattr(jax, "set_mesh"):  # scores are sharded and labels are replicated, as optax allows
    from jax.sharding import AxisType
    from fitzpatrick.jax import fitzpatrick_entmax15_loss_with_integer_labels as at_labels

    with jax.set_mesh(jax.make_mesh((2,), ("batch",), axis_types=(AxisType.Explicit,))):
        rows = jax.device_put(theta, P("batch", None))
        gradient = jax.jit(jax.grad(lambda t: at_labels(t, jnp.arange(6)).sum()))(rows)
        assert gradient.sharding.spec == P("batch", None)
        jax.jit(jax.grad(lambda t: loss(t, np.asarray(y)).sum()))(rows)
print("sharded")
"""


def test_batches_over_two_devices():
    """In a process of its own: the number of devices is fixed once JAX has started."""
    flags = "--xla_force_host_platform_device_count=2"
    run = subprocess.run(
        [sys.executable, "-c", SHARDED],
        env={**os.environ, "XLA_FLAGS": flags, "JAX_PLATFORMS": "cpu"},
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
    assert run.returncode == 0, run.stderr
    assert run.stdout.strip() == "sharded"


def test_functions_can_be_pickled():
    f = fj.fitzpatrick_entmax15_loss
    assert pickle.loads(pickle.dumps(f)) is f
