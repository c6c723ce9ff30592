"""ARFF as Mulan and MEKA write it, and what is wrong with it when it is not."""

import numpy as np
import pytest

from fitzpatrick.datasets import DataError, read_arff

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
    assert np.asarray(table.X).tolist() == [[1.5, 0.0, 4.0], [-2.0, 1.0, 1.0]]
    assert table.Y.tolist() == [[1, 0], [0, 1]]
    assert table.feature_names == ("width", "sky colour", "zone")
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


@pytest.mark.parametrize(("count", "targets"), [(1, ("width",)), (-2, ("happy", "sad"))])
def test_labels_from_meka(tmp_path, count, targets):
    text = DENSE.replace("demo", f"'demo: -C {count}'").replace("1.5,blue", "1,blue")
    text = text.replace("-2,'light", "0,'light")
    assert read_arff(write(tmp_path, text)).target_names == targets


def test_no_targets_at_all(tmp_path):
    table = read_arff(write(tmp_path, DENSE), targets=[])
    assert table.X.shape == (2, 5)
    assert table.Y.shape == (2, 0)


@pytest.mark.parametrize(
    ("change", "line", "problem"),
    [
        (("1.5,blue,4,1,0", "1.5,blue,4,1"), 10, "4 values, expected 5"),
        (("1.5,blue", "x,blue"), 10, "'width' is 'x'"),
        (("1.5,blue", "inf,blue"), 10, "'width' is 'inf'"),
        (("1.5,blue", "?,blue"), 10, "the value of attribute 'width' is missing"),
        (("1.5,blue", "1.5,green"), 10, "'sky colour' is 'green', which was not declared"),
        (("1.5,blue,4,1,0", "{9 1}"), 10, "attribute index 9 is out of range, expected 0 to 4"),
        (("1.5,blue,4,1,0", "{99999999999999 1}"), 10, "out of range"),
        (("1.5,blue,4,1,0", "{2 1,1 blue}"), 10, "not in rising order"),
        (("1.5,blue,4,1,0", "{0 1"), 10, "no closing brace"),
        (("1.5,blue,4,1,0", "{a 1}"), 10, "not of the form index value"),
        (("1.5,blue", "1.5,'blue"), 10, "a quote is not closed"),
        (("width numeric", "width string"), 3, "type 'string', expected numeric or nominal"),
        (("width numeric", "'width numeric"), 3, "no closing quote"),
        (("@RELATION demo", "hello"), 2, "expected @relation, @attribute or @data, got 'hello'"),
        (("@ATTRIBUTE sad", "@ATTRIBUTE happy"), None, "'happy' is declared twice"),
        (("@data", "% @data"), 10, "expected @relation"),
    ],
)
def test_faults_are_named(tmp_path, change, line, problem):
    assert change[0] in DENSE
    path = write(tmp_path, DENSE.replace(*change))
    with pytest.raises(DataError, match=problem) as caught:
        read_arff(path, targets=["happy", "sad"])
    assert caught.value.line == line


def test_labels_that_are_not_zero_or_one(tmp_path):
    with pytest.raises(DataError, match=r"label 'zone' of sample 1 is 4, expected 0 or 1"):
        read_arff(write(tmp_path, DENSE), targets=["zone"])


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
