"""The public edge: what comes in, in which form, and what is said when it is wrong."""

import functools

import numpy as np
import pytest
from scipy import sparse

import fitzpatrick as fp
from fitzpatrick.sets import Simplex
from tests.helpers import TWO_WAYS, Library, assert_close, eps, scores, seeded, targets, to_numpy

N, K = 12, 4
some_losses = pytest.mark.parametrize("name", ["fitzpatrick_logistic", "entmax15", "sigmoid"])
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
        "omega": loss.regularizer.value(y),
    }


ZEROS = np.zeros((2, 3))
BALL = fp.FitzpatrickLoss(fp.regularizers.SquaredNorm(fp.sets.L2Ball()))
STACKED = np.broadcast_to(Y, (3, 2, 3)).copy()
STACKED[2, 1, 0] = 7


def rows_with(first):
    return np.asarray([first, Y[1]])


def half_with(entry):
    y = np.full((2, 3), 0.5)
    y[1, 2] = entry
    return y


# Targets that every library refuses: (name of the loss, y, θ, message).
WRONG = [
    ("logistic", rows_with([0.0, 0.0, 0.0]), THETA, "in row 0 it sums to 0, so that it has no pro"),
    ("logistic", rows_with([1.5, -0.5, 0.0]), THETA, "entry 1 is -0.5, but proportions are non-n"),
    ("logistic", rows_with([0.5, np.nan, 0.5]), THETA, "in row 0 entry 1 is NaN"),
    ("logistic", rows_with([np.inf, 0.0, 0.0]), THETA, "in row 0 it sums to inf, not 1"),
    ("logistic", rows_with([1.0, 1e-7, 0.0]), THETA, r"in row 0 it sums to 1\.0000001, not 1"),
    ("sigmoid", half_with(1.5), THETA, r"Box\(lower=0.0, upper=1.0\): in row 1 entry 2 is 1.5, ou"),
    ("sigmoid", half_with(1 + 1e-9), THETA, r"in row 1 entry 2 is .*, outside \[0, 1\]"),
    ("sparse_sigmoid", half_with(-1e-9), THETA, r"in row 1 entry 2 is -1e-09, outside \[0, 1\]"),
    ("sigmoid", half_with(np.inf), THETA, r"in row 1 entry 2 is inf, outside \[0, 1\]"),
    ("poisson", half_with(-3.0), THETA, r"Orthant\(\): in row 1 entry 2 is -3, outside \[0, inf\]"),
    ("poisson", half_with(np.nan), THETA, "in row 1 entry 2 is NaN"),
    ("squared", half_with(np.nan), THETA, "in row 1 entry 2 is NaN"),
    ("logistic", STACKED, np.zeros((3, 2, 3)), r"in row \(2, 1\) it sums to 8"),
    ("logistic", Y, np.zeros((3, 3)), r"same shape, got \(2, 3\) and \(3, 3\)"),
    ("logistic", np.zeros((2, 2, 3), int), THETA, r"and \(2, 3\); integer labels have"),
    ("logistic", np.zeros((2, 0)), np.zeros((2, 0)), r"theta must have shape \(k,\) or \(n, k\) w"),
    ("logistic", np.asarray([0, 1, 2]), THETA, r"labels must have shape \(2,\) .* got \(3,\)"),
    ("logistic", np.asarray([0.0, 1.0]), THETA, "if these are labels, make them integers"),
    ("logistic", np.asarray([0, 3]), THETA, "label 3 in row 1 is out of range: theta has 3 classe"),
    ("sparsemax", np.asarray([-1, 2]), THETA, "label -1 in row 0 is out of range"),
    ("logistic", np.asarray(5), THETA[0], "label 5 is out of range"),
    *((name, np.asarray([0, 1]), THETA, "labels are for losses on the simplex, .* y with the sha")
      for name in ("squared", "sigmoid", "poisson")),
]  # fmt: skip


@pytest.mark.parametrize(("name", "y", "theta", "message"), WRONG)
def test_wrong_targets(name: str, y, theta, message: str, xp: Library) -> None:
    with pytest.raises(ValueError, match=message):
        fp.get_loss(name).value(xp.asarray(y), xp.asarray(theta))


