"""Features whose values are words: the same columns in every file that is read for one model."""

import numpy as np
import pytest

from fitzpatrick.datasets import DATASETS, DataError, load_dataset, read_inputs, read_table
from fitzpatrick.datasets._registry import DatasetInfo, Statistics
from fitzpatrick.experiments import model_files

ROWS = [("red", "no", 3), ("green", "yes", 4), ("blue", "no", 5)]


def arff(path, colours="red,green,blue", answers="yes,no", is_sparse=False, zone="{3,4,5}"):
    """Three rows, the same whatever the order of the declarations."""
    lines = [f"@relation r\n@attribute colour {{{colours}}}\n@attribute ok {{{answers}}}"]
    lines.append(f"@attribute zone {zone}\n@attribute kind {{a,b}}\n@data")
    first = colours.split(",")[0], answers.split(",")[0]
    for row, kind in zip(ROWS, "abb", strict=True):
        fields = [*map(str, row), kind]
        if is_sparse:
            left_out = [i for i in (0, 1) if fields[i] == first[i]]
            pairs = (f"{i} {field}" for i, field in enumerate(fields) if i not in left_out)
            lines.append("{" + ", ".join(pairs) + "}")
        else:
            lines.append(",".join(fields))
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.fixture
def train(tmp_path):
    return read_table(arff(tmp_path / "train.arff"), ["kind"])


def test_nominal_attributes_are_categories(train):
    colours = ("colour=red", "colour=green", "colour=blue")
    assert train.feature_names == (*colours, "ok", "zone=3", "zone=4", "zone=5")
    np.testing.assert_array_equal(train.X[:, :3], np.eye(3))
    assert train.X[:, 3].tolist() == [0, 1, 0]
    assert train.notes == (
        "no is 0 and yes is 1: ok",
        "categories, a 0/1 feature for each value: colour (3 values), zone (3 values)",
    )


@pytest.mark.parametrize("is_sparse", [False, True], ids=["dense", "sparse"])
@pytest.mark.parametrize("colours", ["red,green,blue", "blue,green,red", "green,blue,red"])
@pytest.mark.parametrize("zone", ["{3,4,5}", "{5,3,4}", "numeric"])
def test_order_of_the_declaration(tmp_path, train, is_sparse, colours, zone):
    path = arff(tmp_path / "test.arff", colours, "no,yes", is_sparse, zone)
    test = read_table(path, ["kind"], like=train)
    np.testing.assert_array_equal(np.asarray(test.X), train.X)
    assert (test.columns, test.notes) == (train.columns, train.notes)
    np.testing.assert_array_equal(read_inputs(path, train.columns).X, train.X)


def test_models_hold_them(run, tmp_path, monkeypatch, train):
    """Rows that are declared in another order are predicted alike."""
    monkeypatch.chdir(tmp_path)
    arff(tmp_path / "test.arff", "blue,green,red", "no,yes", is_sparse=True)
    fitting = ("--targets", "kind", "--alpha", 0.1, "-o", "m.npz")
    assert run("fit", "train.arff", *fitting)[0] == 0
    assert model_files.load(tmp_path / "m.npz").columns == train.columns
    code, predictions, said = run("predict", "m.npz", "train.arff")
    assert (code, len(set(predictions.splitlines()))) == (0, 4)
    assert said.splitlines() == [f"note: {note}" for note in train.notes]
    assert run("predict", "m.npz", "test.arff") == (0, predictions, said)


def test_values_that_the_training_file_has_not(tmp_path, train):
    path = arff(tmp_path / "test.arff")
    text = path.read_text().replace("{red,green,blue}", "{pink,red,green,blue}")
    path.write_text(text.replace("red,no", "pink,no"))
    table = read_inputs(path, train.columns)
    assert table.X[0].tolist() == [0, 0, 0, 0, 1, 0, 0]
    np.testing.assert_array_equal(table.X[1:], train.X[1:])
    unseen = "values not seen in training are encoded as all zeros: colour (1 row: pink)"
    assert table.notes == (*train.notes, unseen)


