"""The public edge: what comes in, in which form, and what is said when it is wrong."""

import numpy as np
import pytest
from scipy import sparse

import fitzpatrick as fp
from fitzpatrick.sets import ProductSet, Simplex
from tests.helpers import TWO_WAYS, Library, assert_close, eps, scores, seeded, targets, to_numpy

N, K = 12, 4
some_losses = pytest.mark.parametrize("name", ["fitzpatrick_logistic", "entmax15", "sigmoid"])
every_loss = pytest.mark.parametrize("name", fp.loss_names())
SIMPLEX = [n for n in fp.loss_names() if isinstance(fp.get_loss(n).regularizer.domain, Simplex)]
LOSS = fp.get_loss("fitzpatrick_logistic")
Y = np.asarray([[0.5, 0.5, 0.0], [0.0, 0.0, 1.0]])
THETA = np.asarray([[1.0, 0.0, -1.0], [0.0, 0.0, 3.0]])


def inputs(name: str, dtype: str = "float64", n: int = N):
    domain = fp.get_loss(name).regularizer.domain
    rng = seeded(0)
    y, theta = targets(domain, rng, n, K, dtype), scores(domain, rng, n, K, dtype, 3.0)
    return y, theta, rng.normal(size=(n, K)).astype(dtype).astype(np.float64)


def results(loss: fp.Loss, y, theta, v) -> dict:
    value, gradient = loss.value_and_gradient(y, theta)
    return {
        "value": value,
        "gradient": gradient,
        "y_star": loss.y_star(y, theta),
        "hessian_product": loss.hessian_product(y, theta, v),
        "link": loss.link(theta),
        "omega": loss.regularizer.value(y) if hasattr(y, "dtype") else None,
    }


# Targets off the domain.


def test_a_row_that_does_not_sum_to_one(xp: Library) -> None:
    y = Y.copy()
    y[1, 0] = 0.25
    message = (
        r"^y is not in the domain Simplex\(\): in row 1 it sums to 1\.25, not 1; divide each row "
        r"by its sum, y / y\.sum\(axis=-1, keepdims=True\)$"
    )
    for method in (LOSS.value, LOSS.gradient, LOSS.value_and_gradient, LOSS.y_star):
        with pytest.raises(ValueError, match=message):
            method(xp.asarray(y), xp.asarray(THETA))
    with pytest.raises(ValueError, match=message):
        LOSS.hessian_product(xp.asarray(y), xp.asarray(THETA), xp.asarray(THETA))
    with pytest.raises(ValueError, match=message):
        LOSS.regularizer.value(xp.asarray(y))


def test_the_advice_of_the_message_is_right() -> None:
    """What it says to write is run as it is written."""
    y = 3 * Y
    with pytest.raises(ValueError, match="divide each row by its sum") as caught:
        LOSS.value(y, THETA)
    advice = str(caught.value).rpartition("by its sum, ")[2]
    normalized = eval(advice, {"y": y})
    assert_close(LOSS.value(normalized, THETA), LOSS.value(Y, THETA), **TWO_WAYS)


def test_classes_in_another_axis_are_named_with_their_place() -> None:
    """And what the message says to write is right there, too."""
    torch = pytest.importorskip("torch")
    functional = pytest.importorskip("fitzpatrick.torch").functional
    y = torch.full((2, 4, 3, 5), 0.25)
    y[1, :, 2, 0] = 0.5
    with pytest.raises(ValueError, match=r"along axis 1: at target\[1, :, 2, 0\] it s") as caught:
        functional.fitzpatrick_sparsemax_loss(torch.zeros(2, 4, 3, 5), y, dim=1)
    y = eval(str(caught.value).rpartition("by its sum, ")[2], {"y": y})
    functional.fitzpatrick_sparsemax_loss(torch.zeros(2, 4, 3, 5), y, dim=1)


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ([0.0, 0.0, 0.0], "in row 0 it sums to 0, so that it has no proportions; drop it"),
        ([1.5, -0.5, 0.0], "in row 0 entry 1 is -0.5, but proportions are non-negative"),
        ([0.5, np.nan, 0.5], "in row 0 entry 1 is NaN"),
        ([np.inf, 0.0, 0.0], "in row 0 it sums to inf, not 1"),
        ([1.0, 1e-7, 0.0], r"in row 0 it sums to 1\.0000001, not 1"),
    ],
    ids=repr,
)
def test_bad_proportions(row, message: str, xp: Library) -> None:
    y = np.asarray([row, Y[1]])
    with pytest.raises(ValueError, match=message):
        LOSS.value(xp.asarray(y), xp.asarray(THETA))


