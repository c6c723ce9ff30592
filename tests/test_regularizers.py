"""What is particular to each regularizer: its parameters, its errors, and how it is printed."""

from dataclasses import FrozenInstanceError
from itertools import product

import array_api_compat
import numpy as np
import pytest

import fitzpatrick as fp
from fitzpatrick.regularizers import (
    Bernoulli,
    ConvergenceError,
    Indicator,
    Negentropy,
    NewtonStatus,
    Quadratic,
    SquaredNorm,
    Tsallis,
    TwiceDifferentiable,
    twice_differentiable,
)
from fitzpatrick.regularizers.norm import normmax_alpha_slope, normmax_link, normmax_product
from fitzpatrick.sets import Box, CappedSimplex, L2Ball, Orthant, Simplex
from tests.helpers import (
    Library,
    assert_close,
    assert_promised,
    eps,
    seeded,
    to_numpy,
)
from tests.reference import recompute

# Twice differentiable.


def sum_of(function, derivative, second, **options) -> TwiceDifferentiable:
    """Σ f(y_i), on any array library."""
    space = array_api_compat.array_namespace

    def hessian(y):
        return second(space(y), y)[..., None] * space(y).eye(y.shape[-1], dtype=y.dtype)

    return TwiceDifferentiable(
        lambda y: space(y).sum(function(space(y), y), axis=-1),
        lambda y: derivative(space(y), y),
        hessian,
        **options,
    )


COSH = sum_of(lambda xp, y: xp.cosh(y), lambda xp, y: xp.sinh(y), lambda xp, y: xp.cosh(y))
SQUARE = sum_of(lambda _, y: y * y / 2, lambda _, y: y, lambda xp, y: xp.ones_like(y))
# bounded slopes: scores above 1 are out of reach
BOUNDED = sum_of(
    lambda xp, y: xp.sqrt(1 + y * y),
    lambda xp, y: y / xp.sqrt(1 + y * y),
    lambda _, y: (1 + y * y) ** -1.5,
)


MATRIX = np.asarray([[2.0, 0.5], [0.5, 1.0]])
FULL = TwiceDifferentiable(
    lambda y: np.einsum("...i,ij,...j->...", y, MATRIX, y) / 2,
    lambda y: y @ MATRIX,
    lambda y: np.broadcast_to(MATRIX, (*y.shape[:-1], 2, 2)),
)


@pytest.mark.parametrize("tightness", [0.0, 0.3, 1.0, 2.5])
def test_newton_agrees_with_closed_forms_at_every_tightness(
    tightness: float, xp: Library, dtype: str
) -> None:
    """½‖·‖² through its derivatives is the squared loss, and so with a matrix."""
    if xp.name == "jax" and (tightness, dtype) != (0.3, "float64"):
        pytest.skip("JAX compiles each formula anew, and these numbers change none of them")
    given = [xp.asarray(x, dtype) for x in seeded(0).normal(size=(3, 8, 2))]
    pairs = [(SQUARE, SquaredNorm()), *([(FULL, Quadratic(MATRIX))] if xp.name == "numpy" else [])]
    for smooth, exact in pairs:
        both = []
        for omega in (smooth, exact):

            def results(y, theta, v, omega=omega):
                solution = fp.Loss(omega, tightness).solve(y, theta)
                return solution.value(), solution.y_star, solution.hessian_product(v)

            both.append(xp.compiled(results)(*given))
        # Newton's equation is solved up to 1e3 eps
        for ours, theirs in list(zip(*both, strict=True))[:2]:
            assert_close(ours, theirs, rtol=1e4 * eps(dtype), atol=100 * eps(dtype))
        assert_close(both[0][2], both[1][2], rtol=0, atol=eps(dtype) ** 0.6)


