"""PyTorch and JAX give what NumPy gives, for every regularizer, tightness and precision.

Everything in the package that takes arrays of any library runs once with the same inputs. What the
other contracts find true of NumPy's answers is so true of these, up to the promised accuracy;
``make test-all`` runs the other contracts on all libraries as well.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import fitzpatrick as fp
from fitzpatrick.divergences import TargetDependent, bregman, fitzpatrick, lower_bound
from tests.contracts.cases import CASES, LABEL_CASES, REGISTRY, Case
from tests.contracts.draws import CLASSES, ROWS, Batch, draw_batch
from tests.helpers import (
    LIBRARIES,
    TEST_ALL,
    Library,
    assert_at_most,
    assert_close,
    assert_same_kind,
    to_numpy,
)

every_case = pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
other_libraries = pytest.mark.parametrize("xp", ["torch", "jax"], indirect=True)


def largest(x: Any) -> np.ndarray:
    return np.max(np.abs(to_numpy(x)), axis=-1)


def pairs_of_losses(known: Batch, batch: Batch) -> list[tuple[fp.Loss, fp.Loss]]:
    """The Fenchel-Young loss and two others, or all: one formula serves every c > 0."""
    pairs = list(zip(known.losses, batch.losses, strict=True))
    if TEST_ALL:
        return pairs
    return [pairs[0], *(pairs[i] for i in known.rng.choice(range(1, len(pairs)), 2, replace=False))]


def on_both(case: Case, xp: Library, dtype: str, k: int, scale: float) -> tuple[Batch, Batch]:
    """The same batch for NumPy and for another library; draw from the first."""
    batch = replace(draw_batch(case, xp, dtype, seed=k), k=k, scale=scale)
    return replace(batch, xp=LIBRARIES["numpy"]), batch


@other_libraries
@every_case
def test_solutions(case: Case, xp: Library, dtype: str) -> None:
    for k in CLASSES[xp.name]:
        # the rows have scores of all sizes between 1/scale and scale
        known, batch = on_both(case, xp, dtype, k, scale=1e4)
        y, theta, v = known.draw_targets(), known.draw_scores(), known.draw_direction()
        for expected, loss in pairs_of_losses(known, batch):
            with np.errstate(all="ignore"):  # behind the edge nobody turns NumPy's warnings off
                right = expected.solve(known.array(y), known.array(theta))
                found = loss.solve(batch.array(y), batch.array(theta))
                assert_same_solution(batch, found, right, y, v)


@other_libraries
@pytest.mark.parametrize(
    "case",
    [case for case in LABEL_CASES if TEST_ALL or case in REGISTRY],
    ids=lambda case: case.name,
)
def test_solutions_of_labels(case: Case, xp: Library, dtype: str) -> None:
    for k in CLASSES[xp.name]:
        known, batch = on_both(case, xp, dtype, k, scale=1e4)
        labels = known.rng.integers(k, size=ROWS)
        theta, v = known.draw_scores(), known.draw_direction()
        for expected, loss in pairs_of_losses(known, batch):
            with np.errstate(all="ignore"):
                right = expected.solve_labels(labels, known.array(theta))
                found = loss.solve_labels(xp.asarray(labels), batch.array(theta))
                assert_same_solution(batch, found, right, np.eye(k)[labels], v)


def assert_same_solution(batch: Batch, found: Any, right: Any, y: np.ndarray, v: Any) -> None:
    """Two solutions that each keep the promise."""
    value, y_star = to_numpy(right.value()), to_numpy(right.y_star)
    like = batch.array(v)
    assert_same_kind(found.value(), like)
    assert_at_most(0.0, found.value(), slack=0.0)
    assert_close(found.value(), value, rtol=0, atol=2 * batch.slack(value))
    unit = 2 * batch.slack(largest(y_star) + largest(y))[:, None]
    same_star = found.y_star
    assert_same_kind(same_star, like)
    assert np.all(to_numpy(batch.domain.contains(same_star)))
    assert_close(same_star, y_star, rtol=0, atol=unit)
    assert_close(found.gradient(), right.gradient(), rtol=0, atol=unit)
    if batch.case.differenced:  # here NumPy takes differences, and JAX derivatives
        return
    # products cancel: the accuracy of y* holds for each of their terms; a kink between two
    # roundings of y* is no error of either
    product, same_product = (
        right.hessian_product(v.astype(batch.dtype)),
        found.hessian_product(like),
    )
    assert_same_kind(same_product, like)
    terms = unit * batch.k * largest(v)[:, None]
    p, q = y_star, to_numpy(same_star)
    rows = np.all(((p == 0) == (q == 0)) & ((p == 1) == (q == 1)), axis=-1)
    assert_close(to_numpy(same_product)[rows], product[rows], rtol=0, atol=terms[rows])


@other_libraries
@pytest.mark.parametrize("case", CASES if TEST_ALL else REGISTRY, ids=lambda case: case.name)
def test_public_functions(case: Case, xp: Library, dtype: str) -> None:
    """Everything else that takes arrays, at scores that leave y* clear of underflow."""
    for k in CLASSES[xp.name]:
        known, batch = on_both(case, xp, dtype, k, scale=1.0)
        y, z, theta = known.draw_targets(), known.draw_targets(), known.draw_scores()
        v = known.draw_direction()
        results = [functions(b, *map(b.array, (y, z, theta, v))) for b in (known, batch)]
        sizes = [largest(x) for x in (y, z, theta, v)]
        for name, expected in results[0].items():
            found, expected = results[1][name], to_numpy(expected)
            assert_same_kind(found, batch.array(v))
            if name == "lower bound":  # 0/0 where y* underflows beside a tiny target
                found, expected = (np.nan_to_num(to_numpy(x)) for x in (found, expected))
            whole = largest(expected) if expected.ndim == 2 else expected
            slack = 2 * batch.slack(whole, *sizes)
            try:
                assert_close(
                    found, expected, rtol=0, atol=slack[:, None] if expected.ndim == 2 else slack
                )
            except AssertionError as error:
                error.add_note(name)
                raise


def functions(batch: Batch, y: Any, z: Any, theta: Any, v: Any) -> dict[str, Any]:
    """The results of the public functions by name."""
    omega = batch.omega
    results = {
        "Ω": omega.value(y),
        "Ω*": omega.conjugate(theta),
        "link": omega.link(theta),
        "F": fp.fitzpatrick_function(omega, y, theta),
        "bregman": bregman(omega, y, z),
        "fitzpatrick": fitzpatrick(omega, y, z),
        "lower bound": lower_bound(omega, y, theta),
    }
    loss = batch.losses[2]
    omega_y = TargetDependent(omega, y, loss.tightness)
    results["Ω_y*"], results["link of Ω_y"] = omega_y.conjugate(theta), omega_y.link(theta)
    results["value"], results["gradient"] = loss.value_and_gradient(y, theta)
    results["y*"] = loss.y_star(y, theta)
    if not omega.has_kinks:
        results["H v"] = loss.hessian_product(y, theta, v)
    return results
