"""ARFF as Mulan and MEKA write it, and what is wrong with it when it is not."""

import contextlib
import time

import numpy as np
import pytest

from fitzpatrick.datasets import (
    DataError,
    ReadOptions,
    read_arff,
    read_cells,
    read_inputs,
    read_table,
)

HEADER = """% a comment
@RELATION demo
@attribute width numeric
@attribute 'sky colour' {blue,'light, grey',red}
@attribute zone {1,2,4}
@attribute happy {0,1}
@ATTRIBUTE sad {0,1}

@data
"""
DENSE = HEADER + "1.5,blue,4,1,0\n-2,'light, grey',1,0,1\n"
SPARSE = HEADER + "{0 1.5, 2 4, 3 1}\n{0 -2,1 'light, grey', 2 1, 4 1}\n"


def write(tmp_path, text, name="demo.arff"):
    path = tmp_path / name
    path.write_text(text)
    return path


@pytest.mark.parametrize("text", [DENSE, SPARSE], ids=["dense", "sparse"])
def test_dense_and_sparse_rows_mean_the_same(tmp_path, text):
    table = read_arff(write(tmp_path, text), targets=["happy", "sad"])
    assert np.asarray(table.X).tolist() == [[1.5, 1, 0, 0, 0, 0, 1], [-2, 0, 1, 0, 1, 0, 0]]
    assert table.Y.tolist() == [[1, 0], [0, 1]]
    colours = ("sky colour=blue", "sky colour=light, grey", "sky colour=red")
    assert table.feature_names == ("width", *colours, "zone=1", "zone=2", "zone=4")
    assert table.target_names == ("happy", "sad")


@pytest.mark.parametrize("name", ["demo.arff", "demo-train.arff", "demo_test.arff"])
def test_labels_from_the_xml_file_beside_it(tmp_path, name):
    (tmp_path / "demo.xml").write_text(
        '<?xml version="1.0" ?><labels xmlns="http://mulan.sourceforge.net/labels">'
        '<label name="sad"></label><label name="happy"></label></labels>'
    )
    table = read_arff(write(tmp_path, DENSE, name))
    assert table.target_names == ("sad", "happy")
    assert table.Y.tolist() == [[0, 1], [1, 0]]


@pytest.mark.parametrize(("count", "targets"), [(1, ("0", "1")), (-2, ("happy", "sad"))])
def test_labels_from_meka(tmp_path, count, targets):
    text = DENSE.replace("demo", f"'demo: -C {count}'").replace("1.5,blue", "1,blue")
    text = text.replace("-2,'light", "0,'light")
    assert read_arff(write(tmp_path, text)).target_names == targets


def test_no_targets_at_all(tmp_path):
    table = read_arff(write(tmp_path, DENSE), targets=[])
    assert table.X.shape == (2, 9)
    assert table.Y.shape == (2, 0)


@pytest.mark.parametrize(
    ("change", "line", "problem"),
    [
        (("1.5,blue,4,1,0", "1.5,blue,4,1"), 10, "4 values, expected 5"),
        (("1.5,blue", "x,blue"), 10, "'width' is 'x'"),
        (("1.5,blue", "inf,blue"), 10, "'width' is 'inf'"),
        (("1.5,blue,4,1,0", "1.5,blue,4,1,?"), 10, "target column 'sad': no value; --missing drop"),
        (("{1,2,4}", "{1,2,4,2}"), 5, "'zone' declares the value '2' twice"),
        (("{1,2,4}", "{1,2,4"), 5, "the list of values has no closing brace"),
        (("1.5,blue", "1.5,green"), 10, "'sky colour' is 'green', which was not declared"),
        (("1.5,blue,4,1,0", "{9 1}"), 10, "attribute index 9 is out of range, expected 0 to 4"),
        (("1.5,blue,4,1,0", "{99999999999999 1}"), 10, "out of range"),
        (("1.5,blue,4,1,0", "{2 1,1 blue}"), 10, "not in rising order"),
        (("1.5,blue,4,1,0", "{0 1"), 10, "no closing brace"),
        (("1.5,blue,4,1,0", "{a 1}"), 10, "not of the form index value"),
        (("1.5,blue", "1.5,'blue"), 10, "a quote is not closed"),
        (("width numeric", "width relational"), 3, "'width' is of the type 'relational', expected"),
        (("width numeric", "'width numeric"), 3, "no closing quote"),
        (("@RELATION demo", "hello"), 2, "expected @relation, @attribute or @data, got 'hello'"),
        (("@ATTRIBUTE sad", "@ATTRIBUTE happy"), 7, "'happy' is declared twice"),
        (("@data", "% @data"), 10, "expected @relation"),
    ],
)
def test_faults_are_named(tmp_path, change, line, problem):
    assert change[0] in DENSE
    path = write(tmp_path, DENSE.replace(*change))
    with pytest.raises(DataError, match=problem) as caught:
        read_arff(path, targets=["happy", "sad"])
    assert caught.value.line == line


