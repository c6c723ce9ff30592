"""ARFF as Mulan and MEKA write it, the XML files beside it, and what is wrong with either."""

import gzip
import os
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse
from scipy.io import arff as scipy_arff

from fitzpatrick.datasets import (
    DataError,
    ReadOptions,
    load_dataset,
    read_arff,
    read_inputs,
    read_label_names,
    read_libsvm,
    read_table,
)

from .files import check_refusal, check_table, write

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
LABELS = ["happy", "sad"]
NAMES = ("width", "sky colour=blue", "sky colour=light, grey", "sky colour=red", "zone=1", "zone=2",
         "zone=4")  # fmt: skip
ROWS = [[1.5, 1, 0, 0, 0, 0, 1], [-2, 0, 1, 0, 1, 0, 0]]
GAPS = """@relation r
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
TWO = "@relation r\n@attribute x numeric\n@attribute n {}\n@data\n"
SHARES = TWO.format("real\n@attribute b real")
AS_WORDS = DENSE.replace("width numeric", "width string").replace("1.5,b", "'wide, very',b")
SPARSE_WORDS = SPARSE.replace("width numeric", "width string").replace("{0 -2,", "{")

# text, targets, what the table has, how it is read
TABLES = {
    "dense": (DENSE, LABELS, {"X": ROWS, "Y": [[1, 0], [0, 1]], "feature_names": NAMES}, {}),
    "a target of words": (
        DENSE, ["sky colour"],
        {"kind": "labels", "target_names": ("blue", "light, grey"), "Y": np.eye(2)}, {},
    ),
    "MEKA, first": (DENSE.replace("demo", "'demo: -C 1'").replace("1.5,", "1,"), None,
                    {"target_names": ("-2", "1")}, {}),
    "MEKA, last": (DENSE.replace("demo", "'demo: -C -2'"), None, {"target_names": ("happy", "sad")},
                   {}),
    "no targets": (DENSE, [], {"Y": np.zeros((2, 0)), "kind": "none"}, {}),
    "declared counts": (TWO.format("{0,1,2}") + "1,0\n2.5,1\n3,2\n", ["n"], {"notes": ()}, {}),
    "numbers as classes": (
        TWO.format("numeric") + "1,1234567\n2,1234568\n3,0.1234567\n4,7\n5,7.0\n{0 6}\n7,-0\n",
        ["n"],
        {"target_names": ("0", "0.1234567", "1234567", "1234568", "7"),
         "Y": np.eye(5)[[2, 3, 1, 4, 4, 0, 0]]}, {},
    ),
    "strings": (AS_WORDS, LABELS, {"feature_names": ("width=-2", "width=wide, very")},
                {"ignore": ["zone", "sky colour"]}),
    "strings left out": (
        SPARSE_WORDS, LABELS,
        {"feature_names": ("width=1.5", "width (missing)"), "X": np.eye(2)},
        {"ignore": ["zone", "sky colour"]},
    ),
    "declared numbers that are equal": (
        "@relation r\n@attribute z {0,0.0,1}\n@attribute n {u,v}\n@data\n0.0,u\n0,v\n1,u\n", ["n"],
        {"feature_names": ("z=0", "z=0.0", "z=1"), "X": [[0, 1, 0], [1, 0, 0], [0, 0, 1]]}, {},
    ),
    "a declared attribute that counts": (
        TWO.replace(" x ", " index ").format("{u,v}") + "1,u\n2,v\n3,u\n", ["n"],
        {"X": [[1], [2], [3]], "notes": ()}, {},
    ),
    "characters by number, one of them half": (
        TWO.format(r"{'\u0041', '\ud83d'}") + "1,A\n2,'\\ud83d'\n", ["n"],
        {"target_names": ("A", "\ufffd")}, {},
    ),
    "a gap among zeros": (
        TWO.format("{u,v}") + "{}\n" * 8 + "{0 ?,1 v}\n{0 3,1 v}\n", ["n"],
        {"X": [[0, 0]] * 8 + [[0, 1], [3, 0]]}, {},
    ),
    "words for gaps": (
        GAPS.replace("{red", "{unknown,red").replace("?,?,?", "-9,yes,unknown") + "{1 yes, 4 1}\n",
        ["a", "b"],
        {"X": [[1, 0, 1, 1, 0, 0], [1, 1, 1, 0, 0, 1], [5, 0, 1, 0, 1, 0], [0, 0, 1, 0, 0, 1]]},
        {"options": ReadOptions(missing_values=["unknown", "-9"])},
    ),
    "spaces": (
        "@relation r\n@attribute a real\n@attribute b { red , blue }\n@data\n 1 , red \n2,blue\n",
        ["b"], {"target_names": ("blue", "red"), "X": [[1], [2]], "Y": [[0, 1], [1, 0]]}, {},
    ),
    "dates, ignored": (
        DENSE.replace("width numeric", "width date 'yyyy-MM-dd'").replace("1.5,b", "'a, b',b"),
        LABELS, {"X": np.asarray(ROWS)[:, 1:4]}, {"ignore": ["width", "zone"]},
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", TABLES)
def test_tables(tmp_path, name):
    text, targets, expected, how = TABLES[name]
    table = check_table(write(tmp_path, text, "demo.arff"), targets, expected, **how)
    if how.get("options", ReadOptions()).missing == "impute":
        again = read_inputs(str(tmp_path / "demo.arff"), table.columns)
        np.testing.assert_array_equal(np.asarray(again.X), np.asarray(table.X))


ROW = "1.5,blue,4,1,0"
FAULTS = [
    (DENSE.replace("{1,2,4}", "{" + ",".join(map(str, range(50_000))) + ",49999}"), 5, "99' twice"),
    (DENSE.replace(ROW, ROW[:-2]), 10, "4 values, expected 5"),
    (DENSE.replace(ROW, ROW + ",0"), 10, "6 values, expected 5"),
    (DENSE.replace("1.5,", "inf,"), 10, "'width' is 'inf'"),
    (DENSE.replace("1.5,", "1_5,"), 10, "'width' is '1_5'"),
    (DENSE.replace("1,0\n", "1,?\n"), 10, "target column 'sad': no value; --missing drop"),
    (DENSE.replace("{1,2,4}", "{1,2,4"), 5, "the list of values has no closing brace"),
    (DENSE.replace("5,blue", "5,green"), 10, "'sky colour' is 'green', which was not declared"),
    (DENSE.replace(ROW, "{9 1}"), 10, "attribute index 9 is out of range, expected 0 to 4"),
    (DENSE.replace(ROW, "{2 1,1 blue}"), 10, "not in rising order"),
    (DENSE.replace(ROW, "{0 1"), 10, "no closing brace"),
    (DENSE.replace(ROW, "{a 1}"), 10, "not of the form index value"),
    (DENSE.replace("5,blue", "5,'blue"), 10, "a quote is not closed"),
    (DENSE.replace("width numeric", "width relational"), 3, "'width' is of the type 'relational'"),
    (DENSE.replace("width numeric", "width date"), 3, "'width' is a date.*--ignore width leaves"),
    (DENSE.replace("width numeric", "'width numeric"), 3, "no closing quote"),
    (DENSE.replace("@RELATION demo", "hello"), 2, "expected @relation, .* or @data, got 'hello'"),
    (DENSE.replace("@ATTRIBUTE sad", "@ATTRIBUTE happy"), 7, "'happy' is declared twice"),
    (HEADER, None, "no sample in the file"),
    (DENSE.replace("happy {0,1}", "happy {0,1,4}"), 6, "'happy' has other values than 0 and 1"),
    (DENSE.replace("1,0\n", "2,0\n").replace("y {0,1}", "y numeric"), 10, "targets sum to 2; e"),
    (TWO.format("numeric") + "1,7\n1,9007199254740993\n", 6,
     "target column 'n': the class 9007199254740992 is too large a number"),
    (TWO.format("numeric") + "1,-9007199254740993\n", 5, "class -9007199254740992 is too large"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "line", "problem"), FAULTS)
def test_faults_are_named_with_their_line(tmp_path, text, line, problem):
    path = write(tmp_path, text, "demo.arff")
    targets = LABELS if "happy" in text else ["n"]
    check_refusal(lambda: read_arff(path, targets), path, line, problem)


@pytest.mark.parametrize(("relation", "targets", "how", "problem"), [
    ("r", None, {}, "which attributes are labels is not known: put Mulan's XML file"),
    ("'r: -C 5'", None, {}, "every attribute is a target or ignored; there is no feature"),
    ("'r: -C -6'", None, {}, "which attributes are labels is not known: put Mulan's XML file"),
    ("r", ["angry"], {}, "no attribute is called 'angry'; the attributes are width, 'sky colour'"),
    ("r", LABELS, {"options": ReadOptions(header=False)}, "arff files have no .* leave --no-h"),
])  # fmt: skip
def test_targets_that_cannot_be(tmp_path, relation, targets, how, problem):
    path = write(tmp_path, DENSE.replace("demo", relation), "demo.arff")
    with pytest.raises(DataError, match=problem):
        read_arff(path, targets, **how)


def test_identifiers_are_left_out_as_in_csv_files(tmp_path):
    """A nominal attribute with as many values as rows, such as ``protein`` in Mulan's genbase."""
    rows = "".join(f"p{i},{i * i},{'uv'[i % 2]}\n" for i in range(30))
    text = f"@relation r\n@attribute protein {{{','.join(f'p{i}' for i in range(31))}}}\n"
    text += "@attribute x numeric\n@attribute y {u,v}\n@data\n" + rows
    path = write(tmp_path, text, "a.arff")
    note = "left out: protein (a different text in every row, so probably a name)"
    for file in (path, write(tmp_path, "protein,x,y\n" + rows)):
        table = check_table(file, ["y"], {"feature_names": ("x",)})
        assert table.notes[0] == note


