"""The public edge under jax.jit, vmap and torch.compile, and how many steps are taken."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import fitzpatrick as fp
from fitzpatrick import _root
from fitzpatrick.losses import ends, regularizers_by_name
from fitzpatrick.sets import Simplex
from tests.conftest import installed
from tests.helpers import (
    TEST_ALL,
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
SOME = ["fitzpatrick_logistic", "sparsemax", "sigmoid"]
SIMPLEX = [n for n in fp.loss_names() if isinstance(fp.get_loss(n).regularizer.domain, Simplex)]


@pytest.fixture
def jax():
    return pytest.importorskip("jax")


def inputs(name: str, dtype: str) -> list[np.ndarray]:
    rng, domain = seeded(0), fp.get_loss(name).regularizer.domain
    y = targets(domain, rng, N, K, dtype)
    return [y, scores(domain, rng, N, K, dtype, 3.0), rng.normal(size=(N, K))]


def results_of(name: str) -> Callable[..., Any]:
    """All results of a loss in one function, so that they are compiled once."""
    loss = fp.get_loss(name)

    def results(y, theta, v):
        value, gradient = loss.value_and_gradient(y, theta)
        return value, gradient, loss.hessian_product(y, theta, v), loss.link(theta)

    return results


def compare(traced, eager, like, dtype: str) -> None:
    for out, expected in zip(traced, eager, strict=True):
        assert_same_kind(out, like)
        scale = np.max(np.abs(to_numpy(expected)))
        assert_close(out, expected, rtol=0, atol=32 * eps(dtype) * (1 + scale))


@pytest.mark.parametrize("name", fp.loss_names() if TEST_ALL else SOME)
def test_jit(jax, name: str) -> None:
    """Of one pair at a time under vmap, and of labels that are closed over."""
    (y, theta, _), loss = inputs(name, "float64"), fp.get_loss(name)
    arrays = [Library("jax").asarray(x) for x in (y, theta)]
    traced = jax.jit(jax.vmap(loss.value_and_gradient))(*arrays)
    compare(traced, loss.value_and_gradient(y, theta), arrays[1], "float64")
    if name in SIMPLEX:
        labels = np.arange(N) % K
        traced = jax.jit(lambda s: loss.value(Library("jax").asarray(labels), s))(arrays[1])
        compare([traced], [loss.value(labels, theta)], arrays[1], "float64")


def test_jit_checks_targets_that_are_closed_over(jax) -> None:
    loss, theta = fp.get_loss("logistic"), jax.numpy.zeros((2, 3))
    wrong, ones = jax.numpy.asarray([2, 3]), jax.numpy.ones((2, 3))
    with pytest.raises(ValueError, match="label 3 in row 1 is out of range"):
        jax.jit(lambda s: loss.value(wrong, s))(theta)
    with pytest.raises(ValueError, match="not in the domain"):
        jax.jit(lambda s: loss.value(ones, s))(theta)


@pytest.mark.parametrize(
    "name", fp.loss_names() if TEST_ALL else [ends(name)[-1] for name in regularizers_by_name()]
)
def test_compile(name: str) -> None:
    """The whole call is one graph; the backend runs it as it was traced."""
    torch = pytest.importorskip("torch")
    torch._dynamo.reset()
    dtype, loss = "float32", fp.get_loss(name)  # which takes fewer steps to trace
    arrays = [Library("torch").asarray(x, dtype) for x in inputs(name, dtype)]
    results = results_of(name)
    if name not in SOME:
        arrays, results = arrays[:2], loss.value_and_gradient
    compiled = torch.compile(results, fullgraph=True, backend="eager", dynamic=False)
    compare(compiled(*arrays), results(*arrays), arrays[1], dtype)


@pytest.fixture
def taken(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, int]]:
    """How often each search for τ asked for the maximizer, and how often it might have."""
    found: list[tuple[int, int]] = []
    solve_tau = _root.solve_tau

    def counting(point, tau, power, steps, bend):
        calls = 0

        def counted(t):
            nonlocal calls
            calls += 1
            return point(t)

        tau = solve_tau(counted, tau, power, steps, bend)
        found.append((calls, steps))
        return tau

    monkeypatch.setattr(_root, "solve_tau", counting)
    return found


@pytest.mark.parametrize("library", ["numpy", "torch", "jax"])
@pytest.mark.parametrize("name", ["fitzpatrick_logistic", "entmax15", "sparsemax"])
def test_only_pytorch_takes_every_step(name: str, library: str, taken: list) -> None:
    """There the graph must not depend on the data; others stop when every row has converged."""
    loss, xp, rng = fp.get_loss(name), installed(library), seeded(1)
    easy = np.zeros((N, K)), np.full((N, K), 1 / K)
    hard = 1e4 * rng.normal(size=(N, K)), targets(Simplex(), rng, N, K, "float64")
    with np.errstate(all="ignore"):
        for theta, y in (easy, hard):
            loss.solve(xp.asarray(y), xp.asarray(theta)).value()
    assert len(taken) == 2
    assert all(calls <= steps for calls, steps in taken)
    if library == "torch":
        assert taken[0] == taken[1]
        assert taken[0][0] == taken[0][1]
    elif taken[0][1] > _root.MAX_UNROLLED_STEPS:
        assert taken[0][0] < taken[0][1]


@pytest.mark.parametrize("name", ["fitzpatrick_entmax15", "fitzpatrick_logistic"])
def test_jax_traces_one_step_of_a_loop(jax, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
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
        rows = jax.ShapeDtypeStruct((2, k), "float32")
        jax.eval_shape(lambda y, theta: loss.solve(y, theta).value(), rows, rows)
    assert advanced[0] == advanced[1] <= 2