@pytest.mark.parametrize("values", ["yes,no", "no,yes", "TRUE,FALSE", "false,true", "1,0", "Y,N"])
@pytest.mark.parametrize("is_sparse", [False, True])
def test_indicators_by_their_meaning(tmp_path, values, is_sparse):
    """Whatever the order of the declaration, yes is 1; a sparse row omits the first value."""
    first, second = values.split(",")
    yes = next(value for value in (first, second) if value.lower() in ("yes", "true", "1", "y"))
    no = second if yes == first else first
    rows = [(1, yes, no), (2, no, no), (3, yes, yes)]
    header = f"@relation r\n@attribute\tx numeric\n@attribute a {{{values}}}\n"
    header += f"@attribute b {{{values}}}\n@data\n"
    if is_sparse:
        lines = [
            "{"
            + ", ".join([f"0 {x}", *(f"{i} {v}" for i, v in ((1, a), (2, b)) if v != first)])
            + "}"
            for x, a, b in rows
        ]
    else:
        lines = [f"{x},{a},{b}" for x, a, b in rows]
    table = read_arff(write(tmp_path, header + "\n".join(lines) + "\n"), targets=["a", "b"])
    assert table.kind == "indicators"
    assert table.Y.tolist() == [[1, 0], [0, 0], [1, 1]]


def test_one_attribute_holds_class_names(tmp_path):
    table = read_arff(write(tmp_path, DENSE), targets=["sky colour"])
    assert (table.kind, table.target_names) == ("labels", ("blue", "light, grey"))
    assert table.Y.tolist() == [[1, 0], [0, 1]]
    table = read_arff(write(tmp_path, DENSE), targets=["zone"])
    assert table.target_names == ("1", "4")


@pytest.mark.parametrize(("kind", "is_said"), [("integer", True), ("{0,1,2}", False)])
def test_classes_that_may_be_counts_are_a_note_unless_declared(tmp_path, kind, is_said):
    text = f"@relation r\n@attribute x real\n@attribute n {kind}\n@data\n1,0\n2.5,1\n3,2\n"
    table = read_arff(write(tmp_path, text), targets=["n"])
    assert table.target_names == ("0", "1", "2")
    note = "n: whole numbers 0 to 2 are taken as 3 class names; for counts, fit --loss poisson"
    assert table.notes == ((note,) if is_said else ())
    assert read_arff(write(tmp_path, text), ["n"], table.columns).notes == ()


def test_numeric_class_names_are_kept_apart(tmp_path):
    text = "@relation r\n@attribute x numeric\n@attribute zip numeric\n@data\n"
    rows = "1,1234567\n2,1234568\n3,0.1234567\n4,7\n5,7.0\n{0 6}\n"
    table = read_arff(write(tmp_path, text + rows), targets=["zip"])
    assert table.target_names == ("0", "0.1234567", "1234567", "1234568", "7")
    assert table.Y.argmax(axis=1).tolist() == [2, 3, 1, 4, 4, 0]
    large = write(tmp_path, text + "1,7\n1,9007199254740993\n")
    with pytest.raises(DataError, match="class 9007199254740992 of 'zip' is too large") as caught:
        read_arff(large, targets=["zip"])
    assert caught.value.line == 6


@pytest.mark.parametrize(
    "values", ["1,2,nan", "inf,-inf", "1,1.0", "2,1e999", "9007199254740993,9007199254740992"]
)
def test_nominal_numbers_that_are_none(tmp_path, values):
    """They are categories; read as numbers, they are positions."""
    header = f"@relation r\n@attribute x {{{values}}}\n@attribute c {{{values}}}\n@data\n"
    names = values.split(",")
    path = write(tmp_path, header + "".join(f"{v},{v}\n" for v in names))
    table = read_arff(path, ["c"])
    np.testing.assert_array_equal(table.X, np.eye(len(names)))
    table = read_arff(path, ["c"], options=ReadOptions(nominal="positions"))
    assert np.asarray(table.X).ravel().tolist() == list(range(len(names)))
    assert table.target_names == tuple(sorted(names))
    assert (table.Y.sum(axis=0) == 1).all()


