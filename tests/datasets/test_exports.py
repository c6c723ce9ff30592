"""Tables as spreadsheets, pandas and R write them: each is read, with notes on what was done, or
ends in one line that names a way that works, and that way is taken here.
"""

import io
import sys

import numpy as np
import pandas as pd
import pytest

from fitzpatrick.datasets import DataError, ReadOptions, load_dataset, read_inputs, read_table

TARGETS = ["a", "b"]
ROWS = [[1.5, 1, 0], [2.25, 0, 1], [-3.0, 1, 1]]


def frame():
    return pd.DataFrame({"x": [1.5, 2.25, -3.0], "a": [1, 0, 1], "b": [0, 1, 1]})


def to_csv(table, **options):
    buffer = io.StringIO()
    table.to_csv(buffer, **options)
    return buffer.getvalue()


ROW_NAMES = "left out: the first column, which has no name, as row names have none"
COMMAS = "decimal commas: x"
# name → content, encoding, notes: all hold ROWS
PLAIN_EXPORTS = {
    "pandas": (to_csv(frame(), index=False), "utf-8", ()),
    "pandas with its index": (to_csv(frame()), "utf-8", (ROW_NAMES,)),
    "pandas with a named index": (
        to_csv(frame().rename_axis("id")),
        "utf-8",
        ("left out: id (a different number in every row, so probably an identifier)",),
    ),
    "pandas, read and written again": (
        to_csv(pd.read_csv(io.StringIO(to_csv(frame()))), index=False),
        "utf-8",
        ("left out: Unnamed: 0 (it numbers the rows)",),
    ),
    "pandas for Germany": (to_csv(frame(), index=False, sep=";", decimal=","), "utf-8", (COMMAS,)),
    "pandas, quoted": (to_csv(frame(), index=False, quoting=1), "utf-8", ()),
    "pandas, tabs": (to_csv(frame(), index=False, sep="\t"), "utf-8", ()),
    "pandas, bars": (to_csv(frame(), index=False, sep="|"), "utf-8", ()),
    "pandas, booleans": (
        to_csv(frame().astype({"a": bool, "b": bool}), index=False),
        "utf-8",
        (),
    ),
    "Excel US": ("x,a,b\r\n1.5,1,0\r\n2.25,0,1\r\n-3,1,1\r\n", "utf-8-sig", ()),
    "Excel US, old": ("x,a,b\r\n1.5,1,0\r\n2.25,0,1\r\n-3,1,1\r\n", "cp1252", ()),
    "Excel DE": ("x;a;b\r\n1,5;1;0\r\n2,25;0;1\r\n-3;1;1\r\n", "cp1252", (COMMAS,)),
    "Excel DE, booleans": (
        "x;a;b\r\n1,5;YES;NO\r\n2,25;NO;YES\r\n-3;YES;YES\r\n",
        "utf-8-sig",
        (COMMAS,),
    ),
    "Excel with sep=": ("sep=;\r\nx;a;b\r\n1,5;1;0\r\n2,25;0;1\r\n-3;1;1\r\n", "cp1252", (COMMAS,)),
    "Excel, Unicode text": ("x\ta\tb\r\n1.5\t1\t0\r\n2.25\t0\t1\r\n-3\t1\t1\r\n", "utf-16", ()),
    "Excel for old Macs": ("x,a,b\r1.5,1,0\r2.25,0,1\r-3,1,1\r", "utf-8", ()),
    "Excel, empty columns and rows": (
        "x,a,b,,\r\n1.5,1,0,,\r\n2.25,0,1,,\r\n-3,1,1,,\r\n,,,,\r\n,,,,\r\n",
        "utf-8",
        ("left out: 2 lines without any value (lines 5, 6)",),
    ),
    "LibreOffice, quoted text cells": (
        '"x","a","b"\n1.5,1,0\n2.25,0,1\n-3,1,1\n',
        "utf-8",
        (),
    ),
    "Google Sheets": ("x,a,b\r\n1.5,1,0\r\n2.25,0,1\r\n-3,1,1", "utf-8", ()),
    "R write.csv": (
        '"","x","a","b"\n"1",1.5,1,0\n"2",2.25,0,1\n"3",-3,1,1\n',
        "utf-8",
        (ROW_NAMES,),
    ),
    "R write.csv2": (
        '"";"x";"a";"b"\n"1";1,5;1;0\n"2";2,25;0;1\n"3";-3;1;1\n',
        "utf-8",
        (ROW_NAMES, COMMAS),
    ),
    "R write.csv, read and written again": (
        '"X","x","a","b"\n1,1.5,1,0\n2,2.25,0,1\n3,-3,1,1\n',
        "utf-8",
        ("left out: X (it numbers the rows)",),
    ),
    "R write.table": (
        '"x" "a" "b"\n"1" 1.5 1 0\n"2" 2.25 0 1\n"3" -3 1 1\n',
        "utf-8",
        (ROW_NAMES,),
    ),
    "R write.table, tabs": (
        '"x"\t"a"\t"b"\n"1"\t1.5\t1\t0\n"2"\t2.25\t0\t1\n"3"\t-3\t1\t1\n',
        "utf-8",
        (ROW_NAMES,),
    ),
    "R write.table without row names": ('"x" "a" "b"\n1.5 1 0\n2.25 0 1\n-3 1 1\n', "utf-8", ()),
    "NumPy savetxt": ("# x,a,b\n1.5,1,0\n2.25,0,1\n-3.0,1,1\n", "utf-8", ()),
    "comments above": ("# made by a tool\n#\nx,a,b\n1.5,1,0\n2.25,0,1\n-3,1,1\n", "utf-8", ()),
    "comments between": (
        "x,a,b\n1.5,1,0\n# checked by hand\n2.25,0,1\n-3,1,1\n",
        "utf-8",
        ("left out: 1 line of comments (line 3)",),
    ),
    "a separator at the end of each row": ("x,a,b\n1.5,1,0,\n2.25,0,1,\n-3,1,1,\n", "utf-8", ()),
}