def test_newton_solves_the_equation_of_the_paper() -> None:
    """∇²Ω(p)(p − y) = θ − ∇Ω(p), and the loss is ⟨p − y, ∇²Ω(p)(p − y)⟩, for scores up to 1e4."""
    rng = seeded(1)
    y, theta = rng.normal(size=(2, 40, 3))
    theta[::4] *= 1e4
    loss = fp.FitzpatrickLoss(COSH)
    p = loss.y_star(y, theta)
    assert_close(np.cosh(p) * (p - y) + np.sinh(p), theta, rtol=1e-11, atol=1e-11)
    assert_close(
        loss.value(y, theta), np.sum(np.cosh(p) * (p - y) ** 2, axis=-1), rtol=1e-12, atol=0
    )
    h = 1e-5
    v = rng.normal(size=(40, 3))
    moderate = np.arange(40) % 4 > 0
    change = (loss.gradient(y, theta + h * v) - loss.gradient(y, theta - h * v)) / (2 * h)
    product = loss.hessian_product(y, theta, v)
    assert_close(product[moderate], change[moderate], rtol=1e-5, atol=1e-7)


# a gradient that jumps by 2e-8 where the score is: no point has a residual below 1e-8
JUMP = sum_of(
    lambda _, y: y * y / 2,
    lambda xp, y: y + xp.where(y < 0.3, -1e-8, 1e-8),
    lambda xp, y: xp.ones_like(y),
)
# a wrong Hessian, which is found out instead of giving a wrong answer
WRONG = TwiceDifferentiable(COSH.function, COSH.gradient, lambda y: -COSH.hessian(y))


@pytest.mark.parametrize(
    ("omega", "theta", "failed"),
    [
        (BOUNDED, [[0.5, 0.1], [3.0, 0.0], [0.0, -2.0]], "2 of 3"),
        (JUMP, [[0.3, 0.3]], "1 of 1"),
        (WRONG, [[1.0, 1.0]], "1 of 1"),
    ],
    ids=["bounded slopes", "residual above the tolerance", "wrong Hessian"],
)
def test_newton_without_an_answer_raises_its_status(omega, theta, failed: str) -> None:
    message = rf"did not converge: .* in {failed} rows\. Check"
    with pytest.raises(ConvergenceError, match=message) as info:
        fp.FenchelYoungLoss(omega).value(np.zeros_like(theta), theta)
    assert info.value.status is NewtonStatus.STALLED


