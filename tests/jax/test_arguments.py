"""What the functions take: axes, masks, labels, dtypes; and an error while tracing for the rest.

The digits are compared in tests/parity, in one shape.
"""

import functools
import inspect

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import fitzpatrick as fp
import fitzpatrick.jax as fj
from tests.helpers import assert_close, seeded
from tests.user_regularizer import ScaledDistance

from .cases import NAMES, SIMPLEX, K, N, draw, enable_x64, function, on_labels

KEPT = np.asarray([True, False, True, True])
CLOSE = {"rtol": 1e-12, "atol": 1e-13}


@pytest.mark.parametrize("dtype", ["float64", "float32", "bfloat16", "float16"])
@pytest.mark.parametrize("name", NAMES)
def test_results_have_the_dtype_of_the_scores(name, dtype):
    """Without a compiled function: by tracing alone."""
    theta, y = jax.ShapeDtypeStruct((N, K), dtype), jax.ShapeDtypeStruct((N, K), "float32")

    def both(theta, y):
        losses, pull = jax.vjp(function(name), theta, y)
        return (losses, *pull(jnp.ones_like(losses)))

    losses, in_scores, in_targets = jax.eval_shape(both, theta, y)
    assert (losses.shape, losses.dtype) == ((N,), dtype)
    assert (in_scores.shape, in_scores.dtype) == ((N, K), dtype)
    assert (in_targets.shape, in_targets.dtype) == ((N, K), "float32")


def test_any_axis_and_any_number_of_examples():
    y, theta = draw("fitzpatrick_squared")
    loss = fj.fitzpatrick_squared_loss
    expected = fp.get_loss("fitzpatrick_squared").value(y, theta)
    for axis in (0, -2, np.int8(0), np.asarray(0)):
        assert_close(loss(theta.T, y.T, axis=axis), expected, **CLOSE)
    gradient = jax.grad(lambda t: jnp.sum(loss(t, y.T, axis=0)))(theta.T)
    assert_close(gradient.T, fp.get_loss("fitzpatrick_squared").gradient(y, theta), **CLOSE)
    stacked = loss(theta.reshape(2, 3, K), y.reshape(2, 3, K))
    assert_close(stacked, np.reshape(expected, (2, 3)), **CLOSE)
    assert_close(loss(theta[1], y[1]), expected[1], **CLOSE)
    labels = np.arange(N) % K
    moved = fj.logistic_loss_with_integer_labels(theta.T, labels.astype("uint8"), axis=0)
    assert_close(moved, fp.get_loss("logistic").value(labels, theta), **CLOSE)


def test_half_and_single_precision_and_booleans():
    """Half precision is computed in float32, and NumPy's doubles are float32 without x64."""
    y, theta = draw("sparsemax")
    low = [jnp.asarray(x, dtype="bfloat16") for x in (theta, y)]
    wide = [np.asarray(x, dtype="float32") for x in low]
    out = fj.sparsemax_loss(*low)
    assert out.dtype == jnp.bfloat16
    assert_close(out.astype("float32"), fj.sparsemax_loss(*wide), rtol=2**-7, atol=1e-6)
    with enable_x64(False):
        labeled = jax.jit(fj.logistic_loss_with_integer_labels)(theta, np.arange(N) % K)
    assert labeled.dtype == jnp.float32
    one_hot = np.eye(K)[np.arange(N) % K]
    out = fj.sparsemax_loss(theta, one_hot.astype(bool))
    np.testing.assert_array_equal(out, fj.sparsemax_loss(theta, one_hot))


@pytest.mark.parametrize("name", SIMPLEX)
def test_labels_build_no_one_hot(name, monkeypatch):
    """The way through dense targets, which a regularizer may inherit, is not taken."""

    def dense(*_):
        raise AssertionError("dense targets")

    monkeypatch.setattr(type(fp.get_loss(name).regularizer), "solve", dense)
    theta, labels = np.zeros((2, K)), np.asarray([0, 1])
    with pytest.raises(AssertionError, match="dense targets"):
        function(name)(theta, np.eye(K)[labels])
    gradient = jax.eval_shape(jax.vmap(jax.grad(on_labels(name))), theta, labels)
    assert gradient.shape == theta.shape


