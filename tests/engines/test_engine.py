"""What the engine promises beyond its digits: buffers, memory, forms of targets, errors."""

import threading
import tracemalloc
from typing import Any

import numpy as np
import pytest
from scipy import sparse

import fitzpatrick as fp
from fitzpatrick import engines
from fitzpatrick.engines import CoreLoss, RowBlocks, rows
from fitzpatrick.engines.targets import DenseTargets, Labels, SparseTargets
from tests.helpers import TWO_WAYS, seeded

from .cases import (
    REGULARIZERS,
    SIMPLEX,
    bind_loss,
    cases,
    make_loss,
    scores,
)

MEBIBYTE = 1 << 20


def bind(name: str, y: Any, k: int, **options: Any) -> engines.BoundLoss:
    return bind_loss(fp.get_loss(name), y, k, **options)


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("name", REGULARIZERS)
def test_results_go_into_the_buffers(name: str, order: Any) -> None:
    n, k = 40, 70
    theta = scores(n, k, 1.0, "float64", 0)
    theta.flags.writeable = False
    loss = make_loss(name)
    for case in cases(name, n, k, 1)[:5]:
        value, gradient = loss.value_and_gradient(case.y, theta)
        out = np.full(n, np.nan), np.full((n, k), np.nan, order=order)
        result = loss.value_and_gradient(case.y, theta, out=out)
        assert result[0] is out[0]
        assert result[1] is out[1]
        np.testing.assert_allclose(out[0], value, **TWO_WAYS)
        np.testing.assert_allclose(out[1], gradient, **TWO_WAYS)
        v = scores(n, k, 1.0, "float64", 2)
        product = loss.hessian_product(case.y, theta, v)
        assert loss.hessian_product(case.y, theta, v, out=v) is v
        np.testing.assert_allclose(v, product, **TWO_WAYS)


@pytest.mark.parametrize(
    ("out", "message"),
    [
        (np.empty(4), "out must be a tuple of two arrays"),
        ((np.empty(3), np.empty((4, 5))), r"out\[0\] must have shape \(4,\) and dtype float64"),
        ((np.empty(4), np.empty((4, 5), np.float32)), r"out\[1\] must have shape \(4, 5\)"),
        ((np.empty(4), [1.0]), r"out\[1\] must be a NumPy array"),
    ],
)
def test_unfit_buffers_are_refused(out: Any, message: str) -> None:
    theta = np.zeros((4, 5))
    with pytest.raises((TypeError, ValueError), match=message):
        fp.get_loss("logistic").value_and_gradient(np.zeros(4, int), theta, out=out)


@pytest.mark.parametrize("name", ["fitzpatrick_logistic", "fitzpatrick_entmax15"])
@pytest.mark.parametrize("form", ["labels", "csr", "dense", "dense sparse"])
def test_memory_beyond_the_outputs_does_not_grow_with_n(name: str, form: str) -> None:
    n, k = 16384, 256
    rng = seeded(0)
    y: Any = rng.integers(0, k, n)
    if form != "labels":
        rows = np.repeat(np.arange(n), 4)
        columns = (np.arange(n)[:, None] * 7 + np.arange(4) * 50).ravel() % k
        y = sparse.csr_array((np.full(4 * n, 0.25), (rows, columns)), shape=(n, k))
    if form == "dense sparse":
        y = y.toarray()
    elif form == "dense":
        y = np.full((n, k), 1 / k)
    theta = rng.normal(size=(n, k))
    out = np.empty(n), np.empty((n, k))
    loss = fp.get_loss(name)
    loss.value_and_gradient(y[:8], theta[:8])  # loads and compiles what there is to be
    tracemalloc.start()
    loss.value_and_gradient(y, theta, out=out, n_threads=2)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 16 * MEBIBYTE


def test_targets_stay_in_their_own_form() -> None:
    # as a dense array these targets would take 4 TiB
    n, k = 1 << 20, 1 << 19
    columns = (np.arange(n) * 7919) % k
    y = sparse.csr_array((np.ones(n), columns, np.arange(n + 1)), shape=(n, k))
    bound = bind("fitzpatrick_logistic", y, k)
    assert isinstance(bound, RowBlocks)
    assert isinstance(bound.kernel.targets, SparseTargets)
    assert bound.kernel.targets.matrix is y
    labels = bind("sparsemax", columns, k).kernel.targets
    assert isinstance(labels, Labels)
    assert labels.labels is columns
    dense = np.full((4, 3), 1 / 3)
    targets = bind("logistic", dense, 3).kernel.targets
    assert isinstance(targets, DenseTargets)
    assert targets.y is dense


