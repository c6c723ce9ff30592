"""Files without a split."""

import numpy as np
import pytest

from fitzpatrick.datasets import Table, split_table

TABLE = Table(np.arange(20.0)[:, None], np.ones((20, 1)), "numbers", ("x",), ("y",), ("note",),
              lines=np.arange(2, 22))  # fmt: skip


@pytest.mark.parametrize(
    ("sizes", "expected"), [(0.75, (15, 5)), (0.01, (1, 19)), ((5, 6), (5, 6))]
)
def test_parts(sizes, expected):
    parts = split_table(TABLE, sizes, seed=1)
    assert tuple(part.X.shape[0] for part in parts) == expected
    rows = [part.X[:, 0].tolist() for part in parts]
    assert all(row == sorted(row) for row in rows)
    assert len(set(sum(rows, []))) == sum(expected)  # noqa: RUF017
    for part in parts:
        assert part.notes == ("note",)
        np.testing.assert_array_equal(part.lines, part.X[:, 0] + 2)


def test_seeds():
    first, again, other = (split_table(TABLE, 0.5, seed)[0].X.tolist() for seed in (0, 0, 1))
    assert first == again != other


@pytest.mark.parametrize("sizes", [0.0, 1.0, 1.5, (15, 6), (0, 5), (-1, 2)])
def test_sizes_that_cannot_be(sizes):
    with pytest.raises(ValueError, match=r"must be between 0 and 1|must have rows, 20 in all"):
        split_table(TABLE, sizes)
