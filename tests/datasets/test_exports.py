"""Tables as spreadsheets, pandas and R write them, and files of other programs."""

import io
import re
import sys
import zipfile

import numpy as np
import pandas as pd
import pytest

from fitzpatrick.datasets import (
    Columns,
    DataError,
    ReadOptions,
    _tables,
    load_dataset,
    read_cells,
    read_inputs,
    read_table,
)
from fitzpatrick.datasets.columns import Category, Number

from .files import check_refusal, write

TARGETS = ["a", "b"]
ROWS = [[1.5, 1, 0], [2.25, 0, 1], [-3.0, 1, 1]]


def frame():
    return pd.DataFrame({"x": [1.5, 2.25, -3.0], "a": [1, 0, 1], "b": [0, 1, 1]})


ROW_NAMES = "left out: the first column, which has no name, as row names have none"
COMMAS = "decimal commas: x"
ID = "left out: id (a different number in every row, so probably an identifier)"
SHEET = "x,a,b\r\n1.5,1,0\r\n2.25,0,1\r\n-3,1,1\r\n"
GERMAN = "x;a;b\r\n1,5;1;0\r\n2,25;0;1\r\n-3;1;1\r\n"
WIDE = "x,a,b,,\r\n1.5,1,0,,\r\n2.25,0,1,,\r\n-3,1,1,,\r\n,,,,\r\n,,,,\r\n"
TABBED = '"x"\t"a"\t"b"\n"1"\t1.5\t1\t0\n"2"\t2.25\t0\t1\n"3"\t-3\t1\t1\n'
# name → content and notes: all hold ROWS
PLAIN_EXPORTS = {
    "pandas": (frame().to_csv(index=False),),
    "pandas with its index": (frame().to_csv(), ROW_NAMES),
    "pandas with a named index": (frame().rename_axis("id").to_csv(), ID),
    "pandas, read and written again": (
        pd.read_csv(io.StringIO(frame().to_csv())).to_csv(index=False),
        "left out: Unnamed: 0 (it numbers the rows)",
    ),
    "pandas, booleans": (frame().astype({"a": bool, "b": bool}).to_csv(index=False),),
    "Excel US": (SHEET.encode("utf-8-sig"),),
    "Excel DE": (GERMAN.encode("cp1252"), COMMAS),
    "Excel DE, booleans": ("x;a;b\r\n1,5;YES;NO\r\n2,25;NO;YES\r\n-3;YES;YES\r\n", COMMAS),
    "Excel with sep=": ("sep=;\r\n" + GERMAN, COMMAS),
    "Excel for old Macs": (SHEET.replace("\n", ""),),
    "Excel, empty columns": (WIDE, "left out: 2 lines without any value (lines 5, 6)"),
    "LibreOffice, quoted text cells": ('"x","a","b"\n1.5,1,0\n2.25,0,1\n-3,1,1\n',),
    "Google Sheets": (SHEET.strip(),),
    "R write.csv": ('"","x","a","b"\n"1",1.5,1,0\n"2",2.25,0,1\n"3",-3,1,1\n', ROW_NAMES),
    "R write.csv2": (
        '"";"x";"a";"b"\n"1";1,5;1;0\n"2";2,25;0;1\n"3";-3;1;1\n', ROW_NAMES, COMMAS,
    ),
    "R write.csv, read and written again": (
        '"X","x","a","b"\n1,1.5,1,0\n2,2.25,0,1\n3,-3,1,1\n', "left out: X (it numbers the rows)",
    ),
    "R write.table": ('"x" "a" "b"\n"1" 1.5 1 0\n"2" 2.25 0 1\n"3" -3 1 1\n', ROW_NAMES),
    "R write.table, tabs": (TABBED, ROW_NAMES),
    "R write.table without row names": ('"x" "a" "b"\n1.5 1 0\n2.25 0 1\n-3 1 1\n',),
    "NumPy savetxt": ("# x,a,b\n1.5,1,0\n2.25,0,1\n-3.0,1,1\n",),
    "comments above": ("# made by a tool\n#\n\nx,a,b\n1.5,1,0\n2.25,0,1\n-3,1,1\n",),
    "comments between": (
        "x,a,b\n1.5,1,0\n# by hand\n2.25,0,1\n-3,1,1\n", "left out: 1 line of comments (line 3)",
    ),
    "a separator at the end of the first line": ("x,a,b,\n1.5,1,0\n2.25,0,1\n-3,1,1\n",),
    "a separator at the end of each row": ("x,a,b\n1.5,1,0,\n2.25,0,1,\n-3,1,1,\n",),
}  # fmt: skip


@pytest.mark.parametrize("name", PLAIN_EXPORTS)
def test_export(tmp_path, name):
    content, *notes = PLAIN_EXPORTS[name]
    path = write(tmp_path, content)
    table = read_table(path, TARGETS)
    np.testing.assert_array_equal(np.column_stack([table.X, table.Y]), ROWS)
    assert (table.feature_names, table.target_names) == (("x",), ("a", "b"))
    assert list(table.notes) == notes
    np.testing.assert_array_equal(read_inputs(path, table.columns).X, table.X)