@pytest.mark.parametrize("is_sparse", [True, False], ids=["sparse", "dense"])
def test_wide_files_of_zeros_are_sparse(tmp_path, is_sparse):
    width = 300
    text = "@relation 'r: -C 2'\n@attribute a {0,1}\n@attribute b {0,1}\n"
    text += "".join(f"@attribute f{i} numeric\n" for i in range(width)) + "@data\n"
    for i in range(100):
        row = {i % 2: "1", i + 2: "0.5", width: "2"}
        pairs = ", ".join(f"{j} {cell}" for j, cell in row.items())
        cells = ",".join(row.get(j, "0") for j in range(width + 2))
        text += f"{{{pairs}}}\n" if is_sparse else f"{cells}\n"
    table = read_arff(write(tmp_path, text, "a.arff"))
    assert sparse.issparse(table.X)
    assert (table.X.shape, table.X.nnz) == ((100, width), 200)
    assert all(column.fill == 0.0 for column in table.columns.used[: width - 2])
    assert table.columns.used[width - 2].fill == 2.0


WORDS = """@relation r
@attribute colour {red,green,blue}
@attribute ok {yes,no}
@attribute zone {3,4,5}
@attribute kind {a,b}
@data
red,no,3,a
green,yes,4,b
blue,no,5,b
"""


