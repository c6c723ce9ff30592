"""Class probabilities: the stationary distribution of the chain from a label to its maximizer."""

import itertools

import numpy as np
import pytest

import fitzpatrick as fp
from fitzpatrick.regularizers import (
    Bernoulli,
    FDivergence,
    Negentropy,
    SquaredNorm,
    Tsallis,
    _probabilities,
)
from fitzpatrick.regularizers._probabilities import (
    solve_chains,
    stationary_distribution,
    wide_chain,
)
from fitzpatrick.sets import Box, Simplex
from tests.helpers import Library, assert_close, eps, seeded, to_numpy

SIMPLEX = {
    "logistic": Negentropy(),
    "entmax15": Tsallis(1.5),
    "entmax13": Tsallis(1.3),
    "sparsemax": SquaredNorm(Simplex()),
    "entmax1": Tsallis(1.0),
}
TIGHTNESSES = (0.0, 0.25, 1.0, 4.0, 20.0)
every_loss = pytest.mark.parametrize("name", SIMPLEX)
every_tightness = pytest.mark.parametrize("tightness", TIGHTNESSES)


def draw(rng: np.random.Generator, n: int, k: int) -> np.ndarray:
    """Scores of many sizes, with ties, a masked class and rows of one score."""
    theta = rng.normal(size=(n, k)) * rng.choice([0.1, 1.0, 8.0], (n, 1))
    theta[::4] = np.round(theta[::4])
    theta[1::5] = theta[1::5, :1]
    if k > 2:
        theta[2::6, rng.integers(k)] = -np.inf
    return theta


@every_loss
@every_tightness
def test_scores_minimize_the_expected_loss_of_their_probabilities(
    name: str, tightness: float, xp: Library, dtype: str
) -> None:
    """Σ q_j (y*(e_j, θ) − e_j) = 0: the convex expected loss has its minimum at θ."""
    loss = fp.FitzpatrickLoss(SIMPLEX[name], tightness=tightness)
    if xp.name == "jax" and (tightness != 4.0 or name != "entmax15" or dtype == "float32"):
        pytest.skip("JAX compiles each formula anew, and these numbers change none of them")
    rng = seeded(3)
    for k in (3,) if xp.name == "jax" else (1, 2, 3, 10, 50):
        theta = xp.asarray(draw(rng, 12, k), dtype)
        q = to_numpy(xp.compiled(loss.probabilities)(theta))
        # each step is off by a few roundings, and a chain forgets them after about 1 + c steps
        slack = 64 * eps(dtype) * (1 + tightness) * np.sqrt(k)
        np.testing.assert_allclose(q.sum(axis=1), 1, rtol=0, atol=4 * eps(dtype) * k)
        assert (q >= 0).all()
        is_masked = to_numpy(theta) == -np.inf
        ordered = np.take_along_axis(q, np.argsort(to_numpy(theta), axis=1), axis=1)
        assert (np.diff(ordered, axis=1) >= -slack).all()  # that of the scores
        assert (q[is_masked] == 0).all()
        rows, labels = np.nonzero(~is_masked)
        given = xp.asarray(labels), xp.asarray(to_numpy(theta)[rows], dtype)
        columns = to_numpy(xp.compiled(loss.y_star)(*given))
        mean = np.zeros_like(q)
        np.add.at(mean, rows, q[rows, labels, None] * columns)
        assert_close(mean, q, rtol=0, atol=slack)
        if tightness == 0:
            assert_close(q, loss.link(theta), rtol=0, atol=4 * eps(dtype))


REFERENCE = np.array([0.7, 0.2, 0.1])
OTHERS = [
    *(fp.FitzpatrickLoss(omega, order=3) for omega in (Negentropy(), Tsallis(1.5))),
    *(
        fp.FitzpatrickLoss(FDivergence(kind, reference=reference), tightness=0.8)
        for kind in ("kl", "chi2", "hellinger", "jensen_shannon")
        for reference in (1.0, REFERENCE, np.stack([REFERENCE, REFERENCE[::-1]]))
    ),
]


@pytest.mark.parametrize("loss", OTHERS, ids=repr)
def test_other_losses_have_the_probabilities_of_their_chain(loss: fp.Loss) -> None:
    """In any order of scores, and with a reference for each row."""
    theta = np.array([[0.0, 0.5, 1.0], [2.0, -1.0, 0.3]])
    labels = [np.full(2, j) for j in range(3)]
    columns = np.stack([loss.y_star(label, theta) for label in labels], axis=1)
    q = loss.probabilities(theta)
    np.testing.assert_allclose((q[:, None, :] @ columns)[:, 0], q, rtol=0, atol=1e-12)
    np.testing.assert_allclose(q.sum(axis=1), 1, rtol=1e-14)


