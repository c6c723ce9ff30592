"""Compilation, vmap, loops, several devices, and the examples."""

import os
import runpy
import subprocess
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import fitzpatrick as fp
import fitzpatrick.jax as fj
from tests.helpers import assert_close

from .cases import K, N, draw

CLOSE = {"rtol": 1e-12, "atol": 1e-13}
LOSS, CORE = fj.fitzpatrick_sparsemax_loss, fp.get_loss("fitzpatrick_sparsemax")


def test_vmap_is_a_batch():
    """Over pairs, over one argument, at labels, and of a gradient."""
    y, theta = draw("fitzpatrick_sparsemax")
    losses, gradients = jax.jit(jax.vmap(jax.value_and_grad(LOSS)))(theta, y)
    assert_close(losses, CORE.value(y, theta), **CLOSE)
    assert_close(gradients, CORE.gradient(y, theta), **CLOSE)
    per_target = jax.jit(jax.vmap(jax.grad(LOSS), in_axes=(None, 0)))(theta[0], y)
    assert_close(per_target, CORE.gradient(y, np.tile(theta[0], (N, 1))), **CLOSE)
    labels, at_labels = np.arange(N) % K, fj.fitzpatrick_sparsemax_loss_with_integer_labels
    found = jax.jit(jax.vmap(jax.grad(at_labels)))(theta, labels)
    assert_close(found, CORE.gradient(labels, theta), **CLOSE)


def test_derivatives_through_scans_and_checkpoints():
    y, theta = draw("fitzpatrick_sparsemax", scale=1.0)

    def total(theta):
        loss = jax.checkpoint(LOSS)
        return jax.lax.scan(lambda sum_, row: (sum_ + loss(*row), None), 0.0, (theta, y))[0]

    gradient = jax.jit(jax.grad(total))(jnp.asarray(theta))
    assert_close(gradient, CORE.gradient(y, theta), **CLOSE)


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
# with nine classes τ is found in a loop, which each device leaves on its own
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
    flags = f"{os.environ['XLA_FLAGS']} --xla_force_host_platform_device_count=2"
    run = subprocess.run(
        [sys.executable, "-c", SHARDED],
        env={**os.environ, "XLA_FLAGS": flags},
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
    assert run.returncode == 0, run.stderr
    assert run.stdout.strip() == "sharded"


EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.mark.parametrize("name", ["jax_train.py", "jax_lbfgs.py"])
def test_examples(name):
    """They run, in their fast mode, and find what they look for."""
    pytest.importorskip("optax")
    (found,) = runpy.run_path(str(EXAMPLES / name))["main"](["--fast"]).values()
    assert found > 0.7 if name == "jax_train.py" else found.gradient <= 1e-6
