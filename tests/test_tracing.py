"""Every regularizer under jax.jit and torch.compile: one formula, one answer."""

import numpy as np
import pytest

import fitzpatrick as fp
from fitzpatrick import _root
from fitzpatrick.losses import ends, regularizers_by_name
from fitzpatrick.sets import Simplex
from tests.conftest import installed
from tests.helpers import (
    DTYPES,
    TEST_ALL,
    TWO_WAYS,
    Library,
    assert_close,
    assert_same_kind,
    eps,
    scores,
    seeded,
    targets,
    to_numpy,
)

N, K = 9, 3
# Tracing and compiling take seconds. One kernel serves every tightness of a regularizer; tests/jax
# compiles every loss of the registry, at targets and at labels, through the functions of the front
# end, so that here it is the public edge that is traced.
ALL, SOME = fp.loss_names(), ["fitzpatrick_logistic", "sparsemax", "sigmoid"]
ONE_EACH = [ends(name)[-1] for name in regularizers_by_name()]
every_regularizer = pytest.mark.parametrize("name", ALL if TEST_ALL else ONE_EACH)
some_losses = pytest.mark.parametrize("name", ALL if TEST_ALL else SOME)


@pytest.fixture
def jax():
    return pytest.importorskip("jax")


@pytest.fixture
def torch():
    return pytest.importorskip("torch")


def inputs(loss: fp.Loss, dtype: str):
    rng = seeded(0)
    domain = loss.regularizer.domain
    y = targets(domain, rng, N, K, dtype)
    return y, scores(domain, rng, N, K, dtype, 3.0), rng.normal(size=(N, K))


def results_of(name: str):
    """All results of a loss in one function, so that they are compiled once; fewer of most."""
    loss = fp.get_loss(name)

    def results(y, theta, v):
        value, gradient = loss.value_and_gradient(y, theta)
        if TEST_ALL or name in SOME:
            return value, gradient, loss.hessian_product(y, theta, v), loss.link(theta)
        return value, gradient

    return results


def compare(traced, eager, like, dtype: str) -> None:
    for out, expected in zip(traced, eager, strict=True):
        assert_same_kind(out, like)
        scale = np.max(np.abs(to_numpy(expected)))
        assert_close(out, expected, rtol=0, atol=32 * eps(dtype) * (1 + scale))


@some_losses
def test_jit(jax, name: str, dtype: str) -> None:
    """The answers are NumPy's: JAX alone would compile each operation, one after the other."""
    given = inputs(fp.get_loss(name), dtype)
    results = results_of(name)
    expected = results(*(Library("numpy").asarray(x, dtype) for x in given))
    arrays = [Library("jax").asarray(x, dtype) for x in given]
    compare(jax.jit(results)(*arrays), expected, arrays[1], dtype)


@some_losses
def test_jit_with_the_targets_closed_over(jax, name: str) -> None:
    loss, dtype = fp.get_loss(name), "float64"
    given = inputs(loss, dtype)[:2]
    y, theta = (Library("jax").asarray(x, dtype) for x in given)
    traced = jax.jit(lambda scores: loss.value_and_gradient(y, scores))(theta)
    compare(traced, loss.value_and_gradient(*given), theta, dtype)


def test_jit_checks_targets_that_are_closed_over(jax) -> None:
    loss, theta = fp.get_loss("logistic"), jax.numpy.zeros((2, 3))
    labels, wrong = jax.numpy.asarray([0, 1]), jax.numpy.asarray([2, 3])
    np.testing.assert_allclose(jax.jit(lambda s: loss.value(labels, s))(theta), np.log(3))
    with pytest.raises(ValueError, match="label 3 in row 1 is out of range"):
        jax.jit(lambda s: loss.value(wrong, s))(theta)
    ones = jax.numpy.ones((2, 3))
    with pytest.raises(ValueError, match="not in the domain"):
        jax.jit(lambda s: loss.value(ones, s))(theta)