def test_files_of_other_kinds(tmp_path):
    (tmp_path / "folder.csv").mkdir()
    known = ".csv, .tsv, .svm, .libsvm, .svmlight, .arff, .parquet, .xlsx, .xlsm, .jsonl, .ndjson, "
    for name, said in (
        ("folder.csv", "is a folder; expected a file"),
        ("export.ods", "a spreadsheet; save the sheet as CSV"),
        ("export", f"the format of a file without a suffix is not known; expected {known}.txt, "
         ".data, .dat; --format tells, such as csv or jsonl"),
        ("nothing.csv", "no such file"),
        ("nothing.zip", "no such file"),
    ):  # fmt: skip
        if name.startswith("export"):
            write(tmp_path, "x,y\n1,u\n2,v\n", name)
        with pytest.raises(DataError) as caught:
            read_table(tmp_path / name, ["y"])
        assert str(caught.value) == f"{tmp_path / name}: {said}"
    assert read_table(tmp_path / "export", ["y"], "csv").X.shape == (2, 1)


def test_parquet_files_that_pandas_wrote(tmp_path):
    frame().set_index("x").to_parquet(tmp_path / "a.parquet")
    assert read_table(tmp_path / "a.parquet", TARGETS).feature_names == ("x",)
    frame().assign(z=[[1], [2, 3], []]).to_parquet(tmp_path / "a.parquet")
    with pytest.raises(DataError, match="column 'z' holds lists or objects; expected texts"):
        read_table(tmp_path / "a.parquet", TARGETS)


@pytest.mark.parametrize(
    "names", [["first name"], ["# rooms", "y"], ["#a"], ["a;b"], ["a|b", "c|d"]]
)
def test_formats_that_know_their_columns(tmp_path, names):
    """Separators, spaces and # within names and words are nothing but characters."""
    words = tuple(f"{names[0]} {i}" for i in range(5))
    table = pd.DataFrame(dict.fromkeys(names, words))
    table.to_parquet(tmp_path / "a.parquet")
    table.to_excel(tmp_path / "a.xlsx", index=False)
    table.to_json(tmp_path / "a.jsonl", orient="records", lines=True)
    columns = Columns(tuple(Category(name, words) for name in names))
    for suffix in ("parquet", "xlsx", "jsonl"):
        X = read_inputs(tmp_path / f"a.{suffix}", columns).X
        np.testing.assert_array_equal(X, np.hstack([np.eye(5)] * len(names)))


def test_carriage_returns_are_spaces_where_lines_do_not_end_in_them(tmp_path):
    words = ["a b", "c"] * 20 + ["a\rb"]  # behind the rows that show how fields are separated
    table = pd.DataFrame({"t\rt": words, "x": range(41)})
    table.to_parquet(tmp_path / "a.parquet")
    table.to_json(tmp_path / "a.jsonl", orient="records", lines=True)
    columns = Columns((Category("t t", ("a b", "c")), Number("x")))
    for name in ("a.parquet", "a.jsonl"):
        X = read_inputs(tmp_path / name, columns).X
        rows = np.arange(41)
        np.testing.assert_array_equal(X, np.column_stack([rows % 2 == 0, rows % 2 == 1, rows]))


def test_comments_above_the_names_of_a_sheet(tmp_path):
    path = tmp_path / "a.xlsx"
    for names in (["x", "a", "b"], ["# x", "a", "b"]):
        rows = [["# made by a tool", None, None], names, *ROWS]
        pd.DataFrame(rows).to_excel(path, index=False, header=False)
        table = read_table(path, TARGETS)
        np.testing.assert_array_equal(np.column_stack([table.X, table.Y]), ROWS)
        assert (table.feature_names, table.lines.tolist()) == ((names[0],), [3, 4, 5])


def test_damaged_files_of_other_programs(tmp_path):
    frame().to_parquet(tmp_path / "a.parquet")
    frame().to_excel(tmp_path / "a.xlsx", index=False)
    for name, what in (("a.parquet", "a Parquet file"), ("a.xlsx", "an Excel workbook")):
        path = tmp_path / name
        path.write_bytes(path.read_bytes()[:-200])
        with pytest.raises(DataError, match=f"not {what} that can be"):
            read_table(path, TARGETS)


def test_sheets_that_do_not_say_their_size_are_bounded(tmp_path, monkeypatch):
    """Cells that are far to the right, and empty rows that a later row leaves above it."""
    monkeypatch.setattr(_tables, "MAX_CELLS", 100)
    frame().to_excel(tmp_path / "a.xlsx", index=False)
    for row, cell in ((5, "CZ5"), (90, "B90")):
        path = tmp_path / f"{cell}.xlsx"
        with zipfile.ZipFile(tmp_path / "a.xlsx") as old, zipfile.ZipFile(path, "w") as new:
            for member in old.namelist():
                text = old.read(member)
                if "sheet1" in member:
                    text = re.sub(rb"<dimension[^>]*>", b"", text)
                    last = f'<row r="{row}"><c r="{cell}"><v>1</v></c></row></sheetData>'
                    text = text.replace(b"</sheetData>", last.encode())
                new.writestr(member, text)
        with pytest.raises(DataError, match=r"rows of \d+ columns are more than 100 cells"):
            read_table(path, TARGETS)