def test_proportions(tmp_path):
    text = "@relation r\n@attribute x numeric\n@attribute a real\n@attribute b real\n@data\n"
    table = read_arff(write(tmp_path, text + "1,.25,.75\n2,1,0\n"), targets=["a", "b"])
    assert table.kind == "proportions"
    assert table.Y.tolist() == [[0.25, 0.75], [1.0, 0.0]]
    with pytest.raises(DataError, match=r"the targets sum to 1\.5; expected 0/1 ind") as caught:
        read_arff(write(tmp_path, text + "1,.5,.5\n2,1,.5\n"), targets=["a", "b"])
    assert caught.value.line == 7


def test_labels_that_are_no_indicators(tmp_path):
    with pytest.raises(DataError, match="label 'zone' has other values than 0 and 1") as caught:
        read_arff(write(tmp_path, DENSE), targets=["zone", "sad"])
    assert caught.value.line == 5
    (text,) = [DENSE.replace("1,0\n", "2,0\n").replace("happy {0,1}", "happy numeric")]
    with pytest.raises(DataError, match="the targets sum to 2; expected 0/1 ind") as caught:
        read_arff(write(tmp_path, text), targets=["happy", "sad"])
    assert caught.value.line == 10
    with pytest.raises(DataError, match="the target 'sad' is named twice"):
        read_arff(write(tmp_path, DENSE), targets=["sad", "sad"])


def test_dates_can_be_ignored(tmp_path):
    text = DENSE.replace("width numeric", "width date 'yyyy-MM-dd'").replace("1.5,b", "'a, b',b")
    path = write(tmp_path, text)
    table = read_table(path, ["happy", "sad"], ignore=["width", "zone"])
    assert table.feature_names[0] == "sky colour=blue"
    problem = "'width' is a date, expected .*; --ignore width leaves it out$"
    with pytest.raises(DataError, match=problem) as caught:
        read_table(path, ["happy", "sad"])
    assert caught.value.line == 3


def test_strings_are_the_words_of_csv_files(tmp_path):
    text = DENSE.replace("width numeric", "width string").replace("1.5,b", "'wide, very',b")
    table = read_table(write(tmp_path, text), ["happy", "sad"], ignore=["zone", "sky colour"])
    assert table.feature_names == ("width=-2", "width=wide, very")
    assert np.asarray(table.X).tolist() == [[0, 1], [1, 0]]
    sparse = SPARSE.replace("width numeric", "width string").replace("{0 -2,", "{")
    table = read_table(write(tmp_path, sparse), ["happy", "sad"], ignore=["zone", "sky colour"])
    assert table.feature_names == ("width=1.5", "width (missing)")
    assert np.asarray(table.X).tolist() == [[1, 0], [0, 1]]


def test_columns_that_are_not_asked_for_may_be_missing_values(tmp_path):
    columns = read_table(write(tmp_path, DENSE), ["happy", "sad"], ignore=["sky colour"]).columns
    path = write(tmp_path, DENSE.replace("1.5,blue,4,1,0", "1.5,?,4,?,?"))
    assert read_inputs(path, columns).X.tolist() == [[1.5, 0, 0, 1], [-2.0, 1, 0, 0]]


MISSING = """@relation r
@attribute x numeric
@attribute ok {no,yes}
@attribute colour {red,blue}
@attribute a {0,1}
@attribute b {0,1}
@data
1,yes,red,1,0
?,?,?,0,1
5,yes,blue,1,1
"""


def test_missing_values(tmp_path):
    path = write(tmp_path, MISSING)
    table = read_arff(path, ["a", "b"])
    names = ("x", "x (missing)", "ok", "ok (missing)", "colour=red", "colour=blue")
    assert table.feature_names == (*names, "colour (missing)")
    expected = [[1, 0, 1, 0, 1, 0, 0], [3, 1, 1, 1, 0, 0, 1], [5, 0, 1, 0, 0, 1, 0]]
    assert np.asarray(table.X).tolist() == expected
    assert table.notes[2:] == (
        "missing numbers are replaced by the median of the column and marked in a 0/1 feature: "
        "x (1 row), ok (1 row)",
        "missing values are a category of their own: colour (1 row)",
    )
    dropped = read_arff(path, ["a", "b"], options=ReadOptions(missing="drop"))
    assert np.asarray(dropped.X).tolist() == [[1, 1, 1, 0], [5, 1, 0, 1]]
    assert dropped.Y.tolist() == [[1, 0], [1, 1]]
    assert dropped.lines.tolist() == [8, 10]
    assert dropped.notes[0] == "left out: 1 of 3 rows, with missing values"
    with pytest.raises(DataError, match=r"'x': no value; --missing drop .* impute") as caught:
        read_arff(path, ["a", "b"], options=ReadOptions(missing="error"))
    assert caught.value.line == 9