def test_sparse_targets_with_zeros_and_duplicates_are_left_as_they_were() -> None:
    data, columns = np.asarray([0.5, 0.5, 0.0, 0.25, 0.75]), np.asarray([1, 1, 0, 2, 0])
    y = sparse.csr_array((data, columns, np.asarray([0, 3, 5])), shape=(2, 3))
    theta = scores(2, 3, 1.0, "float64", 0)
    loss = fp.get_loss("fitzpatrick_logistic")
    value = loss.value(y, theta)
    np.testing.assert_allclose(value, loss.value(y.toarray(), theta), **TWO_WAYS)
    assert y.nnz == 5


@pytest.mark.parametrize("name", SIMPLEX)
def test_targets_of_other_dtypes_are_cast_by_blocks(name: str) -> None:
    n, k = 30, 20
    theta = scores(n, k, 1.0, "float64", 0)
    hard = np.eye(k, dtype=np.int64)[np.arange(n) % k]
    loss = make_loss(name)
    expected = loss.value(hard.astype(float), theta)
    np.testing.assert_array_equal(loss.value(hard, theta), expected)
    np.testing.assert_allclose(loss.value(hard.astype(np.float32), theta), expected, **TWO_WAYS)
    np.testing.assert_allclose(loss.value(sparse.csr_array(hard), theta), expected, **TWO_WAYS)


def test_the_core_serves_what_the_engine_cannot() -> None:
    ball = fp.FitzpatrickLoss(fp.regularizers.SquaredNorm(fp.sets.L2Ball()))
    y, theta = np.asarray([[0.6, 0.0], [0.0, 0.1]]), np.asarray([[1.0, 2.0], [0.1, 0.2]])
    bound = bind_loss(ball, y, 2)
    assert isinstance(bound, CoreLoss)
    value, gradient = bound.value_and_gradient(theta)
    solution = ball.solve(y, theta)
    np.testing.assert_array_equal(value, solution.value())
    np.testing.assert_array_equal(gradient, solution.y_star - y)
    np.testing.assert_array_equal(bound.value(theta), solution.value())
    np.testing.assert_array_equal(bound.y_star(theta), solution.y_star)
    out = np.empty(2), np.empty((2, 2))
    assert bound.value_and_gradient(theta, out)[1] is out[1]
    np.testing.assert_array_equal(out[1], gradient)
    np.testing.assert_array_equal(
        bound.hessian_operator(theta)(theta), solution.hessian_product(theta)
    )
    assert isinstance(bind("logistic", np.asarray([0, 1]), 2), RowBlocks)


def test_a_bound_core_is_for_arrays_of_any_library() -> None:
    """Labels or rows, and a Hessian with its slopes, which sum to its row sums."""
    torch = pytest.importorskip("torch")
    theta = scores(4, 3, 1.0, "float64", 0)
    for name in ("logistic", "sigmoid"):
        loss = make_loss(name, 0.5)
        y = np.asarray([0, 2, 1, 1]) if name == "logistic" else np.eye(3)[[0, 2, 1, 1]]
        expected = bind_loss(loss, y, 3)
        bound = CoreLoss(loss.regularizer, loss.tightness, torch.from_numpy(y))
        tensor = torch.from_numpy(theta)
        out = torch.empty(4, dtype=tensor.dtype), torch.empty_like(tensor)
        value, gradient = bound.value_and_gradient(tensor, out)
        assert value is out[0]
        np.testing.assert_allclose(value, expected.value(theta), **TWO_WAYS)
        np.testing.assert_allclose(gradient, expected.value_and_gradient(theta)[1], **TWO_WAYS)
        np.testing.assert_allclose(bound.y_star(tensor), expected.y_star(theta), **TWO_WAYS)
        hessian, other = bound.hessian_operator(tensor), expected.hessian_operator(theta)
        np.testing.assert_allclose(hessian.d, other.d, **TWO_WAYS)
        assert (hessian.total is None) == (other.total is None) == (name == "sigmoid")
        if hessian.total is not None:
            np.testing.assert_allclose(hessian.total, other.total, **TWO_WAYS)
        np.testing.assert_allclose(hessian(tensor), other(theta), **TWO_WAYS)


def test_exceptions_of_helper_threads_are_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rows, "_MIN_THREADED_SIZE", 0)
    main, helper_has_run = threading.current_thread(), threading.Event()

    def work(rows: slice, _: Any) -> None:
        if threading.current_thread() is main:
            assert helper_has_run.wait(10)
            return
        helper_has_run.set()
        raise ArithmeticError("in a helper")

    with pytest.raises(ArithmeticError, match="in a helper"):
        rows.for_each_block((8, 1), 8, 2, work, block_bytes=8)