@pytest.mark.parametrize(
    ("name", "entry", "message"),
    [
        ("sigmoid", 1.5, r"Box\(lower=0.0, upper=1.0\): in row 1 entry 2 is 1.5, outside \[0, 1\]"),
        ("fitzpatrick_sparse_sigmoid", -1.0, r"in row 1 entry 2 is -1, outside \[0, 1\]"),
        ("poisson", -3.0, r"Orthant\(\): in row 1 entry 2 is -3, outside \[0, inf\]"),
        ("sigmoid", np.nan, "in row 1 entry 2 is NaN"),
        ("poisson", np.nan, "in row 1 entry 2 is NaN"),
        ("squared", np.nan, "in row 1 entry 2 is NaN"),
    ],
)
def test_bad_entries_on_a_product_domain(name: str, entry: float, message: str) -> None:
    y = np.full((2, 3), 0.5)
    y[1, 2] = entry
    with pytest.raises(ValueError, match=message):
        fp.get_loss(name).value(y, THETA)


def test_a_point_off_any_other_set_says_how_far() -> None:
    loss = fp.FitzpatrickLoss(fp.regularizers.SquaredNorm(fp.sets.L2Ball()))
    with pytest.raises(ValueError, match=r"it is 4 away from the set L2Ball.*project it with"):
        loss.value(np.asarray([[5.0, 0.0]]), np.asarray([[0.0, 0.0]]))


def test_rows_in_more_than_two_axes_are_named_by_all_of_them() -> None:
    y = np.broadcast_to(Y, (3, 2, 3)).copy()
    y[2, 1, 0] = 7
    with pytest.raises(ValueError, match=r"in row \(2, 1\) it sums to 8"):
        LOSS.value(y, np.zeros((3, 2, 3)))


def test_rounding_is_no_violation(dtype: str) -> None:
    """Proportions from a division, or that were stored in half precision's neighbour, pass."""
    y = seeded(0).dirichlet(np.ones(1000), 20).astype(dtype)
    assert np.all(LOSS.value(y, np.zeros_like(y)) >= 0)


# Shapes, labels, dtypes, libraries, names.


def test_wrong_shapes() -> None:
    with pytest.raises(ValueError, match=r"same shape, got \(2, 3\) and \(3, 3\)"):
        LOSS.value(Y, np.zeros((3, 3)))
    with pytest.raises(ValueError, match=r"got \(2, 2, 3\) and \(2, 3\); integer labels have"):
        LOSS.value(np.zeros((2, 2, 3), dtype=int), THETA)
    with pytest.raises(ValueError, match=r"theta must have shape \(k,\) or \(n, k\) with k >= 1"):
        LOSS.value(np.zeros((2, 0)), np.zeros((2, 0)))
    with pytest.raises(ValueError, match=r"theta must have shape .* got \(\)"):
        LOSS.link(3.0)
    with pytest.raises(
        ValueError, match=r"v must have the shape of theta, got \(3,\) and \(2, 3\)"
    ):
        LOSS.hessian_product(Y, THETA, np.ones(3))
    with pytest.raises(ValueError, match=r"labels must have shape \(2,\) .* got \(3,\)"):
        LOSS.value(np.asarray([0, 1, 2]), THETA)


def test_labels_out_of_range(xp: Library) -> None:
    theta = xp.asarray(THETA)
    with pytest.raises(ValueError, match="label 3 in row 1 is out of range: theta has 3 classes"):
        LOSS.value(xp.asarray([0, 3]), theta)
    with pytest.raises(ValueError, match="label -1 in row 0 is out of range"):
        LOSS.value(xp.asarray([-1, 2]), theta)
    with pytest.raises(ValueError, match="label 5 is out of range"):
        LOSS.value(xp.asarray(5), xp.asarray(THETA[0]))


@pytest.mark.parametrize(
    "name",
    [n for n in fp.loss_names() if isinstance(fp.get_loss(n).regularizer.domain, ProductSet)],
)
def test_labels_on_a_product_domain(name: str) -> None:
    with pytest.raises(
        ValueError, match=r"labels are for losses on the simplex, .* y with the shape of theta"
    ):
        fp.get_loss(name).value(np.asarray([0, 1]), THETA)


def test_dtypes_that_are_no_numbers() -> None:
    for bad in (THETA + 1j, THETA.astype(str), THETA.astype(object)):
        with pytest.raises(
            TypeError, match="theta must be real numbers in float16 to float64 or integers, got"
        ):
            LOSS.value(Y, bad)
        with pytest.raises(
            TypeError, match="y must be real numbers in float16 to float64 or integers"
        ):
            LOSS.value(bad, THETA)
    with pytest.raises(TypeError, match=r"theta must be a NumPy, PyTorch or JAX array .* got str"):
        LOSS.value(Y, "scores")
    with pytest.raises(TypeError, match=r"y must be a NumPy, PyTorch or JAX array .* got dict"):
        LOSS.value({}, THETA)


