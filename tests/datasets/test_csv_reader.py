"""CSV files with targets of every kind."""

import numpy as np
import pytest

from fitzpatrick.datasets import DataError, read_csv, read_table

INDICATORS = "a,b,red,blue\n1,2,1,0\n3,4,1,1\n5,6,0,0\n"


def write(tmp_path, text, name="data.csv"):
    path = tmp_path / name
    path.write_text(text)
    return path


def test_indicators(tmp_path):
    table = read_csv(write(tmp_path, INDICATORS), ["red", "blue"])
    assert table.kind == "indicators"
    assert table.X.tolist() == [[1, 2], [3, 4], [5, 6]]
    assert table.Y.tolist() == [[1, 0], [1, 1], [0, 0]]
    assert (table.feature_names, table.target_names) == (("a", "b"), ("red", "blue"))


def test_proportions(tmp_path):
    table = read_csv(write(tmp_path, "a,u,v\n1,0.25,0.75\n2,1,0\n"), ["v", "u"])
    assert table.kind == "proportions"
    assert table.Y.tolist() == [[0.75, 0.25], [0.0, 1.0]]


def test_class_names(tmp_path):
    table = read_csv(write(tmp_path, "a,kind\n1,dog\n2,cat\n3,dog\n"), ["kind"])
    assert table.kind == "labels"
    assert table.target_names == ("cat", "dog")
    assert table.Y.tolist() == [[0, 1], [1, 0], [0, 1]]


@pytest.mark.parametrize("delimiter", [";", "\t"])
def test_other_delimiters_quotes_and_blank_lines(tmp_path, delimiter):
    text = '"a, b",y\n"1",x\n\n2,z\n'.replace(",y", f"{delimiter}y")
    text = text.replace(",x", f"{delimiter}x").replace(",z", f"{delimiter}z")
    table = read_csv(write(tmp_path, text), ["y"])
    assert table.feature_names == ("a, b",)
    assert table.X.tolist() == [[1.0], [2.0]]


def test_chosen_features_leave_other_columns_unread(tmp_path):
    table = read_csv(write(tmp_path, "name,b,a\nx,1,2\ny,3,4\n"), None, features=["a", "b"])
    assert table.X.tolist() == [[2.0, 1.0], [4.0, 3.0]]


@pytest.mark.parametrize(
    ("text", "line", "problem"),
    [
        ("a,b,red,blue\n1,2,1\n", 2, "3 fields, expected 4 as in the first line"),
        ("a,b,red,blue\n1,2,1,0\n1,2,1,0,9\n", 3, "5 fields, expected 4"),
        ("a,b,red,blue\n1,x,1,0\n", 2, "column 'b': 'x' is not a number"),
        ("a,b,red,blue\n1,,1,0\n", 2, "column 'b': no value"),
        ("a,b,red,blue\n1,nan,1,0\n", 2, "column 'b': 'nan' is not finite"),
        ("a,b,red,blue\n1,2,1,0\n1,2,0.5,0.2\n", 3, "the targets sum to 0.7"),
        ("a,b,red,blue\n1,2,1,0\n1,2,1.5,-0.5\n", 3, "the targets are negative in part"),
        ("a,b,red,blue\n", None, "no sample below the first line"),
        ("a,a,red,blue\n1,2,1,0\n", 1, "two columns are called 'a'"),
        ("a,,red,blue\n1,2,1,0\n", 1, "column 2 has no name"),
        ('a,b,red,blue\n1,2,1,"0\n', 2, "not CSV"),
    ],
)
def test_faults_are_named_with_their_line(tmp_path, text, line, problem):
    path = write(tmp_path, text)
    with pytest.raises(DataError, match=problem) as caught:
        read_csv(path, ["red", "blue"])
    assert caught.value.line == line


def test_missing_columns(tmp_path):
    path = write(tmp_path, INDICATORS)
    with pytest.raises(DataError, match="no column is called 'green'; the columns are a, b, red"):
        read_csv(path, ["green"])
    with pytest.raises(DataError, match="every column is a target"):
        read_csv(path, ["a", "b", "red", "blue"])
    with pytest.raises(DataError, match="1 different class name"):
        read_csv(write(tmp_path, "a,y\n1,x\n2,x\n"), ["y"])


def test_read_table_finds_the_format(tmp_path):
    assert read_table(write(tmp_path, INDICATORS), ["red", "blue"]).kind == "indicators"
    other = write(tmp_path, INDICATORS, "data.txt")
    with pytest.raises(DataError, match=r"the format of a \.txt file is not known"):
        read_table(other, ["red", "blue"])
    table = read_table(other, ["red", "blue"], format="csv")
    np.testing.assert_array_equal(table.Y.sum(axis=1), [1, 2, 0])


def test_csv_needs_targets_and_libsvm_has_none(tmp_path):
    with pytest.raises(DataError, match=r"name the target columns with --targets; .* a, b, red"):
        read_table(write(tmp_path, INDICATORS))
    with pytest.raises(DataError, match="leave --targets out"):
        read_table(write(tmp_path, "0 1:1\n", "a.svm"), ["x"])
