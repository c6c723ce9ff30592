"""The engines give the digits of the core on everything that both can serve."""

from typing import Any

import numpy as np
import pytest

from fitzpatrick.engines import rows

from .cases import (
    REGULARIZERS,
    SIMPLEX,
    assert_same_digits,
    cases,
    core,
    make_loss,
    scores,
)


@pytest.fixture
def _small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rows, "block_rows", lambda *_: 7)
    monkeypatch.setattr(rows, "_MIN_THREADED_SIZE", 0)


@pytest.mark.usefixtures("_small_blocks")
@pytest.mark.parametrize("name", REGULARIZERS)
def test_neither_blocks_nor_threads_leave_a_trace(name: str) -> None:
    loss = make_loss(name, 0.5)
    n, k = 23, 300
    theta = scores(n, k, 1.0, "float64", 5)
    for case in cases(name, n, k, 6)[:5]:
        one = loss.value_and_gradient(case.y, theta, n_threads=1)
        three = loss.value_and_gradient(case.y, theta, n_threads=3)
        np.testing.assert_array_equal(one[0], three[0])
        np.testing.assert_array_equal(one[1], three[1])
        for at in (0, 6, 7, 13, 22):
            row = slice(at, at + 1)
            value, gradient = loss.value_and_gradient(case.y[row], theta[row])
            assert_same_digits(value, one[0][row], "float64")
            assert_same_digits(gradient, one[1][row], "float64")


@pytest.mark.parametrize("name", sorted(set(REGULARIZERS) - set(SIMPLEX)))
@np.errstate(all="ignore")
def test_infinite_entries_are_those_of_the_core(name: str) -> None:
    for tightness in (0.0, 0.5, 1.0):
        loss = make_loss(name, tightness)
        theta = scores(4, 6, 1.0, "float64", 1)
        theta[0, 1], theta[1, 1], theta[3, 2] = np.nan, np.inf, -np.inf
        for case in cases(name, 4, 6, 2):
            value, gradient, _, _ = core(loss, case, theta)
            got: Any = loss.value_and_gradient(case.y, theta)
            assert_same_digits(got[0], value, "float64")
            assert_same_digits(got[1], gradient, "float64")