def test_libraries_do_not_mix() -> None:
    arrays = [
        Y,
        pytest.importorskip("torch").from_numpy(Y),
        pytest.importorskip("jax.numpy").asarray(Y),
    ]
    for y in arrays:
        for theta in arrays:
            if y is not theta:
                with pytest.raises(TypeError, match="y and theta must come from one array library"):
                    LOSS.value(y, theta)


def test_sparse_scores_and_sparse_targets_of_other_libraries() -> None:
    with pytest.raises(
        TypeError, match="sparse targets go with NumPy scores, got theta of type Ten"
    ):
        LOSS.value(sparse.csr_array(Y), pytest.importorskip("torch").from_numpy(THETA))
    with pytest.raises(TypeError, match="theta is a SciPy sparse array; only targets y may be"):
        LOSS.value(Y, sparse.csr_array(THETA))


def test_unknown_names() -> None:
    with pytest.raises(
        ValueError, match=r"did you mean 'fitzpatrick_logistic'\? The names are ent"
    ):
        fp.get_loss("fitzpatrick_logistc")
    with pytest.raises(ValueError, match=r"unknown loss 'sparse_max'; did you mean .*'sparsemax'"):
        fp.get_loss("sparse_max")
    with pytest.raises(ValueError, match=r"unknown loss 'fitzpatrick'; the names are entmax15, "):
        fp.get_loss("fitzpatrick")
    with pytest.raises(ValueError, match=r"unknown loss 'zzz'; the names are entmax15, "):
        fp.get_loss("zzz")
    assert fp.get_loss(LOSS) is LOSS


def test_the_registry_has_the_documented_names() -> None:
    pairs = ("squared", "logistic", "sparsemax", "entmax15", "sigmoid", "sparse_sigmoid", "poisson")
    names = {"perceptron", *pairs, *(f"fitzpatrick_{name}" for name in pairs)}
    assert names <= set(fp.loss_names())
    assert fp.loss_names() == sorted(fp.loss_names())


# Masks, NaN, empty batches.


# Forms of the same input.


@some_losses
def test_a_single_pair_gives_a_scalar(name: str, xp: Library) -> None:
    loss = fp.get_loss(name)
    y, theta, v = inputs(name)
    whole = results(loss, *(xp.asarray(x) for x in (y, theta, v)))
    one = results(loss, *(xp.asarray(x[2]) for x in (y, theta, v)))
    assert np.ndim(one["value"]) == 0
    for key, out in one.items():
        assert_close(out, to_numpy(whole[key])[2], **TWO_WAYS)


@every_loss
def test_lists_are_arrays(name: str) -> None:
    loss = fp.get_loss(name)
    y, theta, _ = inputs(name)
    assert_close(loss.value(y.tolist(), theta.tolist()), loss.value(y, theta), **TWO_WAYS)
    integers = loss.value([[1, 0, 0, 0]], [[1, 2, 3, 0]])
    floats = loss.value(np.eye(4)[:1], np.asarray([[1.0, 2.0, 3.0, 0.0]]))
    assert_close(integers, floats, **TWO_WAYS)


@every_loss
@pytest.mark.parametrize("form", ["csr", "csc", "coo"])
@pytest.mark.parametrize("kind", ["array", "matrix"])
def test_sparse_targets(name: str, form: str, kind: str) -> None:
    loss = fp.get_loss(name)
    y, theta, v = inputs(name)
    sparse_y = getattr(sparse, f"{form}_{kind}")(y)
    dense = results(loss, y, theta, v)
    for key, method in (
        ("value", loss.value),
        ("gradient", loss.gradient),
        ("y_star", loss.y_star),
    ):
        out = method(sparse_y, theta)
        assert type(out) is np.ndarray
        assert_close(out, dense[key], **TWO_WAYS)
    product = loss.hessian_product(sparse_y, theta, v)
    assert_close(product, dense["hessian_product"], **TWO_WAYS)


def test_sparse_targets_are_checked() -> None:
    with pytest.raises(ValueError, match="in row 0 it sums to 2"):
        LOSS.value(sparse.csr_array(2 * Y), THETA)
    with pytest.raises(ValueError, match=r"got \(2, 3\) and \(1, 3\)"):
        LOSS.value(sparse.csr_array(Y), THETA[:1])


@pytest.mark.parametrize("kind", ["int64", "int32", "uint8"])
def test_integer_labels(kind: str, xp: Library) -> None:
    loss = LOSS
    _, theta, v = inputs("fitzpatrick_logistic")
    labels = np.arange(N) % K
    arrays = xp.asarray(theta), xp.asarray(v)
    dense = results(loss, xp.asarray(np.eye(K)[labels]), *arrays)
    labels = xp.asarray(labels, kind)
    for key, method in (
        ("value", loss.value),
        ("gradient", loss.gradient),
        ("y_star", loss.y_star),
    ):
        assert_close(method(labels, arrays[0]), dense[key], **TWO_WAYS)
    product = loss.hessian_product(labels, *arrays)
    assert_close(product, dense["hessian_product"], **TWO_WAYS)


