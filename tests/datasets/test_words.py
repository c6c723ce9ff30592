"""Features whose values are words: the same number in every file that is read for one model."""

import sys

import numpy as np
import pytest

from fitzpatrick import cli
from fitzpatrick.datasets import DATASETS, DataError, load_dataset, read_table
from fitzpatrick.datasets._registry import DatasetInfo, Statistics
from fitzpatrick.datasets.readers import read_features
from fitzpatrick.experiments import model_files

COLOURS = {"red": 0.0, "green": 1.0, "blue": 2.0}
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


def test_codes_are_kept_where_they_are_not_the_values(train):
    assert train.codes == {"colour": COLOURS, "ok": {"yes": 1.0, "no": 0.0}}


@pytest.mark.parametrize("is_sparse", [False, True], ids=["dense", "sparse"])
@pytest.mark.parametrize("colours", ["red,green,blue", "blue,green,red", "green,blue,red"])
@pytest.mark.parametrize("zone", ["{3,4,5}", "{5,3,4}", "numeric"])
def test_order_of_the_declaration(tmp_path, train, is_sparse, colours, zone):
    path = arff(tmp_path / "test.arff", colours, "no,yes", is_sparse, zone)
    test = read_table(path, ["kind"], like=train)
    np.testing.assert_array_equal(np.asarray(test.X), train.X)
    assert test.codes == train.codes
    X = read_features(path, train.feature_names, train.codes)
    np.testing.assert_array_equal(np.asarray(X), train.X)


@pytest.mark.parametrize(
    ("change", "line", "problem"),
    [
        (("{red,green,blue}", "{red,pink,green,blue}"), 2, "'colour' has the value 'pink', which"),
        (("{red,green,blue}", "numeric"), 2, "'colour' is numeric; .* are red, green, blue$"),
        (("{yes,no}", "{yes,no,NO}"), 3, "'ok' has the value 'NO', .* training file: yes, no$"),
        (("zone {3,4,5}", "zone {3,4,5,x}"), 4, "'zone' has the values 3, 4, 5, x; .* a number$"),
    ],
)
def test_declarations_that_do_not_fit(tmp_path, train, change, line, problem):
    path = arff(tmp_path / "test.arff")
    assert change[0] in path.read_text()
    path.write_text(path.read_text().replace(*change))
    with pytest.raises(DataError, match=problem) as caught:
        read_features(path, train.feature_names, train.codes)
    assert caught.value.line == line


def test_csv_files_hold_the_words(tmp_path, train):
    path = tmp_path / "test.csv"
    rows = "".join(f"{zone},{ok}, {colour}\n" for colour, ok, zone in ROWS)
    path.write_text("zone,ok,colour\n" + rows)
    X = read_features(path, train.feature_names, train.codes)
    np.testing.assert_array_equal(X, train.X)
    for value in ("pink", "1", "0.0", ""):
        path.write_text(f"zone,ok,colour\n{rows.splitlines()[0]}\n3,no,{value}\n")
        with pytest.raises(DataError, match=f"'colour': '{value}' is none of .*: red, green, b"):
            read_features(path, train.feature_names, train.codes)


def test_libsvm_files_cannot(tmp_path, train):
    path = tmp_path / "test.svm"
    path.write_text("0 1:1 2:1 3:1\n")
    with pytest.raises(DataError, match="LIBSVM files hold numbers; the values of 'colour' in"):
        read_features(path, train.feature_names, train.codes)
    with pytest.raises(DataError, match="LIBSVM files hold numbers"):
        read_table(path, like=train)


def test_models_hold_them(tmp_path, monkeypatch, capsys):
    """The same rows, declared in another order, are predicted the same."""
    monkeypatch.chdir(tmp_path)
    arff(tmp_path / "train.arff")
    arff(tmp_path / "test.arff", "blue,green,red", "no,yes", is_sparse=True)

    def call(*arguments):
        monkeypatch.setattr(sys, "argv", ["fitzpatrick", *arguments])
        with pytest.raises(SystemExit, match=r"^0$"):
            cli.main()
        return capsys.readouterr().out

    call("fit", "train.arff", "--targets", "kind", "--alpha", "0.1", "-o", "m.npz")
    predictions = call("predict", "m.npz", "train.arff")
    assert len(set(predictions.splitlines())) == 4
    assert call("predict", "m.npz", "test.arff") == predictions
    assert model_files.load(tmp_path / "m.npz").codes["colour"] == COLOURS


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


def test_parts_of_two_formats(folder):
    arff(folder / "demo-train.arff")
    (folder / "demo_test.svm").write_text("0 1:1\n")
    with pytest.raises(DataError, match=r"libsvm, where demo-train\.arff is arff"):
        load_dataset("demo")