def test_newton_without_an_answer_is_nan_where_nothing_can_raise(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Under jit the failed row is NaN, and the others are what they are."""
    jax = pytest.importorskip("jax")
    monkeypatch.setattr(twice_differentiable, "_MAX_STEPS", 4)  # fewer to compile
    theta = jax.numpy.asarray([[0.05, 0.01], [3.0, 0.0]])
    out = to_numpy(jax.jit(BOUNDED.link)(theta))
    assert np.all(np.isnan(out[1]))
    exact = to_numpy(theta)[0] / np.sqrt(1 - to_numpy(theta)[0] ** 2)
    assert_close(out[0], exact, rtol=1e-12, atol=0)


@pytest.mark.parametrize("tightness", [0.0, 0.5, 1.0, 3.0])
@pytest.mark.parametrize(("dtype", "theta"), [("float64", 500.0), ("float32", 80.0)])
def test_slopes_of_counts_whose_squares_overflow(
    dtype: str, theta: float, tightness: float, compiled_rows: None
) -> None:
    loss = fp.FitzpatrickLoss(Negentropy(Orthant()), tightness)
    y, scores = np.asarray([[3.0, 0.0, 3.0]], dtype), np.asarray([[theta, theta, -700.0]], dtype)
    p = to_numpy(loss.y_star(y, scores))
    expected = p / (1 + tightness * y / np.maximum(p, eps("float64")))
    for slopes in (
        loss.hessian_product(y, scores, np.ones_like(y)),
        loss.regularizer.slope(p.astype(dtype), y, tightness),
    ):
        np.testing.assert_allclose(slopes, expected, rtol=8 * eps(dtype), atol=1e-300)


@pytest.mark.parametrize(
    "omega",
    [Negentropy(), Negentropy(Orthant()), Bernoulli(), Tsallis(1.1), Tsallis(1.5), Tsallis(1.9)],
    ids=repr,
)
@pytest.mark.parametrize("tightness", [1.5, 3.0, 10.0, 100.0, 1000.0, 1e5])
def test_single_precision_at_large_tightnesses(omega, tightness: float) -> None:
    """The maximizer is so near the target that their difference has few digits of its own.

    Beyond 100 errors of most orders grow in proportion to the tightness, as the losses document.
    """
    rng = seeded(5)
    y = rng.dirichlet(np.ones(4) * 0.7, 600) * (3 if isinstance(omega.domain, Orthant) else 1)
    theta = rng.normal(size=(600, 4)) * 10 ** rng.uniform(-1, 1.5, (600, 1))
    y, theta = y.astype("float32"), theta.astype("float32")
    exact = y.astype(float)
    if not omega.domain.is_product:
        exact /= exact.sum(axis=1, keepdims=True)
    loss = fp.FitzpatrickLoss(omega, tightness)
    with np.errstate(all="ignore"):
        found, expected = loss.solve(y, theta), loss.solve(exact, theta.astype(float))
        grows = isinstance(omega, Tsallis) and omega.alpha != 1.5
        growth = max(1.0, tightness / 100) if grows else 1.0
        difference = np.abs(found.value() - expected.value()) / growth
        assert_promised(expected.value() + difference, expected.value(), y, "float32")
        assert_promised(found.gradient() + y, expected.y_star, y, "float32")


# Parameters and domains.


REGULARIZERS = [
    (Negentropy(), "Negentropy(domain=Simplex())"),
    (Negentropy(Orthant()), "Negentropy(domain=Orthant())"),
    (SquaredNorm(Box()), "SquaredNorm(domain=Box(lower=0.0, upper=1.0))"),
    (Indicator(), "Indicator(domain=Simplex())"),
    (Tsallis(1.25), "Tsallis(alpha=1.25)"),
    (Bernoulli(), "Bernoulli()"),
    (Bernoulli(CappedSimplex(2)), "Bernoulli(domain=CappedSimplex(k=2))"),
]


@pytest.mark.parametrize(("omega", "text"), REGULARIZERS, ids=lambda x: str(x))
def test_regularizers_are_values(omega, text: str) -> None:
    """Frozen, hashable, equal to their like, and printed as they are written."""
    assert repr(omega) == text
    again = eval(text, {**vars(fp.regularizers), **vars(fp.sets)})
    assert again == omega
    assert hash(again) == hash(omega)
    with pytest.raises(FrozenInstanceError):
        omega.alpha = 3
    for kind in (fp.FenchelYoungLoss, fp.FitzpatrickLoss):
        assert repr(kind(omega)) == f"{kind.__name__}(regularizer={text})"
        assert kind(omega) == kind(again)
        assert hash(kind(omega)) == hash(kind(again))
    assert fp.FenchelYoungLoss(omega) != fp.FitzpatrickLoss(omega)


def burg(start: float) -> TwiceDifferentiable:
    """Minus the sum of logarithms: infinitely steep at 0, where its gradient has no root."""
    parts = lambda xp, y: -xp.log(y), lambda _, y: -1 / y, lambda _, y: 1 / y**2
    return sum_of(*parts, domain=Orthant(), start=start)


def test_newton_inside_a_set() -> None:
    """On the orthant, with a NaN in its row; and in a ball, infinitely steep at its boundary."""
    link = burg(1.0).link(np.asarray([[-1.0, -2.0], [np.nan, -1.0]]))
    np.testing.assert_allclose(link[0], [1.0, 0.5], rtol=1e-12)
    assert np.isnan(link[1]).all()
    # at the tightness 1 it is p² = −y/θ, however close to zero
    y, theta = np.asarray([[1e-8, 1.0]]), np.asarray([[-1e6, -4.0]])
    loss = fp.FitzpatrickLoss(burg(1.0))
    p, product = loss.y_star(y, theta), loss.hessian_product(y, theta, np.ones((1, 2)))
    np.testing.assert_allclose(p, [[1e-7, 0.5]], rtol=1e-12)
    np.testing.assert_allclose(product, p / (-2 * theta), rtol=1e-8)

    def height(y):
        return np.sqrt(1 - np.sum(y * y, axis=-1))[..., None]

    relativistic = TwiceDifferentiable(
        lambda y: -height(y)[..., 0],
        lambda y: y / height(y),
        lambda y: (
            np.eye(y.shape[-1]) / height(y)[..., None]
            + y[..., :, None] * y[..., None, :] / height(y)[..., None] ** 3
        ),
        domain=L2Ball(),
    )
    theta = np.asarray([0.5, -2.0])
    expected = theta / np.sqrt(1 + theta @ theta)
    np.testing.assert_allclose(relativistic.link(theta), expected, rtol=1e-12)


def test_quadratic_takes_lists_and_arrays_of_one_library() -> None:
    np.testing.assert_array_equal(
        Quadratic([[1, 0], [0, 4]]).link(np.asarray([1.0, 2.0])), [1, 0.5]
    )
    torch = pytest.importorskip("torch")
    whole = Quadratic(torch.tensor([[1, 0], [0, 4]])).link(torch.tensor([1.0, 2.0]))
    np.testing.assert_array_equal(whole, [1, 0.5])
    with pytest.raises(TypeError, match="A and the data must come from one array library"):
        Quadratic(np.eye(2)).link(torch.zeros(1, 2))


SKEW = np.asarray([[200.0, 1.001], [0.999, 100.0]])
ERRORS = [
    (lambda: Quadratic(np.ones((2, 3))), r"A must be a square matrix, got shape \(2, 3\)"),
    (lambda: Quadratic(np.asarray([[1.0, 1.0], [0.0, 1.0]])), r"symmetric, A - A.T reaches 1"),
    (lambda: Quadratic(SKEW), r"A must be symmetric, A - A.T reaches 0.002"),
    (lambda: Quadratic(np.full((2, 2), np.nan)), r"symmetric, A - A.T reaches nan"),
    (lambda: Quadratic(np.diag([1.0, -1.0])), "positive definite, its least eigenvalue is -1"),
    (lambda: Quadratic(np.eye(2)).link(np.zeros((4, 3))), "A is 2 x 2, but the rows have 3 entr"),
    *(
        (lambda alpha=alpha: Tsallis(alpha), "Tsallis needs 1 <= alpha <= 2, got")
        for alpha in (0.5, 2.5, -1.0, np.nan)
    ),
    (lambda: Negentropy(Box()), r"defined on Simplex\(\) or Orthant\(\) or Birkhoff\(\)"),
    (lambda: TwiceDifferentiable(None, None, None, domain=Simplex()), "has none; write Ω as a Sep"),
    (lambda: burg(1.0).link([1.0, 2.0]), "did not converge"),
    (lambda: burg(0.0).link([-1.0, -2.0]), "did not converge"),
]


@pytest.mark.parametrize(("call", "message"), ERRORS)
def test_errors(call, message: str) -> None:
    with pytest.raises((ValueError, TypeError, ConvergenceError), match=message):
        call()


def test_divergence_of_a_smooth_function_is_not_negative_near_zero() -> None:
    rng = seeded(0)
    z = rng.normal(size=(500, 3))
    for scale in (1e-12, 1e-8, 1e-4, 1e-2, 1.0):
        v = scale * rng.normal(size=(500, 3))
        actual = fp.divergences.bregman(COSH, z + v, z)
        # cosh(z + v) − cosh z − v sinh z = cosh z (cosh v − 1) + sinh z (sinh v − v)
        cubic = v**3 / 6 if scale < 1e-2 else np.sinh(v) - v
        w = (z + v) - z
        expected = (2 * np.cosh(z) * np.sinh(w / 2) ** 2 + np.sinh(z) * cubic).sum(-1)
        assert (actual >= 0).all()
        np.testing.assert_allclose(actual, expected, rtol=1e-5)


@pytest.mark.parametrize("alpha", [1.01, 1.5, 2.0, 50.0, 1e3, 1e6])
def test_derivatives_of_the_links_of_norms(alpha: float) -> None:
    """In the scores and in the order, by central differences: links change by 1/α and by 1/α²."""
    theta = np.asarray([[1.0, 0.5, -7.0], [1.0, 1.0, 1.0], [0.3, -np.inf, 0.2]])
    v, h = np.asarray([1.0, -2.0, 0.5]), 1e-6
    p = normmax_link(theta, alpha)
    steps = [normmax_link(theta + sign * h * v, alpha) for sign in (1, -1)]
    found, size = normmax_product(p, v, alpha), 1 / (alpha - 1)
    atol = 1e-5 * size + eps("float64") / h
    assert_close(found, (steps[0] - steps[1]) / (2 * h), rtol=1e-5, atol=atol)
    h = 1e-4 * (alpha - 1)
    steps = [normmax_link(theta, alpha + sign * h) for sign in (1, -1)]
    found = normmax_alpha_slope(p, alpha)
    assert_close(found, (steps[0] - steps[1]) / (2 * h), rtol=1e-5, atol=1e-5 * size**2)
    for found in (normmax_product(0 * p[:2], v, alpha), normmax_alpha_slope(0 * p[:2], alpha)):
        np.testing.assert_array_equal(found, 0)  # of rows without a class


@pytest.mark.parametrize("tightness", [1e-12, 0.5])
def test_coins_at_targets_all_but_zero_or_one(xp: Library, dtype: str, tightness: float) -> None:
    """Targets down to the least number that there is, and scores that p underflows at."""
    info = np.finfo(dtype)
    tiny, spacing = float(info.tiny), float(info.eps)
    least = float(info.smallest_subnormal)
    targets = [least, 3 * least, tiny / 4, spacing, 1 - spacing / 2]
    far = 1e30 if dtype == "float64" else 1e20
    scores = [-far, -1e4, -800.0, -1.0, 100.0, 1e4]
    y, theta = (np.asarray(x, dtype) for x in zip(*product(targets, scores), strict=True))
    columns = y[:, None], theta[:, None]
    given = [xp.asarray(x, dtype) for x in columns]
    loss = fp.get_loss("fitzpatrick_sigmoid", tightness)
    with np.errstate(all="ignore"):  # as the public edge does
        solution = loss.solve(*given)
        results = [to_numpy(x).ravel() for x in (solution.value(), solution.slope())]
    results.append(to_numpy(loss.value(*given)))
    case = f"fitzpatrick_sigmoid@{tightness:g}"
    expected = np.asarray([recompute(case, *pair)[0] for pair in zip(*columns, strict=True)])
    assert np.all(np.isfinite(results[1]))
    assert np.all(results[1] >= 0)
    # u = logit p, of which a rounding error counts in full, is a logarithm where p underflows, and
    # θ where it does not; some libraries round subnormal numbers, targets among them, to zero
    u = np.minimum(np.abs(theta), -np.log(info.smallest_subnormal))
    atol = 64 * spacing * (1 + u) * expected + 8 * tiny * (1 + np.abs(theta))
    for value in (results[0], results[2]):
        np.testing.assert_array_less(np.abs(value - expected), atol)


class OtherSquaredNorm(SquaredNorm):
    pass


def test_the_link_of_a_subclass_may_be_another_one() -> None:
    assert SquaredNorm(Simplex()).entmax_alpha == 2
    assert OtherSquaredNorm(Simplex()).entmax_alpha is None