def save(tmp_path, content, encoding="utf-8", name="export.csv"):
    path = tmp_path / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode(encoding))
    return path


@pytest.mark.parametrize("name", PLAIN_EXPORTS)
def test_export(tmp_path, name):
    content, encoding, notes = PLAIN_EXPORTS[name]
    path = save(tmp_path, content, encoding)
    table = read_table(path, TARGETS)
    np.testing.assert_array_equal(np.column_stack([table.X, table.Y]), ROWS)
    assert (table.feature_names, table.target_names, table.notes) == (("x",), ("a", "b"), notes)
    again = read_inputs(path, table.columns)
    np.testing.assert_array_equal(again.X, table.X)


SURVEY = """\
Respondent;Größe;Anteil;Preis;Raucher;Fächer;Ort;Kommentar;Klasse
{rows}"""


def survey(n=40):
    """A survey of forty people, as a German spreadsheet saves it."""
    rows = []
    for i in range(n):
        subjects = ["Mathe;Physik", "Physik", "Mathe;Kunst", ""][i % 4]
        height = "" if i == 7 else f"1,{60 + i}"
        place = ("Köln", "Ulm", "Köln", "NA")[i % 4]
        answer = "yes" if i % 3 else "no"
        rows.append(
            f'P-{i:03d};{height};{i},5%;1.{i:03d},00 €;{answer};"{subjects}";{place};;{"ab"[i % 2]}'
        )
    return SURVEY.format(rows="\r\n".join(rows) + "\r\n")


def test_a_survey(tmp_path):
    path = save(tmp_path, survey(), "cp1252")
    table = read_table(path, ["Klasse"])
    assert table.feature_names == (
        "Größe",
        "Größe (missing)",
        "Anteil",
        "Preis",
        "Raucher",
        "Fächer=Kunst",
        "Fächer=Mathe",
        "Fächer=Physik",
        "Ort=Köln",
        "Ort=Ulm",
        "Ort (missing)",
    )
    assert table.notes == (
        "byte 0xf6 in line 1 is not UTF-8: the file is read as Windows-1252; if names come out "
        "wrong, save it as UTF-8",
        "left out: Respondent (a different text in every row, so probably a name)",
        "left out: Kommentar (no row has a value)",
        "decimal commas: Größe, Anteil, Preis",
        "marks between thousands are left out: Preis",
        "the sign % is left out and the numbers divided by 100: Anteil",
        "the sign € is left out: Preis",
        "no is 0 and yes is 1: Raucher",
        "categories, a 0/1 feature for each value: Ort (2 values)",
        "tags, split at ';', a 0/1 feature for each of 3 tags: Fächer",
        "missing numbers are replaced by the median of the column and marked in a 0/1 feature: "
        "Größe (1 row)",
        "missing values are a category of their own: Ort (10 rows)",
        "Ort alone tells the targets of every row; if it was made from them, --ignore Ort leaves "
        "it out",
    )
    np.testing.assert_allclose(table.X[1], [1.61, 0, 0.015, 1001, 1, 0, 0, 1, 0, 1, 0])
    median = np.median([1 + (60 + i) / 100 for i in range(40) if i != 7])
    np.testing.assert_allclose(table.X[7], [median, 1, 0.075, 1007, 1, 0, 0, 0, 0, 0, 1])
    utf8 = save(tmp_path, path.read_bytes().decode("cp1252"), name="again.csv")
    assert read_table(utf8, ["Klasse"]).notes == table.notes[1:]  # what the note advises


