"""Files as Mulan publishes them: the real ones where they are, and their quirks by hand."""

import gzip
import os
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse
from scipy.io import arff as scipy_arff

from fitzpatrick.datasets import (
    DATASETS,
    DataError,
    load_dataset,
    read_arff,
    read_label_names,
    read_libsvm,
    read_table,
    split_table,
)
from fitzpatrick.datasets._registry import DatasetInfo, Statistics


@pytest.fixture
def mulan():
    """The folder of Mulan's own files."""
    folder = os.environ.get("FITZPATRICK_DATA")
    if not folder:
        pytest.skip("FITZPATRICK_DATA is not set; its subfolder mulan holds Mulan's files")
    path = Path(folder) / "mulan"
    if not path.is_dir():
        pytest.skip(f"{path} is not there: Mulan's files are not among the data")
    return path


@pytest.mark.parametrize(
    ("name", "rows", "features", "labels"),
    [
        ("emotions", (391, 202, 593), 72, 6),
        ("flags", (129, 65, 194), 10 + 5 + 6 + 4 + 10 + 8, 7),
    ],
)
def test_real_files(mulan, name, rows, features, labels):
    names = read_label_names(mulan / f"{name}.xml")
    assert len(names) == labels
    for part, count in zip(("-train", "-test", ""), rows, strict=True):
        path = mulan / f"{name}{part}.arff"
        table = read_table(path)
        assert table.X.shape == (count, features)
        assert (table.kind, table.target_names) == ("indicators", tuple(names))
        for targets in ([f"{name}.xml"], mulan / f"{name}.xml", [str(mulan / f"{name}.xml")]):
            np.testing.assert_array_equal(read_table(path, targets).Y, table.Y)


def test_real_values(mulan):
    """Against SciPy's reader, and against the LIBSVM version of the same set."""
    data, meta = scipy_arff.loadarff(mulan / "emotions-train.arff")
    names = meta.names()
    table = read_table(mulan / "emotions-train.arff")
    expected = np.column_stack([data[name].astype(float) for name in names])
    np.testing.assert_array_equal(np.column_stack([table.X, table.Y]), expected)
    train = read_table(mulan / "flags-train.arff")
    test = read_table(mulan / "flags-test.arff", like=train)
    codes = [i for i, name in enumerate(train.feature_names) if name.startswith("language=")]
    (path,) = mulan.parent.glob("flags_train.svm*")
    published = read_libsvm(path, n_features=19)
    np.testing.assert_array_equal(train.X[:, codes].argmax(axis=1) + 1, published.X[:, 4] + 1)
    np.testing.assert_array_equal(train.Y, published.Y)
    assert test.feature_names == train.feature_names
    assert train.notes == (
        "categories, a 0/1 feature for each value: landmass (6 values), zone (4 values), "
        "language (10 values), religion (8 values)",
    )


def test_paper_features_of_real_files(mulan, tmp_path, monkeypatch):
    """``load_dataset`` reads the nineteen features of the paper, whatever the format."""
    expected = load_dataset("flags")
    monkeypatch.setenv("FITZPATRICK_DATA", str(mulan))
    data = load_dataset("flags")
    assert data.mismatches == ()
    np.testing.assert_array_equal(data.train.X, np.asarray(expected.train.X))
    np.testing.assert_array_equal(data.test.Y, expected.test.Y)


def test_split_of_a_real_file(mulan):
    whole = read_table(mulan / "emotions.arff")
    train, test = split_table(whole, (391, 202), seed=3)
    assert (train.X.shape, test.X.shape) == ((391, 72), (202, 72))
    both = np.vstack([train.X, test.X])
    assert {row.tobytes() for row in both} == {row.tobytes() for row in np.asarray(whole.X)}


BIRDS = r"""@relation 'birds: bird sounds'
@attribute 'hist 50%' numeric
@attribute location {PC1,'PC\'4',"PC\"7",'a\\b', 'tab\there'}
@attribute 'Swainson\'s Thrush' {0,1}
@attribute "Hammond\"s Flycatcher" {0,1}
@data
1,'PC\'4',1,0
2,"PC\"7",0,1
3,'a\\b',1,1
4,'tab\there',0,0
"""
SPARSE_BIRDS = r"""{0 1,1 'PC\'4',2 1}
{0 2, 1 "PC\"7",3 1}
{0 3,1 'a\\b',2 1,3 1}
{0 4,1 'tab\there'}
"""
LABELS = """<?xml version="1.0" encoding="utf-8"?>
<labels xmlns="http://mulan.sourceforge.net/labels">
<label name="{}"><label name="{}"></label></label>
</labels>
"""
NAMES = ("Swainson's Thrush", 'Hammond"s Flycatcher')
IN_XML = ("Swainson's Thrush", "Hammond&quot;s Flycatcher")


