"""What the engine promises beyond its digits: buffers, memory, threads, forms, errors."""

import operator
import threading
import tracemalloc
from typing import Any

import numpy as np
import pytest
from scipy import sparse

import fitzpatrick as fp
from fitzpatrick import engines
from fitzpatrick.engines import CoreLoss, rows
from fitzpatrick.engines.rows import CoreKernel
from fitzpatrick.regularizers import Bernoulli, SquaredNorm
from tests.helpers import TWO_WAYS
from tests.user_regularizer import ScaledDistance

from .cases import REGULARIZERS, bind_loss, make_loss, scores, targets

both_engines = pytest.mark.usefixtures("engine")


@both_engines
@pytest.mark.parametrize("name", REGULARIZERS)
def test_results_go_into_the_buffers(name: str) -> None:
    n, k = 40, 70
    theta = scores(n, k, 1.0, "float64", 0)
    theta.flags.writeable = False
    loss = make_loss(name)
    for y, order in zip(targets(name, n, k, 1), "CFF", strict=False):
        expected = loss.value_and_gradient(y, theta)
        out = np.full(n, np.nan), np.full((n, k), np.nan, order=order)
        result = loss.value_and_gradient(y, theta, out=out)
        assert all(map(operator.is_, result, out))
        v = scores(n, k, 1.0, "float64", 2)
        expected += (loss.hessian_product(y, theta, v),)
        assert loss.hessian_product(y, theta, v, out=v) is v
        for found, other in zip((*out, v), expected, strict=True):
            np.testing.assert_allclose(found, other, **TWO_WAYS)


Y, THETA, BOTH = np.full((3, 4), 0.25), np.zeros((3, 4)), np.empty((4, 4))
CSR = sparse.csr_array(Y)
ENTRIES = CSR.data.reshape(Y.shape)
FROZEN = np.empty((3, 4))
FROZEN.flags.writeable = False


def into(*out: Any) -> Any:
    return lambda loss: loss.value_and_gradient(Y, THETA, out=out if len(out) == 2 else out[0])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (into(np.empty(3)), "out must be a tuple of two arrays"),
        (into(np.empty(2), np.empty((3, 4))), r"out\[0\] must have shape \(3,\) and dtype float64"),
        (into(np.empty(3), np.empty((3, 4), np.float32)), r"out\[1\] must have shape \(3, 4\)"),
        (into(np.empty(3), [1.0]), r"out\[1\] must be a NumPy array"),
        (into(np.empty(3), Y), r"out\[1\] overlaps y"),
        (lambda loss: loss.hessian_product(CSR, THETA, THETA, out=ENTRIES), "out overlaps y"),
        (into(np.empty(3), FROZEN), r"out\[1\] is read-only"),
        (into(np.empty(3), THETA), r"out\[1\] overlaps theta"),
        (into(BOTH[0, :3], BOTH[:3]), r"out\[0\] overlaps out\[1\]"),
        (lambda loss: loss.hessian_product(Y, THETA, THETA, out=Y), "out overlaps y"),
        (lambda loss: loss.hessian_product(Y, THETA, BOTH[:3], out=BOTH[1:]), "overlaps v"),
        (lambda loss: loss.value(Y, THETA, n_threads=0), "n_threads must be a positive integer"),
        (lambda loss: bind_loss(loss, Y, 4, n_threads=1.5), "n_threads must be a positive"),
        (lambda loss: bind_loss(loss, Y, 4, dtype=np.float16), "must be float32 or float64 to bin"),
        (lambda loss: bind_loss(loss, Y, 0), "n_classes must be at least 1"),
        (lambda loss: bind_loss(loss, 3, 4), "got a single number"),
        (lambda loss: bind_loss(loss, np.asarray([0, 4]), 4), "label 4 in row 1 is out of range"),
        (lambda loss: bind_loss(loss, 2 * Y, 4), "in row 0 it sums to 2"),
        (lambda loss: bind_loss(loss, -CSR, 4), "in row 0 entry 0 is -0.25"),
        (lambda loss: bind_loss(loss, Y, 3), "must have the same shape"),
        (lambda loss: bind_loss(loss, Y, 4, engine="cuda"), "engine must be 'numba', 'numpy' or"),
    ],
)
def test_bad_arguments_are_refused(call: Any, message: str) -> None:
    with pytest.raises((TypeError, ValueError), match=message):
        call(fp.get_loss("sparsemax"))


