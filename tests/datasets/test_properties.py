"""What holds of every file: a table does not depend on how it is written."""

import csv
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from fitzpatrick.datasets import ReadOptions, read_inputs, read_table
from fitzpatrick.datasets._numbers import FORMATS, MISSING_WORDS
from tests.helpers import seeded

from .files import write

WORDS = {"colour": ["blue, dark", "it's red", 'tab\t"q"\\'], "zone": ["1", "2", "4"]}
TAGS = ["p;q", "q", "r;p", None]
ANSWERS = [("no", "yes"), ("yes", "no"), ("FALSE", "TRUE"), ("0", "1"), ("N", "Y")]
KINDS = {"zone": "category", "tags": "tags"}
SEEDS = range(len(ANSWERS))


def drawn(seed, n=40):
    """Columns of cells, None where one is missing: words, numbers, and targets of either kind."""
    generator = seeded(seed)
    words = WORDS | dict.fromkeys(("ok", "a", "b"), ANSWERS[seed]) | {"tags": TAGS, "y": ["u", "v"]}
    columns = {
        name: [*known, *generator.choice(known, n - len(known)).tolist()]
        for name, known in words.items()
    }
    columns["x"] = np.round(generator.normal(size=n), 3).tolist()
    columns["rare"] = generator.choice([0.0, 0.0, 0.0, 2.5], n).tolist()
    for name in ("colour", "ok", "x"):
        for row in generator.choice(range(4, n), 5, replace=False):
            columns[name][row] = None
    return columns


def as_csv(columns, gap="", **how):
    return pd.DataFrame(columns).to_csv(index=False, na_rep=gap, **how)


def quoted(word):
    return "'" + word.replace("\\", "\\\\").replace("'", "\\'").replace("\t", "\\t") + "'"


def as_arff(columns, generator, *, is_sparse):
    """Declared in any order; sparse rows leave out 0 and the first word."""
    lines, left_out = ["@relation r"], []
    for name, cells in columns.items():
        words = sorted({cell for cell in cells if isinstance(cell, str)})
        generator.shuffle(words)
        left_out.append(words[0] if words else 0.0)
        kind = f"{{{','.join(map(quoted, words))}}}" if words else "numeric"
        lines.append(f"@attribute {quoted(name)} {kind}")
    lines.append("@data")
    for row in zip(*columns.values(), strict=True):
        fields = ["?" if cell is None else quoted(str(cell)) for cell in row]
        if is_sparse:
            given = [i for i, cell in enumerate(row) if cell != left_out[i]]
            lines.append("{" + ",".join(f"{i} {fields[i]}" for i in given) + "}")
        else:
            lines.append(",".join(fields))
    return "\n".join(lines) + "\n"


def files(folder, columns, generator):
    """The cells in all formats."""
    frame = pd.DataFrame(columns)
    frame.to_parquet(folder / "a.parquet")
    frame.to_excel(folder / "a.xlsx", index=False)
    packed = {"method": "zip", "archive_name": "b.csv"}
    frame.to_csv(folder / "a.zip", index=False, compression=packed)
    gap = str(generator.choice(sorted(MISSING_WORDS)))
    comma = columns | {"x": [None if x is None else str(x).replace(".", ",") for x in columns["x"]]}
    return [
        write(folder, as_csv(columns)), folder / "a.parquet", folder / "a.xlsx", folder / "a.zip",
        write(folder, as_csv(columns, gap, quoting=csv.QUOTE_ALL, sep="|"), "all.csv"),
        write(folder, as_csv(comma, gap, sep=";").encode("cp1252"), "comma.csv"),
        write(folder, as_csv(columns, sep="\t").encode("utf-16"), "a.tsv"),
        write(folder, frame.to_json(orient="records", lines=True), "a.jsonl"),
        write(folder, as_arff(columns, generator, is_sparse=False), "dense.arff"),
        write(folder, as_arff(columns, generator, is_sparse=True), "sparse.arff"),
    ]  # fmt: skip


def features(table, names):
    """Columns of X in another order of their names."""
    assert sorted(table.feature_names) == sorted(names)
    X = table.X.toarray() if sparse.issparse(table.X) else table.X
    return X[:, [table.feature_names.index(name) for name in names]]


