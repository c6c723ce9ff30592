"""What the targets of a file are, and where the one is that is not."""

import numpy as np
import pytest

from fitzpatrick.datasets import DataError, ReadOptions, read_table
from tests.helpers import seeded


def write(tmp_path, rows, head="x,a,b,c"):
    path = tmp_path / "a.csv"
    path.write_text(head + "\n" + "".join(",".join(map(str, row)) + "\n" for row in rows))
    return path


def indicators(n=100):
    return [[i, *seeded(i).integers(0, 2, 3).tolist()] for i in range(n)]


def proportions(n=100, total=1.0):
    return [[i, *np.round(seeded(i).dirichlet([1, 1, 1]) * total, 3)] for i in range(n)]


@pytest.mark.parametrize(
    ("rows", "bad", "problem"),
    [
        (indicators, {1: 2}, "target column 'a': 2; expected 0 or 1, as in 99 of 100 rows"),
        (indicators, {3: 0.5}, "target column 'c': 0.5; expected 0 or 1, as in 99 of 100 rows"),
        (indicators, {3: -1}, "target column 'c': -1 is negative; expected 0/1 indicators"),
        (indicators, {2: "maybe"}, "column 'b': 'maybe' is not a number, as 99 of its values are"),
        (indicators, {2: ""}, "target column 'b': no value; --missing drop leaves such rows out"),
        (proportions, {1: 0, 2: 0, 3: 0.5}, "the targets sum to 0.5; expected proportions that su"),
        (
            proportions,
            {1: 3},
            r"sum to .*; expected proportions that sum to one, as in 99 of 100 r",
        ),
        (
            lambda: proportions(total=100.0),
            {1: 30, 2: 30, 3: 30},
            "the targets sum to 90; expected percentages that sum to 100, as in 99 of 100 rows",
        ),
    ],
)
def test_a_bad_target_is_named_with_its_line(tmp_path, rows, bad, problem):
    content = rows()
    for column, value in bad.items():
        content[60][column] = value
    with pytest.raises(DataError, match=problem) as caught:
        read_table(write(tmp_path, content), ["a", "b", "c"])
    assert caught.value.line == 62


def test_the_first_of_the_missing_targets_is_named(tmp_path):
    rows = indicators()
    rows[60][3] = rows[70][1] = "NA"
    with pytest.raises(DataError, match="line 62: target column 'c': no value"):
        read_table(write(tmp_path, rows), ["a", "b", "c"])
    table = read_table(write(tmp_path, rows), ["a", "b", "c"], options=ReadOptions(missing="drop"))
    assert table.X.shape == (98, 1)
    assert table.notes[0] == "left out: 2 of 100 rows, with missing values"


def test_percentages(tmp_path):
    rows = [[i, 20, 30, 50] for i in range(9)] + [[9, 33.3, 33.3, 33.3], [10, 0, 0, 0]]
    table = read_table(write(tmp_path, rows), ["a", "b", "c"])
    assert table.kind == "proportions"
    np.testing.assert_allclose(table.Y[0], [0.2, 0.3, 0.5])
    np.testing.assert_allclose(table.Y[9], [1 / 3] * 3)
    assert table.Y[10].tolist() == [0, 0, 0]
    assert table.notes == (
        "the targets are percentages, and divided by 100",
        "the proportions of 1 of 11 samples do not sum to one exactly (0.999 to 1); each is "
        "divided by its sum",
    )


def test_percent_signs(tmp_path):
    rows = [[i, "20%", "30%", "50 %"] for i in range(9)]
    table = read_table(write(tmp_path, rows), ["a", "b", "c"])
    np.testing.assert_allclose(table.Y, [[0.2, 0.3, 0.5]] * 9)
    assert table.notes == ("the sign % is left out and the numbers divided by 100: a, b, c",)


@pytest.mark.parametrize(
    ("no", "yes"), [("FALSE", "TRUE"), ("no", "yes"), ("n", "Y"), ("f", "t"), ("0", "1")]
)
def test_answers(tmp_path, no, yes):
    rows = [[i, (no, yes)[i % 2], (no, yes)[i % 3 == 0], "1"] for i in range(12)]
    table = read_table(write(tmp_path, rows), ["a", "b", "c"])
    assert table.kind == "indicators"
    assert table.Y.tolist() == [[i % 2, i % 3 == 0, 1] for i in range(12)]


def test_labels_in_one_column(tmp_path):
    """Several labels a cell, found by their recurrence or as told."""
    cells = ["rock;jazz", "jazz", "", "rock", "folk;jazz", "folk"]
    rows = [[i, cell] for i, cell in enumerate(cells * 3)]
    table = read_table(write(tmp_path, rows, "x,genres"), ["genres"])
    assert (table.kind, table.target_names) == ("indicators", ("folk", "jazz", "rock"))
    expected = [[0, 1, 1], [0, 1, 0], [0, 0, 0], [0, 0, 1], [1, 1, 0], [1, 0, 0]]
    assert table.Y.tolist() == expected * 3
    assert table.notes == ("labels, split at ';': genres (3 labels)",)
    as_classes = ReadOptions(kinds={"genres": "category"}, missing="drop")
    table = read_table(write(tmp_path, rows, "x,genres"), ["genres"], options=as_classes)
    assert table.target_names == ("folk", "folk;jazz", "jazz", "rock", "rock;jazz")


def test_labels_in_one_column_as_told(tmp_path):
    rows = [[1, '"a, b"'], [2, '"b, c"'], [3, "a"]]
    path = write(tmp_path, rows, "x,genres")
    assert read_table(path, ["genres"]).target_names == ("a", "a, b", "b, c")
    table = read_table(path, ["genres"], options=ReadOptions(tags=["genres"]))
    assert table.target_names == ("a", "b", "c")
    assert table.Y.tolist() == [[1, 1, 0], [0, 1, 1], [1, 0, 0]]


@pytest.mark.parametrize("names", [("+", "-"), ("None", "Mild"), ("n", "y")])
def test_classes_that_look_like_gaps(tmp_path, names):
    rows = [[i, names[i % 2]] for i in range(6)]
    assert read_table(write(tmp_path, rows, "x,y"), ["y"]).target_names == tuple(sorted(names))


def test_counts_are_divided_by_their_sums_on_the_command_line(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write(tmp_path, [[i % 5, 1 + i % 3, 4, 2] for i in range(30)])
    fitting = ("fit", "a.csv", "--targets", "a,b,c", "--alpha", 1, "-o", "m.safetensors")
    code, _, err = run(*fitting)
    assert code == 2
    assert "--normalize divides each row by its sum" in err
    code, out, _ = run(*fitting, "--normalize")
    assert code == 0
    assert "30 samples, 1 feature, 3 targets (proportions)" in out
