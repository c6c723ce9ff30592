"""Small files that claim much: refused with the reason, before the memory is filled."""

import contextlib
import time
import tracemalloc

import pytest

from fitzpatrick.datasets import DataError, read_table
from fitzpatrick.experiments import models
from fitzpatrick.experiments.protocol import LossChoice, Protocol

from .files import write

MANY = r"\d+ samples × \d+ classes are more than 1000 targets"
ARFF = "@relation 'r: -C 50'\n" + "".join(f"@attribute a{i} {{0,1}}\n" for i in range(51))


@pytest.mark.parametrize(
    ("name", "text", "problem"),
    [
        ("a.svm", "0 1:1\n1 9999999:1\n", "index 9999999 is out of range, expected 1 to 1000000"),
        ("a.svm", "99 1:1\n" + "0 1:1\n" * 90, MANY),
        ("a.csv", "x,c\n" + "".join(f"1,c{i}\n" for i in range(101)), MANY),
        ("a.arff", f"{ARFF}@data\n" + "{}\n" * 200, MANY),
    ],
)
def test_files_that_would_fill_the_memory(tmp_path, monkeypatch, name, text, problem):
    monkeypatch.setattr("fitzpatrick.datasets._table.MAX_TARGET_CELLS", 1000)
    with pytest.raises(DataError, match=problem):
        read_table(write(tmp_path, text, name), ["c"] if name == "a.csv" else None)
    train = read_table(write(tmp_path, "900 1:1\n", "train.svm"))
    with pytest.raises(DataError, match="11 samples × 901 classes"):
        read_table(write(tmp_path, "0 1:1\n" * 11, "test.svm"), like=train)


def test_categories_that_make_too_many_features(tmp_path, monkeypatch):
    monkeypatch.setattr("fitzpatrick.datasets.readers.MAX_FEATURES", 3)
    assert read_table(write(tmp_path, "z,y\na,u\nb,u\nc,u\na,u\n"), ["y"]).X.shape == (4, 3)
    with pytest.raises(DataError, match="the categories make more than 3 features"):
        read_table(write(tmp_path, "z,y\na,u\nb,u\nc,u\nd,u\n"), ["y"])


def test_coefficients(tmp_path):
    table = read_table(write(tmp_path, "999 100001:1\n0 1:1\n1 1:1\n", "a.svm"))
    with pytest.raises(DataError, match="100001 features × 1000 targets are more than 100000000"):
        models.fit(table, tmp_path / "a.svm", LossChoice("logistic"), Protocol(), 1.0)


@pytest.mark.parametrize("form", ["csv", "arff"])
def test_long_class_name(tmp_path, form):
    """One name of 120000 characters among 2000 rows does not take its length in every row."""
    head = (
        "x,c\n" if form == "csv" else "@relation r\n@attribute x real\n@attribute c {a,%s}\n@data\n"
    )
    rows = "1,a\n" * 1000 + "2," + "b" * 120_000 + "\n" + "1,a\n" * 1000
    path = write(tmp_path, head.replace("%s", "b" * 120_000) + rows, f"a.{form}")
    tracemalloc.start()
    with pytest.raises(DataError, match=r"'c': texts of more than 1000 .* no classes") as caught:
        read_table(path, ["c"])
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert caught.value.line == head.count("\n") + 1001
    assert peak < 20 << 20
    if form == "arff":  # declared, and in no row
        write(tmp_path, path.read_text().replace("\n2," + "b" * 120_000, "\n2,a"), path.name)
        with pytest.raises(
            DataError, match=r"'c': texts of more than 1000 .* no classes"
        ) as caught:
            read_table(path, ["c"])
        assert caught.value.line is None


RELATION = "@relation {}\n@attribute x real\n@attribute y {{u,v}}\n@data\n{},u\n2,v\n"
# name of the file, and its text for a length
LONG = {
    "spaces in a number": ("a.csv", lambda n: f"x,y\n1{' ' * n}5,u\n2,v\n"),
    "spaces in a class": ("a.csv", lambda n: f"x,y\n1,u{' ' * n}v\n2,v\n"),
    "spaces in an ARFF cell": ("a.arff", lambda n: RELATION.format("r", f"1{' ' * n}5")),
    "spaces behind a quote": ("a.arff", lambda n: RELATION.format("r", f"'1'{' ' * n}5")),
    "numbers of labels": ("a.arff", lambda n: RELATION.format("'r: " + "-C " * n + "'", 1)),
    "colons": ("a.arff", lambda n: RELATION.format("'" + ":" * n + "'", 1)),
    "equal names": ("a.csv", lambda n: "x," * n + "z\n1\n"),
    "columns without a name": (
        "a.csv",
        lambda n: "x,y{0}\n1,u{0}\n2,v{0}\n".format("," * (n // 4)),
    ),
    "spaces between features": ("a.svm", lambda n: f"0{' ' * n}1:1{' ' * n}x\n"),
}


@pytest.mark.parametrize("kind", LONG)
def test_time_does_not_grow_with_the_square_of_a_length(tmp_path, kind):
    """Four times as long: four times the time, or sixteen times where something is quadratic."""
    name, text = LONG[kind]

    def seconds(n):
        path = write(tmp_path, text(n), name)
        start = time.process_time()
        with contextlib.suppress(DataError):
            read_table(path, None if name == "a.svm" else ["y"])
        return time.process_time() - start

    seconds(10)  # loads what readers need
    assert seconds(80_000) < 8 * seconds(20_000) + 1