@both_engines
@pytest.mark.parametrize("name", ["fitzpatrick_logistic", "fitzpatrick_entmax15"])
@pytest.mark.parametrize("form", ["labels", "csr", "dense", "dense sparse"])
def test_memory_beyond_the_outputs_does_not_grow_with_n(name: str, form: str) -> None:
    n, k = 4096, 128
    y: Any = np.arange(n) % k
    if form != "labels":
        rows, columns = np.repeat(np.arange(n), 4), np.arange(4 * n) * 7 % k
        y = sparse.csr_array((np.full(4 * n, 0.25), (rows, columns)), shape=(n, k))
        y = {"csr": y, "dense sparse": y.toarray(), "dense": np.full((n, k), 1 / k)}[form]
    theta = scores(n, k, 1.0, "float64", 0)
    out, loss = (np.empty(n), np.empty((n, k))), fp.get_loss(name)
    loss.value_and_gradient(y[:8], theta[:8])  # loads and compiles what there is to be
    peaks = []
    for rows in (slice(1024), slice(n)):  # the first is one block
        tracemalloc.start()
        loss.value_and_gradient(y[rows], theta[rows], out=(out[0][rows], out[1][rows]), n_threads=1)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < peaks[0] + out[1].nbytes / 8


@both_engines
@pytest.mark.parametrize("name", REGULARIZERS)
def test_neither_blocks_nor_threads_leave_a_trace(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rows, "block_rows", lambda *_: 7)
    monkeypatch.setattr(rows, "_MIN_THREADED_SIZE", 0)
    loss, n, k = make_loss(name, 0.5), 23, 60
    theta = scores(n, k, 1.0, "float64", 5)
    # of a block that is not the first, the core computes what is between
    theta[[15, 17], 3] = np.nan
    for y in targets(name, n, k, 6):
        one = loss.value_and_gradient(y, theta, n_threads=1)
        np.testing.assert_equal(loss.value_and_gradient(y, theta, n_threads=3), one)
        for at in (0, 6, 7, 13, 16, 22):
            row = slice(at, at + 1)
            for found, whole in zip(loss.value_and_gradient(y[row], theta[row]), one, strict=True):
                np.testing.assert_allclose(found, whole[row], **TWO_WAYS)


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


@pytest.mark.parametrize("domain", [fp.sets.L1Ball(), fp.sets.L2Ball()])
def test_large_batches_of_sets_without_rows_are_their_parts(domain: fp.sets.ConvexSet) -> None:
    """Their Hessian is that of whole rows, and no product of slopes."""
    n, k = 900, 40  # several blocks of rows
    theta, v = scores(n, k, 1.0, "float64", 0), scores(n, k, 1.0, "float64", 1)
    y = domain.project(scores(n, k, 1.0, "float64", 2)) / 2
    loss = fp.FitzpatrickLoss(SquaredNorm(domain))
    parts = [slice(0, 300), slice(300, 600), slice(600, 900)]
    found = *loss.value_and_gradient(y, theta), loss.hessian_product(y, theta, v), loss.link(theta)
    for part in parts:
        given = y[part], theta[part]
        expected = *loss.value_and_gradient(*given), loss.hessian_product(*given, v[part])
        for one, other in zip(found, (*expected, loss.link(theta[part])), strict=True):
            np.testing.assert_allclose(one[part], other, **TWO_WAYS)


@pytest.mark.parametrize("name", ["logistic", "sigmoid"])
def test_a_bound_core_is_for_arrays_of_any_library(name: str) -> None:
    """Its Hessian has slopes, and their row sums if the entries of a row are coupled."""
    torch = pytest.importorskip("torch")
    loss, theta = make_loss(name, 0.5), scores(4, 3, 1.0, "float64", 0)
    y = np.asarray([0, 2, 1, 1]) if name == "logistic" else np.eye(3)[[0, 2, 1, 1]]
    bound = CoreLoss(loss.regularizer, loss.tightness, torch.from_numpy(y))
    tensor = torch.from_numpy(theta)
    out = torch.empty(4, dtype=tensor.dtype), torch.empty_like(tensor)
    assert bound.value_and_gradient(tensor, out)[0] is out[0]
    np.testing.assert_allclose(out[1], loss.gradient(y, theta), **TWO_WAYS)
    hessian = bound.hessian_operator(tensor)
    other = bind_loss(loss, y, 3).hessian_operator(theta)
    np.testing.assert_allclose(hessian.d, other.d, **TWO_WAYS)
    assert (hessian.total is None) == (other.total is None) == (name == "sigmoid")
    if hessian.total is not None:
        np.testing.assert_allclose(hessian.total, other.total, **TWO_WAYS)
    np.testing.assert_allclose(hessian(tensor), other(theta), **TWO_WAYS)


