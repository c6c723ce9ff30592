"""CSV files: what is read, what is noted, and what is refused with a way that works."""

import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from fitzpatrick.datasets import (
    Columns,
    DataError,
    ReadOptions,
    frame_features,
    read_cells,
    read_csv,
    read_inputs,
    read_table,
)
from fitzpatrick.datasets.options import split_names

from .files import check_refusal, check_table, write

AB, ABC, Y = ["a", "b"], ["a", "b", "c"], ["y"]
COUNTS = "n: whole numbers {} to {} are taken as 3 class names; for counts, fit --loss poisson"
ROUNDED = (
    "the proportions of 1 of 3 samples do not sum to one exactly (0.99 to 1); each is divided by "
    "its sum"
)


def cells(values, head="x,y"):
    """A column of cells, and two classes in turn."""
    return head + "\n" + "".join(f"{cell},{'uv'[i % 2]}\n" for i, cell in enumerate(values))


# text, targets, what the table has, how it is read
TABLES = {
    "indicators": (
        "u,v,a,b\n1,2,1,0\n3,4,1,1\n5,6,0,0\n", AB,
        {"X": [[1, 2], [3, 4], [5, 6]], "Y": [[1, 0], [1, 1], [0, 0]], "kind": "indicators",
         "feature_names": ("u", "v"), "target_names": ("a", "b"), "notes": ()}, {},
    ),
    "proportions, in the order of the targets": (
        "x,a,b\n1,0.25,0.75\n2,1,0\n", ["b", "a"],
        {"Y": [[0.75, 0.25], [0, 1]], "kind": "proportions", "notes": ()}, {},
    ),
    "rounded proportions, and a row without a label": (
        "x,a,b\n1,.25,.75\n2,0,0\n3,.5,.49\n", AB,
        {"Y": [[0.25, 0.75], [0, 0], [0.5 / 0.99, 0.49 / 0.99]], "lines": [2, 3, 4],
         "notes": (ROUNDED,)}, {},
    ),
    "percentages": (
        "x,a,b,c\n" + "1,20,30,50\n" * 2 + "2,33.3,33.3,33.3\n3,0,0,0\n", ABC,
        {"Y": [[0.2, 0.3, 0.5]] * 2 + [[1 / 3] * 3, [0] * 3], "kind": "proportions",
         "notes": ("the targets are percentages, and divided by 100",
                   "the proportions of 1 of 4 samples do not sum to one exactly (0.999 to 1); each "
                   "is divided by its sum")}, {},
    ),
    "percent signs": (
        "x,a,b\n" + "1,20%,80 %\n" * 9, AB,
        {"Y": [[0.2, 0.8]] * 9,
         "notes": ("the sign % is left out and the numbers divided by 100: a, b",)}, {},
    ),
    "counts, divided": (
        "x,a,b\n1,3,1\n2,0,0\n3,10,30\n", AB,
        {"Y": [[0.75, 0.25], [0, 0], [0.25, 0.75]], "kind": "proportions",
         "notes": ("each row of targets is divided by its sum (0 to 40)",)},
        {"options": ReadOptions(normalize=True)},
    ),
    "class names": (
        'x,y\n1,dog\n2,cat\n3," dog"\n4,"dog "\n', Y,
        {"Y": [[0, 1], [1, 0], [0, 1], [0, 1]], "kind": "labels", "target_names": ("cat", "dog")},
        {},
    ),
    "classes that differ by case": (
        "x,y\n1,Yes\n2,yes\n3,no\n", Y,
        {"notes": ("y: Yes, yes are different classes, though only their case differs",)}, {},
    ),
    "classes + and -": ("x,y\n1,+\n2,-\n", Y, {"target_names": ("+", "-")}, {}),
    "a class None": ("x,y\n1,None\n2,Mild\n", Y, {"target_names": ("Mild", "None")}, {}),
    "None for a missing class, as told": (
        "x,y\n1,None\n2,Mild\n3,Bad\n", Y, {"target_names": ("Bad", "Mild"), "lines": [3, 4]},
        {"options": ReadOptions(missing="drop", missing_values=["None"])},
    ),
    "classes of counts": (
        "x,n\n1.5,0\n2.5,12\n3,7\n", ["n"], {"notes": (COUNTS.format(0, 12),)}, {}
    ),
    "two classes": ("x,n\n1.5,0\n2.5,1\n", ["n"], {"notes": ()}, {}),
    "classes of fractions": ("x,n\n1.5,0\n2,0.5\n3,1\n", ["n"], {"notes": ()}, {}),
    "rows without a target": (
        "x,y\n1,u\n,v\n7,u\n3,\n", Y, {"X": [[1, 0], [3, 1], [7, 0]], "lines": [2, 3, 4]},
        {"options": ReadOptions(missing="drop-targets")},
    ),
    "plain numbers": (
        "x,p\n1,7\n2,0.5\n", ["p"], {"kind": "numbers", "Y": [[7], [0.5]]}, {"plain": True}
    ),
    "labels in one column": (
        "x,g\n" + "1,rock;jazz\n2,jazz\n3,\n4,rock\n5,folk; jazz\n6,folk\n", ["g"],
        {"kind": "indicators", "target_names": ("folk", "jazz", "rock"),
         "Y": [[0, 1, 1], [0, 1, 0], [0, 0, 0], [0, 0, 1], [1, 1, 0], [1, 0, 0]],
         "notes": ("labels, split at ';': g (3 labels)",)}, {},
    ),
    "labels of which half recur": (
        "x,g\n1,a;b\n2,a;c\n3,b;d\n", ["g"],
        {"kind": "indicators", "Y": [[1, 1, 0, 0], [1, 0, 1, 0], [0, 1, 0, 1]]}, {},
    ),
    "labels of which fewer recur": (
        "x,g\n1,a;b\n2,a;c;d\n3,b;e\n", ["g"], {"kind": "labels", "Y": np.eye(3)}, {}
    ),
    "labels in one column, as classes": (
        "x,g\n1,rock;jazz\n2,jazz\n3,\n4,rock\n", ["g"],
        {"target_names": ("jazz", "rock", "rock;jazz")},
        {"options": ReadOptions(kinds={"g": "category"}, missing="drop")},
    ),
    "words of several parts that do not recur": (
        "t,y\na;b,u\nc;d,v\na;b,v\nc;d,u\n", Y, {"feature_names": ("t=a;b", "t=c;d")}, {},
    ),
    "labels in one column, as told": (
        'x,g\n1,"a, b"\n2,"b, c"\n3,a\n', ["g"],
        {"target_names": ("a", "b", "c"), "Y": [[1, 1, 0], [0, 1, 1], [1, 0, 0]]},
        {"options": ReadOptions(tags=["g"])},
    ),
    "other columns tell: points": (
        'x,z,y\n"1,234",1.5,u\n"2,500",2.5,v\n', Y, {"X": [[1234, 1.5], [2500, 2.5]]}, {}
    ),
    "other columns tell: commas": (
        "x;z;y\n1,234;1,5;u\n2,500;2,5;v\n", Y, {"X": [[1.234, 1.5], [2.5, 2.5]]}, {}
    ),
    "other columns tell: groups": (
        "x;z;y\n1.234;1,5;u\n2.500;2,5;v\n", Y, {"X": [[1234, 1.5], [2500, 2.5]]}, {}
    ),
    "points are usual": ("x,y\n1.234,u\n2.500,v\n", Y, {"X": [[1.234], [2.5]]}, {}),
    "dollars": ('x,y\n"$1,234.50",u\n"-$2,500.00",v\n', Y, {"X": [[1234.5], [-2500]]}, {}),
    "a leading zero beside a fraction": (
        'x,y\n01,u\n"1,234.5",v\n', Y, {"X": [[1], [1234.5]]}, {},
    ),
    "a name with more commas than there are semicolons": (
        "a,b,c;y\np,q,r,s,t;u\nr,p,t,q,s;v\n", Y,
        {"feature_names": ("a,b,c=p,q,r,s,t", "a,b,c=r,p,t,q,s")}, {},
    ),
    "zero needs no sign": ("x,y\n50%,u\n0,v\n", Y, {"X": [[0.5], [0]]}, {}),
    "exponents": ("x,y\n1e3,u\n-.5E-1,v\n", Y, {"X": [[1000], [-0.05]]}, {}),
    "decimal commas, as told": (
        cells(['"1,234"', '"2,500"']), Y, {"X": [[1.234], [2.5]]},
        {"options": ReadOptions(decimal=",")},
    ),
    "a name twice": (
        "a,a,a.1,y\n1,2,3,u\n4,5,6,v\n", Y,
        {"feature_names": ("a", "a.2", "a.1"),
         "notes": ("another column called a is read as a.2",)}, {},
    ),
    "fields over several lines": (
        'x,"first\nline",y\n1,"a\nb",u\n2,"a\nb",v\n3,"c ""d""",v\nx,e,u\n', Y,
        {"feature_names": ("first line=a\nb", 'first line=c "d"', "first line=e"),
         "lines": [3, 5, 7, 8]}, {"ignore": ["x"]},
    ),
    "an ignored identifier, a missing word": (
        "id,colour,a,y\n7,red,1,u\n8,,2,v\n", Y,
        {"feature_names": ("colour=red", "colour (missing)", "a"), "X": [[1, 0, 1], [0, 1, 2]]}, {},
    ),
    "an id that recurs": ("id,y\n7,u\n7,v\n8,u\n", Y, {"X": [[7], [7], [8]], "notes": ()}, {}),
    "an id of fractions": ("id,y\n1.5,u\n2.5,v\n", Y, {"X": [[1.5], [2.5]], "notes": ()}, {}),
    "categories that are numbers, as told": (
        "z,y\n1.0,u\n2,v\n", Y, {"feature_names": ("z=1.0", "z=2")},
        {"options": ReadOptions(kinds={"z": "category"})},
    ),
    "identifiers, as told": (
        "id,name,y\n" + "".join(f"{i * i},n{i:02},{'uv'[i % 2]}\n" for i in range(30)), Y,
        {"X": np.column_stack([np.arange(30) ** 2, np.eye(30)])},
        {"options": ReadOptions(kinds={"id": "number", "name": "category"})},
    ),
    "a first line of numbers": (
        "5.1,3.5,1.4,s\n4.9,3,1.4,s\n6.2,2.9,4.3,o\n", ["s"],
        {"notes": ("the first line is taken for the names of the columns, though it has 3 numbers "
                   "(5.1, 3.5, 1.4); if it is a row of data, say --no-header",)}, {},
    ),
    "a first line of which half are numbers": (
        "5.1,3.5,t,s\n4.9,3,q,o\n5,2,q,p\n", ["s"],
        {"notes": ("the first line is taken for the names of the columns, though it has 2 numbers "
                   "(5.1, 3.5); if it is a row of data, say --no-header",
                   "categories, a 0/1 feature for each value: t (1 value)")}, {},
    ),
    "a first line of data, as told": (
        "\n# iris\n5.1,3.5,s\n4.9,3,o\n", ["column_3"],
        {"X": [[5.1, 3.5], [4.9, 3]], "feature_names": ("column_1", "column_2"), "lines": [3, 4],
         "target_names": ("o", "s"), "notes": ()}, {"options": ReadOptions(header=False)},
    ),
    "a first line of values": (
        "red,5,u\nblue,6,v\nred,7,u\n", ["u"],
        {"notes": ("the first line is taken for the names of the columns, though it has values of "
                   "the rows below it (red, u); if it is a row of data, say --no-header",
                   "categories, a 0/1 feature for each value: red (2 values)")}, {},
    ),
    "names that count": ("0,1,2\n4.9,3,a\n6.2,2.9,b\n", ["2"], {"notes": ()}, {}),
    "a number for gaps": (
        "x,w,y\n" + "".join(f"{(1.5, -999, 3.5, -999)[i % 4]},{i % 3},{'uv'[i * i % 7 % 2]}\n"
                            for i in range(40)), Y,
        {"notes": ("x: -999 in 20 of 40 rows is taken as a number; if it stands for a missing "
                   "value, --missing-values -999 reads it so",)}, {},
    ),
    "-99 among numbers like it": ("x,y\n-99,u\n-50,v\n-7,u\n-99,v\n", Y, {"notes": ()}, {}),
    "a number and a word for gaps": (
        "x,y\n1.5,u\n-999,v\n3.5,v\n2.5,u\n", Y, {"X": [[1.5, 0], [2.5, 1], [3.5, 0], [2.5, 0]]},
        {"options": ReadOptions(missing_values=["k. A.", "-999"])},
    ),
    "a column without values": (
        "x,z,y\n1,,u\n2,,v\n", Y, {"notes": ("left out: z (no row has a value)",)}, {},
    ),
    "numbers of the rows": (
        "x,w,y\n" + "".join(f"{i + 1},{i % 3},{'uv'[i * i % 7 % 2]}\n" for i in range(40)), Y,
        {"notes": ("x: numbers the rows, 1 to 40; if that is no feature, --ignore x leaves it "
                   "out",)}, {},
    ),
    "targets that never change": (cells("1234567" * 9).replace("u", "v"), Y, {"notes": ()}, {}),
    "years": (cells(range(1990, 2030)), Y, {"notes": ()}, {}),
    "a column that tells the targets": (
        "x,z,y\n" + "".join(f"{i % 7},{i % 2},{'uv'[i % 2]}\n" for i in range(60)), Y,
        {"notes": ("z alone tells the targets of every row; if it was made from them, --ignore z "
                   "leaves it out",)}, {},
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", TABLES)
def test_tables(tmp_path, name):
    text, targets, expected, how = TABLES[name]
    path = write(tmp_path, text)
    table = check_table(path, targets, expected, **how)
    options = how.get("options", ReadOptions())
    if options.missing == "impute" and options.decimal is None:
        again = read_inputs(path, table.columns, header=options.header)
        np.testing.assert_array_equal(again.X, table.X)
        assert (again.kind, again.Y.shape) == ("none", (len(table.Y), 0))


IGNORE = "--ignore x leaves the column out"
OTHER_WAYS = f"--kinds x=category treats every value as a category, {IGNORE}"
DATE = "is a date or a time; write it as a number, such as the year, or days since a date"
# text, line, the whole problem, and a way that it names: keyword arguments of the reader
REFUSALS = {
    "dates": (
        cells(["2024-01-31", "2024-02-01"]), 2,
        f"column 'x': '2024-01-31' {DATE}; {IGNORE}", {"ignore": ["x"]},
    ),
    "American dates with times": (
        cells(["1/31/2024 12:05:00 AM", "2/1/2024 1:00:00 PM"]), 2,
        f"column 'x': '1/31/2024 12:05:00 AM' {DATE}; {IGNORE}",
        {"ignore": ["x"]},
    ),
    "words among numbers": (
        cells([1, 2, "refused", 4, "k. A.", 5, "refused"]), 4,
        "column 'x': 'refused' is not a number, as 4 of its values are; nor is 'k. A.' in line 6; "
        "--missing-values 'refused,k. A.' reads such words as missing, " + OTHER_WAYS,
        {"options": ReadOptions(missing_values=["refused", "k. A."])},
    ),
    "R's infinity": (
        cells([1, "Inf", 2]), 3,
        "column 'x': 'Inf' is not a number, as 2 of its values are; --missing-values Inf reads "
        "such words as missing, " + OTHER_WAYS, {"ignore": ["x"]},
    ),
    "thousands or decimals": (
        cells(['"1,234"', '"2,500"']), None,
        "column 'x': the ',' in its numbers may be a decimal mark or stand between thousands, and "
        "no other column tells; specify --decimal . or --decimal ,",
        {"options": ReadOptions(decimal=".")},
    ),
    "thousands or decimals, beside both marks": (
        'x,z,w,y\n1.234,1.5,"1,5",u\n2.500,2.5,"2,5",v\n', None,
        "column 'x': the '.' in its numbers may be a decimal mark or stand between thousands, and "
        "no other column tells; specify --decimal . or --decimal ,", {"ignore": ["x"]},
    ),
    "units": (
        cells(["12 kg", "13 kg"]), 2,
        "column 'x': '12 kg' is a number and a unit; write the number alone; "
        f"{IGNORE}, --kinds x=category treats every value as a category",
        {"options": ReadOptions(kinds={"x": "category"})},
    ),
    "comments of people": (
        cells([f"I like it {i}" for i in range(30)] + ["fine", "fine"]), 2,
        "column 'x': 31 different texts in 32 rows, such as 'I like it 0', are no categories; "
        f"{IGNORE}, --kinds x=category treats every value as a category", {"ignore": ["x"]},
    ),
    "two marks in one column": (
        cells(['"1,5"', "2.5", '"3,5"', "4.5"]), 2,
        "column 'x': '1,5' has another decimal mark than other numbers; so has '3,5' in line 4; "
        + OTHER_WAYS, {"options": ReadOptions(kinds={"x": "category"})},
    ),
    "missing class": (
        "x,y\n1,u\n2,v\n3,\n4,?\n", 4,
        "target column 'y': no value in 2 rows, the first here; --missing drop-targets leaves "
        "such rows out, --missing drop all rows with gaps",
        {"options": ReadOptions(missing="drop")},
    ),
    "a name with a comma": (
        cells(["2024-01-31", "2024-02-01"], '"x, then",y'), 2,
        f"column 'x, then': '2024-01-31' {DATE}; --ignore '\"x, then\"' leaves "
        "the column out", {"ignore": split_names('"x, then"')},
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSALS)
def test_refusals_and_the_way_out(tmp_path, name):
    text, line, message, way = REFUSALS[name]
    path = write(tmp_path, text)
    problem = f": {re.escape(message)}$"
    error = check_refusal(lambda: read_table(path, Y), path, line, problem)
    assert error.without_advice().advice is None
    if "ignore" in way:  # another column is left
        head, *lines = text.splitlines()
        rows = [f"{head},w", *(f"{one},{i}" for i, one in enumerate(lines))]
        path = write(tmp_path, "\n".join(rows))
    assert read_table(path, Y, **way).X.shape[0] >= 2


def test_words_and_gaps_that_are_not_wanted(tmp_path):
    path = write(tmp_path, "x,z,y\n1,red,u\n,blue,v\n")
    strict = ReadOptions(missing="error")
    problem = "column 'x': no value; --missing drop leaves such rows out, --missing impute replace"
    check_refusal(lambda: read_table(path, Y, options=strict), path, 3, problem)
    strict = ReadOptions(categories="error")
    problem = "column 'z': 'red' is not a number; --categories encode makes features of its values"
    check_refusal(lambda: read_table(path, Y, options=strict), path, 2, problem)


INDICATORS = "x,a,b,c\n" + "1,0,1,1\n" * 3
SHARES = "x,a,b,c\n" + "1,.2,.3,.5\n" * 3
FAULTS = [
    ("x,a,b,c\n1,2,1\n", 2, "3 fields, expected 4 as in the first line$"),
    ("x,a,b,c\n1,1,1,0\n1,1,1,0,9\n", 3, "5 fields, expected 4 .* a field that holds a ',' needs"),
    ("x,a,b,c\n1,1,0,0\n1,0,0.5,0.2\n", 3, "the targets sum to 0.7; expected 0/1 ind.*--normalize"),
    ("x,a,b,c\n1,1,0,0\n1,0,.95,.1\n", 3, "the targets sum to 1.05"),
    ("x,a,b,c\n1,1,0,0\n1,0,1.5,-0.5\n", 3, "target column 'c': -0.5 is negative; expected 0/1"),
    ("x,a,b,c\n1,1,0,no\n1,1,0,so\n", 3, "'so' is neither a number, nor no or yes"),
    ("x,a,b,c\n", None, "no row below the line of names"),
    ("x,,a,b,c\n1,2,1,0,1\n", 2, "column 2 has no name in line 1, and the value '2' here"),
    ('x,a,b,c\n1,1,1,"0\n', 2, "a quote is not closed"),
    ('x,a,b,c\n1,1,1,"0\n1,1,1,0\n', 2, "a quote that begins in this row is not closed"),
    ('x,a,b,c\n1,1,1,"0"0\n', 2, "not CSV .*; quotes within a quoted field are doubled"),
    (f"{'x' * 1001},a,b,c\n1,1,1,0\n", 1, "a name of 1001 characters: the first line"),
    (f"{'x' * 140_000},a,b,c\n1,1,1,0\n", 1, "a field of more than 131072 characters"),
    (",,\n1,2,3\n", 1, "the first line names no column"),
    ("a\n2,12\n8,50\n", 2, "names one column.*separate fields by ';'"),
    (
        INDICATORS + "1,2,0,0\n",
        5,
        "target column 'a': 2 is no indicator; expected 0 or 1, as in 3 of 4 rows",
    ),
    (INDICATORS + "1,0,0,0.5\n", 5, "'c': 0.5 is no indicator; expected 0 or 1, as in 3 of 4 rows"),
    (INDICATORS + "1,0,0,-1\n", 5, "'c': -1 is negative; expected 0/1 .*, as in 3 of 4 rows"),
    (INDICATORS + "1,0,maybe,1\n", 5, "'b': 'maybe' is not a number, as 3 of its values are; --mi"),
    (INDICATORS + "1,0,,1\n1,,1,1\n", 6, "'a': no value; --missing drop-targets leaves such"),
    ("x,a,b,c\n1.5,1,0,0\n1e999,0,1,0\n", 3, "'1e999' is not a number, as 1 of its values"),
    (SHARES + "1,0,0,.5\n", 5, "sum to 0.5; expected proportions that sum to one, as in 3 of 4 r"),
    ("x,a,b,c\n" + "1,20,30,50\n" * 3 + "1,30,30,30\n", 5, "90; expected percentages that sum to"),
    # with a pattern that goes back and forth, several minutes
    (f"x,a,b,c\n{'1' * 120_000}x,0,0,1\n2x,1,0,0\n", 2, "texts of more than 1000 characters"),
    ('x,a,b,c\n1,1,1,"0\n' + "2,0,0,1\n" * 50_000, 2, "a quote that begins in this row is not"),
]


@pytest.mark.parametrize(("text", "line", "problem"), FAULTS)
def test_faults_are_named_with_their_line(tmp_path, text, line, problem):
    path = write(tmp_path, text)
    check_refusal(lambda: read_csv(path, ABC), path, line, problem)


@pytest.mark.parametrize(
    ("targets", "how", "problem"),
    [
        (["z"], {}, "no column is called 'z'; the columns are x, a, b"),
        (AB, {"ignore": ["z"]}, "no column is called 'z'"),
        (AB, {"options": ReadOptions(tags=["z"])}, "no column is called 'z'"),
        (["x", "a", "b"], {}, "every column is a target or ignored; there is no feature"),
        (["a"], {"ignore": ["a"]}, "'a' is named as a target and as a column to ignore"),
        (["a", "a"], {}, "the target 'a' is named twice"),
        (None, {}, r"which columns are targets\? The columns are x, a, b; --targets NAMES names"),
        (["a"], {"format": "xml"}, "format 'xml' is not one of libsvm, csv, "),
        (["a", "b"], {"options": ReadOptions(normalize=True)}, "'b': -1 is negative; such rows"),
    ],
)
def test_names_and_options_that_cannot_be(tmp_path, targets, how, problem):
    path = write(tmp_path, "x,a,b\n1,1,0\n2,0,-1\n")
    with pytest.raises(DataError, match=problem):
        read_table(path, targets, **how)


@pytest.mark.parametrize(("targets", "ways"), [(Y, ""), (None, "--targets NAMES names them; ")])
def test_errors_say_that_a_first_line_may_be_data(tmp_path, targets, ways):
    path = write(tmp_path, "5.1,3.5,s\n4.9,3,o\n")
    doubt = r"the first line is taken for the names .* 2 numbers \(5.1, 3.5\); .* say --no-header$"
    with pytest.raises(DataError, match=f"he columns are 5.1, 3.5, s; {ways}{doubt}"):
        read_table(path, targets)


def test_long_lists_of_columns_show_the_last_ones(tmp_path):
    """Targets are often the last columns, and a name that is misspelled is near the right one."""
    names = [f"x{i}" for i in range(30)]
    path = write(tmp_path, ",".join(names) + "\n" + ",".join("0" * 30) + "\n")
    with pytest.raises(DataError, match=r"are x0, x1, .*, x14, …, x25, x26, x27, x28, x29$"):
        read_table(path, ["X29"])


def test_options_are_checked():
    assert split_names("a,, b c ,") == ["a", "b c"]
    for wrong, problem in (
        ({"missing": "mean"}, "missing must be one of 'impute', 'drop-targets', "),
        ({"kinds": {"x": "date"}}, r"kinds\['x'\] must be one of 'number', 'category', "),
        ({"kinds": {"x": "number"}, "tags": ["x"]}, "'x' is among tags, and of the kind 'number'"),
    ):
        with pytest.raises(ValueError, match=problem):
            ReadOptions(**wrong)


def test_a_choice_among_classes_needs_labels(tmp_path):
    path = write(tmp_path, "x,a,b\n1,1,0\n3,1,1\n5,0,0\n")
    table = read_table(path, AB).labelled(path)
    assert (table.X.tolist(), table.lines.tolist()) == ([[1], [3]], [2, 3])
    assert table.has_several_labels
    assert not table.rows(np.array([0])).has_several_labels
    assert table.notes == ("1 of 3 samples have no label and are left out",)
    for text, targets, problem in (
        ("x,a,b\n1,0,0\n", AB, "no sample has a label"),
        ("x,y\n1,u\n2,u\n", Y, "the only class is 'u'; expected two or more"),
    ):
        with pytest.raises(DataError, match=problem):
            read_csv(write(tmp_path, text), targets).labelled(path)


@pytest.mark.parametrize("written", ["{:.4f}", "{:.4f} €", "{:.1f} %"])
@pytest.mark.parametrize("mark", [".", ","])
def test_numbers_are_no_class_names_however_they_are_written(tmp_path, written, mark):
    cells = [written.format(1.5 + i / 7).replace(".", mark) for i in range(300)]
    text = "a;price\n" + "".join(f"{i};{cell}\n" for i, cell in enumerate(cells))
    with pytest.raises(DataError, match=r"'price': 300 different numbers, where .* --loss squared"):
        read_csv(write(tmp_path, text), ["price"])
    assert read_csv(write(tmp_path, text), ["price"], plain=True).Y.shape == (300, 1)
    named = read_csv(write(tmp_path, text.replace(";1", ";c1")), ["price"])
    assert len(named.target_names) == 300  # names are classes, however many


def test_a_test_file_has_the_columns_of_its_training_file(tmp_path):
    text = "id,a,b,kind\nx,1,2,dog\ny,3,4,cat\nz,5,6,eel\n"
    train = read_table(write(tmp_path, text), ["kind"], ignore=["id"])
    text = "b,note,kind,a\n6,old,eel,5\n4,new,cat,3\n"  # another order, and nothing to ignore
    expected = {
        "X": [[5, 6], [3, 4]],
        "Y": [[0, 0, 1], [1, 0, 0]],
        "target_names": train.target_names,
    }
    check_table(write(tmp_path, text), ["kind"], expected, like=train, ignore=["id"])
    text = "@relation r\n@attribute note string\n@attribute b real\n@attribute kind {eel,cat}\n"
    text += "@attribute a real\n@data\n'old, new',6,eel,5\nx,4,cat,3\n"
    check_table(write(tmp_path, text, "b.arff"), ["kind"], expected, like=train)
    for text, problem in (
        ("a,b,kind\n1,2,fox\n", "class 'fox': not in the training file"),
        ("b,kind\n1,eel\n", "no column is called 'a'; the columns are b, kind"),
    ):
        with pytest.raises(DataError, match=problem):
            read_table(write(tmp_path, text), ["kind"], like=train)
    gaps = write(tmp_path, "a,b,kind\n1,,dog\n3,4,\n5,6,cat\n")
    dropped = ReadOptions(missing="drop")  # rows without a target: gaps of features are filled
    filled = {"X": [[1, 4], [5, 6]], "Y": [[0, 1, 0], [1, 0, 0]]}
    check_table(gaps, ["kind"], filled, like=train, options=dropped)
    words = read_table(write(tmp_path, "x,w,y\n1,a,u\n2,b,v\n3,a,u\n"), ["y"])
    with pytest.raises(DataError, match="class 'a': not in the training file"):
        read_table(tmp_path / "data.csv", ["w"], like=words)  # a feature there
    shares = read_table(write(tmp_path, SHARES), ABC)
    with pytest.raises(DataError, match="its target columns: not in the training file"):
        read_table(write(tmp_path, "x,a,b\n1,.5,.5\n"), AB, like=shares)
    numbers = read_table(write(tmp_path, "x,a,b\n1,-1,2\n"), AB, plain=True)
    other = read_table(write(tmp_path, "x,a,b\n1,-1,2\n"), ["b", "a"], like=numbers, plain=True)
    assert other.Y.tolist() == [[-1, 2]]
    libsvm = read_table(write(tmp_path, "0,2 1:1 3:1\n1 1:1\n", "a.svm"))
    other = read_table(write(tmp_path, "0 1:1\n1 2:1\n", "b.svm"), like=libsvm)
    assert (other.X.shape, other.Y.shape) == ((2, 3), (2, 3))


TAGGED = "1;2,2,2;1,,1;3,3"


@pytest.mark.parametrize(
    ("train", "test", "kind", "expected"),
    [
        (TAGGED, "3;2", "indicators", [[0, 1, 1]]),
        (TAGGED, "1", "indicators", [[1, 0, 0]]),
        (TAGGED, "1.0;1,", "indicators", [[1, 0, 0], [0, 0, 0]]),
        ("a;b,a;b;c,d;e;f;g;h", "a;b;c,a;b", "labels", np.eye(3)[[1, 0]]),
        ("3,1,2", "2.0,3.0", "labels", np.eye(3)[[1, 2]]),
    ],
)
def test_a_target_column_is_read_as_in_its_training_file(tmp_path, train, test, kind, expected):
    paths = [
        write(
            tmp_path,
            "x,y\n" + "".join(f"{i},{cell}\n" for i, cell in enumerate(cells.split(","))),
            name,
        )
        for name, cells in (("train.csv", train), ("test.csv", test))
    ]
    table = read_table(paths[0], Y)
    assert table.kind == kind
    check_table(paths[1], Y, {"Y": expected, "kind": kind}, like=table)


def test_a_column_that_looks_different_further_down(tmp_path, monkeypatch):
    """Columns whose first rows mislead are read as words."""
    monkeypatch.setattr("fitzpatrick.datasets._csv._SAMPLE_ROWS", 5)
    n = 100
    columns = {
        "code": [str(i % 3) if i < 10 else "abc"[i % 3] for i in range(n)],
        "zip": [f"{i % 5 + 1}" if i < 10 else f"0{i % 5}" for i in range(n)],
        "late": ["" if i < 20 else f"{i},5" for i in range(n)],
        "sum": [f"{i},234" if 0 < i < 20 else "1.234,50" for i in range(n)],
        "y": ["uv"[i % 2] for i in range(n)],
    }
    lines = [columns, *zip(*columns.values(), strict=True)]
    table = read_table(write(tmp_path, "".join(";".join(line) + "\n" for line in lines)), Y)
    zips = ("00", "01", "02", "03", "04", "1", "2", "3", "4", "5")
    words = (*(f"code={value}" for value in "012abc"), *(f"zip={value}" for value in zips))
    assert table.feature_names == (*words, "late", "late (missing)", "sum")
    assert table.X[:, -3].tolist() == [60.0] * 20 + [i + 0.5 for i in range(20, n)]
    assert table.X[:3, -1].tolist() == [1234.5, 1.234, 2.234]


def test_cells_as_they_are(tmp_path):
    path = write(tmp_path, 'x,"a\nb",y\n 1,007,u\n\n2,"p, q",NA\n')
    assert read_cells(path, ["a b", "y"]) == {"a b": ["007", "p, q"], "y": ["u", "NA"]}
    path = write(tmp_path, "1,u\n2,v\n")
    assert read_cells(path, ["column_2"], header=False) == {"column_2": ["u", "v"]}
    with pytest.raises(DataError, match="no column is called 'z'"):
        read_cells(path, ["z"])


def test_data_frames_by_a_recipe(tmp_path):
    columns = read_table(write(tmp_path, "x,z,y\n−1.5,−2 %,u\n2,3 %,v\n"), Y).columns
    assert frame_features({"x": ["−7"], "z": [1]}, columns).tolist() == [[-7, 1]]
    nullable = pd.DataFrame({"x": [1, None], "z": ["2", None]}).convert_dtypes()
    with_gaps = Columns(tuple(replace(one, fill=9.0) for one in columns.items))
    assert frame_features(nullable, with_gaps).tolist() == [[1, 2], [9, 9]]
    assert frame_features({"x": [1, pd.NaT], "z": [2, pd.NaT]}, with_gaps).tolist() == [
        [1, 2],
        [9, 9],
    ]
    for frame, problem in (
        (
            {"x": np.array(["2024-01-31"], "M8[ns]"), "z": [1]},
            "column 'x', row 1: '2024-01-31T.* not a",
        ),
        ({"x": [1, -np.inf], "z": [1, 1]}, "column 'x', row 2: the number is infinite"),
        ({"x": [1]}, "no column is called 'z'; there are x"),
        ({"x": [1, 2], "z": [1]}, r"column 'z' has the shape \(1,\), expected \(2,\)"),
        (pd.DataFrame([[1, 2, 3]], columns=["x", "z", "z"]), r"'z' has the shape \(1, 2\), expec"),
        ({"x": 1, "z": 2}, r"column 'x' has the shape \(\), expected"),
        ({"x": [1, "w"], "z": [1, 1]}, "column 'x', row 2: 'w' is not a number"),
    ):
        with pytest.raises(ValueError, match=problem):
            frame_features(frame, columns)