@pytest.mark.parametrize(
    ("change", "line", "problem"),
    [
        (("{red,green,blue}", "numeric"), 2, "'colour' is numeric; .* are red, green, blue$"),
        (("{yes,no}", "{yes,no,maybe}"), 9, "column 'ok': 'maybe' is neither no nor yes$"),
        (("size {1,2}", "size {1,2,x}"), 5, "'size' has the values 1, 2, x; .* a number$"),
    ],
)
def test_declarations_that_do_not_fit(tmp_path, change, line, problem):
    size = ("@attribute kind", "@attribute size {1,2}\n@attribute kind")
    path = arff(tmp_path / "train.arff")
    text = path.read_text().replace(*size)
    rows = text.replace(",a\n", ",1,a\n").replace(",b\n", ",2,b\n")
    path.write_text(rows.replace("size {1,2}", "size numeric"))
    train = read_table(path, ["kind"])
    assert change[0] in rows
    changed = rows.replace(*change)
    if line == 9:
        changed = changed.replace("green,yes", "green,maybe")
    if line == 2:
        for i, colour in enumerate(("red,", "green,", "blue,")):
            changed = changed.replace(f"\n{colour}", f"\n{i},")
    path.write_text(changed)
    with pytest.raises(DataError, match=problem) as caught:
        read_inputs(path, train.columns)
    assert caught.value.line == line


def test_csv_files_hold_the_words(tmp_path, train):
    path = tmp_path / "test.csv"
    rows = "".join(f"{zone},{ok}, {colour}\n" for colour, ok, zone in ROWS)
    path.write_text("zone,ok,colour\n" + rows)
    table = read_inputs(path, train.columns)
    np.testing.assert_array_equal(table.X, train.X)
    path.write_text(f"zone,ok,colour\n{rows}7,TRUE,pink\n,,\n")
    table = read_inputs(path, train.columns)
    assert table.X[3:].tolist() == [[0, 0, 0, 1, 0, 0, 0]]
    assert table.notes == (
        "left out: 1 line without any value (line 6)",
        *train.notes,
        "values not seen in training are encoded as all zeros: colour (1 row: pink)",
        "values not seen in training are encoded as all zeros: zone (1 row: 7)",
    )
    path.write_text(f"zone,ok,colour\n{rows}3,maybe,red\n")
    with pytest.raises(DataError, match=r"line 5: column 'ok': 'maybe' is neither no nor yes$"):
        read_inputs(path, train.columns)


def test_libsvm_files_cannot(tmp_path, train):
    path = tmp_path / "test.svm"
    path.write_text("0 1:1 2:1 3:1\n")
    problem = "LIBSVM files hold numbers; 'colour' has categories in the training file"
    with pytest.raises(DataError, match=problem):
        read_inputs(path, train.columns)
    with pytest.raises(DataError, match=problem):
        read_table(path, like=train)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A data folder, and a registry that knows one small set."""
    monkeypatch.setenv("FITZPATRICK_DATA", str(tmp_path))
    info = DatasetInfo("demo", "Demo", "a project", "none", "arff", Statistics(2, 1, 3, 3, 2))
    monkeypatch.setitem(DATASETS, "demo", info)
    return tmp_path


def test_official_splits(folder):
    for part, colours in (("train", "red,green,blue"), ("test", "blue,green,red")):
        path = arff(folder / f"demo-{part}.arff", colours)
        text = path.read_text().replace("kind {a,b}", "a {0,1}\n@attribute b {0,1}")
        path.write_text(text.replace(",a\n", ",1,0\n").replace(",b\n", ",0,1\n"))
    (folder / "demo.xml").write_text('<labels><label name="a"/><label name="b"/></labels>')
    data = load_dataset("demo")
    np.testing.assert_array_equal(data.test.X, data.train.X)
    assert data.feature_names == ("colour", "ok", "zone")  # as many as the paper has
    assert data.train.X.tolist() == [[0, 0, 0], [1, 1, 1], [2, 0, 2]]


def test_parts_of_two_formats(folder):
    arff(folder / "demo-train.arff")
    (folder / "demo_test.svm").write_text("0 1:1\n")
    with pytest.raises(DataError, match=r"libsvm, where demo-train\.arff is arff"):
        load_dataset("demo")
