"""One check of targets for every door: broken sparse arrays, stored zeros, tiny and odd targets."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

import fitzpatrick as fp
from fitzpatrick import engines, linear_model, metrics, preprocessing
from fitzpatrick.engines.rows import BlockTask, Output
from fitzpatrick.engines.targets import Scratch
from tests.conftest import installed
from tests.helpers import TWO_WAYS, assert_promised, seeded, simplex_rows

from .cases import SIMPLEX, bind_loss, make_loss, scores

N, K = 40, 30
LOSS = fp.get_loss("fitzpatrick_logistic")


def one_per_row(n: int = N, k: int = K) -> Any:
    return sparse.csr_array((np.ones(n), np.arange(n) % k, np.arange(n + 1)), shape=(n, k))


def break_csr(y: Any, part: str, at: int, value: int) -> Any:
    getattr(y, part)[at] = value
    return y


def doors(y: Any, k: int = K) -> list[Any]:
    """Every way for targets into the library that takes sparse ones."""
    theta = np.zeros((N, k))
    return [
        lambda: LOSS.value(y, theta),
        lambda: LOSS.value_and_gradient(y, theta),
        lambda: fp.get_loss("sigmoid").hessian_product(y, theta, theta),
        lambda: fp.FitzpatrickLoss(fp.regularizers.SquaredNorm(fp.sets.L1Ball())).value(y, theta),
        lambda: engines.bind(LOSS.regularizer, 1.0, y, k),
        lambda: engines.bind_like(LOSS.regularizer, 1.0, y, k, theta),
        lambda: fp.fitzpatrick_function(LOSS.regularizer, y, theta),
        lambda: metrics.squared_error(y, theta),
        lambda: preprocessing.label_proportions(y),
        lambda: linear_model.ProportionRegressor().fit(theta, y),
        lambda: linear_model.ProportionRegressorCV().fit(theta, y),
        lambda: linear_model.FitzpatrickClassifier().fit(y, np.arange(N) % 2),
        lambda: linear_model.FitzpatrickClassifierCV().fit(y, np.arange(N) % 2),
    ]


BROKEN = {
    "far column": (lambda: break_csr(one_per_row(), "indices", 5, 10**9), "row 5 has the column 1"),
    "next column": (lambda: break_csr(one_per_row(), "indices", 5, K), "row 5 has the column 30,"),
    "negative column": (lambda: break_csr(one_per_row(), "indices", 7, -1), "row 7 has the column"),
    "falling indptr": (lambda: break_csr(one_per_row(), "indptr", 9, 3), "in row 8 indptr goes fr"),
    "first indptr": (lambda: break_csr(one_per_row(), "indptr", 0, 1), "of 41 numbers from 0 on"),
    "last indptr": (lambda: break_csr(one_per_row(), "indptr", N, 99), "row 39 indptr goes from"),
    "csc": (lambda: break_csr(one_per_row().tocsc(), "indices", 3, 10**9), "has the row 10000000"),
    "coo": (lambda: break_csr(one_per_row().tocoo(), "col", 3, 10**6), "entry 3 has the column 1"),
    "bsr": (lambda: break_csr(one_per_row().tobsr((2, 2)), "indices", 4, 99), "has the column 99,"),
}


@pytest.mark.parametrize("fault", BROKEN)
def test_broken_sparse_targets_are_refused_at_every_door(fault: str) -> None:
    """SciPy reads and writes where the indices say, outside of its arrays as well."""
    make, message = BROKEN[fault]
    for enter in doors(make()):
        with pytest.raises(ValueError, match=message):
            enter()


def test_lists_of_lists_and_missing_indices() -> None:
    lists, short = one_per_row().tolil(), one_per_row()
    lists.rows[2] = [K + 1]
    short.indices = short.indices[:-1]
    for y, message in ((lists, "row 2 has the column 31"), (short, "39 indices and 40 numbers")):
        with pytest.raises(ValueError, match=message):
            LOSS.value(y, np.zeros((N, K)))


def test_what_scipy_remembers_of_the_order_is_not_believed() -> None:
    """Columns that were sorted once, and then were changed to be twice the same."""
    y = sparse.csr_array(([0.5, 0.5, 1.0], [0, 2, 1], [0, 2, 3]), shape=(2, 3))
    assert y.has_canonical_format
    y.indices[1] = 0
    theta = scores(2, 3, 1.0, "float64", 0)
    np.testing.assert_allclose(LOSS.value(y, theta), LOSS.value([0, 1], theta), **TWO_WAYS)


@pytest.mark.usefixtures("engine")
def test_targets_are_kept_as_they_are() -> None:
    """A copy of many labels or rows would take as much memory as the user's own."""
    labels, matrix, dense = np.arange(N) % K, one_per_row(), np.full((N, K), 1 / K)
    for y, name in ((labels, "labels"), (matrix, "matrix"), (dense, "y")):
        assert getattr(bind_loss(LOSS, y, K).kernel.targets, name) is y


