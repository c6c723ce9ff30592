"""PyTorch and JAX give what NumPy gives: everything in the package that takes arrays, once.

tests/parity compares the losses themselves with mpmath.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pytest

import fitzpatrick as fp
from fitzpatrick.divergences import TargetDependent, bregman, fitzpatrick, lower_bound
from tests.contracts.cases import CASES, REGISTRY, Case
from tests.contracts.draws import CLASSES, Batch, draw_batch
from tests.helpers import (
    LIBRARIES,
    Library,
    assert_close,
    assert_same_kind,
    to_numpy,
)

# Those of the registry, and those that have no stored points.
SOME = [case for case in CASES if case in REGISTRY or case.slack >= 10]


def largest(x: Any) -> np.ndarray:
    return np.max(np.abs(to_numpy(x)), axis=-1)


@pytest.mark.parametrize(
    ("xp", "dtype", "case"),
    [
        pytest.param(library, dtype, case, id=f"{library}-{dtype}-{case.name}")
        # JAX compiles each operation for each dtype, and tests/parity has it compile more balls
        for library, dtype in (("torch", "float64"), ("torch", "float32"), ("jax", "float32"))
        for case in SOME
        if library == "torch" or case in REGISTRY or "ball" not in case.name
    ],
    indirect=["xp"],
)
def test_public_functions(case: Case, xp: Library, dtype: str) -> None:
    """Everything else that takes arrays, at scores that leave y* clear of underflow."""
    for k in CLASSES[xp.name]:
        batch = replace(draw_batch(case, xp, dtype, seed=k), k=k, scale=1.0)
        known = replace(batch, xp=LIBRARIES["numpy"])
        y, z, theta = known.draw_targets(), known.draw_targets(), known.draw_scores()
        v = known.draw_direction()
        results = [
            b.xp.compiled(partial(functions, b))(*map(b.array, (y, z, theta, v)))
            for b in (known, batch)
        ]
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
