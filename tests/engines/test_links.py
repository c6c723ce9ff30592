"""Links by rows are those of the core, in form and in digits."""

from typing import Any

import numpy as np
import pytest

import fitzpatrick as fp
from fitzpatrick import engines
from fitzpatrick.engines import _sparse

from .cases import REGULARIZERS, SIMPLEX, assert_same_digits, cases, make_loss, scores


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("name", REGULARIZERS)
@np.errstate(all="ignore")
def test_links_have_the_digits_of_the_core(name: str, dtype: str) -> None:
    loss = fp.FitzpatrickLoss(REGULARIZERS[name])
    for n, k, scale in ((5, 7, 1.0), (3, 1, 10.0), (9, 300, 0.1), (4, 300, 30.0), (2, 40, 0.0)):
        theta = scores(n, k, scale, dtype, k)
        expected = REGULARIZERS[name].solve_link(theta)
        size = max(1.0, float(np.abs(expected).max()))
        for ordered in (theta, np.asfortranarray(theta)):
            link = loss.link(ordered)
            assert_same_digits(link, expected, dtype, size)
        assert link.dtype == dtype
        np.testing.assert_array_equal(loss.link(theta, n_threads=3), loss.link(theta, n_threads=1))


@pytest.mark.parametrize("name", REGULARIZERS)
def test_links_of_rows_that_are_masked_or_make_no_sense(name: str) -> None:
    theta = scores(7, 300, 1.0, "float64", 1)
    theta[1, ::3] = -np.inf
    theta[1, 0] = -np.inf
    theta[2, 5], theta[3, 4], theta[4] = np.nan, np.inf, -np.inf
    theta[5] = 1e4
    loss = fp.FenchelYoungLoss(REGULARIZERS[name])
    expected = REGULARIZERS[name].link(theta)
    np.testing.assert_allclose(loss.link(theta), expected, rtol=1e-13, atol=2e-15)


@pytest.mark.parametrize("name", REGULARIZERS)
def test_scores_of_every_form_have_links(name: str) -> None:
    loss = fp.FenchelYoungLoss(REGULARIZERS[name])
    omega = REGULARIZERS[name]
    theta = scores(4, 6, 1.0, "float64", 0)
    cases: list[Any] = [
        theta[0],
        theta.astype(np.float16),
        np.round(theta).astype(int),
        theta.tolist(),
        theta.reshape(2, 2, 6),
        theta[:0],
        theta[:, ::2],
    ]
    for case in cases:
        link, expected = loss.link(case), omega.link(case)
        assert link.dtype == expected.dtype
        assert link.shape == expected.shape
        tolerance = 4 * float(np.finfo(link.dtype).eps)
        np.testing.assert_allclose(link, expected, rtol=tolerance, atol=tolerance)


def test_scores_that_are_none_are_refused() -> None:
    loss = fp.get_loss("sparsemax")
    with pytest.raises(ValueError, match=r"theta must have shape \(k,\) or \(n, k\)"):
        loss.link(np.zeros((3, 0)))
    with pytest.raises(TypeError, match="theta must be real numbers"):
        loss.link(np.zeros((3, 2), complex))
    with pytest.raises(ValueError, match="n_threads must be a positive integer"):
        loss.link(np.zeros((3, 2)), n_threads=0)


@pytest.mark.parametrize("name", SIMPLEX)
def test_links_sum_to_one(name: str) -> None:
    theta = scores(50, 300, 3.0, "float64", 2)
    link = fp.FenchelYoungLoss(REGULARIZERS[name]).link(theta)
    # a sum of k numbers that add up to 1, each off by a few rounding errors of itself
    np.testing.assert_allclose(link.sum(axis=1), 1, atol=300 * np.finfo(float).eps)
    assert (link >= 0).all()


def test_a_link_needs_no_more_than_its_output() -> None:
    theta = scores(30, 20, 1.0, "float64", 3)
    theta.flags.writeable = False
    loss = fp.FenchelYoungLoss(REGULARIZERS["sparsemax"])
    rows = engines.link_rows(loss, theta)
    np.testing.assert_array_equal(rows, loss.link(theta))
    assert not np.may_share_memory(rows, theta)


@pytest.mark.parametrize("tightness", [0.0, 0.5])
@pytest.mark.parametrize("name", ["sparsemax", "entmax15"])
def test_whole_rows_in_pieces_are_those_in_one(
    name: str, tightness: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where most entries are active, no piece knows of the others; the last one is shorter."""
    n, k = 11, 300
    loss, theta = make_loss(name, tightness), scores(n, k, 1e-3, "float64", 5)
    for case in cases(name, n, k, 5):
        results = []
        for size in (1 << 30, 4 * 8 * k):
            monkeypatch.setattr(_sparse, "_WHOLE_BYTES", size)
            bound = engines.bind(loss, case.y, k, n_threads=1, engine="numpy")
            results.append((*bound.value_and_gradient(theta), bound.y_star(theta)))
        for whole, pieces in zip(*results, strict=True):
            assert_same_digits(pieces, whole, "float64")