def test_small_integers_reach_every_class_and_labels_out_of_range_have_no_gradient():
    theta = seeded(0).normal(size=(3, 300))
    labels = np.asarray([3, 127, -1], dtype=np.int8)
    in_range = np.asarray([True, True, False])

    def total(theta, labels):
        losses = fj.logistic_loss_with_integer_labels(theta, labels)
        return jnp.sum(losses, where=in_range), losses

    f = jax.jit(jax.value_and_grad(total, has_aux=True))
    (_, losses), gradient = f(theta, labels)
    np.testing.assert_array_equal(np.isnan(losses), ~in_range)
    assert np.all(np.asarray(gradient)[2] == 0)
    (_, same), _ = f(theta, labels.astype(np.int32))
    np.testing.assert_array_equal(losses, same)


OWN = ScaledDistance(2.0, 1.0, fp.sets.Reals())  # whose link is 0 at a score of −2


@pytest.mark.parametrize(
    "name", ["fitzpatrick_sparsemax", "logistic", "fitzpatrick_poisson", "squared", "own"]
)
def test_masked_classes_do_not_count(name):
    """Like dropping the class, whose gradient is 0; like a score of −∞ on the simplex."""
    core = fp.FitzpatrickLoss(OWN, 0.5) if name == "own" else fp.get_loss(name)
    loss = fj.make_fitzpatrick_loss(OWN, 0.5) if name == "own" else function(name)
    y, theta = draw("squared" if name == "own" else name)
    if name in SIMPLEX:
        y = np.where(KEPT, y + 0.1, 0.0)
        y = y / y.sum(axis=-1, keepdims=True)

    @jax.jit
    def both(theta, y, where):
        losses, pull = jax.vjp(lambda theta: loss(theta, y, where=where), theta)
        return losses, pull(jnp.ones_like(losses))[0]

    # what an entry that is left out has for a target is ignored where each is by itself
    results = [both(theta, y if name in SIMPLEX else np.where(KEPT, y, 0.7), KEPT)]
    if name in SIMPLEX:
        results += [both(np.where(KEPT, theta, -np.inf), y, np.ones(K, dtype=bool))]
    expected = core.value_and_gradient(y[:, KEPT], theta[:, KEPT])
    for losses, gradient in results:
        assert_close(losses, expected[0], **CLOSE)
        assert_close(np.asarray(gradient)[:, KEPT], expected[1], **CLOSE)
        assert np.all(np.asarray(gradient)[:, ~KEPT] == 0)
    if name in SIMPLEX:  # an example without classes is worth nothing
        losses, gradient = both(theta, y, np.zeros((N, K), dtype=bool))
        assert np.all(np.asarray(losses) == 0)
        assert np.all(np.asarray(gradient) == 0)


def test_no_class_is_predicted_where_none_is_left():
    theta, where = draw("logistic")[1], np.ones((N, K), bool)
    where[1] = False
    for link in (fj.sparsemax, fj.sigmoid, fj.fitzpatrick_logistic_probabilities):
        p, expected = jax.jit(lambda x, link=link: (link(x, where=where), link(x)))(theta)
        np.testing.assert_array_equal(p[1], 0)
        assert_close(p[2:], expected[2:], **CLOSE)


def test_where_takes_a_label_out():
    theta, labels = draw("logistic")[1], np.arange(N) % K
    where = np.asarray([True, True, False, True])
    losses = np.asarray(fj.logistic_loss_with_integer_labels(theta, labels, where=where))
    is_out = labels == 2
    assert np.all(np.isposinf(losses[is_out]))
    position = np.cumsum(where)[labels] - 1  # of the label among the classes that are left
    expected = fp.get_loss("logistic").value(position[~is_out], theta[~is_out][:, where])
    assert_close(losses[~is_out], expected, **CLOSE)