def test_plain_numbers(tmp_path):
    text = "@relation r\n@attribute x numeric\n@attribute a integer\n@data\n1,7\n2,0\n"
    table = read_table(write(tmp_path, text), ["a"], plain=True)
    assert (table.kind, table.Y.tolist()) == ("numbers", [[7.0], [0.0]])


def test_unknown_labels(tmp_path):
    with pytest.raises(DataError, match="which attributes are labels is not known"):
        read_arff(write(tmp_path, DENSE))
    with pytest.raises(DataError, match="no attribute is called 'angry'"):
        read_arff(write(tmp_path, DENSE), targets=["angry"])


@pytest.mark.parametrize(
    ("xml", "problem"),
    [
        ('<!DOCTYPE x [<!ENTITY a "b">]><labels/>', "declares entities"),
        ("<labels>", "not well-formed"),
        ("<labels></labels>", "names no label"),
    ],
)
def test_faulty_xml(tmp_path, xml, problem):
    (tmp_path / "demo.xml").write_text(xml)
    with pytest.raises(DataError, match=problem):
        read_arff(write(tmp_path, DENSE))


def test_empty_data(tmp_path):
    with pytest.raises(DataError, match="no sample"):
        read_arff(write(tmp_path, HEADER), targets=["happy"])


def test_spaces_around_fields_mean_nothing(tmp_path):
    head = "@relation r\n@attribute a numeric\n@attribute b { red , blue }\n"
    text = head + "@data\n 1 , red \n2,blue\n"
    table = read_arff(write(tmp_path, text), targets=["b"])
    assert table.target_names == ("blue", "red")
    assert np.asarray(table.X).tolist() == [[1.0], [2.0]]
    assert np.asarray(table.Y).tolist() == [[0, 1], [1, 0]]


@pytest.mark.parametrize(
    "text",
    [
        DENSE.replace("demo", ":" * 200_000),
        DENSE.replace("demo", ":-C " + "-C " * 60_000),
        DENSE.replace("'light, grey',1", "'light, grey'" + " " * 200_000 + "x,1"),
        DENSE.replace("width numeric", "width string").replace("1.5", "1" + " " * 200_000 + "5"),
        DENSE.replace("{1,2,4}", "{" + ",".join(map(str, range(50_000))) + ",49999}"),
    ],
    ids=["colons", "options", "spaces", "string", "values"],
)
def test_long_lines_take_no_longer_than_many(tmp_path, text):
    """Some 0.1 s; with a pattern that goes back and forth, several minutes."""
    path = write(tmp_path, text)
    start = time.process_time()
    with contextlib.suppress(DataError):
        read_arff(path, ["happy", "sad"] if "-C" not in text else None)
    assert time.process_time() - start < 10


def test_identifiers_are_left_out_as_in_csv_files(tmp_path):
    """A nominal attribute with as many values as rows, such as ``protein`` in Mulan's genbase."""
    rows = [(f"p{i}", i * i, "uv"[i % 2]) for i in range(30)]
    text = f"@relation r\n@attribute protein {{{','.join(row[0] for row in rows)},p99}}\n"
    text += "@attribute x numeric\n@attribute y {u,v}\n@data\n"
    text += "".join(f"{name},{x},{y}\n" for name, x, y in rows)
    table = read_arff(write(tmp_path, text), ["y"])
    (tmp_path / "a.csv").write_text(
        "protein,x,y\n" + "".join(f"{name},{x},{y}\n" for name, x, y in rows)
    )
    assert table.feature_names == ("x",)
    assert table.notes[0] == "left out: protein (a different text in every row, so probably a name)"
    assert read_table(tmp_path / "a.csv", ["y"]).notes == table.notes
    asked = read_arff(
        tmp_path / "demo.arff", ["y"], options=ReadOptions(kinds={"protein": "category"})
    )
    assert asked.X.shape == (30, 32)


def test_paths_may_be_strings(tmp_path):
    path = write(tmp_path, DENSE)
    table = read_table(path, ["happy", "sad"])
    np.testing.assert_array_equal(read_table(str(path), ["happy", "sad"]).X, table.X)
    np.testing.assert_array_equal(read_arff(str(path), ["happy", "sad"]).X, table.X)
    np.testing.assert_array_equal(read_inputs(str(path), table.columns).X, table.X)
    assert read_cells(str(path), ["zone"]) == {"zone": ["4", "1"]}
