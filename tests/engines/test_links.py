"""Links by rows are those of the core, in form and in digits."""

from typing import Any

import numpy as np
import pytest

import fitzpatrick as fp
from fitzpatrick import engines

from .cases import (
    REGULARIZERS,
    scores,
)


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


def test_a_link_needs_no_more_than_its_output() -> None:
    theta = scores(30, 20, 1.0, "float64", 3)
    theta.flags.writeable = False
    loss = fp.FenchelYoungLoss(REGULARIZERS["sparsemax"])
    rows = engines.link_rows(loss.regularizer, theta)
    np.testing.assert_array_equal(rows, loss.link(theta))
    assert not np.may_share_memory(rows, theta)
