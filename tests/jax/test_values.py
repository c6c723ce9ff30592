"""Values and gradients: those of the core, under every transformation, in every dtype."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import fitzpatrick as fp
import fitzpatrick.jax as fj
from tests.helpers import assert_close, seeded

from .cases import (
    NAMES,
    SOME,
    TEST_ALL,
    K,
    N,
    draw,
    enable_x64,
    evaluate,
    function,
)


@pytest.mark.parametrize("dtype", ["float64", "float32", "bfloat16", "float16"])
@pytest.mark.parametrize("name", NAMES)
def test_results_have_the_dtype_of_the_scores(name, dtype):
    """Without a compiled function: by tracing alone."""
    theta = jax.ShapeDtypeStruct((N, K), dtype)
    y = jax.ShapeDtypeStruct((N, K), "float32")
    losses, in_scores, in_targets = jax.eval_shape(evaluate(name), theta, y)
    assert (losses.shape, losses.dtype) == ((N,), dtype)
    assert (in_scores.shape, in_scores.dtype) == ((N, K), dtype)
    assert (in_targets.shape, in_targets.dtype) == ((N, K), "float32")


@pytest.mark.parametrize("name", ["logistic", "fitzpatrick_squared"])
def test_leading_axes_are_examples(name):
    y, theta = draw(name)
    losses = jax.jit(function(name))
    expected = fp.get_loss(name).value(y, theta)
    stacked = losses(theta.reshape(2, 3, K), y.reshape(2, 3, K))
    assert_close(stacked, np.reshape(expected, (2, 3)), rtol=1e-12, atol=1e-13)
    assert_close(losses(theta[1], y[1]), expected[1], rtol=1e-12, atol=1e-13)
    assert losses(theta[:0], y[:0]).shape == (0,)


@pytest.mark.parametrize("name", SOME if TEST_ALL else ["sparsemax", "sigmoid"])
def test_vmap_is_a_batch(name):
    y, theta = draw(name)
    losses, gradients = jax.jit(jax.vmap(jax.value_and_grad(function(name))))(theta, y)
    assert_close(losses, evaluate(name)(theta, y)[0], rtol=1e-12, atol=1e-13)
    assert_close(gradients, evaluate(name)(theta, y)[1], rtol=1e-12, atol=1e-13)


def test_vmap_of_a_gradient_over_one_argument():
    y, theta = draw("fitzpatrick_sparsemax")
    gradient = jax.grad(fj.fitzpatrick_sparsemax_loss)
    per_target = jax.jit(jax.vmap(gradient, in_axes=(None, 0)))(theta[0], y)
    expected = fp.get_loss("fitzpatrick_sparsemax").gradient(y, np.tile(theta[0], (N, 1)))
    assert_close(per_target, expected, rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("name", SOME if TEST_ALL else ["fitzpatrick_squared"])
def test_any_axis(name):
    y, theta = draw(name)
    expected, expected_gradient, _ = evaluate(name)(theta, y)
    for axis in (0, -2):
        moved = function(name)(theta.T, y.T, axis=axis)
        assert_close(moved, expected, rtol=1e-12, atol=1e-13)
    gradient = jax.jit(jax.grad(lambda t: jnp.sum(function(name)(t, y.T, axis=0))))(theta.T)
    assert_close(gradient.T, expected_gradient, rtol=1e-12, atol=1e-13)


def test_an_axis_may_be_any_integer():
    y, theta = draw("fitzpatrick_squared")
    for axis in (np.int64(-1), np.int8(1), np.asarray(1)):
        out = fj.fitzpatrick_squared_loss(theta, y, axis=axis)
        assert_close(out, evaluate("fitzpatrick_squared")(theta, y)[0], rtol=1e-12, atol=1e-13)


def test_boolean_targets_are_one_hot_rows():
    _, theta = draw("logistic")
    one_hot = np.eye(K)[np.arange(N) % K]
    out = fj.logistic_loss(theta, one_hot.astype(bool))
    np.testing.assert_array_equal(out, fj.logistic_loss(theta, one_hot))


@pytest.mark.parametrize(
    ("name", "dtype"),
    [("sparsemax", "bfloat16"), ("sigmoid", "float16")]
    + ([(name, "bfloat16") for name in NAMES] if TEST_ALL else []),
)
def test_half_precision_is_computed_in_float32(name, dtype):
    try:
        jax.jit(jnp.exp)(jnp.ones(2, dtype=dtype))
    except jax.errors.JaxRuntimeError as error:
        if "Failed to materialize symbols" not in str(error):
            raise
        pytest.skip(f"XLA has no {dtype} on this CPU")
    y, theta = draw(name, "float32", scale=2.0)
    theta, y = (jnp.asarray(x, dtype=dtype) for x in (theta, y))
    wide = [np.asarray(x, dtype="float32") for x in (theta, y)]
    step = float(jnp.finfo(dtype).eps)
    for out, expected in zip(evaluate(name)(theta, y)[:2], evaluate(name)(*wide)[:2], strict=True):
        assert out.dtype == dtype
        assert_close(out, np.asarray(expected), rtol=step, atol=1e-6)


def test_without_x64_numpy_doubles_become_float32():
    y, theta = draw("logistic")
    with enable_x64(False):
        out = jax.jit(fj.logistic_loss)(theta, y)
        labeled = jax.jit(fj.logistic_loss_with_integer_labels)(theta, np.arange(N) % K)
    assert out.dtype == labeled.dtype == jnp.float32
    assert_close(out, fp.get_loss("logistic").value(y, theta), rtol=1e-5, atol=1e-5)


@pytest.mark.skipif(not TEST_ALL, reason="compiles for long; FITZPATRICK_TEST_ALL=1 runs it")
def test_a_regularizer_with_a_newton_iteration():
    """One whose entries have no closed form: a fixed number of steps, traced once for a shape."""
    core = fp.FitzpatrickLoss(fp.regularizers.Tsallis(1.3), tightness=0.5)
    loss = fj.make_fitzpatrick_loss(core.regularizer, tightness=0.5)
    rng = seeded(0)
    y, theta = rng.dirichlet(np.ones(2), size=N), rng.normal(size=(N, 2))
    traces = []

    @jax.jit
    def losses(theta, y):
        traces.append(theta.shape)
        return jax.vmap(loss)(theta, y)

    assert_close(losses(theta, y), core.value(y, theta), rtol=1e-10, atol=1e-12)
    losses(theta + 1, y)
    assert traces == [(N, 2)]
    gradient = jax.jit(jax.vmap(jax.grad(loss)))(theta, y)
    hessian = jax.jit(jax.vmap(jax.hessian(loss)))(theta, y)
    assert_close(gradient, core.gradient(y, theta), rtol=1e-10, atol=1e-12)
    columns = [core.hessian_product(y, theta, np.tile(unit, (N, 1))) for unit in np.eye(2)]
    assert_close(hessian, np.stack(columns, axis=-1), rtol=1e-9, atol=1e-10)