@pytest.mark.parametrize("omega", [Negentropy(), Tsallis(1.5), Bernoulli()], ids=str)
def test_extreme_scores_have_exact_probabilities(omega, xp: Library, dtype: str) -> None:
    loss = fp.FitzpatrickLoss(omega)
    if xp.name == "jax" and (dtype == "float32" or omega == Tsallis(1.5)):
        pytest.skip("JAX compiles each formula anew, and the dtype changes none of them")
    probabilities = xp.compiled(loss.probabilities)
    q = to_numpy(probabilities(xp.asarray([[1e4, 0.0, -1e4], [1e4, 1e4, -np.inf]], dtype)))
    expected = [[1, 0, 0], [0.5, 0.5, 0]]
    if omega == Bernoulli():
        expected = [[1, 0.5, 0], [1, 1, 0]]
    assert_close(q, np.asarray(expected), rtol=0, atol=4 * eps(dtype))
    nan = to_numpy(probabilities(xp.asarray([[np.nan, 0.0], [1.0, 1.0]], dtype)))
    assert np.isnan(nan[0]).any()
    masked = to_numpy(probabilities(xp.asarray([[-np.inf, -np.inf]], dtype)))
    assert np.isnan(masked).all() or omega == Bernoulli()
    assert_close(nan[1, 0], nan[1, 1], rtol=4 * eps(dtype), atol=0)


@every_tightness
def test_coins(tightness: float, xp: Library, dtype: str) -> None:
    """q = p_0/(p_0 + 1 − p_1), from the maximizers at the two labels."""
    if xp.name == "jax":
        pytest.skip("JAX compiles each formula anew, and the test above has its formula")
    loss = fp.FitzpatrickLoss(Bernoulli(), tightness=tightness)
    values = seeded(7).normal(size=(6, 5)) * 4
    theta = xp.asarray(values, dtype)
    tails = to_numpy(loss.y_star(xp.asarray(np.zeros((6, 5)), dtype), theta))
    heads = to_numpy(loss.y_star(xp.asarray(np.zeros((6, 5)), dtype), xp.asarray(-values, dtype)))
    expected = tails / (tails + heads)
    assert_close(xp.compiled(loss.probabilities)(theta), expected, rtol=32 * eps(dtype), atol=0)
    # two classes are a coin, also where they are far apart
    pair = xp.asarray([[30.0, -30.0]], dtype)
    two = fp.FitzpatrickLoss(Negentropy(), tightness=tightness).probabilities(pair)
    coin = loss.probabilities(xp.asarray([[-60.0]], dtype))
    assert_close(to_numpy(two)[0, 1], to_numpy(coin)[0, 0], rtol=512 * eps(dtype), atol=0)
    squared = fp.FitzpatrickLoss(SquaredNorm(Box(0.0, 1.0)), tightness=tightness)
    np.testing.assert_array_equal(
        to_numpy(squared.probabilities(theta)), to_numpy(squared.link(theta))
    )


def test_many_classes_of_which_few_are_active() -> None:
    theta = seeded(8).normal(size=(2, 100_000)) * 3
    for name in ("logistic", "entmax15", "sparsemax"):
        q = fp.FitzpatrickLoss(SIMPLEX[name]).probabilities(theta)
        assert_close(q.sum(axis=1), 1.0, rtol=0, atol=1e-12)


# orders, tightnesses and score scales; the last ones hardly move: they leave a class by 1e-9
ITERATED = [
    *itertools.product((1.2, 1.5, 1.9), (0.25, 4.0), (0.0, 0.02, 0.5)),
    (1.05, 50.0, 0.5), (1.05, 200.0, 0.02), (1.2, 200.0, 3.0), (1.02, 50.0, 5.0),
]  # fmt: skip


@np.errstate(all="ignore")  # which the public edge does
def test_chains_that_are_iterated(xp: Library, dtype: str) -> None:
    """Chains of many classes agree with elimination, whose digits are sure."""
    if xp.name == "jax" and dtype == "float32":
        pytest.skip("JAX compiles each formula anew, and the dtype changes none of them")
    some = {"jax": [(1.5, 4.0, 0.5)], "torch": ITERATED[::5]}
    for alpha, tightness, scale in some.get(xp.name, ITERATED):
        if tightness > 4 and dtype == "float32":
            continue  # its chains stay too long for its digits
        theta = seeded(17).normal(size=60) * scale
        theta[::7] = np.round(theta[::7], 1)
        theta[5] = -np.inf
        row = xp.asarray(theta, dtype)
        exact = solve_chains(Tsallis(alpha), to_numpy(row)[None], tightness, 60)[0]
        # roots are off by some roundings, which staying for 1 + c steps multiplies
        atol = 32 * eps(dtype) * (1 + tightness) * exact.max()
        assert_close(wide_chain(Tsallis(alpha), row, tightness), exact, rtol=0, atol=atol)


