"""The recipe against brute force on the definition, and the stored data against the recipe."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction

import numpy as np
import pytest
from mpmath import mp, mpf

from tests.helpers import TEST_ALL, seeded
from tests.reference import CASES, END_CASES, load, recompute
from tests.reference.exact import CUBE, ORTHANT, REALS, Ball, CrossPolytope, QuadraticLoss, Simplex
from tests.reference.precision import Evaluation, to_float
from tests.reference.recipe import (
    DIGITS,
    ENDS,
    MANY,
    OTHERS,
    REGULARIZERS,
    Regularizer,
    evaluate,
    loss_of,
    rationals,
    regularizer_of,
    target,
)
from tests.reference.smooth import SmoothLoss, Tsallis

Row = list[mpf]

# Those whose losses depend on the tightness.
CURVED = [regularizer for regularizer in REGULARIZERS if not regularizer.is_perceptron]
DOMAINS = {
    "simplex": Simplex(),
    "cube": CUBE,
    "l1_ball": CrossPolytope(),
    "l2_ball": Ball(),
    "orthant": ORTHANT,
    "reals": REALS,
    "counts": ORTHANT,
}
# One code serves every tightness: each regularizer at one of them, in turn, unless all are asked
# for.
SOME_CASES = (
    CASES
    if TEST_ALL
    else tuple(
        regularizer.case((*ENDS, *OTHERS)[i % 5]) for i, regularizer in enumerate(REGULARIZERS)
    )
)
every_curved = pytest.mark.parametrize("regularizer", CURVED, ids=lambda omega: omega.name)


@pytest.fixture(autouse=True)
def working_precision() -> Iterator[None]:
    """Digits for what the tests themselves compute."""
    with mp.workdps(DIGITS):
        yield


def generator(*key: str) -> np.random.Generator:
    return seeded([ord(letter) for letter in "/".join(key)])


def to_mp(numbers: Sequence[Fraction | mpf | float]) -> Row:
    return [mp.convert(number) for number in numbers]


def inputs(case: str, y: Sequence[float], theta: Sequence[float]) -> tuple[Row, Row]:
    return to_mp(target(case, y)), to_mp(rationals(theta))


def supremum(case: str, y: Sequence[float], theta: Sequence[float]) -> mpf:
    """The loss by the recipe."""
    (value,) = to_mp([evaluate(case, y, theta).value])
    return value


def pairing(regularizer: Regularizer, y: Row, theta: Row, p: Row, normal: Row | None = None) -> mpf:
    """⟨y − p, θ'⟩ + ⟨p, θ⟩ − ⟨y, θ⟩ at θ' = ∇Ψ(p) + normal: its sup is the Fitzpatrick loss."""
    loss = regularizer.loss_at(Fraction(1))
    if isinstance(loss, SmoothLoss):
        gradient = [loss.potential.slope(pi) for pi in p]
    else:
        gradient = [0 * pi if regularizer.is_perceptron else pi for pi in p]
    subgradient = [gi + ni for gi, ni in zip(gradient, normal or [0] * len(p), strict=True)]
    gap = [yi - pi for yi, pi in zip(y, p, strict=True)]
    return mp.fdot(gap, subgradient) - mp.fdot(gap, theta)


def moderate_rows(case: str, count: int) -> list[tuple[np.ndarray, np.ndarray]]:
    """Stored rows with few entries and scores that leave the maximizer away from underflow."""
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
    return to_mp(DOMAINS[domain].maximizer(rationals(row), Fraction(1))[0])


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


@pytest.mark.parametrize("case", SOME_CASES)
def test_no_feasible_direction_raises_the_objective(case: str) -> None:
    """And the maximizer attains the supremum, where it is unique and ψ' exists."""
    rng, domain, loss = generator("directions", case), regularizer_of(case).domain, loss_of(case)
    for y_row, theta_row in moderate_rows(case, 3):
        y, theta = inputs(case, y_row, theta_row)
        best = supremum(case, y_row, theta_row)
        y_star = evaluate(case, y_row, theta_row).y_star
        start = to_mp(y_star) if y_star else y
        if y_star and all(y_star):
            assert abs(loss.objective(y, theta, start) - best) < mpf(10) ** (15 - DIGITS)
        for exponent in (0, -2, -5, -9):
            for _ in range(3):
                step, end = mpf(10) ** exponent, feasible(domain, rng, len(y))
                moved = [a + step * (b - a) for a, b in zip(start, end, strict=True)]
                assert loss.objective(y, theta, moved) <= best + mpf(10) ** (15 - DIGITS)