@pytest.mark.parametrize("is_sparse", [False, True], ids=["dense", "sparse"])
@pytest.mark.parametrize(
    "names",
    [IN_XML, ("Swainson\\'s Thrush", "Hammond\\&quot;s Flycatcher")],
    ids=["plain", "escaped"],
)
def test_escapes(tmp_path, is_sparse, names):
    text = BIRDS if not is_sparse else BIRDS[: BIRDS.index("@data")] + "@data\n" + SPARSE_BIRDS
    (tmp_path / "birds.arff").write_text(text)
    (tmp_path / "birds.xml").write_text(LABELS.format(*names))
    table = read_table(tmp_path / "birds.arff")
    assert table.target_names == NAMES
    assert table.Y.tolist() == [[1, 0], [0, 1], [1, 1], [0, 0]]
    values = ("PC1", "PC'4", 'PC"7', "a\\b", "tab\there")
    assert table.feature_names == ("hist 50%", *(f"location={value}" for value in values))
    np.testing.assert_array_equal(np.asarray(table.X)[:, 2:], np.eye(4))


@pytest.mark.parametrize(
    "name",
    [
        "Corel5k.arff",
        "Corel5k-train.arff",
        "Corel5k-test.arff",
        "Corel5k-train-sparse.arff",
        "Corel5k-test-sparse.arff",
        "Corel5k-sparse.arff",
        "Corel5k_train_sparse.ARFF",
        "Corel5k-train1.arff",
    ],
)
def test_labels_beside(tmp_path, name):
    (tmp_path / name).write_text(BIRDS)
    with pytest.raises(DataError, match="which attributes are labels is not known: put Mulan's"):
        read_table(tmp_path / name, format="arff")
    (tmp_path / "Corel5k.xml").write_text(LABELS.format(*IN_XML))
    assert read_table(tmp_path / name).target_names == NAMES


def test_labels_of_dotted_and_compressed_names(tmp_path):
    (tmp_path / "a.b.xml").write_text(LABELS.format(*IN_XML))
    (tmp_path / "a.b-train.arff.gz").write_bytes(gzip.compress(BIRDS.encode()))
    assert read_table(tmp_path / "a.b-train.arff.gz").Y.shape == (4, 2)


def test_targets_given_as_a_file(tmp_path, monkeypatch):
    data, elsewhere = tmp_path / "data", tmp_path / "elsewhere"
    data.mkdir()
    elsewhere.mkdir()
    (data / "a.arff").write_text(BIRDS)
    (data / "a.csv").write_text("x,u,v\n1,1,0\n2,0,1\n")
    (elsewhere / "l.xml").write_text(LABELS.format(*IN_XML))
    (elsewhere / "uv.xml").write_text(LABELS.format("v", "u"))
    monkeypatch.chdir(elsewhere)
    for targets in (["l.xml"], "l.xml", Path("l.xml"), [elsewhere / "l.xml"]):
        assert read_table(data / "a.arff", targets).target_names == NAMES
    assert read_table(data / "a.csv", ["uv.xml"]).target_names == ("v", "u")
    with pytest.raises(DataError, match=r"other\.xml: no such file"):
        read_table(data / "a.csv", ["other.xml"])
    with pytest.raises(DataError, match=r"elsewhere: is a folder; expected an XML file"):
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
    ],
)
def test_faulty_xml(tmp_path, xml, problem, encoding):
    path = tmp_path / "a.xml"
    path.write_bytes(f'<?xml version="1.0" encoding="{encoding}"?>{xml}'.encode(encoding))
    with pytest.raises(DataError, match=problem) as caught:
        read_label_names(path)
    assert "\n" not in str(caught.value)


def test_large_xml(tmp_path):
    path = tmp_path / "a.xml"
    with path.open("wb") as file:
        file.truncate((16 << 20) + 1)
    with pytest.raises(DataError, match="larger than 16 MiB"):
        read_label_names(path)


def test_wide_sparse_files_stay_sparse(tmp_path):
    width = 5000
    text = "@relation 'r: -C 2'\n@attribute a {0,1}\n@attribute b {0,1}\n"
    text += "".join(f"@attribute f{i} numeric\n" for i in range(width))
    rows = [f"{{{i % 2} 1, {i + 2} 0.5, {width} 2}}" for i in range(100)]
    (tmp_path / "a.arff").write_text(text + "@data\n" + "\n".join(rows) + "\n")
    table = read_arff(tmp_path / "a.arff")
    assert sparse.issparse(table.X)
    assert (table.X.shape, table.X.nnz) == ((100, width), 200)
    assert all(column.fill == 0.0 for column in table.columns.used[: width - 2])
    assert table.columns.used[width - 2].fill == 2.0


def test_official_parts_that_are_sparse(tmp_path, monkeypatch):
    monkeypatch.setenv("FITZPATRICK_DATA", str(tmp_path))
    info = DatasetInfo("demo", "Demo", "a project", "none", "arff", Statistics(2, 1, 3, 2, 2))
    monkeypatch.setitem(DATASETS, "demo", info)
    for part in ("train", "test"):
        (tmp_path / f"demo-{part}-sparse.arff").write_text(BIRDS)
    (tmp_path / "demo.xml").write_text(LABELS.format(*IN_XML))
    data = load_dataset("demo")
    assert data.feature_names == ("hist 50%", "location")
    assert np.asarray(data.train.X)[:, 1].tolist() == [1, 2, 3, 4]
