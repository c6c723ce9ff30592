"""Values: those of the core, under every transformation, in every dtype."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import fitzpatrick as fp
import fitzpatrick.jax as fj
from tests.helpers import assert_close

from .cases import (
    LINKS,
    NAMES,
    SIMPLEX,
    SOME,
    K,
    N,
    draw,
    evaluate,
    function,
    on_labels,
)


@pytest.mark.parametrize(("dtype", "tolerance"), [("float64", 1e-12), ("float32", 1e-5)])
@pytest.mark.parametrize("name", NAMES)
def test_the_core_on_numpy(name, dtype, tolerance):
    y, theta = draw(name, dtype)
    out = evaluate(name)(theta, y)[0]
    assert out.dtype == dtype
    floor = tolerance * np.maximum(1, np.max(np.abs(y), axis=-1))
    assert_close(out, fp.get_loss(name).value(y, theta), rtol=tolerance, atol=floor)


@pytest.mark.parametrize("name", NAMES)
def test_jit_changes_nothing(name):
    y, theta = draw(name)
    assert_close(function(name)(theta, y), evaluate(name)(theta, y)[0], rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("name", ["fitzpatrick_logistic", "sparsemax", "fitzpatrick_squared"])
def test_leading_axes_are_examples(name):
    y, theta = draw(name)
    expected = evaluate(name)(theta, y)[0]
    stacked = evaluate(name)(theta.reshape(2, 3, K), y.reshape(2, 3, K))[0]
    assert_close(stacked, np.reshape(expected, (2, 3)), rtol=1e-12, atol=1e-13)
    assert_close(evaluate(name)(theta[1], y[1])[0], expected[1], rtol=1e-12, atol=1e-13)
    assert evaluate(name)(theta[:0], y[:0])[0].shape == (0,)


@pytest.mark.parametrize("name", SOME)
def test_vmap_is_a_loop(name):
    y, theta = draw(name)
    mapped = jax.jit(jax.vmap(function(name)))(theta, y)
    loop = [evaluate(name)(*row)[0] for row in zip(theta, y, strict=True)]
    assert_close(mapped, np.asarray(loop), rtol=1e-12, atol=1e-13)


def test_a_regulariser_with_a_newton_iteration():
    """What the tests of some losses say of these, for one that is not in the registry."""
    core = fp.FitzpatrickLoss(fp.regularizers.Tsallis(1.3))
    loss = fj.make_fitzpatrick_loss(core.regularizer)
    y, theta = draw("fitzpatrick_entmax15", scale=2.0)
    traces = []

    @jax.jit
    def both(theta, y):
        traces.append(theta.shape)
        return jax.vmap(jax.value_and_grad(loss))(theta, y)

    value, gradient = both(theta, y)
    assert_close(value, core.value(y, theta), rtol=1e-10, atol=1e-12)
    assert_close(gradient, core.gradient(y, theta), rtol=1e-10, atol=1e-12)
    both(theta + 1, y)
    assert traces == [(N, K)]
    hessian = jax.jit(jax.hessian(loss))(theta[0], y[0])
    columns = [core.hessian_product(y[0], theta[0], unit) for unit in np.eye(K)]
    assert_close(hessian, np.stack(columns, axis=-1), rtol=1e-9, atol=1e-10)


def test_vmap_of_a_gradient_over_one_argument():
    y, theta = draw("fitzpatrick_sparsemax")
    per_target = jax.vmap(jax.grad(fj.fitzpatrick_sparsemax_loss), in_axes=(None, 0))(theta[0], y)
    loss = fp.get_loss("fitzpatrick_sparsemax")
    expected = [loss.gradient(row, theta[0]) for row in y]
    assert_close(per_target, np.asarray(expected), rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("name", ["fitzpatrick_logistic", "sparsemax", "squared"])
def test_any_axis(name):
    y, theta = draw(name)
    expected = evaluate(name)(theta, y)[0]
    for axis in (0, -2):
        moved = function(name)(theta.T, y.T, axis=axis)
        assert_close(moved, expected, rtol=1e-12, atol=1e-13)
    gradient = jax.grad(lambda t: jnp.sum(function(name)(t, y.T, axis=0)))(theta.T)
    assert_close(gradient.T, evaluate(name)(theta, y)[1], rtol=1e-12, atol=1e-13)


def test_an_axis_may_be_any_integer():
    y, theta = draw("fitzpatrick_logistic")
    for axis in (np.int64(-1), np.int8(1), np.asarray(1)):
        out = fj.fitzpatrick_logistic_loss(theta, y, axis=axis)
        assert_close(out, evaluate("fitzpatrick_logistic")(theta, y)[0], rtol=1e-12, atol=1e-13)


def test_boolean_targets_are_one_hot_rows():
    _, theta = draw("fitzpatrick_logistic")
    one_hot = np.eye(K)[np.arange(N) % K]
    out = fj.fitzpatrick_logistic_loss(theta, one_hot.astype(bool))
    np.testing.assert_array_equal(out, fj.fitzpatrick_logistic_loss(theta, one_hot))


@pytest.mark.parametrize(
    ("dtype", "beyond"),
    [("int32", -(2**31)), ("uint32", 2**32 - 1), ("int64", 2**32), ("uint64", 2**32)],
)
def test_labels_out_of_range_are_nan_in_any_dtype(dtype, beyond):
    """Also where their last 32 bits are a class."""
    _, theta = draw("logistic")
    labels = np.arange(N) % K
    expected = fp.get_loss("logistic").value(labels, theta)
    expected[2] = np.nan
    labels = labels.astype(dtype)
    labels[2] = beyond
    out = on_labels("logistic")(theta, labels)
    np.testing.assert_allclose(out, expected, rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize(
    ("name", "dtype"),
    [*((name, "bfloat16") for name in SOME), ("fitzpatrick_logistic", "float16")],
)
def test_half_precision_is_computed_in_float32(name, dtype):
    y, theta = draw(name, "float32", scale=2.0)
    theta, y = (jnp.asarray(x, dtype=dtype) for x in (theta, y))
    wide = [np.asarray(x, dtype="float32") for x in (theta, y)]
    step = float(jnp.finfo(dtype).eps)
    for out, expected in zip(evaluate(name)(theta, y), evaluate(name)(*wide), strict=True):
        assert out.dtype == dtype
        assert_close(out, np.asarray(expected), rtol=step, atol=1e-6)


def test_without_x64_numpy_doubles_become_float32():
    y, theta = draw("fitzpatrick_logistic")
    with jax.enable_x64(False):
        out = fj.fitzpatrick_logistic_loss(theta, y)
        labelled = fj.fitzpatrick_logistic_loss_with_integer_labels(theta, np.arange(N) % K)
    assert out.dtype == labelled.dtype == jnp.float32
    expected = fp.get_loss("fitzpatrick_logistic").value(y, theta)
    assert_close(out, expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", ["logistic", "fitzpatrick_logistic", "fitzpatrick_sparsemax"])
def test_removed_classes_do_not_count(name):
    """A score of −∞ and where=False are the same, and the same as dropping the class."""
    theta = np.asarray([[0.3, 5.0, -0.2, 0.4]])
    y = np.asarray([[0.2, 0.0, 0.5, 0.3]])
    kept = np.asarray([True, False, True, True])
    dropped = evaluate(name)(theta[:, kept], y[:, kept])[0]
    infinite = evaluate(name)(np.where(kept, theta, -np.inf), y)[0]
    masked = function(name)(theta, y, where=kept)
    assert_close(infinite, dropped, rtol=1e-13, atol=1e-15)
    assert_close(masked, dropped, rtol=1e-13, atol=1e-15)
    gradient = jax.grad(lambda t: jnp.sum(function(name)(t, y, where=kept)))(theta)
    assert_close(gradient[:, kept], evaluate(name)(theta[:, kept], y[:, kept])[1],
                 rtol=1e-12, atol=1e-14)  # fmt: skip
    assert np.all(np.asarray(gradient)[:, ~kept] == 0)


@pytest.mark.parametrize("name", SIMPLEX)
def test_a_true_class_that_is_left_out_costs_infinity(name):
    """By where or a score of −∞, with a label, a one-hot row or proportions."""
    theta = np.asarray([[1.0, 0.0, -1.0, 0.5], [0.3, 0.2, 0.1, 0.0]])
    label, one_hot = np.asarray([2, 2]), np.eye(4)[[2, 2]]
    mixed = np.asarray([[0.5, 0.0, 0.5, 0.0], [0.0, 0.9, 0.1, 0.0]])
    kept = np.asarray([True, True, False, True])

    @jax.jit
    def losses(theta, where):
        return jnp.stack(
            [
                on_labels(name)(theta, label, where=where),
                function(name)(theta, one_hot, where=where),
                function(name)(theta, mixed, where=where),
            ]
        )

    assert np.all(np.isposinf(losses(theta, kept)))
    assert np.all(np.isposinf(losses(np.where(kept, theta, -np.inf), np.ones(4, dtype=bool))))
    if name in SOME:
        gradients = jax.jit(jax.jacrev(lambda theta: losses(theta, kept)[:2, 0]))(theta)
        assert_close(gradients[0], gradients[1], rtol=1e-12, atol=0)


@pytest.mark.parametrize("name", sorted(set(NAMES) - set(SIMPLEX)))
def test_masked_entries_of_a_product_are_left_out(name):
    y, theta = draw(name, scale=2.0)
    kept = np.asarray([True, False, True, True])
    # what an entry that is left out has for a target is ignored
    masked = function(name)(theta, np.where(kept, y, 0.7), where=kept)
    assert_close(masked, evaluate(name)(theta[:, kept], y[:, kept])[0], rtol=1e-13, atol=1e-14)
    gradient = jax.grad(lambda t: jnp.sum(function(name)(t, y, where=kept)))(theta)
    assert np.all(np.asarray(gradient)[:, ~kept] == 0)
    assert np.all(np.isfinite(np.asarray(gradient)))


def test_an_example_without_classes_is_worth_nothing():
    y, theta = draw("fitzpatrick_logistic", scale=2.0)
    where = np.ones((N, K), dtype=bool)
    where[2] = False

    def total(theta):
        losses = fj.fitzpatrick_logistic_loss(theta, y, where=where)
        return jnp.sum(losses), losses

    (_, losses), gradient = jax.value_and_grad(total, has_aux=True)(theta)
    assert losses[2] == 0
    assert np.all(np.asarray(gradient)[2] == 0)
    rest = np.arange(N) != 2
    assert_close(
        losses[rest], evaluate("fitzpatrick_logistic")(theta, y)[0][rest], rtol=1e-13, atol=0
    )


@pytest.mark.parametrize("name", NAMES)
def test_nan_stays_in_its_row(name):
    y, theta = draw(name, scale=2.0)
    poisoned = theta.copy()
    poisoned[1, 2] = np.nan
    losses, gradient = map(np.asarray, evaluate(name)(poisoned, y))
    assert np.isnan(losses[1])
    assert np.isnan(gradient[1]).any()
    rest = np.arange(N) != 1
    assert_close(losses[rest], evaluate(name)(theta, y)[0][rest], rtol=0, atol=0)
    assert_close(gradient[rest], evaluate(name)(theta, y)[1][rest], rtol=0, atol=0)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("name", SIMPLEX)
def test_huge_scores(name, dtype):
    right, wrong, equal = [1e9, -1e9, 0.0, 1e9], [0.0, 1e9, -1e9, 5.0], [-1e9] * K
    theta = np.asarray([right, wrong, equal] * (N // 3), dtype=dtype)
    y = np.asarray([[0.5, 0.0, 0.0, 0.5]] * 2 + [[0.25] * K], dtype=dtype)
    y = np.tile(y, (N // 3, 1))
    losses, gradient = evaluate(name)(theta, y)
    core = fp.get_loss(name).value(y, theta)
    assert_close(losses, core, rtol=1e-6, atol=1e-7)
    assert core[1] > 1e8
    assert_close(gradient, fp.get_loss(name).gradient(y, theta), rtol=1e-6, atol=5e-7)


@pytest.mark.parametrize("name", LINKS)
def test_links(name):
    _, theta = draw(name)
    link = getattr(fj, name)
    expected = fp.get_loss(name).link(theta)
    assert_close(link(theta), expected, rtol=1e-12, atol=1e-14)
    assert_close(link(theta.T, axis=0).T, expected, rtol=1e-12, atol=1e-14)
    kept = np.asarray([True, True, False, True])
    masked = np.asarray(link(theta, where=kept))
    assert_close(masked[:, kept], fp.get_loss(name).link(theta[:, kept]), rtol=1e-12, atol=1e-14)
    assert np.all(masked[:, 2] == 0)
    assert link(jnp.asarray(theta, dtype=jnp.bfloat16)).dtype == jnp.bfloat16


@pytest.mark.parametrize("name", SIMPLEX)
def test_labels_are_one_hot_targets(name):
    _, theta = draw(name, scale=3.0)
    labels = np.arange(N) % K
    one_hot = np.eye(K)[labels]
    f = jax.jit(jax.vmap(jax.value_and_grad(on_labels(name))))
    value, gradient = f(theta, labels)
    assert_close(value, evaluate(name)(theta, one_hot)[0], rtol=1e-12, atol=1e-13)
    assert_close(gradient, evaluate(name)(theta, one_hot)[1], rtol=1e-11, atol=1e-13)
    moved = on_labels(name)(theta.T, labels.astype("uint8"), axis=0)
    assert_close(moved, value, rtol=1e-12, atol=1e-13)
    where = np.asarray([True, True, False, True]) | (labels == 2)[:, None]
    assert_close(
        on_labels(name)(theta, labels, where=where),
        function(name)(theta, one_hot, where=where),
        rtol=1e-12,
        atol=1e-13,
    )


@pytest.mark.parametrize("name", SIMPLEX)
def test_labels_build_no_one_hot(name, monkeypatch):
    """The way through dense targets, which a regulariser may inherit, is not taken."""

    def dense(*_):
        raise AssertionError("dense targets")

    omega = type(fp.get_loss(name).regularizer)
    monkeypatch.setattr(omega, "solve_fenchel_young", dense)
    monkeypatch.setattr(omega, "solve_fitzpatrick", dense)
    theta, labels = np.zeros((2, K)), np.asarray([0, 1])
    with pytest.raises(AssertionError, match="dense targets"):
        function(name)(theta, np.eye(K)[labels])
    gradient = jax.eval_shape(jax.vmap(jax.grad(on_labels(name))), theta, labels)
    assert gradient.shape == theta.shape


def test_labels_out_of_range_are_nan_without_gradient():
    theta = np.zeros((3, K))
    labels = np.asarray([-1, 1, K])

    def total(theta):
        losses = fj.fitzpatrick_logistic_loss_with_integer_labels(theta, labels)
        return jnp.sum(losses, where=(labels >= 0) & (labels < K)), losses

    (_, losses), gradient = jax.value_and_grad(total, has_aux=True)(theta)
    assert np.isnan(np.asarray(losses)[[0, 2]]).all()
    assert np.isfinite(losses[1])
    assert np.all(np.asarray(gradient)[[0, 2]] == 0)
    assert np.all(np.asarray(gradient)[1] != 0)


def test_small_integer_labels_reach_every_class():
    theta = np.random.default_rng(0).normal(size=(2, 300))
    labels = np.asarray([3, 127], dtype=np.int8)
    f = fj.fitzpatrick_logistic_loss_with_integer_labels
    assert_close(f(theta, labels), f(theta, labels.astype(np.int32)), rtol=0, atol=0)
    assert_close(jax.vmap(jax.grad(f))(theta, labels).sum(), 0.0, rtol=0, atol=1e-12)