OTHER_ERRORS = [
    (lambda: BALL.value([[5.0, 0.0]], [[0.0, 0.0]]), r"is 4 away from the set L2Ball.*project"),
    (lambda: LOSS.link(3.0), r"theta must have shape .* got \(\)"),
    (lambda: LOSS.link(np.zeros((3, 0))), r"theta must have shape \(k,\) or \(n, k\)"),
    (lambda: LOSS.link(ZEROS, n_threads=0), "n_threads must be a positive integer"),
    (lambda: LOSS.hessian_product(Y, THETA, np.ones(3)), r"of theta, got \(3,\) and \(2, 3\)"),
    *((lambda bad=bad: LOSS.value(Y, bad), "theta must be real numbers in float16 to float64 or i")
      for bad in (THETA + 1j, THETA.astype(str), THETA.astype(object))),
    (lambda: LOSS.value(Y + 1j, THETA), "y must be real numbers in float16 to float64 or integers"),
    (lambda: LOSS.value(Y, "scores"), "theta must be a NumPy, PyTorch or JAX array .* got str"),
    (lambda: LOSS.value({}, THETA), "y must be a NumPy, PyTorch or JAX array .* got dict"),
    (lambda: LOSS.value(Y, sparse.csr_array(THETA)), "theta is a SciPy sparse array; only targets"),
    (lambda: LOSS.value(Y, np.ma.masked_array(THETA, mask=THETA > 0)), "theta is a masked array"),
    (lambda: LOSS.value(sparse.csr_array(2 * Y), THETA), "in row 0 it sums to 2"),
    (lambda: LOSS.value(sparse.csr_array(Y), THETA[:1]), r"got \(2, 3\) and \(1, 3\)"),
    (lambda: fp.get_loss("squared").solve_labels(np.asarray([0]), ZEROS), "on the simplex"),
    *((lambda omega=omega: omega.value(ZEROS + np.nan), "y is not in the domain .*: in row 0 ent")
      for omega in (fp.regularizers.Bernoulli(), LOSS.regularizer)),
    (lambda: LOSS.regularizer.value(np.zeros((2, 0))), r"y must have shape \(k,\) or \(n, k\)"),
    (lambda: LOSS.regularizer.link(np.asarray(["a"])), "theta must be real numbers"),
    (lambda: LOSS.regularizer.conjugate(np.asarray([1j])), "theta must be real numbers"),
    (lambda: fp.get_loss("fitzpatrick_logistc"), "did you mean .fitzpatrick_logistic"),
    (lambda: fp.get_loss("sparse_max"), "unknown loss 'sparse_max'; did you mean .*'sparsemax'"),
    (lambda: fp.get_loss("fitzpatrick"), "unknown loss 'fitzpatrick'; the names are entmax15, "),
    (lambda: fp.get_loss("zzz"), "unknown loss 'zzz'; the names are entmax15, "),
]  # fmt: skip


@pytest.mark.parametrize(("call", "message"), OTHER_ERRORS)
def test_errors(call, message: str) -> None:
    with pytest.raises((TypeError, ValueError), match=message):
        call()


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
    with pytest.raises(ValueError, match=message) as caught:
        LOSS.regularizer.value(xp.asarray(y))
    # what it says to write is right
    advice = str(caught.value).rpartition("by its sum, ")[2]
    assert_close(eval(advice, {"y": y}).sum(axis=-1), 1.0, **TWO_WAYS)


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
def test_rows_of_large_targets_are_named_by_their_place(form) -> None:
    """They are checked block by block."""
    y = np.tile([1.0, 0.0, 0.0, 0.0], (40000, 1))
    y[-1] = [0.5, 0.7, 0.0, 0.0]
    with pytest.raises(ValueError, match=r"in row 39999 it sums to 1\.2, not 1"):
        LOSS.value(form(y), np.zeros(y.shape))


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


def test_libraries_do_not_mix() -> None:
    arrays = [
        Y,
        pytest.importorskip("torch").from_numpy(Y),
        pytest.importorskip("jax.numpy").asarray(Y),
    ]
    with pytest.raises(TypeError, match="sparse targets go with NumPy scores, got theta of type"):
        LOSS.value(sparse.csr_array(Y), arrays[1])
    for y in arrays:
        for theta in arrays:
            if y is not theta:
                with pytest.raises(TypeError, match="y and theta must come from one array library"):
                    LOSS.value(y, theta)


# Forms of the same input.


@some_losses
def test_a_single_pair_gives_a_scalar(name: str, xp: Library) -> None:
    given, found = inputs(name), xp.compiled(functools.partial(results, fp.get_loss(name)))
    whole, one = found(*map(xp.asarray, given)), found(*(xp.asarray(x[2]) for x in given))
    assert np.ndim(one["value"]) == 0
    for key, out in one.items():
        assert_close(out, to_numpy(whole[key])[2], **TWO_WAYS)