def test_new_answers_to_the_survey(tmp_path):
    """A later file comes from another program, has gaps elsewhere, and words that are new."""
    table = read_table(save(tmp_path, survey(), "cp1252"), ["Klasse"])
    text = "Ort,Fächer,Raucher,Preis,Anteil,Größe\nBonn,Physik;Sport,TRUE,€1000.5,,1.75\n"
    new = read_inputs(save(tmp_path, text, name="new.csv"), table.columns)
    fill = table.columns.items[2].fill
    np.testing.assert_array_equal(new.X, [[1.75, 0, fill, 1000.5, 1, 0, 0, 1, 0, 0, 0]])
    assert new.notes == (
        *table.notes[1:3],
        *table.notes[5:10],
        "missing numbers are replaced by the median of the training file: Anteil (1 row)",
        "values not seen in training are encoded as all zeros: Fächer (1 row: Sport)",
        "values not seen in training are encoded as all zeros: Ort (1 row: Bonn)",
    )


# what cannot be read: content, the message behind the file's name, and reading that helps
def rows(cells, head="x,y"):
    return head + "\n" + "".join(f"{cell},{'uv'[i % 2]}\n" for i, cell in enumerate(cells))


OTHER_WAYS = "--kinds x=category takes every value for a category, --ignore x leaves the column out"
REFUSALS = {
    "dates": (
        rows(["2024-01-31", "2024-02-01", "2024-02-02"]),
        "line 2: column 'x': '2024-01-31' is a date or a time; write what matters of it as a "
        "number, such as the year or the days since another date; --ignore x leaves the column out",
        {"ignore": ["x"]},
        ReadOptions(),
    ),
    "American dates with times": (
        rows(["1/31/2024 12:05:00 AM", "2/1/2024 1:00:00 PM"]),
        "line 2: column 'x': '1/31/2024 12:05:00 AM' is a date or a time; write what matters of it "
        "as a number, such as the year or the days since another date; --ignore x leaves the "
        "column out",
        {"ignore": ["x"]},
        ReadOptions(),
    ),
    "words among numbers": (
        rows([1, 2, "refused", 4, "k. A.", 5, "refused"]),
        "line 4: column 'x': 'refused' is not a number, as 4 of its values are; so is 'k. A.' in "
        "line 6; --missing-values 'refused,k. A.' reads such words as missing, " + OTHER_WAYS,
        {},
        ReadOptions(missing_values=["refused", "k. A."]),
    ),
    "words among numbers, as categories": (
        rows([0, 1, 2, "3+", 1]),
        "line 5: column 'x': '3+' is not a number, as 4 of its values are; --missing-values '3+' "
        "reads such words as missing, " + OTHER_WAYS,
        {},
        ReadOptions(kinds={"x": "category"}),
    ),
    "Excel's errors": (
        rows([1, "#DIV/0!", 2]),
        "line 3: column 'x': '#DIV/0!' is not a number, as 2 of its values are; --missing-values "
        "'#DIV/0!' reads such words as missing, " + OTHER_WAYS,
        {},
        ReadOptions(missing_values=["#DIV/0!"]),
    ),
    "R's infinity": (
        rows([1, "Inf", 2]),
        "line 3: column 'x': 'Inf' is not a number, as 2 of its values are; --missing-values Inf "
        "reads such words as missing, " + OTHER_WAYS,
        {"ignore": ["x"]},
        ReadOptions(),
    ),
    "thousands or decimals": (
        rows(['"1,234"', '"2,500"']),
        "column 'x': the ',' in its numbers may be a decimal mark or stand between thousands, and "
        "no other column tells; --decimal . or --decimal , tells",
        {},
        ReadOptions(decimal="."),
    ),
    "thousands or decimals, in Germany": (
        "x;y\n1.234;u\n2.500;v\n",
        "column 'x': the '.' in its numbers may be a decimal mark or stand between thousands, and "
        "no other column tells; --decimal . or --decimal , tells",
        {},
        ReadOptions(decimal=","),
    ),
    "units": (
        rows(["12 kg", "13 kg"]),
        "line 2: column 'x': '12 kg' is a number and a unit; write the number alone; --kinds "
        "x=category takes every value for a category",
        {},
        ReadOptions(kinds={"x": "category"}),
    ),
    "comments of people": (
        rows([f"I like it {i}" for i in range(30)] + ["fine", "fine"]),
        "line 2: column 'x': 31 different texts in 32 rows, such as 'I like it 0', are no "
        "categories; --ignore x leaves the column out, --kinds x=category takes each for a "
        "category",
        {"ignore": ["x"]},
        ReadOptions(),
    ),
    "two marks in one column": (
        rows(['"1,5"', "2.5", '"3,5"', "4.5"]),
        "line 2: column 'x': '1,5' has another decimal mark than other numbers; so has '3,5' in "
        "line 4; " + OTHER_WAYS,
        {},
        ReadOptions(kinds={"x": "category"}),
    ),
    "missing class": (
        "x,y\n1,u\n2,v\n3,\n4,?\n",
        "line 4: target column 'y': no value in 2 rows, the first here; --missing drop leaves such "
        "rows out",
        {},
        ReadOptions(missing="drop"),
    ),
    "missing number, not wanted": (
        "x,y\n1,u\n,v\n2,v\n",
        "line 3: column 'x': no value; --missing drop leaves such rows out, --missing impute "
        "replaces the values",
        {},
        ReadOptions(missing="drop"),
    ),
    "words, not wanted": (
        "x,z,y\n1,red,u\n2,blue,v\n",
        "line 2: column 'z': 'red' is not a number; --categories encode makes features of its "
        "values, --ignore z leaves it out",
        {"ignore": ["z"]},
        ReadOptions(categories="error"),
    ),
    "a spreadsheet under another name": (
        b"PK\x03\x04" + b"\0" * 30,
        "the ZIP archive cannot be read: File is not a zip file",
        None,
        ReadOptions(),
    ),
}
STRICT = {
    "missing number, not wanted": ReadOptions(missing="error"),
    "words, not wanted": ReadOptions(categories="error"),
}