@pytest.mark.parametrize(
    ("name", "text", "line", "problem"),
    [
        ("a.csv", "zone,ok,colour\n3,no,red\n3,maybe,red\n", 3, "'ok': 'maybe' is neither no nor"),
        ("a.svm", "0 1:1 2:1 3:1\n", None, "LIBSVM files hold plain numbers; 'colour' has words"),
        ("a.arff", "@relation r\n@attribute colour real\n@attribute ok {yes,no}\n@attribute zone "
         "{3,4}\n@data\n0,no,3\n", 2, "'colour' is numeric; .* are red, green, blue$"),
        ("a.arff", "@relation r\n@attribute colour {red}\n@attribute ok {yes,no,maybe}\n@attribute "
         "zone {3}\n@data\nred,maybe,3\n", 6, "column 'ok': 'maybe' is neither no nor yes$"),
    ],
)  # fmt: skip
def test_files_that_do_not_fit_the_training_file(tmp_path, name, text, line, problem):
    columns = read_table(write(tmp_path, WORDS, "train.arff"), ["kind"]).columns
    path = write(tmp_path, text, name)
    check_refusal(lambda: read_inputs(path, columns), path, line, problem)


def test_nominal_attributes_that_were_numbers(tmp_path):
    columns = read_arff(write(tmp_path, SHARES + "1,.5,.5\n2,1,0\n", "a.arff"), ["b"]).columns
    text = SHARES.replace("x numeric", "x {1,2,u}").replace("n real", "n {1,0.5}") + "1,1,0\n"
    path = write(tmp_path, text, "b.arff")
    problem = "'x' has the values 1, 2, u; in the training file it is a number$"
    check_refusal(lambda: read_inputs(path, columns), path, 2, problem)
    path.write_text(text.replace("{1,2,u}", "{1,2}"))
    assert read_inputs(path, columns).X.tolist() == [[1, 1]]