HALF = [("numpy", "float16"), ("torch", "float16"), ("torch", "bfloat16"), ("jax", "bfloat16")]


@some_losses
@pytest.mark.parametrize(("library", "half"), HALF)
def test_half_precision_in_and_out(name: str, library: str, half: str) -> None:
    """Computed in float32 and rounded once."""
    pytest.importorskip(library)
    y, theta, v = (np.round(x * 8) / 8 for x in inputs(name, "float32"))
    if name in SIMPLEX:
        y = np.eye(K)[np.arange(N) % K]
    arrays = [Library(library).asarray(x, "float32") for x in (y, theta, v)]
    if library == "torch":
        low = [x.to(getattr(pytest.importorskip("torch"), half)) for x in arrays]
    else:
        low = [x.astype(np.float16 if library == "numpy" else "bfloat16") for x in arrays]
    found = Library(library).compiled(functools.partial(results, fp.get_loss(name)))
    full, out = found(*arrays), found(*low)
    rounding = {"float16": 2**-11, "bfloat16": 2**-8}[half]
    for key in ("value", "gradient", "y_star", "hessian_product", "link"):
        assert out[key].dtype == low[0].dtype, key
        single = out[key].float() if library == "torch" else out[key].astype(np.float32)
        assert_close(single, full[key], rtol=rounding, atol=1e-6)


def test_targets_are_checked_in_the_precision_they_were_rounded_to(xp: Library) -> None:
    """A float32 row that sums to one in float32 goes with float64 scores; a wrong one does not."""
    y = seeded(3).dirichlet(np.ones(K), size=N).astype(np.float32)
    y /= y.sum(axis=-1, keepdims=True)
    assert np.any(np.abs(y.sum(axis=-1, dtype=np.float64) - 1) > 16 * eps("float64"))
    theta = xp.asarray(np.zeros((N, K)))
    assert np.all(np.isfinite(to_numpy(LOSS.value(xp.asarray(y), theta))))
    with pytest.raises(ValueError, match=r"in row 0 it sums to 1\.0"):
        LOSS.value(xp.asarray(y * np.float32(1.01)), theta)


@some_losses
def test_forms_of_targets(name: str) -> None:
    """Lists, sparse arrays and matrices, booleans and integers; labels of any integers."""
    loss = fp.get_loss(name)
    y, theta, v = inputs(name)
    dense = results(loss, y, theta, v)
    kinds = [f"{form}_{kind}" for form in ("csr", "csc", "coo") for kind in ("array", "matrix")]
    arrays = [getattr(sparse, kind)(y) for kind in kinds]
    for given in (y.tolist(), *arrays, sparse.bsr_array(y, blocksize=(3, 2))):
        for key in ("value", "gradient", "y_star"):
            out = getattr(loss, key)(given, theta)
            assert type(out) is np.ndarray
            assert_close(out, dense[key], **TWO_WAYS)
        assert_close(loss.hessian_product(given, theta, v), dense["hessian_product"], **TWO_WAYS)
    hard = np.eye(K)[np.arange(N) % K]
    expected = loss.value(hard, np.round(theta))
    forms = [hard.astype(bool), hard.astype(int), sparse.csr_array(hard.astype(bool))]
    if name in SIMPLEX:
        forms += [hard.argmax(axis=1).astype(kind) for kind in ("int64", "int32", "uint8")]
    for given in forms:
        value = loss.value(given, np.round(theta).astype(int))
        assert value.dtype == np.float64
        assert_close(value, expected, **TWO_WAYS)


def test_labels_and_dtypes_of_other_libraries(xp: Library) -> None:
    """Labels of any integers, and in lists; targets take the dtype of the scores."""
    y, theta, _ = inputs("fitzpatrick_logistic")
    labels, expected = np.arange(N) % K, LOSS.value(np.arange(N) % K, theta)
    given = [labels.tolist(), *(xp.asarray(labels, kind) for kind in ("int64", "int32", "uint8"))]
    for form in given:
        assert_close(LOSS.value(form, xp.asarray(theta)), expected, **TWO_WAYS)
    value = LOSS.value(xp.asarray(y, "float64"), xp.asarray(theta, "float32"))
    assert str(value.dtype).endswith("float32")
    # a small integer compares with more classes than it counts
    zeros = np.zeros((2, 300))
    for kind in ("int8",) if xp.name == "jax" else ("int8", "uint8", "uint16", "uint64"):
        value = LOSS.value(xp.asarray([0, 127], kind), xp.asarray(zeros))
        assert_close(value, LOSS.value([0, 127], zeros), **TWO_WAYS)