@pytest.mark.parametrize("name", REFUSALS)
def test_refusal_and_its_way_out(tmp_path, name):
    content, message, arguments, helpful = REFUSALS[name]
    path = save(tmp_path, content)
    columns = {"ignore": arguments["ignore"]} if arguments else {}
    spare = isinstance(content, str) and columns and "z" not in columns["ignore"]
    with pytest.raises(DataError) as caught:
        read_table(path, ["y"], options=STRICT.get(name, ReadOptions()))
    text = str(caught.value).removeprefix(str(path)).removeprefix(", ").removeprefix(": ")
    assert text == message
    assert "\n" not in text
    if arguments is None:
        return
    if spare:  # a column that is left
        head, *lines = content.splitlines()
        path = save(
            tmp_path, "\n".join([f"{head},w", *(f"{one},{i}" for i, one in enumerate(lines))])
        )
    table = read_table(path, ["y"], options=helpful, **columns)
    assert table.X.shape[0] >= 2


def test_decimal_option_means_what_it_says(tmp_path):
    path = save(tmp_path, rows(['"1,234"', '"2,500"']))
    assert read_table(path, ["y"], options=ReadOptions(decimal=".")).X.tolist() == [[1234], [2500]]
    assert read_table(path, ["y"], options=ReadOptions(decimal=",")).X.tolist() == [[1.234], [2.5]]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('x,z,y\n"1,234",1.5,u\n"2,500",2.5,v\n', [[1234, 1.5], [2500, 2.5]]),
        ("x;z;y\n1,234;1,5;u\n2,500;2,5;v\n", [[1.234, 1.5], [2.5, 2.5]]),
        ("x;z;y\n1.234;1,5;u\n2.500;2,5;v\n", [[1234, 1.5], [2500, 2.5]]),
        ("x,z,y\n1.234,1,u\n2.500,2,v\n", [[1.234, 1], [2.5, 2]]),
        ('x,z,y\n"$1,234.50",1,u\n"-$2,500.00",2,v\n', [[1234.5, 1], [-2500, 2]]),
        ('x,z,y\n"1,234,567",1,u\n12,2,v\n', [[1234567, 1], [12, 2]]),
        ("x;z;y\n1 234,5;1;u\n2 500;2;v\n", [[1234.5, 1], [2500, 2]]),
        ("x,z,y\n1'234.5,1,u\n2'500,2,v\n", [[1234.5, 1], [2500, 2]]),
        ("x,z,y\n50%,1,u\n0,2,v\n", [[0.5, 1], [0, 2]]),
        ("x,z,y\n1e3,1,u\n-.5E-1,2,v\n", [[1000, 1], [-0.05, 2]]),
    ],
)
def test_other_columns_tell(tmp_path, text, expected):
    assert read_table(save(tmp_path, text), ["y"]).X.tolist() == expected