def test_sheets(tmp_path):
    """The first is read, or the one that is named; errors name the others."""
    path = tmp_path / "a.xlsx"
    with pd.ExcelWriter(path) as book:
        pd.DataFrame({"note": ["made by a tool"]}).to_excel(book, sheet_name="about", index=False)
        for name in ("data", "old data"):
            frame().to_excel(book, sheet_name=name, index=False)
    note = "the first sheet of the workbook is read, 'about'; 2 others are left out: data, "
    note += "'old data'; --sheet NAME reads another"
    with pytest.raises(DataError, match=f"'a'; the columns are note; {re.escape(note)}$"):
        read_table(path, TARGETS)
    with pytest.raises(DataError, match=f"are note; --targets NAMES names them; {note}$"):
        read_table(path)
    table = read_table(path, TARGETS, options=ReadOptions(sheet="old data"))
    assert (table.X[:, 0].tolist(), table.notes) == ([1.5, 2.25, -3.0], ())
    assert read_inputs(path, table.columns, sheet="data").X.tolist() == table.X.tolist()
    assert read_cells(path, ["x"], sheet="data") == {"x": ["1.5", "2.25", "-3"]}
    assert read_inputs(path, Columns((Category("note", ("new",)),))).notes[0] == note
    for name, problem in (
        ("a.xlsx", "no sheet is called 'x'; the sheets are about, data, 'old data'$"),
        ("a.csv", "csv files have no sheets; leave --sheet out"),
        ("a.svm", "LIBSVM files have no named columns and no sheets; leave .* and --sheet out"),
    ):
        with pytest.raises(DataError, match=problem):
            read_table(tmp_path / name, options=ReadOptions(sheet="x"))


def test_formulas_without_results_are_refused(tmp_path):
    """As pandas and other programs write them; a spreadsheet program stores what they come to."""
    data = pd.DataFrame({"x": [1, "=A2+1"], "z": [None, "=x"], "y": ["u", "v"]})
    data.to_excel(tmp_path / "a.xlsx", index=False)
    with pytest.raises(DataError, match=r"line 3: the formula '=A2\+1' has no stored result; open"):
        read_table(tmp_path / "a.xlsx", ["y"])


def test_text_files_of_other_formats(tmp_path):
    assert read_table(write(tmp_path, "0,1 1:2\n1 2:1\n", name="a.txt")).kind == "indicators"
    text = "% c\n@relation r\n@attribute x real\n@attribute y {u,v}\n@data\n1,u\n2,v\n"
    assert read_table(write(tmp_path, text, name="b.txt"), ["y"]).X.tolist() == [[1], [2]]


def test_json_lines_that_are_no_tables(tmp_path):
    for text in ('{"x": [1], "y": "u"}\n', "[1]\n", "x\n", "[" * 100_000):
        with pytest.raises(DataError, match=r"line 1: (not JSON|expected an object of)"):
            read_table(write(tmp_path, text, name="a.jsonl"), ["y"])


def test_names_that_json_lines_lack(tmp_path):
    """No line holds the names."""
    path = write(tmp_path, '{"x": 1, "": "v", "y": "u"}\n', name="a.jsonl")
    for targets, line, problem in (
        (["y"], 1, "column 2 has no name, and the value 'v' here; write a name for it$"),
        (["z"], None, "no column is called 'z'; the columns are x, y$"),
    ):
        check_refusal(lambda targets=targets: read_table(path, targets), path, line, problem)


def test_json_lines_with_names_and_lines_of_their_own(tmp_path):
    text = '{"t": "a\\nb", "y": "u"}\n{"y": "v", "z": 5, "t": "c"}\n{"y": "u", "t": "c"}\n'
    table = read_table(write(tmp_path, text, name="a.jsonl"), ["y"])
    assert table.feature_names == ("t=a b", "t=c", "z", "z (missing)")
    assert table.lines.tolist() == [1, 2, 3]


def test_without_the_packages_that_read_tables(tmp_path, monkeypatch):
    path = write(tmp_path, "x,y\n1,u\n", name="a.xlsx")
    monkeypatch.setitem(sys.modules, "openpyxl", None)
    with pytest.raises(DataError, match="Excel workbooks need openpyxl: pip install openpyxl"):
        read_table(path, ["y"])
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(
        ModuleNotFoundError, match=r"needs pandas: pip install 'fitzpatrick\[cli\]'"
    ):
        read_table(write(tmp_path, "x,y\n1,u\n"), ["y"])
    assert load_dataset("yeast").train.X.shape == (1500, 103)