@every_regularizer
def test_compile(torch, name: str) -> None:
    """The whole call is one graph; the backend runs it as it was traced."""
    torch._dynamo.reset()
    loss, dtype = fp.get_loss(name), "float32"  # which takes fewer steps to trace
    arrays = [Library("torch").asarray(x, dtype) for x in inputs(loss, dtype)]
    results = results_of(name)
    compiled = torch.compile(results, fullgraph=True, backend="eager", dynamic=False)
    compare(compiled(*arrays), results(*arrays), arrays[1], dtype)


SIMPLEX = [n for n in fp.loss_names() if isinstance(fp.get_loss(n).regularizer.domain, Simplex)]


@pytest.mark.parametrize("name", [name for name in SIMPLEX if TEST_ALL or name in SOME])
def test_jit_of_integer_labels(jax, name: str) -> None:
    loss = fp.get_loss(name)
    _, theta, _ = inputs(loss, "float64")
    labels = np.arange(N) % K
    given = Library("jax").asarray(labels), Library("jax").asarray(theta)
    assert_close(jax.jit(loss.value)(*given), loss.value(labels, theta), **TWO_WAYS)


@pytest.mark.parametrize("name", ["fitzpatrick_logistic", "fitzpatrick_sparsemax"])
def test_vmap(jax, name: str) -> None:
    """One pair at a time under vmap is the batch."""
    loss = fp.get_loss(name)
    y, theta = inputs(loss, "float64")[:2]
    given = (Library("jax").asarray(x) for x in (y, theta))
    assert_close(jax.jit(jax.vmap(loss.value))(*given), loss.value(y, theta), **TWO_WAYS)


@pytest.mark.parametrize("name", SIMPLEX)
def test_the_number_of_steps_does_not_depend_on_the_data_in_pytorch(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Easy and hard rows evaluate the maximizer equally often."""
    loss, xp = fp.get_loss(name), installed("torch")
    calls: list[int] = []
    solve_tau = _root.solve_tau

    def counting(point, tau, power, steps):
        calls.append(0)

        def counted(t):
            calls[-1] += 1
            return point(t)

        return solve_tau(counted, tau, power, steps)

    monkeypatch.setattr(_root, "solve_tau", counting)
    rng = seeded(1)
    easy = np.zeros((N, K)), np.full((N, K), 1 / K)
    hard = 1e4 * rng.normal(size=(N, K)), targets(Simplex(), rng, N, K, "float64")
    for theta, y in (easy, hard):
        loss.solve(xp.asarray(y), xp.asarray(theta)).value()
    if name == "perceptron":
        assert calls == []
    else:
        assert len(calls) == 2
        assert calls[0] == calls[1]


@pytest.mark.parametrize("library", ["numpy", "jax"])
def test_others_stop_when_every_row_has_converged(
    library: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    loss, xp = fp.get_loss("fitzpatrick_entmax15"), installed(library)
    calls = 0
    solve_tau = _root.solve_tau

    def counting(point, tau, power, steps):
        def counted(t):
            nonlocal calls
            calls += 1
            return point(t)

        tau = solve_tau(counted, tau, power, steps)
        assert calls < steps
        return tau

    monkeypatch.setattr(_root, "solve_tau", counting)
    y, theta = xp.asarray(np.asarray([[0.5, 0.5]])), xp.asarray(np.asarray([[0.0, 0.0]]))
    loss.solve(y, theta).value()
    assert calls > 1


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", ["fitzpatrick_entmax15", "fitzpatrick_logistic"])
def test_jax_traces_one_step_of_a_loop(
    jax, name: str, dtype: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However many classes, and thus steps, there are."""
    loss = fp.get_loss(name)
    advanced: list[int] = []
    advance = _root.advance

    def counting(tau, step, start):
        advanced[-1] += 1
        return advance(tau, step, start)

    monkeypatch.setattr(_root, "advance", counting)
    for k in (3, 300):
        advanced.append(0)
        rows = jax.ShapeDtypeStruct((2, k), dtype)
        jax.eval_shape(lambda y, theta: loss.solve(y, theta).value(), rows, rows)
    assert advanced[0] == advanced[1] <= 2
