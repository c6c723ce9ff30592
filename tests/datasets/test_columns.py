"""The recipe of a file's columns: as scikit-learn would make the features, and pure data."""

import copy
import json
import tracemalloc

import numpy as np
import pytest
from scipy import sparse

from fitzpatrick.datasets import Columns, DataError, ReadOptions, read_inputs, read_table
from fitzpatrick.datasets._frame import Notes, Texts
from fitzpatrick.datasets.columns import Boolean, Category, Ignored, Number, Ordinal, Tags

from . import files


def test_many_categories_are_sparse(tmp_path, monkeypatch):
    monkeypatch.setattr("fitzpatrick.datasets.columns.DENSE_CELLS", 100)
    rows = "".join(f"{2 * i},w{i % 40:02},{'uv'[i % 2]}\n" for i in range(200))
    table = read_table(files.write(tmp_path, "x,w,y\n" + rows), ["y"])
    assert sparse.issparse(table.X)
    expected = np.column_stack([np.arange(0, 400, 2), np.eye(40)[np.arange(200) % 40]])
    np.testing.assert_array_equal(table.X.toarray(), expected)
    rows = "".join(f"{2 * i},{i % 7},{'uv'[i % 2]}\n" for i in range(200))
    assert not sparse.issparse(read_table(files.write(tmp_path, "x,w,y\n" + rows), ["y"]).X)


def test_memory_of_categories():
    """One dense table beside the sparse blocks, and none of their dense copies."""
    cells = Texts(np.arange(100_000) % 3, ["a", "b", "c"])
    columns = Columns(tuple(Category(f"c{i}", ("a", "b", "c")) for i in range(20)))
    tracemalloc.start()
    X = columns.encode({column.name: cells for column in columns.items}, Notes())
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    np.testing.assert_array_equal(X[:3], np.tile(np.eye(3), 20))
    # a row of a block holds a number and an index of eight bytes each for three cells
    assert peak < (1 + 2 / 3 + 1 / 2) * X.nbytes


RECIPE = Columns(
    (
        Number("a", 1.5, True, "%", ",", "."),
        Boolean("b", 0.0),
        Category("c", ("x", "y"), True, False),
        Tags("d", ("p", "q"), "|"),
        Ordinal("e", None, False, ("s", "t")),
        Ignored("f", "why"),
    ),
    missing_values=("k. A.",),
)


def test_recipe_survives_json():
    assert Columns.from_json(json.loads(json.dumps(RECIPE.to_json()))) == RECIPE
    numbered = Columns(n_numbered=7)
    assert Columns.from_json(numbered.to_json()) == numbered
    assert numbered.feature_names[-1] == "feature_7"
    for columns in (RECIPE, numbered, Columns.plain(["x", "y"])):
        assert columns.n_features == len(columns.feature_names)


# the column, or None for the recipe itself; a field; its new value, or how it is removed
GONE = object()
WRONG = [
    (None, "columns", GONE, "is not a recipe of columns with columns, missing_values, n_numbered"),
    (None, "n_numbered", True, "n_numbered is True, expected 0 to"),
    (None, "n_numbered", 3, "not empty beside n_numbered"),
    (None, "missing_values", "ab", "missing_values is 'ab', expected at most 10000 different"),
    (None, "columns", {}, "columns is no list"),
    (None, "columns", [], "0 features, expected 1 to"),
    (None, "columns", [3], "3 is not a column of a kind among number"),
    (0, "kind", "__import__", "is not a column of a kind among"),
    (0, "extra", 1, "is not a number column with decimal"),
    (0, "name", 3, "name is 3, expected text of at most 1000 characters"),
    (0, "name", "b", "two columns have the same name"),
    (0, "fill", float("nan"), "fill is nan, expected a finite number"),
    (0, "fill", True, "fill is True, expected a finite number"),
    (0, "decimal", ";", "decimal is ';', expected one of"),
    (0, "decimal", [], r"decimal is \[\], expected one of"),
    (0, "marks_missing", 1, "expected true or false"),
    (2, "values", ["x", "x"], "expected at most 10000 different words"),
    (2, "values", ["x", None], "words of at most 1000 characters"),
    (2, "values", list(map(str, range(10_001))), "expected at most 10000 different words"),
    (3, "separator", ".*", r"separator is '\.\*', expected one of"),
]


@pytest.mark.parametrize(("column", "name", "value", "problem"), WRONG)
def test_recipes_that_no_reader_wrote(column, name, value, problem):
    data = copy.deepcopy(RECIPE.to_json())
    changed = data if column is None else data["columns"][column]
    changed[name] = value
    if value is GONE:
        del changed[name]
    with pytest.raises(ValueError, match=problem):
        Columns.from_json(data)