@pytest.mark.parametrize("regularizer", REGULARIZERS, ids=lambda omega: omega.name)
def test_no_subgradient_exceeds_the_fitzpatrick_loss(regularizer: Regularizer) -> None:
    """⟨y − y', θ'⟩ + ⟨y', θ⟩ ≤ F for θ' = ∇Ψ(y') + n with any n in the normal cone at y'.

    If y' is the projection of v on C, then v − y' is in the normal cone at y'. Where the slope
    of ψ is infinite at the boundary, only multiples of 1 on the simplex and 0 elsewhere remain.
    """
    case, domain = regularizer.case(1.0), regularizer.domain
    rng, loss = generator("subgradients", case), loss_of(case)
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
            reached = pairing(regularizer, y, theta, y_prime, normal)
            assert reached <= best + mpf(10) ** (15 - DIGITS)


@every_curved
def test_tightness_1_is_the_fitzpatrick_loss_to_all_digits(regularizer: Regularizer) -> None:
    """F is attained at y* of the recipe; together with the test above, it is the supremum."""
    case = regularizer.case(1.0)
    for y_row, theta_row in moderate_rows(case, 6):
        found = evaluate(case, y_row, theta_row, 2 * DIGITS)
        if not all(found.y_star) and isinstance(loss_of(case), SmoothLoss):
            continue  # ψ' may not exist on the boundary
        with mp.workdps(3 * DIGITS):
            y, theta = inputs(case, y_row, theta_row)
            attained = pairing(regularizer, y, theta, to_mp(found.y_star))
            (value,) = to_mp([found.value])
            # a difference of numbers like one, whose error is absolute
            least = mpf(10) ** -DIGITS
            assert abs(attained - value) <= mpf(10) ** -DIGITS * max(value, least)


@pytest.mark.parametrize("tightness", [0, Fraction(1, 4), 2])
def test_the_root_finder_agrees_with_exact_arithmetic(tightness: Fraction | int) -> None:
    """Tsallis α = 2 is ½‖y‖² − ½ on the simplex: the same losses as sparsemax."""
    smooth = SmoothLoss(Tsallis(2.0), Fraction(tightness), simplex=True)
    exact = QuadraticLoss(Simplex(), Fraction(tightness))
    for y_row, theta_row in moderate_rows("sparsemax", 2):
        y, theta = target("sparsemax", y_row), rationals(theta_row)
        found, known = (loss.evaluate(y, theta, DIGITS) for loss in (smooth, exact))
        assert_close(found, known, DIGITS - 2)


@pytest.mark.parametrize("case", SOME_CASES)
def test_more_digits_confirm_the_digits_claimed(case: str) -> None:
    rng = generator("digits", case)
    for points in load(case)[: 4 if TEST_ALL else 2]:
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


@pytest.mark.parametrize("regularizer", REGULARIZERS, ids=lambda omega: omega.name)
def test_stored_data_equals_recomputation(regularizer: Regularizer, dtype: str) -> None:
    """A row or two of every file, and of every tightness."""
    rng = generator("stored", regularizer.name, dtype)
    files = [(case, False) for case in regularizer.cases((*ENDS, *OTHERS))]
    if not regularizer.is_perceptron:
        files.append((regularizer.case(rng.choice(MANY)), True))
    for case, is_few in files:
        for points in load(case, dtype, is_few=is_few)[: -1 if TEST_ALL else 2]:
            row = rng.integers(len(points.value))
            value, y_star = recompute(case, points.y[row], points.theta[row])
            assert value == points.value[row]
            np.testing.assert_array_equal(y_star, points.y_star[row])


@pytest.mark.parametrize("case", CASES)
def test_stored_data_has_the_coverage_promised(case: str, dtype: str) -> None:
    groups = load(case, dtype)
    assert sum(len(points.value) for points in groups) >= (500 if case in END_CASES else 170)
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
        if regularizer_of(case).domain == "simplex":
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