def test_half_precision_goes_through_the_core() -> None:
    theta = np.asarray([[1.0, 2.0, 3.0]], dtype=np.float16)
    value, gradient = fp.get_loss("fitzpatrick_logistic").value_and_gradient(np.asarray([0]), theta)
    assert value.dtype == np.float16
    assert gradient.dtype == np.float16
    with pytest.raises(TypeError, match="scores must be float32 or float64 to bind a loss"):
        bind("logistic", np.asarray([0]), 3, dtype=np.float16)


@pytest.mark.parametrize(
    ("y", "message"),
    [
        (np.asarray([0, 3]), "label 3 in row 1 is out of range: theta has 3 classes"),
        (np.asarray([[0.5, 0.5, 0.0], [0.5, 0.6, 0.0]]), "in row 1 it sums to 1.1"),
        (sparse.csr_array([[0.5, 0.5, 0.0], [0.0, 0.0, 0.0]]), "in row 1 it sums to 0"),
        (sparse.csr_array([[0.0, 1.5, -0.5], [0.0, 1.0, 0.0]]), "in row 0 entry 2 is -0.5"),
        (np.zeros((2, 4)), "must have the same shape"),
        (sparse.csr_array(np.zeros((2, 4))), "must have the same shape"),
        (np.asarray([0.0, 1.0]), "must have the same shape"),
    ],
)
def test_bad_targets_raise_what_the_core_raises(y: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        bind("logistic", y, 3)
    with pytest.raises(ValueError, match=message):
        fp.get_loss("logistic").value_and_gradient(y, np.zeros((2, 3)))


@pytest.mark.parametrize("n_threads", [0, -1, 1.5])
def test_bad_thread_counts_are_refused(n_threads: Any) -> None:
    with pytest.raises(ValueError, match="n_threads must be a positive integer or None"):
        bind("logistic", np.asarray([0]), 3, n_threads=n_threads)


@pytest.mark.parametrize("tightness", [0.0, 0.5, 2.0])
@pytest.mark.parametrize("name", ["sparsemax", "sparse_sigmoid"])
def test_slopes_within_reach_of_kinks_are_means(name: str, tightness: float) -> None:
    n, k = 12, 7
    theta = scores(n, k, 1.0, "float64", 0)
    reach = np.linspace(0.0, 2.0, n)
    loss = make_loss(name, tightness)
    steps = np.linspace(-1, 1, 4001)
    for case in cases(name, n, k, 1):
        p = loss.solve(case.dense, theta).y_star
        m = (theta + tightness * case.dense) / (1 + tightness)
        if name == "sparsemax":  # where p is positive it is m less τ
            top = np.argmax(p, axis=1)[:, None]
            m = m - np.take_along_axis(m - p, top, axis=1)
        moved = m[..., None] + reach[:, None, None] * steps / (1 + tightness)
        is_inside = (moved > 0) & (moved < (np.inf if name == "sparsemax" else 1))
        expected = is_inside.mean(axis=2) / (1 + tightness)
        hessian = bind_loss(loss, case.y, k).hessian_operator(theta, reach)
        # each of two kinks is off by less than one of the steps
        np.testing.assert_allclose(hessian.d, expected, atol=2 / len(steps), err_msg=case.form)
        by_core = CoreLoss(loss.regularizer, loss.tightness, case.dense).hessian_operator(
            theta, reach
        )
        np.testing.assert_allclose(hessian.d, by_core.d, **TWO_WAYS, err_msg=case.form)
        assert (hessian.total is None) == (name == "sparse_sigmoid")
        if hessian.total is not None:
            np.testing.assert_allclose(hessian.total, hessian.d.sum(axis=1), **TWO_WAYS)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("reach", [1e-30, 1e-12, 1e-6, np.inf, np.nan])
@pytest.mark.parametrize("name", ["sparsemax", "sparse_sigmoid"])
def test_slopes_where_no_kink_is_within_reach(name: str, reach: float, dtype: str) -> None:
    """Or where nobody knows how far it is: those at the scores, bit for bit."""
    theta = np.asarray([[0.5, 0.25, -3.0], [0.125, 0.75, 0.5]], dtype=dtype)
    y = np.asarray([[1, 0, 0], [0.5, 0.5, 0]], dtype=dtype)
    bound = bind_loss(make_loss(name, 0.5), y, 3, dtype=np.dtype(dtype))
    mean = bound.hessian_operator(theta, np.full(2, reach, dtype=dtype))
    assert mean.d.dtype == dtype
    np.testing.assert_array_equal(mean.d, bound.hessian_operator(theta).d)


def test_slopes_without_jumps_are_those_at_the_scores() -> None:
    theta = scores(4, 3, 1.0, "float64", 0)
    bound = bind("fitzpatrick_entmax15", np.asarray([0, 2, 1, 1]), 3)
    near, wide = bound.hessian_operator(theta), bound.hessian_operator(theta, np.ones(4))
    np.testing.assert_array_equal(wide.d, near.d)