def test_a_new_file_must_fit_the_recipe(tmp_path):
    path = files.write(tmp_path, "x,w,z,y\n10%,1,red,u\n20%,2,blue,v\n")
    columns = read_table(path, ["y"]).columns
    for text, line, problem in (
        ("x,w,z\n30,1,red\n", 2, "column 'x': '30' has no %, as its numbers in the training file"),
        ("x,w,z\n3%,5 €,red\n", 2, "'w': '5 €' has the sign €, and its .* training file have none"),
        ("x,w\n30%,1\n", 1, "no column is called 'z'; the columns are x, w$"),
    ):
        path.write_text(text)
        files.check_refusal(lambda: read_inputs(path, columns), path, line, problem)
    path.write_text("x,w,z\n30 %,1,red\n")
    assert read_inputs(path, columns).X.tolist() == [[0.3, 1, 0, 1]]


def test_libsvm_recipes(tmp_path):
    path = files.write(tmp_path, "0 1:1 3:2\n1 2:1\n", "a.svm")
    columns = Columns.from_json(read_table(path).columns.to_json())
    assert columns == Columns(n_numbered=3)
    table = files.write(tmp_path, "feature_2,feature_1,feature_3\n5,4,6\n")
    assert read_inputs(table, columns).X.tolist() == [[4, 5, 6]]
    table = read_inputs(path, columns)
    assert (table.kind, table.Y.shape, table.X.shape) == ("none", (2, 0), (2, 3))
    for column in (
        Number("x", unit="%"),
        Number("x", 0.0, marks_missing=True),
        Category("x", ("1",)),
    ):
        with pytest.raises(
            DataError, match="LIBSVM files hold plain numbers; 'x' has words, units"
        ):
            read_inputs(path, Columns((column, Number("z"))))


COMMAS, POINTS = "n;x;y\n" + "1000;1,5;u\n2000;2,5;v\n" * 3, "n;y\n1000.5;u\n2000.25;v\n"


@pytest.mark.parametrize(("train", "cells", "decimal", "expected"), [
    # whole numbers of a file with decimal commas do not say what 1.234 is
    (COMMAS, "1.234 2.500", None, r"column 'n': the '\.' in its numbers may be a decimal"),
    (COMMAS, "1.5 2.5", None, [1.5, 2.5]),
    # whatever mark the training file has, the one that is told counts
    (POINTS, "1.234", ",", [1234.0]), (POINTS, "1.234", ".", [1.234]),
    (POINTS, "1,234", ",", [1.234]), (POINTS, "1,234", ".", [1234.0]),
    (POINTS, "1,5", ",", [1.5]), (POINTS, "1,5", ".", "the decimal mark is not"),
])  # fmt: skip
def test_decimal_marks_of_other_files(tmp_path, train, cells, decimal, expected):
    columns = read_table(files.write(tmp_path, train), ["y"]).columns
    path = files.write(tmp_path, "n;x\n" + "".join(f"{cell};3\n" for cell in cells.split()))
    if isinstance(expected, str):
        with pytest.raises(DataError, match=expected):
            read_inputs(path, columns, decimal=decimal)
    else:
        assert read_inputs(path, columns, decimal=decimal).X[:, 0].tolist() == expected


def test_marks_that_contradict_each_other_decide_nothing(tmp_path):
    path = files.write(tmp_path, "n;a;b;y\n1.5;1.5;1.5;u\n2.5;2.5;2.5;v\n")
    columns = read_table(path, ["y"]).columns
    path.write_text("n;a;b\n1.234;1.5;2.5\n")
    assert read_inputs(path, columns).X.tolist() == [[1.234, 1.5, 2.5]]
    path.write_text("n;a;b\n1.234;1.5;2,5\n")
    problem = r"column 'n': the '\.' in its numbers may be a decimal mark or stand between"
    files.check_refusal(lambda: read_inputs(path, columns), path, None, problem)


def test_a_tag_that_is_written_in_two_ways_is_one(tmp_path):
    path = files.write(tmp_path, "t,y\n" + "1;2,u\n2;3,v\n1;3,u\n" * 3)
    columns = read_table(path, ["y"], options=ReadOptions(tags=("t",))).columns
    path.write_text("t\n1;1.0\n1.0\n3;1\n")
    table = read_inputs(path, columns)
    assert table.X.tolist() == [[1, 0, 0], [1, 0, 0], [1, 0, 1]]
    assert not any("not seen" in note for note in table.notes)