def test_sparse_targets_with_zeros_and_duplicates_are_left_as_they_were() -> None:
    data, columns = np.asarray([0.5, 0.5, 0.0, 0.25, 0.75]), np.asarray([1, 1, 0, 2, 0])
    y = sparse.csr_array((data, columns, np.asarray([0, 3, 5])), shape=(2, 3))
    theta = scores(2, 3, 1.0, "float64", 0)
    out = np.empty(2), np.empty((2, 3))
    expected = LOSS.value(y.toarray(), theta)
    for form in (y, y.tocsc(), sparse.dok_array(y.toarray()), y.astype(np.float32)):
        assert LOSS.value_and_gradient(form, theta, out=out)[0] is out[0]
        np.testing.assert_allclose(out[0], expected, **TWO_WAYS)
    assert y.nnz == 5


@pytest.mark.parametrize("library", ["numpy", "torch"])
@pytest.mark.parametrize("name", ["logistic", "entmax13", "poisson"])
def test_targets_of_any_dtype_are_the_same_numbers(name: str, library: str) -> None:
    """Of integers PyTorch takes logarithms in single precision; one row, and many."""
    asarray = installed(library).asarray
    loss, y, theta = make_loss(name, 0.5), np.eye(3)[[0, 2, 1, 1]], scores(4, 3, 1.0, "float64", 0)
    for rows in (0, slice(4)):
        expected = loss.value_and_gradient(asarray(y[rows]), asarray(theta[rows]))
        for dtype in ("int64", "uint8", "float32", "float16"):
            found = loss.value_and_gradient(asarray(y[rows], dtype), asarray(theta[rows]))
            for one, other in zip(found, expected, strict=True):
                assert one.dtype == other.dtype
                np.testing.assert_array_equal(one, other)


@pytest.mark.usefixtures("engine")
@given(
    seed=st.integers(0, 2**16),
    name=st.sampled_from(SIMPLEX),
    dtype=st.sampled_from(["float64", "float32"]),
    tightness=st.sampled_from([0.0, 0.3, 1.0, 1.5, 2.5, 4.0]),
)
@np.errstate(all="ignore")
def test_csr_with_stored_zeros_and_tiny_targets_is_its_dense_form(
    seed: int, name: str, dtype: str, tightness: float
) -> None:
    rng = seeded(seed)
    n, k = int(rng.integers(1, 9)), int(rng.integers(1, 40))
    dense = simplex_rows(rng, n, k, tiny=1e-37)
    tiny = rng.choice([1e-310, 1e-300, 1e-45, 1e-20, 1e-9], size=(n, k))
    dense = np.where((rng.random((n, k)) < 0.2) & (dense == 0), tiny, dense)
    rows, columns = np.nonzero((dense > 0) | (rng.random((n, k)) < 0.3))  # some of them zeros
    y = sparse.csr_array((dense[rows, columns], (rows, columns)), shape=(n, k))
    theta = scores(n, k, rng.choice([0.1, 3.0, 100.0]), dtype, seed)
    loss = make_loss(name, tightness)
    value, gradient = bind_loss(loss, y, k, dtype).value_and_gradient(theta)
    solution = loss.solve(dense.astype(dtype), theta)
    assert_promised(value, solution.value(), dense, dtype, factor=2)
    assert_promised(gradient, solution.gradient(), dense, dtype, factor=2)
    assert y.nnz == len(rows)  # as it was


@pytest.mark.parametrize("name", [name for name in SIMPLEX if name != "perceptron"])
def test_labels_that_are_no_classes_never_reach_a_kernel(name: str) -> None:
    loss = make_loss(name)
    theta, out = np.zeros((N, K)), np.full((N, K), 7.0)
    for label in (-1, K, K + 1, 2**40):
        labels = np.where(np.arange(N) == 3, label, 0)
        with pytest.raises(ValueError, match=f"label {label} in row 3 is out of range"):
            loss.value(labels, theta)
        # and a kernel that is called with one all the same writes nothing
        kernel = bind_loss(loss, np.zeros(N, int), K, engine="numba").kernel
        kernel = replace(kernel, targets=engines.Labels((N, K), theta.dtype, labels))
        task = BlockTask(Output.GRADIENT, slice(0, N), theta, np.zeros(N), out, Scratch())
        assert np.isnan(kernel.run(task))
        assert (out == 7).all()