HALF = [("numpy", "float16"), ("torch", "float16"), ("torch", "bfloat16"), ("jax", "bfloat16")]


@some_losses
@pytest.mark.parametrize(("library", "half"), HALF)
def test_half_precision_in_and_out(name: str, library: str, half: str) -> None:
    """Computed in float32 and rounded once."""
    pytest.importorskip(library)
    loss = fp.get_loss(name)
    y, theta, v = (np.round(x * 8) / 8 for x in inputs(name, "float32"))
    if name in SIMPLEX:
        y = np.eye(K)[np.arange(N) % K]
    arrays = [Library(library).asarray(x, "float32") for x in (y, theta, v)]
    if library == "torch":
        low = [x.to(getattr(pytest.importorskip("torch"), half)) for x in arrays]
    else:
        low = [x.astype(np.float16 if library == "numpy" else "bfloat16") for x in arrays]
    full, out = results(loss, *arrays), results(loss, *low)
    rounding = {"float16": 2**-11, "bfloat16": 2**-8}[half]
    for key in ("value", "gradient", "y_star", "hessian_product", "link"):
        assert out[key].dtype == low[0].dtype, key
        single = out[key].float() if library == "torch" else out[key].astype(np.float32)
        assert_close(single, full[key], rtol=rounding, atol=1e-6)


def test_integer_scores_become_floats() -> None:
    assert LOSS.value(np.asarray([0, 1]), np.asarray([[1, 2], [3, 4]])).dtype == np.float64


def test_targets_take_the_dtype_of_the_scores(xp: Library) -> None:
    y, theta, _ = inputs("fitzpatrick_logistic")
    value = LOSS.value(xp.asarray(y, "float64"), xp.asarray(theta, "float32"))
    assert str(value.dtype).endswith("float32")


def test_boolean_targets_are_indicators() -> None:
    y = np.asarray([[True, False, False], [False, False, True]])
    expected = LOSS.value(np.asarray([0, 2]), THETA)
    np.testing.assert_allclose(LOSS.value(y, THETA), expected, **TWO_WAYS)
    np.testing.assert_allclose(LOSS.value(sparse.csr_array(y), THETA), expected, **TWO_WAYS)


def test_targets_are_checked_in_the_precision_they_were_rounded_to(xp: Library) -> None:
    """A float32 row that sums to one in float32 goes with float64 scores; a wrong one does not."""
    y = seeded(3).dirichlet(np.ones(K), size=N).astype(np.float32)
    y /= y.sum(axis=-1, keepdims=True)
    assert np.any(np.abs(y.sum(axis=-1, dtype=np.float64) - 1) > 16 * eps("float64"))
    theta = xp.asarray(np.zeros((N, K)))
    assert np.all(np.isfinite(to_numpy(LOSS.value(xp.asarray(y), theta))))
    with pytest.raises(ValueError, match=r"in row 0 it sums to 1\.0"):
        LOSS.value(xp.asarray(y * np.float32(1.01)), theta)


@pytest.mark.parametrize("bad", [1 + 1e-9, -1e-9, np.inf])
def test_bounds_of_a_product_domain_are_exact(bad: float) -> None:
    """Beyond them the entropies have no value."""
    with pytest.raises(ValueError, match=r"in row 0 entry 1 is .*, outside \[0, 1\]"):
        fp.get_loss("fitzpatrick_sigmoid").value(np.asarray([[0.5, bad]]), np.zeros((1, 2)))


def test_labels_that_are_not_integers_get_a_hint() -> None:
    with pytest.raises(ValueError, match="if these are labels, make them integers"):
        LOSS.value(np.asarray([0.0, 1.0]), THETA)


def test_masked_arrays_are_refused() -> None:
    with pytest.raises(TypeError, match="theta is a masked array"):
        LOSS.value(Y, np.ma.masked_array(THETA, mask=THETA > 0))


def test_lists_of_labels_go_with_any_library(xp: Library) -> None:
    _, theta, _ = inputs("fitzpatrick_logistic")
    labels = np.arange(N) % K
    value = to_numpy(LOSS.value(labels.tolist(), xp.asarray(theta)))
    np.testing.assert_allclose(value, LOSS.value(labels, theta), **TWO_WAYS)


def test_solutions_at_labels_are_for_the_simplex() -> None:
    with pytest.raises(ValueError, match="labels are for losses on the simplex"):
        fp.get_loss("squared").solve_labels(np.asarray([0]), np.zeros((1, 3)))