def test_a_column_that_looks_different_further_down(tmp_path, monkeypatch):
    """Columns whose first rows mislead are read as words."""
    monkeypatch.setattr("fitzpatrick.datasets._csv._SAMPLE_ROWS", 5)
    n = 100
    cells = {
        "code": [str(i % 3) if i < 10 else "abc"[i % 3] for i in range(n)],
        "zip": [f"{i % 5 + 1}" if i < 10 else f"0{i % 5}" for i in range(n)],
        "late": ["" if i < 20 else f"{i},5" for i in range(n)],
        "sum": [f"{i},234" if 0 < i < 20 else "1.234,50" for i in range(n)],
        "y": ["uv"[i % 2] for i in range(n)],
    }
    lines = [cells, *zip(*cells.values(), strict=True)]
    text = "".join(";".join(line) + "\n" for line in lines)
    table = read_table(save(tmp_path, text), ["y"])
    assert table.feature_names == (
        *(f"code={value}" for value in "012abc"),
        *(f"zip={value}" for value in ("00", "01", "02", "03", "04", "1", "2", "3", "4", "5")),
        "late",
        "late (missing)",
        "sum",
    )
    assert table.X[:, -3].tolist() == [60.0] * 20 + [i + 0.5 for i in range(20, n)]
    assert table.X[:3, -1].tolist() == [1234.5, 1.234, 2.234]


def test_duplicate_names(tmp_path):
    table = read_table(save(tmp_path, "a,a,a.1,y\n1,2,3,u\n4,5,6,v\n"), ["y"])
    assert table.feature_names == ("a", "a.2", "a.1")
    assert table.notes == ("another column called a is read as a.2",)


def test_fields_over_several_lines(tmp_path):
    text = 'x,"first\nline",y\n1,"a\nb",u\n2,"a\nb",v\n3,"c ""d""",v\nx,e,u\n'
    with pytest.raises(DataError, match="line 8: column 'x': 'x' is not a number"):
        read_table(save(tmp_path, text), ["y"])
    table = read_table(save(tmp_path, text), ["y"], ignore=["x"])
    assert table.feature_names == ("first line=a\nb", 'first line=c "d"', "first line=e")
    assert read_table(save(tmp_path, text), ["first\nline"], ignore=["x"]).Y.shape == (4, 3)
    assert table.lines.tolist() == [3, 5, 7, 8]


def test_ids_are_used_when_asked_for(tmp_path):
    text = "id,name,y\n" + "".join(f"{i * i},n{i},{'uv'[i % 2]}\n" for i in range(30))
    path = save(tmp_path, text)
    with pytest.raises(DataError, match=r"no column is left to be a feature: id \(a different num"):
        read_table(path, ["y"])
    kinds = {"id": "number", "name": "category"}
    assert read_table(path, ["y"], options=ReadOptions(kinds=kinds)).X.shape == (30, 31)


