"""Values and gradients: those of the core, under every transformation, in every dtype."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import fitzpatrick as fp
import fitzpatrick.jax as fj
from fitzpatrick.losses import ends
from tests.helpers import assert_close

from .cases import (
    CASES,
    FITZPATRICK,
    LINKS,
    NAMES,
    SIMPLEX,
    SOME,
    TEST_ALL,
    K,
    N,
    draw,
    enable_x64,
    evaluate,
    function,
)
from .differences import SCORES, STEPS, along, assert_is_slope, here, target_rows


def assert_is_the_core(name, tightness, dtype, tolerance):
    y, theta = draw(name, dtype)
    losses, gradient, _ = evaluate(name, tightness)(theta, y)
    assert losses.dtype == gradient.dtype == dtype
    loss = fp.get_loss(name, tightness)
    size = np.maximum(1, np.max(np.abs(y), axis=-1))
    assert_close(losses, loss.value(y, theta), rtol=tolerance, atol=tolerance * size)
    assert_close(gradient, loss.gradient(y, theta), rtol=tolerance, atol=tolerance * size[:, None])


@pytest.mark.parametrize(("name", "tightness"), CASES)
def test_the_core_on_numpy(name, tightness):
    assert_is_the_core(name, tightness, "float64", 1e-12)


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


@pytest.mark.parametrize(("name", "tightness"), CASES)
def test_gradients_are_slopes_of_the_core(name, tightness):
    """Also in the targets, with the NumPy core as the function."""
    y, y_dot = target_rows(name)
    loss = fp.get_loss(name, tightness)
    losses, in_scores, in_targets = evaluate(name, tightness)(along(SCORES, STEPS), along(y, y_dot))
    along_scores = loss.value(np.tile(y, (3, 1)), along(SCORES, STEPS))
    along_targets = loss.value(along(y, y_dot), np.tile(SCORES, (3, 1)))
    assert_close(here(losses), here(along_scores), rtol=1e-12, atol=1e-14)
    assert_is_slope(np.sum(here(in_scores) * STEPS, axis=-1), along_scores)
    assert_is_slope(np.sum(here(in_targets) * y_dot, axis=-1), along_targets)


@pytest.mark.parametrize("name", NAMES if TEST_ALL else ["sigmoid", "squared"])
def test_jit_changes_nothing(name):
    y, theta = draw(name)
    assert_close(function(name)(theta, y), evaluate(name)(theta, y)[0], rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize(
    "name", FITZPATRICK if TEST_ALL else ["fitzpatrick_squared", "fitzpatrick_sparse_sigmoid"]
)
def test_the_ends_of_the_family(name):
    """Tightness 0 is the Fenchel-Young loss, and 1 the default."""
    y, theta = draw(name)
    fenchel_young = function(ends(name)[0])
    loss = jax.jit(function(name), static_argnames="tightness")
    assert_close(loss(theta, y, tightness=0), jax.jit(fenchel_young)(theta, y), rtol=0, atol=0)
    assert_close(loss(theta, y, tightness=1), loss(theta, y), rtol=0, atol=0)


@pytest.mark.parametrize("name", SIMPLEX)
def test_a_true_class_that_is_left_out_costs_infinity(name):
    """By a score of −∞, with a one-hot row or proportions."""
    _, theta = draw(name, scale=2.0)
    theta[:, 1] = -np.inf
    y = np.zeros((N, K))
    y[:, 1] = [1.0, 0.5, 0.1] * (N // 3)
    y[:, 2] = 1 - y[:, 1]
    assert np.all(np.isposinf(evaluate(name)(theta, y)[0]))


@pytest.mark.parametrize("name", NAMES)
def test_nan_stays_in_its_row(name):
    y, theta = draw(name, scale=2.0)
    poisoned = theta.copy()
    poisoned[1, 2] = np.nan
    losses, gradient, _ = map(np.asarray, evaluate(name)(poisoned, y))
    assert np.isnan(losses[1])
    assert np.isnan(gradient[1]).any()
    rest = np.arange(N) != 1
    # Rows share a loop, so that one may take a step more or less beside another: either way it has
    # the accuracy that is promised.
    close = {"rtol": 1e-13, "atol": 1e-13}
    assert_close(losses[rest], evaluate(name)(theta, y)[0][rest], **close)
    assert_close(gradient[rest], evaluate(name)(theta, y)[1][rest], **close)


@pytest.mark.parametrize(
    ("name", "dtype"),
    [
        *((name, "float64") for name in SIMPLEX),
        *((name, "float32") for name in SIMPLEX if TEST_ALL or name in SOME),
    ],
)
def test_huge_scores(name, dtype):
    right, wrong, equal = [1e9, -1e9, 0.0, 1e9], [0.0, 1e9, -1e9, 5.0], [-1e9] * K
    theta = np.asarray([right, wrong, equal] * (N // 3), dtype=dtype)
    y = np.asarray([[0.5, 0.0, 0.0, 0.5]] * 2 + [[0.25] * K], dtype=dtype)
    y = np.tile(y, (N // 3, 1))
    losses, gradient, _ = evaluate(name)(theta, y)
    core = fp.get_loss(name).value(y, theta)
    assert_close(losses, core, rtol=1e-6, atol=1e-7)
    assert core[1] > 1e8
    assert_close(gradient, fp.get_loss(name).gradient(y, theta), rtol=1e-6, atol=5e-7)


# float32 has step counts of its own
@pytest.mark.parametrize(
    ("name", "tightness"), CASES if TEST_ALL else [(name, None) for name in SOME]
)
def test_the_core_in_single_precision(name, tightness):
    assert_is_the_core(name, tightness, "float32", 1e-5)


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
    rng = np.random.default_rng(0)
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


@pytest.mark.parametrize("name", LINKS)
def test_links(name):
    _, theta = draw(name)
    link = getattr(fj, name)
    core = fp.get_loss(name)
    kept = np.asarray([True, True, False, True])

    @jax.jit
    def both_ways(theta):
        return link(theta), link(theta.T, axis=0, where=kept[:, None]).T

    straight, masked = map(np.asarray, both_ways(theta))
    assert_close(straight, core.link(theta), rtol=1e-12, atol=1e-14)
    assert_close(masked[:, kept], core.link(theta[:, kept]), rtol=1e-12, atol=1e-14)
    assert np.all(masked[:, 2] == 0)
    half = jax.eval_shape(link, jax.ShapeDtypeStruct((N, K), "bfloat16"))
    assert (half.shape, half.dtype) == ((N, K), "bfloat16")