LOSS, ON_LABELS = fj.fitzpatrick_logistic_loss, fj.fitzpatrick_logistic_loss_with_integer_labels
R = fp.regularizers
S = jnp.zeros((3, 4))
L = jnp.zeros(3, dtype=int)
NO_MASK = [
    R.SquaredNorm(fp.sets.L2Ball()),
    R.SquaredNorm(fp.sets.Box(1.0, 2.0)),
    R.Quadratic(np.eye(4)),
    R.TwiceDifferentiable(None, None, None, domain=fp.sets.Box()),
]
BIRKHOFF = R.SquaredNorm(fp.sets.Birkhoff())
LISTS = fj.SparseTargets(L[:, None], S[:, :1])
# dtypes tell, or the number of axes
ONES = jnp.ones(2)
SWAPPED = [(LOSS, S == 0, S), (ON_LABELS, L, S), (ON_LABELS, L + 0.5, S)]
TYPE_ERRORS = [
    (lambda: LOSS(jnp.zeros((3, 4), dtype=int), S), "scores must be floating-.* int64; convert"),
    *((functools.partial(*call), "arguments swapped[?] Scores come first") for call in SWAPPED),
    (lambda: LOSS(LISTS, S), "SparseTargets came as scores; scores come first"),
    (lambda: LOSS(S + 0j, S), "scores must be floating-point .* got complex128"),
    (lambda: LOSS("scores", S), "scores must be an array of numbers, got str"),
    (lambda: LOSS(None, S), "scores must be an array of numbers, got NoneType"),
    (lambda: LOSS(S, S + 0j), "targets must be numbers in float16 to float64, .* got complex128"),
    (lambda: LOSS(S, [[1.0], [0.5, 0.5]]), "targets must be an array of numbers, got list"),
    (lambda: LOSS(S, S, axis=True), "axis must be an integer, the axis of the classes, got True"),
    (lambda: LOSS(S, S, axis=(0, 1)), r"axis must be an integer, .* got \(0, 1\)"),
    (lambda: LOSS(S, S, where=S), "where must be boolean, True for the classes to keep, got float"),
    (lambda: ON_LABELS(S, S[:, 0]), "labels must be integers, .* got float64; for proportions use"),
    (lambda: fj.make_fitzpatrick_loss("negentropy"), r"must be an object such as .*Negentropy\(\)"),
    (lambda: LOSS(S, S, tightness=None), "tightness must be a number, .* got None"),
    (lambda: fj.make_fitzpatrick_loss(R.Negentropy(), jnp.ones(2)), "one number, .* shape"),
    (lambda: jax.jit(LOSS)(S, S, tightness=0.5), "tracing it: mark it static, .*close over"),
    (lambda: jax.grad(lambda c: LOSS(S, S, tightness=c).sum())(0.5), "cannot be learned: the loss"),
    (lambda: fj.entmax(S, True), "alpha must be a number from 1 to 2"),
    (lambda: jax.jit(fj.entmax_loss)(S, S, 1.5), "alpha of a loss must be a Python number"),
    (lambda: fj.sparsemax_loss(S, fj.SparseTargets(S, S)), "integer indices"),
    (lambda: fj.projection_simplex(ONES + 1j), "x must be real, got complex"),
    (lambda: fj.logistic_loss(S, S, tightness=0.5), r"unexpected keyword argument 'tightness'"),
]
VALUE_ERRORS = [
    (lambda: LOSS(jnp.asarray(1.0), S), "at least one axis, the classes, got a scalar"),
    (lambda: LOSS(S[:, :0], S[:, :0]), r"no classes along axis 1: their shape is \(3, 0\)"),
    (lambda: LOSS(S, S[:2]), r"must have the shape of scores, \(3, 4\), got \(2, 4\)$"),
    (lambda: LOSS(S[:, 0], S), r"scores, \(3,\), got \(3, 4\); or are the arguments swapped"),
    (lambda: fj.entmax(S, np.ones(4)), r"alpha of shape \(4,\) does not broadcast to \(3, 1\)"),
    (lambda: fj.entmax_loss(S, S, 0.5), "alpha must be between 1 and 2"),
    (lambda: fj.SparseTargets(L, L, "other"), "rest must be"),
    (lambda: fj.sparsemax_loss(S, fj.SparseTargets(L[:, None], S[:, :1], "bucket")), "for the log"),
    (lambda: fj.sparsemax_loss(S[0], LISTS), "one axis more"),
    (lambda: fj.sigmoid_loss(S, LISTS), "on the simplex"),
    (lambda: jax.eval_shape(LOSS, S, S[:2]), "targets must have the shape of scores"),
    (lambda: LOSS(S, L), r"got \(3,\); for class labels use the function that ends in _with_integ"),
    (lambda: LOSS(S, S, axis=2), r"axis=2 is not an axis of scores, which have shape \(3, 4\)"),
    (lambda: LOSS(S, S, where=jnp.ones(3, dtype=bool)), r"where of shape \(3,\) does not broa"),
    (lambda: ON_LABELS(S, jnp.zeros((3, 4), dtype=int)), r"\(3,\) for scores .* axis 1, got "),
    (lambda: fj.make_fenchel_young_loss(R.Bernoulli(), integer_labels=True), "on the simplex, th"),
    (lambda: fj.make_link(BIRKHOFF)(S[:, :3], axis=0), "has matrices, the last two axes"),
    (lambda: fj.make_fenchel_young_loss(BIRKHOFF)(S, S, where=S == 0), "axis and where are for"),
    (lambda: LOSS(S, S, tightness=-1), r"tightness must be 0 or between 1e-12 and 1e\+06, got -1"),
    (lambda: ON_LABELS(S, L, tightness=float("inf")), r"between 1e-12 and 1e\+06, got inf"),
    (lambda: fj.projection_simplex(1.0), "x must be a vector"),
    (lambda: fj.projection_box(S[0], (1.0, 0.0)), "the box is empty"),
    (lambda: fj.projection_sparse_simplex(S[0], 8), "max_nz must be between 1 and 4, got 8"),
    *((lambda onto=onto: onto(S), r"sim_matrix must be square, \(…, n, n\), got \(3, 4\)")
      for onto in (fj.projection_birkhoff, fj.kl_projection_birkhoff)),
    (lambda: fj.projection_transport(S, (ONES, ONES)), r"marginals .*, got \(3, 4\), \(2,\) and"),
    *((lambda sums=sums: fj.kl_projection_transport(jnp.zeros((2, 2)), sums),
       "must be positive and have the same total")
      for sums in ((ONES, 2 * ONES), (jnp.asarray([0.0, 2.0]), ONES))),
    (lambda: fj.projection_affine_set(S[0], (jnp.ones((2, 2)), ONES)),
     r"A and b must have shapes \(m, 4\) and \(m,\)"),
    (lambda: fj.projection_polyhedron(S[0], (S[:1], L[:1], jnp.ones((2, 4)), jnp.ones(3))),
     r"G and h must have shapes \(m, 4\) and \(m,\)"),
    *((functools.partial(fj.make_fitzpatrick_loss(omega), S, S, where=S == 0),
       r"(?s)where is not defined for .*drop it from scores") for omega in NO_MASK),
]  # fmt: skip


@pytest.mark.parametrize(
    ("error", "call", "message"),
    [(TypeError, *case) for case in TYPE_ERRORS] + [(ValueError, *case) for case in VALUE_ERRORS],
    ids=lambda x: x if isinstance(x, str) else "",
)
def test_errors_while_tracing(error, call, message):
    with pytest.raises(error, match=message):
        call()


@pytest.mark.parametrize("second", ["targets", "labels"])
def test_a_tightness_may_be_a_static_argument(second):
    name = "fitzpatrick_logistic" if second == "labels" else "fitzpatrick_squared"
    loss = (on_labels if second == "labels" else function)(name)
    assert "tightness" in inspect.signature(loss).parameters
    y, theta = draw(name)
    y = np.arange(N) % K if second == "labels" else y
    compiled = jax.jit(loss, static_argnames="tightness")
    for tightness in (0, 0.5):
        expected = fp.get_loss(name, tightness).value(y, theta)
        assert_close(compiled(theta, y, tightness=tightness), expected, **CLOSE)