@pytest.mark.parametrize("seed", SEEDS)
def test_every_format_gives_one_table(tmp_path, seed):
    columns, targets = drawn(seed), ["b", "a"] if seed else ["y"]
    ignore = [name for name in ("y", "a", "b") if name not in targets]
    first, *others = files(tmp_path, columns, seeded([seed, 1]))
    options = ReadOptions(kinds=KINDS)
    table = read_table(first, targets, ignore=ignore, options=options)
    assert len(table.feature_names) == 15
    for path in others:
        other = read_table(path, targets, ignore=ignore, options=options)
        np.testing.assert_array_equal(features(other, table.feature_names), table.X)
        np.testing.assert_array_equal(other.Y, table.Y)
        assert (other.kind, other.target_names) == (table.kind, table.target_names)
        for one in (read_inputs(path, table.columns), read_table(path, targets, like=table)):
            assert one.feature_names == table.feature_names
            np.testing.assert_array_equal(features(one, table.feature_names), table.X)


@pytest.mark.parametrize("seed", SEEDS[:2])
def test_rows_that_are_left_out_leave_no_trace(tmp_path, seed):
    columns = drawn(seed)
    columns["y"][30] = columns["y"][31] = None
    columns["colour"][30] = columns["tags"][31] = "in no other row"
    complete = columns | {"tags": range(40)}  # no tags are no gap
    gaps = [None in cells for cells in zip(*complete.values(), strict=True)]
    kept = np.flatnonzero(~np.asarray(gaps)).tolist()
    options = ReadOptions(missing="drop", kinds=KINDS)
    table = read_table(write(tmp_path, as_csv(columns)), ["y"], ignore=["a", "b"], options=options)
    assert (table.lines - 2).tolist() == kept
    rest = {name: [cells[row] for row in kept] for name, cells in columns.items()}
    other = read_table(write(tmp_path, as_csv(rest)), ["y"], ignore=["a", "b"], options=options)
    np.testing.assert_array_equal(table.X, other.X)
    np.testing.assert_array_equal(table.Y, other.Y)
    assert table.columns == other.columns
    filled = read_table(write(tmp_path, as_csv(columns)), ["y"], ignore=["a", "b"],
                        options=replace(options, missing="drop-targets"))  # fmt: skip
    assert (filled.lines - 2).tolist() == [row for row in range(40) if row not in (30, 31)]
    assert filled.columns.items[0].marks_missing


@pytest.mark.parametrize("seed", SEEDS[:2])
def test_the_order_of_rows_does_not_matter(tmp_path, seed):
    columns = drawn(seed)
    order = seeded([seed, 2]).permutation(40)
    moved = {name: [cells[row] for row in order] for name, cells in columns.items()}
    table, other = (
        read_table(write(tmp_path, as_csv(one)), ["b", "a"]) for one in (columns, moved)
    )
    assert (table.columns, table.feature_names) == (other.columns, other.feature_names)
    np.testing.assert_array_equal(table.X[order], other.X)
    np.testing.assert_array_equal(table.Y[order], other.Y)


@pytest.mark.parametrize("written", FORMATS, ids=str)
def test_numbers_in_every_format(tmp_path, written):
    """Columns with a fraction and a group tell the marks; a sign may stand on either side."""
    generator, units = seeded(0), ("", "%", "‰", "€", "USD")
    numbers = np.round(
        generator.normal(size=(30, 5)) * 10.0 ** generator.integers(0, 8, (30, 5)), 2
    )
    numbers[0], numbers[1], numbers[2] = 1234567.25, -0.5, 0.0
    columns: dict[str, list[str]] = {unit or "none": [] for unit in units}
    for (_, column), number in np.ndenumerate(numbers):
        text = f"{number:,.2f}" + "0" * (generator.random() < 0.1)
        text = text.replace(",", "t").replace(".", written.decimal).replace("t", written.thousands)
        text = text.replace("-", generator.choice(["-", "−"]))
        text = text.replace(" ", generator.choice([" ", "\xa0"]))
        unit = units[column]
        space = generator.choice(["", " "])
        columns[unit or "none"].append(f"{text}{space}{unit}" if unit in "%‰" else f"{unit}{text}")
    text = as_csv(columns | {"y": ["u", "v"] * 15}, sep="\t")
    path = write(tmp_path, text)
    table = read_table(path, ["y"])
    np.testing.assert_allclose(table.X, numbers / [1, 100, 1000, 1, 1], rtol=1e-15)
    for column, unit in zip(table.columns.items, units, strict=True):
        assert (column.unit, column.decimal) == (unit, written.decimal)
        assert column.thousands == written.thousands
    again = read_inputs(path, table.columns)
    np.testing.assert_array_equal(again.X, table.X)
    assert again.notes == tuple(note for note in table.notes if note.startswith("the sign"))