def test_iterated_chains_of_bad_scores(xp: Library, dtype: str) -> None:
    for row in ([0.0, np.nan, 1.0], [-np.inf] * 3, [0.0, np.inf, 1.0]):
        found = wide_chain(Tsallis(1.5), xp.asarray(row, dtype), 1.0)
        assert np.isnan(to_numpy(found)).all()


def test_iterated_chains_without_thresholds_are_refused(monkeypatch) -> None:
    monkeypatch.setattr(_probabilities, "_NEWTON_STEPS", 2)
    with pytest.raises(RuntimeError, match="thresholds of the chain's columns did not converge"):
        wide_chain(Tsallis(1.5), np.linspace(0, 1, 60), 4.0)


def test_very_many_active_classes() -> None:
    """More than are eliminated: a permutation of the scores, and ties, which have equal shares."""
    rng, loss = seeded(18), fp.FitzpatrickLoss(Tsallis(1.5))
    np.testing.assert_allclose(loss.probabilities(np.zeros((1, 5000))), 1 / 5000, rtol=1e-12)
    theta = rng.normal(size=(1, 100_000)) * 1e-3
    q = loss.probabilities(theta)
    assert (q > 0).all()
    assert_close(q.sum(axis=1), 1.0, rtol=0, atol=1e-12)
    order = np.argsort(theta[0])
    assert (np.diff(q[0, order]) >= 0).all()


@pytest.mark.parametrize("name", ["poisson", "squared", "perceptron", "fitzpatrick_poisson"])
def test_losses_without_probabilities_say_so(name: str) -> None:
    with pytest.raises(TypeError, match=r"loss\.link"):
        fp.get_loss(name).probabilities(np.zeros((2, 3)))


def test_more_classes_than_equations_can_have_are_refused() -> None:
    """Where each class has formulas of its own, so that the chain is not iterated either."""
    loss = fp.FitzpatrickLoss(FDivergence("hellinger", reference=np.ones(1025)))
    with pytest.raises(ValueError, match="are found for 1024 classes at most, got 1025"):
        loss.probabilities(np.zeros((1, 1025)))


def eliminated(chain: np.ndarray) -> np.ndarray:
    """The stationary distribution by leaving states out, last to first, without a subtraction."""
    chain, entering = chain.astype(np.longdouble), []
    for n in range(len(chain) - 1, 0, -1):
        entering.append(chain[:n, n] / chain[n, :n].sum())
        chain = chain[:n, :n] + np.outer(entering[-1], chain[n, :n])
    q = np.ones(1, np.longdouble)
    for into in reversed(entering):
        q = np.append(q, q @ into)
    return q / q.sum()


@pytest.mark.parametrize("tightness", [0.1, 4.0, 200.0])
@np.errstate(all="ignore")
def test_small_probabilities_have_all_of_their_digits(tightness: float) -> None:
    """Down to 1e-25; and a state that is never entered has none of it."""
    labels, goal = np.arange(30), np.arange(30) == 0
    for alpha, scale in ((1.02, 5.0), (1.1, 2.0), (1.5, 1.0)):
        theta = np.sort(seeded(21).normal(size=30) * scale)[::-1]
        chain = Tsallis(alpha).solve_labels(labels, np.tile(theta, (30, 1)), tightness).y_star
        q = stationary_distribution(chain, goal)
        assert_close(q, eliminated(chain), rtol=64 * eps("float64"), atol=0)
        is_entered = (chain * (1 - np.eye(30)) > 0).any(axis=0)
        assert (q[~is_entered] == 0).all()


@np.errstate(all="ignore")
def test_states_that_are_never_left() -> None:
    """The goal has all there is; what leaves another state has underflowed, and is not known."""
    goal = np.asarray([True, False])
    found = stationary_distribution(np.asarray([[1.0, 0.0], [0.5, 0.5]]), goal)
    np.testing.assert_array_equal(found, [1, 0])
    assert np.isnan(stationary_distribution(np.eye(2), goal)).all()


