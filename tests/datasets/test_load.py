"""Finding data sets: the package, the data folder, and what is said when they are not there."""

import gzip
import hashlib

import numpy as np
import pytest

from fitzpatrick.datasets import (
    DATASETS,
    PAPER_LOSSES,
    DataError,
    DatasetMismatchWarning,
    UnavailableError,
    dataset_names,
    load_dataset,
    read_table,
    where,
)
from fitzpatrick.datasets._registry import DatasetInfo, Statistics
from fitzpatrick.datasets.embedded import yeast
from tests.helpers import seeded


@pytest.fixture(autouse=True)
def _no_surroundings(monkeypatch, tmp_path):
    monkeypatch.delenv("FITZPATRICK_DATA", raising=False)
    monkeypatch.setenv("FITZPATRICK_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A data folder, and a registry that knows one small set."""
    path = tmp_path / "data"
    path.mkdir()
    monkeypatch.setenv("FITZPATRICK_DATA", str(path))
    info = DatasetInfo("Demo", "a project", "libsvm", Statistics(2, 1, 1, 3, 2))
    monkeypatch.setitem(DATASETS, "demo", info)
    return path


TRAIN = "0 1:1\n1 2:1\n0,1 3:1\n 1:5\n"
TEST = "1 1:2\n"


def write_parts(folder, train=TRAIN):
    (folder / "demo_train.svm").write_text(train)
    (folder / "demo_test.svm").write_text(TEST)


def test_yeast_is_embedded_with_its_official_split():
    data = load_dataset("yeast")
    assert data.train.X.shape == (1500, 103)
    assert data.test.X.shape == (917, 103)
    assert data.train.Y.shape[1] == data.test.Y.shape[1] == len(data.label_names) == 14
    # the first values of river's file, which begins with the test set
    np.testing.assert_array_equal(data.test.X[0, :3], [0.004168, -0.170975, -0.156748])
    assert np.flatnonzero(data.test.Y[0]).tolist() == [6, 7, 11, 12]
    assert data.feature_names[0] == "Att1"
    assert data.mismatches == ()
    assert round(float(np.vstack([data.train.Y, data.test.Y]).sum(axis=1).mean()), 2) == 4.24


def test_data_are_shown_in_a_line(tmp_path):
    assert repr(load_dataset("yeast")) == (
        "Dataset('yeast', train=Split(1500 samples, 103 features, 14 labels), "
        "test=Split(917 samples, 103 features, 14 labels))"
    )
    (tmp_path / "a.svm").write_text(TRAIN)
    shown = "Table(4 samples, 3 features, 2 targets (indicators))"
    assert repr(read_table(tmp_path / "a.svm")) == shown


def test_packing_loses_nothing():
    generator = seeded(0)
    X = np.round(generator.normal(size=(20, 5)), 6)
    Y = generator.random((20, yeast.CLASSES)) < 0.3
    names = [f"c{i}" for i in range(5 + yeast.CLASSES)]
    again, labels, features, classes = yeast.unpack(yeast.pack(X, Y, names))
    np.testing.assert_array_equal(again, X)
    np.testing.assert_array_equal(labels, Y)
    assert [*features, *classes] == names


def test_registry_holds_the_papers_sets():
    assert len(dataset_names()) == 12
    paper = [info for info in DATASETS.values() if info.paper]
    assert len(paper) == 11
    assert all(tuple(info.paper) == PAPER_LOSSES for info in paper)
    assert all(info.source and info.licence and info.format for info in DATASETS.values())
    assert "yeast" in where()


def test_folder_is_used_and_unlabelled_samples_are_kept_apart(folder):
    (folder / "demo_train.svm.gz").write_bytes(gzip.compress(TRAIN.encode()))
    (folder / "demo_test.svm").write_text(TEST)
    data = load_dataset("demo")
    assert data.train.X.shape == (4, 3)
    assert data.train.labelled().X.shape == (3, 3)
    assert data.test.labelled() is data.test
    assert data.checksums["demo_test.svm"] == hashlib.sha256(TEST.encode()).hexdigest()
    assert where()["demo"] == "FITZPATRICK_DATA"


def test_one_file_is_divided_with_a_seed(folder):
    """As many test samples as the paper has; the rest is learned from; case does not matter."""
    lines = [f"{i % 2} 1:{i} 2:{i * i} 3:1" for i in range(9)]
    (folder / "Demo.svm").write_text("\n".join([*lines, " 1:5"]) + "\n")
    with pytest.raises(UnavailableError, match=r"Demo\.svm is one file without an official split"):
        load_dataset("demo")
    assert where()["demo"] == "FITZPATRICK_DATA"
    parts = []
    for seed in (0, 0, 1):
        with pytest.warns(DatasetMismatchWarning, match=f"divided at random with the seed {seed}"):
            data = load_dataset("demo", split=seed)
        assert (data.train.X.shape, data.test.X.shape) == ((3, 3), (1, 3))
        parts.append(np.concatenate([data.train.X[:, 0], data.test.X[:, 0]]).tolist())
        assert len(set(parts[-1])) == 4
    assert parts[0] == parts[1] != parts[2]
    (folder / "SHA256SUMS").write_text(f"{'0' * 64}  Demo.svm\n")
    with pytest.raises(DataError, match="its SHA-256 is not the one in SHA256SUMS beside it"):
        load_dataset("demo", split=0)
    (folder / "SHA256SUMS").unlink()
    write_parts(folder)
    assert load_dataset("demo", split=0).train.X.shape == (4, 3)  # the official split


def test_half_of_a_file_that_is_too_small_is_learned_from(folder, monkeypatch):
    info = DatasetInfo("Demo", "a project", "libsvm", Statistics(2, 1, 10, 3, 2))
    monkeypatch.setitem(DATASETS, "demo", info)
    (folder / "demo.svm").write_text(TRAIN.replace(" 1:5", "0 1:5"))
    with pytest.warns(DatasetMismatchWarning):
        data = load_dataset("demo", split=0)
    assert (data.train.X.shape[0], data.test.X.shape[0]) == (2, 2)


def test_one_file_of_a_set_that_has_an_official_split_elsewhere(folder):
    (folder / "yeast.svm").write_text("0 1:1\n1 2:1\n")
    assert load_dataset("yeast").train.X.shape == (1500, 103)
    assert where()["yeast"] == "embedded"


def test_folder_with_mulans_names(folder):
    """A nominal attribute is one feature, its position among the values of the training file."""
    text = "@relation r\n@attribute a real\n@attribute b real\n@attribute c {q,r,p}\n"
    text += "@attribute u {0,1}\n@attribute v {0,1}\n@data\n1,2,p,1,0\n4,5,r,0,1\n7,8,q,1,1\n"
    (folder / "demo-train-sparse.arff").write_text(text)
    text = text.replace("{q,r,p}", "{r,q,p}").replace("4,5,r,0,1\n7,8,q,1,1\n", "")
    (folder / "demo-test-sparse.arff").write_text(text.replace("2,p", "2,r"))
    (folder / "demo.xml").write_text('<labels><label name="u"/><label name="v"/></labels>')
    data = load_dataset("demo")
    assert (data.label_names, data.feature_names) == (("u", "v"), ("a", "b", "c"))
    assert data.train.X.tolist() == [[1, 2, 2], [4, 5, 1], [7, 8, 0]]
    assert data.train.Y.tolist() == [[1, 0], [0, 1], [1, 1]]
    assert data.test.X.tolist() == [[1, 2, 1]]
    (folder / "demo_test.svm").write_text(TEST)
    with pytest.raises(DataError, match=r"libsvm, where demo-train-sparse\.arff is arff"):
        load_dataset("demo")


def test_mismatch_with_the_paper_is_said(folder):
    write_parts(folder, TRAIN + TRAIN)
    with pytest.warns(DatasetMismatchWarning, match="6 training samples .* the paper has 3"):
        data = load_dataset("demo")
    assert data.mismatches == ("6 training samples with a label, where the paper has 3",)


@pytest.mark.parametrize("prefix", ["  ./", "  ", " *", " *./"])
@pytest.mark.parametrize("case", [str.lower, str.upper])
def test_checksums_however_the_tool_writes_them(folder, prefix, case):
    write_parts(folder)
    lines = "# sums\n\n{}" + prefix + "demo_test.svm\r\n"
    good = hashlib.sha256(TEST.encode()).hexdigest()
    (folder / "SHA256SUMS").write_text(lines.format(case(good)))
    assert load_dataset("demo").checksums["demo_test.svm"] == good
    (folder / "SHA256SUMS").write_text(lines.format(case(good[::-1])))
    with pytest.raises(DataError, match=r"demo_test\.svm: its SHA-256 is not the one"):
        load_dataset("demo")


@pytest.mark.parametrize(
    ("content", "line", "problem"),
    [
        (b"\x80\xff\x00", 1, "not a text file"),
        (b"\n" + b"ab" * 31 + b"  demo_test.svm\n", 2, "is not 64 hexadecimal digits and a name"),
        (b"SHA256 (demo_test.svm) = " + b"ab" * 32, 1, "is not 64 hexadecimal digits and a name"),
        (b"a" * 64 + b"  x\n" + b"b" * 64 + b"  ./x\n", 2, "another SHA-256 of 'x'"),
    ],
)
def test_checksums_that_cannot_be_read(folder, content, line, problem):
    write_parts(folder)
    (folder / "SHA256SUMS").write_bytes(content)
    with pytest.raises(DataError, match=problem) as caught:
        load_dataset("demo")
    assert (caught.value.path.name, caught.value.line) == ("SHA256SUMS", line)


def test_half_a_data_set(folder):
    write_parts(folder)
    (folder / "demo_test.svm").unlink()
    with pytest.raises(UnavailableError, match="has the train part of demo, not the test"):
        load_dataset("demo")


def test_nothing_to_be_had(folder, monkeypatch):
    wanted = r"Source: a project\. Put demo_train and demo_test .* into "
    with pytest.raises(UnavailableError, match=rf"^demo is not in {folder}, .*{wanted}that folder"):
        load_dataset("demo")
    monkeypatch.delenv("FITZPATRICK_DATA")
    unset = rf"^FITZPATRICK_DATA is not set, .*{wanted}a folder, and set FITZPATRICK_DATA to it"
    with pytest.raises(UnavailableError, match=unset):
        load_dataset("demo")


def test_folder_that_is_none(monkeypatch, tmp_path):
    monkeypatch.setenv("FITZPATRICK_DATA", str(tmp_path / "nowhere"))
    with pytest.raises(UnavailableError, match="which is not a folder"):
        load_dataset("yeast")
    assert where()["yeast"].startswith("unusable: FITZPATRICK_DATA names ")


def test_unknown_name():
    with pytest.raises(ValueError, match="unknown data set 'yeats'; the names are birds, cal500"):
        load_dataset("yeats")