def test_names_of_options_are_checked(tmp_path):
    path = save(tmp_path, "x,y\n1,u\n2,v\n")
    with pytest.raises(DataError, match="no column is called 'z'; the columns are x, y"):
        read_table(path, ["y"], options=ReadOptions(tags=["z"]))
    with pytest.raises(ValueError, match="missing must be one of 'impute', 'drop', 'error', got"):
        ReadOptions(missing="mean")
    with pytest.raises(ValueError, match=r"kinds\['x'\] must be one of 'number', 'category', "):
        ReadOptions(kinds={"x": "date"})
    with pytest.raises(ValueError, match="'x' is among tags, and of the kind 'number'"):
        ReadOptions(kinds={"x": "number"}, tags=["x"])


@pytest.mark.parametrize("name", ["export.ods", "export", "folder.csv", "folder"])
def test_files_of_other_kinds(tmp_path, name):
    path = tmp_path / name
    if name.startswith("folder"):
        path.mkdir()
    else:
        path.write_text("x,y\n1,u\n2,v\n")
    said = {
        "export": "the format of a file without a suffix is not known; expected .csv, .tsv, .svm, "
        ".libsvm, .svmlight, .arff, .parquet, .xlsx, .xlsm, .jsonl, .ndjson, .txt, .data, .dat; "
        "--format csv, libsvm or arff tells",
        "export.ods": "a spreadsheet; save the sheet as CSV",
    }.get(name, "is a folder; expected a file")
    with pytest.raises(DataError) as caught:
        read_table(path, ["y"])
    assert str(caught.value) == f"{path}: {said}"
    if name == "export":
        assert read_table(path, ["y"], "csv").X.shape == (2, 1)


OTHER_FORMATS = {
    "a.parquet": lambda path: frame().to_parquet(path),
    "a.xlsx": lambda path: frame().to_excel(path, index=False),
    "a.jsonl": lambda path: frame().to_json(path, orient="records", lines=True),
    "a.txt": lambda path: frame().to_csv(path, index=False, sep="\t"),
    "a.zip": lambda path: frame().to_csv(
        path, index=False, compression={"method": "zip", "archive_name": "b.csv"}
    ),
}


@pytest.mark.parametrize("name", OTHER_FORMATS)
def test_tables_of_other_programs(tmp_path, name):
    path = tmp_path / name
    OTHER_FORMATS[name](path)
    table = read_table(path, TARGETS)
    np.testing.assert_array_equal(np.column_stack([table.X, table.Y]), ROWS)
    assert (table.feature_names, table.notes) == (("x",), ())
    np.testing.assert_array_equal(read_inputs(path, table.columns).X, table.X)
    if name in ("a.parquet", "a.xlsx"):
        path.write_bytes(path.read_bytes()[:-200])
        with pytest.raises(DataError, match=r"not an? (Parquet file|Excel workbook) that can be"):
            read_table(path, TARGETS)


def test_text_files_of_other_formats(tmp_path):
    assert read_table(save(tmp_path, "0,1 1:2\n1 2:1\n", name="a.txt")).kind == "indicators"
    text = "% c\n@relation r\n@attribute x real\n@attribute y {u,v}\n@data\n1,u\n2,v\n"
    assert read_table(save(tmp_path, text, name="b.txt"), ["y"]).X.tolist() == [[1], [2]]


def test_missing_cells_and_words_of_json_lines(tmp_path):
    text = '{"x": 1, "s": true, "y": "u"}\n{"y": "v", "x": null, "s": false}\n'
    table = read_table(save(tmp_path, text, name="a.jsonl"), ["y"])
    assert table.X.tolist() == [[1, 0, 1], [1, 1, 0]]
    assert table.lines.tolist() == [1, 2]
    for text in ('{"x": [1], "y": "u"}\n', "[1]\n", "x\n", "[" * 100_000):
        with pytest.raises(DataError, match=r"line 1: (not JSON|expected an object of)"):
            read_table(save(tmp_path, text, name="a.jsonl"), ["y"])


def test_without_the_packages_that_read_tables(tmp_path, monkeypatch):
    path = save(tmp_path, "x,y\n1,u\n", name="a.xlsx")
    monkeypatch.setitem(sys.modules, "openpyxl", None)
    with pytest.raises(DataError, match="Excel workbooks need openpyxl: pip install openpyxl"):
        read_table(path, ["y"])
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(
        ModuleNotFoundError, match=r"needs pandas: pip install 'fitzpatrick\[cli\]'"
    ):
        read_table(save(tmp_path, "x,y\n1,u\n"), ["y"])
    assert load_dataset("yeast").train.X.shape == (1500, 103)