@pytest.mark.parametrize("tightness", [0.1, 1.0, 20.0, 100.0])
def test_compiled_rows(tightness: float, dtype: str) -> None:
    """Rows that Numba compiles for large arrays agree with the core, bad scores included."""
    from fitzpatrick.engines.compiled.probabilities import fill_probabilities

    rng = seeded(12)
    for k in (1, 2, 3, 10, 33):
        theta = draw(rng, 40, k) * rng.choice([1.0, 20.0], (40, 1))
        theta[3], theta[7, -1] = np.nan, np.inf
        theta[9] = -np.inf
        theta = theta.astype(dtype)
        with np.errstate(all="ignore"):
            expected = Negentropy().solve_probabilities(theta.astype(float), tightness)
        found = fill_probabilities(theta, tightness, 1)
        assert found.dtype == dtype
        # exponents of up to 708 are rounded, and so are the numbers
        rtol = 800 * eps("float64") if dtype == "float64" else 4 * eps(dtype)
        np.testing.assert_allclose(found, expected, rtol=rtol, atol=1e-300 + np.finfo(dtype).tiny)
    large = rng.normal(size=(4000, 10))
    loss = fp.FitzpatrickLoss(Negentropy(), tightness=tightness)
    expected = Negentropy().solve_probabilities(large, tightness)
    assert_close(loss.probabilities(large), expected, rtol=1e-13, atol=1e-15)


# Front ends.


@pytest.mark.parametrize(
    "name", ["fitzpatrick_logistic", "fitzpatrick_entmax15", "fitzpatrick_sigmoid"]
)
def test_pytorch(name: str) -> None:
    """Functions and modules, along any axis, with derivatives of both orders and in bfloat16."""
    torch = pytest.importorskip("torch")
    from fitzpatrick.torch import LossModule
    from fitzpatrick.torch import functional as F  # noqa: N812

    function = getattr(F, f"{name}_probabilities")
    scores = seeded(9).normal(size=(3, 4, 2))
    loss = fp.get_loss(name, tightness=0.5)
    expected = np.moveaxis(loss.probabilities(np.moveaxis(scores, 1, -1)), -1, 1)
    x = torch.tensor(scores)
    for found in (function(x, 0.5, dim=1), LossModule(loss).probabilities(x, dim=1)):
        np.testing.assert_allclose(found, expected, rtol=1e-12)
    rows = x[:, :, 0].requires_grad_()
    assert torch.autograd.gradcheck(lambda x: function(x, 0.5), (rows,), atol=1e-6)
    assert torch.autograd.gradgradcheck(
        lambda x: function(x, 0.5), (rows,), atol=1e-5, fast_mode=True
    )
    far = torch.tensor([[-1e3, 0.0, 1e3]], dtype=x.dtype, requires_grad=True)
    assert torch.autograd.grad(function(far, 0.5)[0, 1], far)[0].isfinite().all()
    (slope,) = torch.autograd.grad(function(far, 0.5)[0, 0], far)
    np.testing.assert_allclose(slope, 0, atol=1e-300)
    half = x.to(torch.bfloat16)
    assert function(half, 0.5, dim=1).dtype == torch.bfloat16
    rounded = function(half.double(), 0.5, dim=1)
    np.testing.assert_allclose(function(half, 0.5, 1).double(), rounded, rtol=2**-7, atol=2**-7)


def test_compiled_pytorch_and_modules_along_the_axis_of_the_loss() -> None:
    torch = pytest.importorskip("torch")
    from fitzpatrick.torch import FitzpatrickLogisticLoss
    from fitzpatrick.torch import functional as F  # noqa: N812

    x = torch.randn(3, 4, 2, dtype=torch.float64)
    expected = F.fitzpatrick_logistic_probabilities(x, 2.0, dim=1)
    torch.testing.assert_close(FitzpatrickLogisticLoss(tightness=2.0).probabilities(x), expected)
    compiled = torch.compile(F.fitzpatrick_logistic_probabilities, fullgraph=True, backend="eager")
    torch.testing.assert_close(compiled(x, 2.0, 1), expected)


@pytest.mark.parametrize("name", ["fitzpatrick_logistic", "fitzpatrick_entmax15"])
def test_jax(name: str) -> None:
    jax = pytest.importorskip("jax")
    from fitzpatrick import jax as fitzpatrick_jax

    function, loss = getattr(fitzpatrick_jax, f"{name}_probabilities"), fp.get_loss(name, 0.5)
    scores, v = seeded(10).normal(size=(2, 3, 4))
    expected, step = loss.probabilities(scores), 1e-6
    where = np.asarray([True, True, False, True])

    @jax.jit
    def results(x):
        both = jax.jvp(lambda x: function(x, 0.5), (x,), (v,))
        return *both, function(x, 0.5, where=where)

    found, slope, kept = results(scores)
    np.testing.assert_allclose(found, expected, rtol=1e-12)
    difference = (expected - loss.probabilities(scores - step * v)) / step
    np.testing.assert_allclose(slope, difference, atol=1e-4)
    np.testing.assert_allclose(kept[:, where], loss.probabilities(scores[:, where]), rtol=1e-12)
