"""The recipe against brute force on the definition, and the stored data against the recipe."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction

import numpy as np
import pytest
from mpmath import mp, mpf

from tests.reference import CASES, DTYPES, load, recompute
from tests.reference.exact import CrossPolytope, Cube, Orthant, QuadraticLoss, Reals, Simplex
from tests.reference.precision import Evaluation, to_float
from tests.reference.recipe import DIGITS, PAIR_OF_CASE, PAIRS, Loss, evaluate, rationals, target
from tests.reference.smooth import SmoothLoss, Tsallis

Row = list[mpf]

FITZPATRICK_CASES = [case for case in CASES if case.startswith("fitzpatrick_")]
PAIRED = [pair.name for pair in PAIRS if pair.fitzpatrick is not None]
POLYHEDRA = {
    "simplex": Simplex(),
    "cube": Cube(),
    "l1_ball": CrossPolytope(),
    "orthant": Orthant(),
    "reals": Reals(),
    "counts": Orthant(),
}


@pytest.fixture(autouse=True)
def working_precision() -> Iterator[None]:
    """Digits for what the tests themselves compute."""
    with mp.workdps(DIGITS):
        yield


def loss_of(case: str) -> Loss:
    return PAIR_OF_CASE[case].cases[case]


def generator(*key: str) -> np.random.Generator:
    return np.random.default_rng([ord(letter) for letter in "/".join(key)])


def to_mp(numbers: Sequence[Fraction | mpf | float]) -> Row:
    return [
        mpf(number.numerator) / number.denominator if isinstance(number, Fraction) else mpf(number)
        for number in numbers
    ]


def inputs(case: str, y: Sequence[float], theta: Sequence[float]) -> tuple[Row, Row]:
    return to_mp(target(case, y)), to_mp(rationals(theta))


def supremum(case: str, y: Sequence[float], theta: Sequence[float]) -> mpf:
    """The supremum by the recipe: the loss less what the definition adds to it."""
    loss, (value,) = loss_of(case), to_mp([evaluate(case, y, theta).value])
    return value - loss.constant(*inputs(case, y, theta))


def moderate_rows(case: str, count: int) -> list[tuple[np.ndarray, np.ndarray]]:
    """Stored rows with few entries and scores that leave the maximiser away from underflow."""
    rows = [
        (y, theta)
        for points in load(case)[:3]
        for y, theta in zip(points.y, points.theta, strict=True)
        if np.abs(theta).max() < 30 and np.abs(y).max() < 30
    ]
    picks = generator("moderate", case).choice(len(rows), count, replace=False)
    return [rows[pick] for pick in picks]


def project(domain: str, row: np.ndarray) -> Row:
    """Euclidean projection of floats on C."""
    if domain == "l2_ball":
        exact = to_mp(row)
        norm = mp.norm(exact)
        return [entry / max(norm, 1) for entry in exact]
    return to_mp(POLYHEDRA[domain].maximiser(rationals(row), 1))


def feasible(domain: str, rng: np.random.Generator, k: int) -> Row:
    """A random point in the relative interior of C, where every Ω has a subgradient."""
    if domain == "simplex":
        parts = to_mp(rng.exponential(size=k))
        return [part / mp.fsum(parts) for part in parts]
    if domain == "cube":
        return to_mp(rng.uniform(0.01, 0.99, k))
    if domain in ("orthant", "counts"):
        return to_mp(rng.exponential(size=k))
    if domain == "reals":
        return to_mp(rng.normal(size=k))
    return to_mp(rng.uniform(-1, 1, k) / k)


@pytest.mark.parametrize("case", CASES)
def test_no_feasible_direction_raises_the_objective(case: str) -> None:
    rng, domain, loss = generator("directions", case), PAIR_OF_CASE[case].domain, loss_of(case)
    for y_row, theta_row in moderate_rows(case, 3):
        y, theta = inputs(case, y_row, theta_row)
        best = supremum(case, y_row, theta_row)
        y_star = evaluate(case, y_row, theta_row).y_star
        start = to_mp(y_star) if y_star else y
        for exponent in (0, -2, -5, -9):
            for _ in range(3):
                step, end = mpf(10) ** exponent, feasible(domain, rng, len(y))
                moved = [a + step * (b - a) for a, b in zip(start, end, strict=True)]
                assert loss.objective(y, theta, moved) <= best + mpf(10) ** (15 - DIGITS)


@pytest.mark.parametrize("case", CASES)
def test_y_star_attains_the_supremum(case: str) -> None:
    for y_row, theta_row in moderate_rows(case, 3):
        y_star = evaluate(case, y_row, theta_row).y_star
        if y_star is None or not all(y_star):
            continue  # not unique, or on the boundary, where ψ' may not exist
        reached = loss_of(case).objective(*inputs(case, y_row, theta_row), to_mp(y_star))
        assert abs(reached - supremum(case, y_row, theta_row)) < mpf(10) ** (15 - DIGITS)


# p(t) for t in [0, 1], which covers C in dimension 1 (2 on the simplex) or enough of it.
CURVES: dict[str, Callable[[mpf], Row]] = {
    "simplex": lambda t: [t, 1 - t],
    "cube": lambda t: [t],
    "counts": lambda t: [4 * t],
    "orthant": lambda t: [4 * t],
    "reals": lambda t: [8 * t - 4],
    "l1_ball": lambda t: [2 * t - 1],
    "l2_ball": lambda t: [2 * t - 1],
}
SMALL_ROWS: dict[str, list[tuple[list[float], list[float]]]] = {
    "simplex": [
        ([0.3, 0.7], [0.4, -0.2]),
        ([1.0, 0.0], [-0.5, 0.25]),
        ([0.5, 0.5], [1.5, 1.0]),
        ([0.9, 0.1], [-3.0, 2.0]),
    ],
    "cube": [([0.3], [0.4]), ([1.0], [-0.7]), ([0.0], [0.2]), ([0.8], [2.0])],
    "counts": [([0.0], [0.5]), ([2.0], [-0.5]), ([0.3], [1.0])],
    "orthant": [([0.0], [0.5]), ([2.0], [-1.5]), ([0.3], [-0.1])],
    "reals": [([-1.0], [0.5]), ([2.0], [3.5])],
    "l1_ball": [([-1.0], [0.5]), ([0.2], [3.5]), ([0.4], [-0.6])],
    "l2_ball": [([-1.0], [0.5]), ([0.2], [3.5]), ([0.4], [-0.6])],
}


@pytest.mark.parametrize("case", CASES)
def test_a_dense_grid_finds_the_same_supremum(case: str) -> None:
    """No point of the grid exceeds the supremum, and the best one comes close to it."""
    domain, loss, cells = PAIR_OF_CASE[case].domain, loss_of(case), 250
    with mp.workdps(20):
        grid = [CURVES[domain](mpf(i + 1) / (cells + 2)) for i in range(cells + 1)]
        for y_row, theta_row in SMALL_ROWS[domain]:
            y, theta = inputs(case, y_row, theta_row)
            best = max(loss.objective(y, theta, p) for p in grid)
            shortfall = supremum(case, y_row, theta_row) - best
            # A maximum inside is missed by O(h²), one at the boundary by O(h) times a slope.
            assert -(mpf(10) ** -15) < shortfall < 0.05


@pytest.mark.parametrize("case", FITZPATRICK_CASES)
def test_no_subgradient_exceeds_the_fitzpatrick_function(case: str) -> None:
    """⟨y − y', θ'⟩ + ⟨y', θ⟩ ≤ F for θ' = ∇Ψ(y') + n with any n in the normal cone at y'.

    If y' is the projection of v on C, then v − y' is in the normal cone at y'. Where the slope
    of ψ is infinite at the boundary, only multiples of 1 on the simplex and 0 elsewhere remain.
    """
    rng, domain, loss = generator("subgradients", case), PAIR_OF_CASE[case].domain, loss_of(case)
    infinite = isinstance(loss, SmoothLoss) and not mp.isfinite(loss.potential.at_zero()[0])
    for y_row, theta_row in moderate_rows(case, 3):
        y, theta = inputs(case, y_row, theta_row)
        k, best = len(y), supremum(case, y_row, theta_row)
        for _ in range(10):
            if infinite:
                y_prime = feasible(domain, rng, k)
                normal = [mpf(rng.normal()) * (domain == "simplex")] * k
            else:
                v = rng.normal(size=k) * 10.0 ** rng.uniform(-1, 1)
                y_prime = project(domain, v)
                normal = [a - b for a, b in zip(to_mp(v), y_prime, strict=True)]
            gap = [a - b for a, b in zip(y, y_prime, strict=True)]
            pairing = loss.objective(y, theta, y_prime) + mp.fdot(gap, normal)
            assert pairing <= best + mpf(10) ** (15 - DIGITS)


def test_the_root_finder_agrees_with_exact_arithmetic() -> None:
    """Tsallis α = 2 is ½‖y‖² − ½ on the simplex: the same losses as sparsemax."""
    for fitzpatrick in (False, True):
        smooth = SmoothLoss(Tsallis(2.0), fitzpatrick, simplex=True)
        exact = QuadraticLoss(Simplex(), fitzpatrick)
        for y_row, theta_row in moderate_rows("sparsemax", 8):
            y, theta = target("sparsemax", y_row), rationals(theta_row)
            found, known = (loss.evaluate(y, theta, DIGITS) for loss in (smooth, exact))
            assert_close(found, known, DIGITS - 2)


@pytest.mark.parametrize("case", CASES)
def test_more_digits_confirm_the_digits_claimed(case: str) -> None:
    rng = generator("digits", case)
    for points in load(case)[:4]:
        row = rng.integers(len(points.value))
        y, theta = points.y[row], points.theta[row]
        assert_close(evaluate(case, y, theta), evaluate(case, y, theta, 2 * DIGITS + 7), DIGITS - 2)


def assert_close(found: Evaluation, known: Evaluation, digits: int) -> None:
    """Equal to ``digits`` digits, relatively, unless both are below every positive float."""
    assert (found.y_star is None) == (known.y_star is None)
    with mp.workdps(3 * DIGITS):
        pairs = zip(
            to_mp([found.value, *(found.y_star or ())]),
            to_mp([known.value, *(known.y_star or ())]),
            strict=True,
        )
        for left, right in pairs:
            assert abs(left - right) <= mpf(10) ** -digits * abs(right) + mpf(10) ** -340


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("case", CASES)
def test_stored_data_equals_recomputation(case: str, dtype: str) -> None:
    rng = generator("stored", case, dtype)
    for points in load(case, dtype)[:-1]:
        row = rng.integers(len(points.value))
        value, y_star = recompute(case, points.y[row], points.theta[row])
        assert value == points.value[row]
        np.testing.assert_array_equal(y_star, points.y_star[row])


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", PAIRED)
def test_fitzpatrick_lies_between_zero_and_fenchel_young(name: str, dtype: str) -> None:
    for fenchel_young, fitzpatrick in zip(
        load(name, dtype), load(f"fitzpatrick_{name}", dtype), strict=True
    ):
        np.testing.assert_array_equal(fenchel_young.y, fitzpatrick.y)
        np.testing.assert_array_equal(fenchel_young.theta, fitzpatrick.theta)
        assert np.all(fitzpatrick.value >= 0)
        # Rounding to nearest is monotone, so the inequality survives it exactly.
        assert np.all(fitzpatrick.value <= fenchel_young.value)


@pytest.mark.parametrize("dtype", DTYPES)
def test_fitzpatrick_squared_is_half_of_squared(dtype: str) -> None:
    for whole, half in zip(load("squared", dtype), load("fitzpatrick_squared", dtype), strict=True):
        np.testing.assert_array_equal(2 * half.value, whole.value)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("case", CASES)
def test_stored_data_has_the_coverage_promised(case: str, dtype: str) -> None:
    groups = load(case, dtype)
    assert sum(len(points.value) for points in groups) >= 500
    assert [points.y.shape[1] for points in groups] == [2, 3, 4, 5, 6, 7, 8, 40]
    y = np.concatenate([points.y.ravel() for points in groups])
    theta = np.concatenate([points.theta.ravel() for points in groups])
    assert y.dtype == theta.dtype == dtype
    assert np.isfinite(np.concatenate([points.value for points in groups])).all()
    assert np.abs(theta).max() == 1e4
    assert np.abs(y[y != 0]).min() < (1e-34 if dtype == "float32" else 1e-280)
    assert (y == 0).any()
    assert (y == 1).any()
    for points in groups:
        unique = ~np.isnan(points.y_star).any(axis=1)
        assert unique.any()
        if PAIR_OF_CASE[case].domain == "simplex":
            np.testing.assert_allclose(points.y_star[unique].sum(axis=1), 1, rtol=1e-15)
            np.testing.assert_allclose(points.y.sum(axis=1), 1, rtol=4 * np.finfo(dtype).eps)


@pytest.mark.parametrize(
    ("number", "nearest"),
    [
        (1 + Fraction(1, 2**53), 1.0),
        (1 + Fraction(1, 2**53) + Fraction(1, 2**150), 1 + 2.0**-52),
        (-1 - Fraction(1, 2**53), -1.0),
        (Fraction(1, 2**1075), 0.0),
        (Fraction(1 + 2**60, 2**1135), 5e-324),
        (Fraction(1, 10**10000), 0.0),
        (Fraction(2**70 + 1), 2.0**70),
        (Fraction(0), 0.0),
    ],
)
def test_rounding_is_correct_at_ties_and_among_subnormals(number: Fraction, nearest: float) -> None:
    assert to_float(number) == nearest
    assert to_float(*to_mp([number])) == nearest