def test_strings_are_numbers_if_told_so(tmp_path):
    text = "@relation r\n@attribute s string\n@attribute y {u,v}\n@data\n'1.5',u\n2,v\n?,u\n1.5,v\n"
    path, options = write(tmp_path, text, "a.arff"), ReadOptions(kinds={"s": "number"})
    table = read_arff(path, ["y"], options=options)
    assert table.X.tolist() == [[1.5, 0], [2, 0], [1.5, 1], [1.5, 0]]
    assert read_inputs(path, table.columns).X.tolist() == table.X.tolist()
    path = write(tmp_path, text.replace("2,v", "x,v"), "a.arff")
    problem = "column 's': 'x' is not a number, as 2 of its values are"
    check_refusal(lambda: read_arff(path, ["y"], options=options), path, 6, problem)


# Mulan --------------------------------------------------------------------------------------------

BIRDS = r"""@relation 'birds: bird sounds'
@attribute 'hist 50%' numeric
@attribute location {PC1,'PC\'4',"PC\"7",'a\\b', 'tab\there'}
@attribute 'Swainson\'s Thrush' {0,1}
@attribute "Hammond\"s Flycatcher" {0,1}
@data
"""
DENSE_BIRDS = r"""1,'PC\'4',1,0
2,"PC\"7",0,1
3,'a\\b',1,1
4,'tab\there',0,0
"""
XML = """<?xml version="1.0" encoding="utf-8"?>
<labels xmlns="http://mulan.sourceforge.net/labels">
<label name="{}"><label name="{}"></label></label>
</labels>
"""
THRUSHES = ("Swainson's Thrush", 'Hammond"s Flycatcher')
IN_XML = ("Swainson's Thrush", "Hammond&quot;s Flycatcher")


@pytest.mark.parametrize("names", [IN_XML, ("Swainson\\'s Thrush", "Hammond\\&quot;s Flycatcher")])
def test_escapes(tmp_path, names):
    write(tmp_path, XML.format(*names), "birds.xml")
    values = ("PC1", "PC'4", 'PC"7', "a\\b", "tab\there")
    expected = {
        "target_names": THRUSHES,
        "Y": [[1, 0], [0, 1], [1, 1], [0, 0]],
        "feature_names": ("hist 50%", *(f"location={value}" for value in values)),
        "X": np.column_stack([[1, 2, 3, 4], np.zeros(4), np.eye(4)]),
    }
    check_table(write(tmp_path, BIRDS + DENSE_BIRDS, "birds.arff"), None, expected)


@pytest.mark.parametrize(
    "name",
    [
        "Corel5k.arff", "Corel5k-train.arff", "Corel5k_test.arff", "Corel5k-train-sparse.arff",
        "Corel5k-test-sparse.arff", "Corel5k-sparse.arff", "Corel5k_train_sparse.ARFF",
        "Corel5k-train1.arff", "Corel5k-train.arff.gz",
    ],
)  # fmt: skip
def test_labels_beside(tmp_path, name):
    content = (BIRDS + DENSE_BIRDS).encode()
    path = write(tmp_path, gzip.compress(content) if name.endswith("gz") else content, name)
    with pytest.raises(DataError, match="which attributes are labels is not known"):
        read_table(path)
    write(tmp_path, XML.format(*IN_XML), "Corel5k.xml")
    assert read_table(path).target_names == THRUSHES


