"""Files without a split."""

import numpy as np
import pytest

from fitzpatrick.datasets import Table, read_table, split_table
from tests.helpers import seeded

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


@pytest.mark.parametrize("dense_cells", [0, 10**6], ids=["sparse", "dense"])
def test_gaps_are_filled_by_the_first_part(tmp_path, monkeypatch, dense_cells):
    """What is held out has no say in the median."""
    monkeypatch.setattr("fitzpatrick.datasets.columns.DENSE_CELLS", dense_cells)
    generator = seeded(0)
    lines = [
        f"{'' if i % 5 == 0 else generator.integers(100)},w{i % 30},{'uv'[i % 2]}"
        for i in range(90)
    ]
    (tmp_path / "a.csv").write_text("x,w,y\n" + "\n".join(lines) + "\n")
    table = read_table(tmp_path / "a.csv", ["y"])
    before = table.X.copy()
    train, test = split_table(table, 0.5, seed=0)
    X_train, X_test, whole = (
        X if isinstance(X, np.ndarray) else X.toarray() for X in (train.X, test.X, table.X)
    )
    known = X_train[X_train[:, 1] == 0, 0]
    assert train.columns.items[0].fill == np.median(known) != table.columns.items[0].fill
    for X in (X_train, X_test):
        assert (X[X[:, 1] == 1, 0] == np.median(known)).all()
        assert (X[:, 1] == 1).any()
    rows = test.lines - 2
    np.testing.assert_array_equal(X_test[:, 2:], whole[rows, 2:])
    assert (before != table.X).sum() == 0