@both_engines
@pytest.mark.parametrize("tightness", [0.0, 0.5, 2.0])
@pytest.mark.parametrize("name", ["sparsemax", "sparse_sigmoid"])
def test_slopes_within_reach_of_kinks_are_means(
    name: str, tightness: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rows, "block_rows", lambda *_: 5)
    n, k = 12, 7
    theta = scores(n, k, 1.0, "float64", 0)
    reach = np.linspace(0.0, 2.0, n)
    loss = make_loss(name, tightness)
    steps = np.linspace(-1, 1, 4001)
    for y in targets(name, n, k, 1):
        dense = np.eye(k)[y] if y.ndim == 1 else y.toarray() if sparse.issparse(y) else y
        p = loss.solve(dense, theta).y_star
        m = (theta + tightness * dense) / (1 + tightness)
        if name == "sparsemax":  # where p is positive it is m less τ
            top = np.argmax(p, axis=1)[:, None]
            m = m - np.take_along_axis(m - p, top, axis=1)
        moved = m[..., None] + reach[:, None, None] * steps / (1 + tightness)
        is_inside = (moved > 0) & (moved < (np.inf if name == "sparsemax" else 1))
        expected = is_inside.mean(axis=2) / (1 + tightness)
        hessian = bind_loss(loss, y, k).hessian_operator(theta, reach)
        # each of two kinks is off by less than one of the steps
        np.testing.assert_allclose(hessian.d, expected, atol=2 / len(steps))
        core = CoreLoss(loss.regularizer, loss.tightness, dense).hessian_operator(theta, reach)
        np.testing.assert_allclose(hessian.d, core.d, **TWO_WAYS)
        assert (hessian.total is None) == (name == "sparse_sigmoid")
        if hessian.total is not None:
            np.testing.assert_allclose(hessian.total, hessian.d.sum(axis=1), **TWO_WAYS)


@both_engines
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", ["sparsemax", "sparse_sigmoid", "entmax15"])
def test_slopes_where_no_kink_is_within_reach(name: str, dtype: str) -> None:
    """Or where the reach is not known, or nothing jumps: those at the scores, bit for bit."""
    theta = np.asarray([[0.5, 0.25, -3.0], [0.125, 0.75, 0.5]], dtype=dtype)
    y = np.asarray([[1, 0, 0], [0.5, 0.5, 0]], dtype=dtype)
    bound = bind_loss(make_loss(name, 0.5), y, 3, dtype=np.dtype(dtype))
    for reach in (1.0,) if name == "entmax15" else (1e-30, 1e-12, 1e-6, np.inf, np.nan):
        mean = bound.hessian_operator(theta, np.full(2, reach, dtype=dtype))
        assert mean.d.dtype == dtype
        np.testing.assert_array_equal(mean.d, bound.hessian_operator(theta).d)


@pytest.mark.parametrize("form", ["labels", "csr", "dense"])
def test_a_separable_regularizer_of_your_own_has_rows(form: str) -> None:
    """w/2 ‖y − a‖² has w times the losses of sparsemax at θ/w; τ absorbs the anchor a."""
    n, k = 900, 40  # more than one piece of the core
    labels = np.arange(n) * 7 % k
    soft = np.zeros((n, k))
    soft[np.arange(n), labels], soft[np.arange(n), (labels + 3) % k] = 0.75, 0.25
    y = {"labels": labels, "csr": sparse.csr_array(soft), "dense": soft}[form]
    theta, v = scores(n, k, 2.0, "float64", 0), scores(n, k, 1.0, "float64", 1)
    for tightness in (0.0, 0.5, 10.0):
        bound = engines.bind(ScaledDistance(2.0, 0.25), tightness, y, k, n_threads=2)
        assert type(bound.kernel) is CoreKernel
        half = engines.bind(SquaredNorm(fp.sets.Simplex()), tightness, y, k)
        value, gradient = half.value_and_gradient(theta / 2)
        product = half.hessian_product(theta / 2, v) / 2
        expected = 2 * value, gradient, half.y_star(theta / 2), product
        hessian = bound.hessian_operator(theta)
        found = *bound.value_and_gradient(theta), bound.y_star(theta), hessian(v)
        for one, other in zip(found, expected, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-14)


def test_a_subclass_does_not_take_the_kernel_of_its_parent() -> None:
    """It may have formulas of its own."""

    class OtherBernoulli(Bernoulli):
        pass

    for kind in ("numba", "triton"):
        assert engines.find_kernel(kind, Bernoulli()) is not None
        assert engines.find_kernel(kind, OtherBernoulli()) is None


def test_subclasses_of_arrays_are_arrays() -> None:
    """A product of np.matrix is one of matrices, and a row of it has two axes."""
    theta = scores(3, 4, 1.0, "float64", 0)
    for name in ("logistic", "entmax15", "sigmoid"):
        loss = make_loss(name, 0.5)
        expected = loss.value_and_gradient(Y, theta)
        found = loss.value_and_gradient(Y.view(np.matrix), theta.view(np.matrix))
        for one, other in zip(found, expected, strict=True):
            assert type(one) is np.ndarray
            np.testing.assert_array_equal(one, other)