def test_targets_given_as_a_file(tmp_path, monkeypatch):
    data, elsewhere = tmp_path / "data", tmp_path / "elsewhere"
    data.mkdir()
    elsewhere.mkdir()
    birds = write(data, BIRDS + DENSE_BIRDS, "a.arff")
    table = write(data, "x,u,v\n1,1,0\n2,0,1\n")
    write(elsewhere, XML.format(*IN_XML), "l.xml")
    write(elsewhere, XML.format("v", "u"), "uv.xml")
    monkeypatch.chdir(elsewhere)
    for targets in (["l.xml"], "l.xml", Path("l.xml"), [elsewhere / "l.xml"]):
        assert read_table(birds, targets).target_names == THRUSHES
    assert read_table(table, ["uv.xml"]).target_names == ("v", "u")
    with pytest.raises(DataError, match=r"other\.xml: no such file"):
        read_table(table, ["other.xml"])
    with pytest.raises(DataError, match=r"elsewhere: is a folder; expected a file"):
        read_label_names(elsewhere)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
@pytest.mark.parametrize(
    ("xml", "problem"),
    [
        ('<!DOCTYPE x [<!ENTITY a "b">]><labels><label name="&a;"/></labels>', "declares entities"),
        ('<!DOCTYPE x SYSTEM "file:///etc/passwd"><labels/>', "declares entities"),
        ("<label>" * 200, "more than 100 levels"),
        ("<labels>", "not well-formed"),
        ("<labels><label name='&lol;'/></labels>", "not well-formed"),
        ("<labels><sublabel name='a'/></labels>", "names no label"),
        ("<labels>" + " " * (16 << 20) + "</labels>", "larger than 16 MiB"),
    ],
)
def test_faulty_xml(tmp_path, xml, problem, encoding):
    path = write(tmp_path, f'<?xml version="1.0" encoding="{encoding}"?>{xml}', "a.xml", encoding)
    with pytest.raises(DataError, match=problem) as caught:
        read_label_names(path)
    assert "\n" not in str(caught.value)


@pytest.fixture
def mulan():
    """The folder of Mulan's own files."""
    folder = os.environ.get("FITZPATRICK_DATA")
    if not folder or not (Path(folder) / "mulan").is_dir():
        pytest.skip("FITZPATRICK_DATA has no subfolder mulan with Mulan's files")
    return Path(folder) / "mulan"


def test_real_values(mulan, monkeypatch):
    """Against SciPy's reader, and against the LIBSVM version of the same set."""
    data, meta = scipy_arff.loadarff(mulan / "emotions-train.arff")
    table = read_table(mulan / "emotions-train.arff")
    expected = np.column_stack([data[name].astype(float) for name in meta.names()])
    np.testing.assert_array_equal(np.column_stack([table.X, table.Y]), expected)
    train = read_table(mulan / "flags-train.arff")
    codes = [i for i, name in enumerate(train.feature_names) if name.startswith("language=")]
    (path,) = mulan.parent.glob("flags_train.svm*")
    published = read_libsvm(path, n_features=19)
    np.testing.assert_array_equal(train.X[:, codes].argmax(axis=1), published.X[:, 4])
    np.testing.assert_array_equal(train.Y, published.Y)
    test = read_table(mulan / "flags-test.arff", like=train)
    assert test.feature_names == train.feature_names
    # the nineteen features of the paper, whatever the format
    expected = load_dataset("flags")
    monkeypatch.setenv("FITZPATRICK_DATA", str(mulan))
    data = load_dataset("flags")
    assert data.mismatches == ()
    np.testing.assert_array_equal(data.train.X, np.asarray(expected.train.X))
    np.testing.assert_array_equal(data.test.Y, expected.test.Y)
