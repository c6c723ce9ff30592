"""CSV files with targets of every kind."""

import contextlib
import csv
import time

import numpy as np
import pytest

from fitzpatrick.datasets import (
    DataError,
    ReadOptions,
    frame_features,
    read_csv,
    read_inputs,
    read_table,
)

INDICATORS = "a,b,red,blue\n1,2,1,0\n3,4,1,1\n5,6,0,0\n"


def write(tmp_path, text, name="data.csv"):
    path = tmp_path / name
    path.write_text(text)
    return path


def test_indicators(tmp_path):
    table = read_csv(write(tmp_path, INDICATORS), ["red", "blue"])
    assert table.kind == "indicators"
    assert table.X.tolist() == [[1, 2], [3, 4], [5, 6]]
    assert table.Y.tolist() == [[1, 0], [1, 1], [0, 0]]
    assert (table.feature_names, table.target_names) == (("a", "b"), ("red", "blue"))


def test_proportions(tmp_path):
    table = read_csv(write(tmp_path, "a,u,v\n1,0.25,0.75\n2,1,0\n"), ["v", "u"])
    assert table.kind == "proportions"
    assert table.Y.tolist() == [[0.75, 0.25], [0.0, 1.0]]


def test_class_names(tmp_path):
    table = read_csv(write(tmp_path, "a,kind\n1,dog\n2,cat\n3,dog\n"), ["kind"])
    assert table.kind == "labels"
    assert table.target_names == ("cat", "dog")
    assert table.Y.tolist() == [[0, 1], [1, 0], [0, 1]]


@pytest.mark.parametrize("delimiter", [";", "\t"])
def test_other_delimiters_quotes_and_blank_lines(tmp_path, delimiter):
    text = '"a, b",y\n"1",x\n\n2,z\n'.replace(",y", f"{delimiter}y")
    text = text.replace(",x", f"{delimiter}x").replace(",z", f"{delimiter}z")
    table = read_csv(write(tmp_path, text), ["y"])
    assert table.feature_names == ("a, b",)
    assert table.X.tolist() == [[1.0], [2.0]]


def test_chosen_features_leave_other_columns_unread(tmp_path):
    columns = read_csv(write(tmp_path, "a,b,c\n0,0,k\n1,1,k\n"), ["c"]).columns
    table = read_inputs(write(tmp_path, "name,b,a\nx,1,2\ny,3,4\n"), columns)
    assert table.X.tolist() == [[2.0, 1.0], [4.0, 3.0]]
    assert (table.kind, table.Y.shape, table.notes) == ("none", (2, 0), ())


@pytest.mark.parametrize(
    ("text", "line", "problem"),
    [
        ("a,b,red,blue\n1,2,1\n", 2, "3 fields, expected 4 as in the first line"),
        ("a,b,red,blue\n1,2,1,0\n1,2,1,0,9\n", 3, "5 fields, expected 4"),
        ("a,b,red,blue\n1,2,1,0\n1,2,0.5,0.2\n", 3, "the targets sum to 0.7; expected 0/1 ind"),
        ("a,b,red,blue\n1,2,1,0\n1,2,.95,.1\n", 3, "the targets sum to 1.05"),
        ("a,b,red,blue\n1,2,1,0\n1,2,1.5,-0.5\n", 3, "target column 'blue': -0.5 is negative"),
        ("a,b,red,blue\n1,2,1,0\n1,2,,0\n", 3, "target column 'red': no value; --missing drop"),
        ("a,b,red,blue\n1,2,1,0\n1,2,1,x\n", 3, "'blue': 'x' is not a number, as 1 of its val"),
        ("a,b,red,blue\n1,2,1,no\n1,2,1,so\n", 3, "'so' is neither a number, nor no or yes"),
        ("a,b,red,blue\n", None, "no row below the line of names"),
        ("a,,red,blue\n1,2,1,0\n", 2, r"column 2 has no name in line 1, and the value '2' here"),
        ('a,b,red,blue\n1,2,1,"0\n', 2, "a quote is not closed"),
        ('a,b,red,blue\n1,2,1,"0\n1,2,1,0\n', 2, "a quote that begins in this row is not closed"),
        ('a,b,red,blue\n1,2,1,"0"0\n', 2, "not CSV .*; quotes within a quoted field are doubled"),
        (f"{'a' * 1001},b,red,blue\n1,2,1,0\n", 1, "a name of 1001 characters: the first line"),
        (f"{'a' * 140_000},b,red,blue\n1,2,1,0\n", 1, "a field of more than 131072 characters"),
    ],
)
def test_faults_are_named_with_their_line(tmp_path, text, line, problem):
    path = write(tmp_path, text)
    with pytest.raises(DataError, match=problem) as caught:
        read_csv(path, ["red", "blue"])
    assert caught.value.line == line


def test_missing_columns(tmp_path):
    path = write(tmp_path, INDICATORS)
    with pytest.raises(DataError, match="no column is called 'green'; the columns are a, b, red"):
        read_csv(path, ["green"])
    wide = write(tmp_path, ",".join(f"c{i}" for i in range(21)) + "\n", "wide.csv")
    with pytest.raises(DataError, match=r"the columns are c0, .*, c18, c19, …$"):
        read_csv(wide, ["green"])
    with pytest.raises(DataError, match="every column is a target"):
        read_csv(path, ["a", "b", "red", "blue"])
    with pytest.raises(DataError, match="'red' is named as a target and as a column to ignore"):
        read_csv(path, ["red"], ignore=["red"])


def test_one_class_is_no_choice(tmp_path):
    path = write(tmp_path, "a,y\n1,x\n2,x\n")
    with pytest.raises(DataError, match="the only class is 'x'; expected two or more"):
        read_csv(path, ["y"]).labelled(path)


@pytest.mark.parametrize(
    ("values", "said"),
    [
        (("0", "7", "12"), "whole numbers 0 to 12 are taken as 3 class names"),
        (("3.0", "1.0", "2.0"), "whole numbers 1 to 3 are taken as 3 class names"),
        (("0", "1"), None),
        (("-1", "0", "1"), None),
        (("0", "0.5", "1"), None),
        (("0", "1", "many"), None),
    ],
)
def test_classes_that_may_be_counts_are_a_note(tmp_path, values, said):
    rows = "".join(f"{i}.5,{value}\n" for i, value in enumerate(values))
    table = read_csv(write(tmp_path, f"a,n\n{rows}"), ["n"])
    assert (table.kind, table.target_names) == ("labels", tuple(sorted(values)))
    assert table.notes == ((f"n: {said}; for counts, fit --loss poisson",) if said else ())
    assert read_csv(write(tmp_path, f"a,n\n{rows}"), ["n"], table.columns).notes == ()


def test_samples_without_a_label_are_left_out_and_counted(tmp_path):
    path = write(tmp_path, INDICATORS)
    table = read_csv(path, ["red", "blue"]).labelled(path)
    assert table.X.tolist() == [[1, 2], [3, 4]]
    assert table.notes == ("1 of 3 samples have no label and are left out",)
    path = write(tmp_path, "a,red,blue\n1,0,0\n")
    with pytest.raises(DataError, match="no sample has a label"):
        read_csv(path, ["red", "blue"]).labelled(path)


def test_rounded_proportions_are_normalised_with_a_note(tmp_path):
    text = "a,u,v,w\n1,.33,.33,.33\n2,.5,.25,.25\n3,.667,.167,.167\n"
    table = read_csv(write(tmp_path, text), ["u", "v", "w"])
    np.testing.assert_allclose(
        table.Y.sum(axis=1), 1.0, rtol=1e-14
    )  # a few divisions and additions
    np.testing.assert_allclose(table.Y[0], 1 / 3, rtol=1e-14)
    (note,) = table.notes
    assert note.startswith(
        "the proportions of 2 of 3 samples do not sum to one exactly (0.99 to 1."
    )
    assert read_csv(write(tmp_path, "a,u,v\n1,.25,.75\n"), ["u", "v"]).notes == ()


def test_rows_of_zeros_among_proportions_have_no_label(tmp_path):
    path = write(tmp_path, "a,u,v\n1,.25,.75\n2,0,0\n3,.5,.49\n")
    table = read_csv(path, ["u", "v"])
    assert table.kind == "proportions"
    assert table.Y.tolist() == [[0.25, 0.75], [0, 0], [0.5 / 0.99, 0.49 / 0.99]]
    assert table.lines.tolist() == [2, 3, 4]
    labelled = table.labelled(path)
    assert labelled.X.tolist() == [[1], [3]]
    assert labelled.lines.tolist() == [2, 4]
    assert labelled.notes == (
        "the proportions of 1 of 3 samples do not sum to one exactly (0.99 to 1); "
        "each is divided by its sum",
        "1 of 3 samples have no label and are left out",
    )
    with pytest.raises(DataError, match=r"'u': -0\.5 is negative"):
        read_csv(write(tmp_path, "a,u,v\n1,.25,.75\n2,-.5,.5\n"), ["u", "v"])


def test_ignored_columns_are_not_read(tmp_path):
    text = "id,colour,a,kind\n7,red,1,dog\n8,,2,cat\n"
    table = read_table(write(tmp_path, text), ["kind"], ignore=["id", "colour"])
    assert table.feature_names == ("a",)
    assert table.X.tolist() == [[1.0], [2.0]]
    table = read_table(write(tmp_path, text), ["kind"])
    assert table.feature_names == ("colour=red", "colour (missing)", "a")
    with pytest.raises(DataError, match="no column is called 'size'"):
        read_table(write(tmp_path, text), ["kind"], ignore=["size"])


def test_read_table_finds_the_format(tmp_path):
    assert read_table(write(tmp_path, INDICATORS), ["red", "blue"]).kind == "indicators"
    other = write(tmp_path, INDICATORS, "data.dta")
    with pytest.raises(DataError, match=r"the format of a \.dta file is not known"):
        read_table(other, ["red", "blue"])
    table = read_table(other, ["red", "blue"], format="csv")
    np.testing.assert_array_equal(table.Y.sum(axis=1), [1, 2, 0])


def test_csv_needs_targets_and_libsvm_has_none(tmp_path):
    asked = (
        r"which columns are targets\? The columns are a, b, red, blue; --targets NAMES names them"
    )
    with pytest.raises(DataError, match=asked):
        read_table(write(tmp_path, INDICATORS))
    with pytest.raises(DataError, match="leave --targets, --ignore, --kinds and --tags out"):
        read_table(write(tmp_path, "0 1:1\n", "a.svm"), ["x"])
    with pytest.raises(DataError, match="LIBSVM files have no named columns"):
        read_table(tmp_path / "a.svm", options=ReadOptions(tags=["x"]))


def test_targets_named_twice(tmp_path):
    with pytest.raises(DataError, match="the target 'red' is named twice"):
        read_csv(write(tmp_path, INDICATORS), ["red", "red"])


def test_a_column_of_numbers_is_no_column_of_class_names(tmp_path):
    text = "a,price\n" + "".join(f"{i},{i / 7}\n" for i in range(300))
    with pytest.raises(DataError, match=r"'price' has 300 different values; .* --loss squared"):
        read_csv(write(tmp_path, text), ["price"])
    named = read_csv(write(tmp_path, text.replace(",0", ",c0")), ["price"], plain=False)
    assert len(named.target_names) == 300  # names are classes, however many
    table = read_csv(write(tmp_path, text), ["price"], plain=True)
    assert (table.kind, table.Y.shape) == ("numbers", (300, 1))


def test_a_test_file_has_the_columns_of_its_training_file(tmp_path):
    train = read_table(write(tmp_path, "a,kind\n1,dog\n2,cat\n3,eel\n"), ["kind"])
    test = read_table(write(tmp_path, "a,kind\n1,eel\n2,cat\n"), ["kind"], like=train)
    assert test.target_names == ("cat", "dog", "eel")
    assert test.Y.tolist() == [[0, 0, 1], [1, 0, 0]]
    alone = read_table(write(tmp_path, "a,kind\n1,eel\n"), ["kind"], like=train)
    assert alone.Y.tolist() == [[0, 0, 1]]
    with pytest.raises(DataError, match="class 'fox': not among those"):
        read_table(write(tmp_path, "a,kind\n1,eel\n2,fox\n"), ["kind"], like=train)
    with pytest.raises(DataError, match="no column is called 'a'; the columns are b, kind"):
        read_table(write(tmp_path, "b,kind\n1,eel\n2,cat\n"), ["kind"], like=train)
    libsvm = read_table(write(tmp_path, "0,2 1:1 3:1\n1 1:1\n", "a.svm"))
    other = read_table(write(tmp_path, "0 1:1\n1 2:1\n", "b.svm"), like=libsvm)
    assert (other.X.shape, other.Y.shape) == ((2, 3), (2, 3))


def test_a_test_file_may_have_other_columns_and_another_order(tmp_path):
    """They are found by name; what the training file ignored need not be there."""
    train = read_table(
        write(tmp_path, "id,a,b,u,v\nx,1,2,1,0\ny,3,4,0,1\n"), ["u", "v"], ignore=["id"]
    )
    text = "b,note,v,u,a\n6,old,1,0,5\n"
    test = read_table(write(tmp_path, text), ["u", "v"], like=train, ignore=["id"])
    assert test.X.tolist() == [[5, 6]]
    assert test.Y.tolist() == [[0, 1]]
    text = "@relation r\n@attribute note string\n" + "".join(
        f"@attribute {name} numeric\n" for name in "buva"
    )
    arff = write(tmp_path, text + "@data\n'old, new',6,0,1,5\n", "b.arff")
    test = read_table(arff, ["u", "v"], like=train)
    assert (test.X.tolist(), test.Y.tolist()) == ([[5, 6]], [[0, 1]])


def test_the_limit_of_other_readers_does_not_matter(tmp_path):
    """Others raise Python's limit, which is one for all readers, SciPy's for example."""
    path = tmp_path / "a.csv"
    path.write_text('x,y\n1,"u\n' + "2,v\n" * 50_000)  # the quote is not closed
    before = csv.field_size_limit(1 << 30)
    try:
        with pytest.raises(DataError, match="line 2: a quote that begins in this row is not clo"):
            read_table(path, ["y"])
        assert csv.field_size_limit() == 1 << 30
    finally:
        csv.field_size_limit(before)


def test_spaces_around_class_names_mean_nothing(tmp_path):
    path = tmp_path / "songs.csv"
    path.write_text('length,genre\n1,"rock"\n2," rock"\n3,"rock "\n4,jazz\n')
    table = read_csv(path, ["genre"])
    assert table.target_names == ("jazz", "rock")
    assert np.asarray(table.Y).tolist() == [[0, 1], [0, 1], [0, 1], [1, 0]]


@pytest.mark.parametrize(
    "text",
    [
        "x,y\n1" + " " * 120_000 + "5,u\n2,v\n",
        'x,y\n"$' + " " * 120_000 + '5",u\n$2,v\n',
        "x,y\n" + "1" * 120_000 + "x,u\n2x,v\n",
        ",".join(["a"] * 50_000) + ",y\n" + "1," * 50_000 + "u\n",
    ],
    ids=["spaces", "unit", "digits", "names"],
)
def test_long_cells_take_no_longer_than_many(tmp_path, text):
    """At most 1 s or so; with a pattern that goes back and forth, several minutes."""
    path = write(tmp_path, text)
    start = time.process_time()
    with contextlib.suppress(DataError):
        read_table(path, ["y"])
    assert time.process_time() - start < 10


def test_a_file_without_names_is_noted(tmp_path):
    path = write(tmp_path, "5.1,3.5,1.4,setosa\n4.9,3,1.4,setosa\n6.2,2.9,4.3,other\n")
    note = "the first line is taken for the names of the columns, though it has 3 numbers (5.1, "
    assert read_table(path, ["setosa"]).notes[0].startswith(note)
    counted = write(tmp_path, "0,1,2\n4.9,3,a\n6.2,2.9,b\n")  # as pandas writes without names
    assert read_table(counted, ["2"]).notes == ()


def test_a_typeset_minus_is_a_minus(tmp_path):
    path = write(tmp_path, "x,z,y\n−1.5,−2 %,u\n2,3 %,v\n")
    assert read_table(path, ["y"]).X.tolist() == [[-1.5, -0.02], [2, 0.03]]
    columns = read_table(path, ["y"]).columns
    assert frame_features({"x": ["−7"], "z": [1]}, columns).tolist() == [[-7, 1]]


@pytest.mark.parametrize(
    ("cells", "note"),
    [
        (
            [1.5, -999, 3.5, -999] * 10,
            "x: -999 in 20 of 40 rows is taken as a number; if it stands",
        ),
        ([-500, -999, 3.5, 7] * 10, None),
        (range(1, 41), "x: numbers the rows, 1 to 40; if that is no feature, --ignore x leaves"),
        (range(1, 11), None),
    ],
)
def test_numbers_that_may_be_none_are_a_note(tmp_path, cells, note):
    text = "x,w,y\n" + "".join(f"{x},{i % 3},{'uv'[i * i % 7 % 2]}\n" for i, x in enumerate(cells))
    notes = read_table(write(tmp_path, text), ["y"]).notes
    assert [one[: len(note or "")] for one in notes] == ([note] if note else [])


def test_columns_that_tell_the_targets_are_a_note(tmp_path):
    rows = "".join(f"{i % 7},{'pq'[i % 2]},{i % 2},{'uv'[i % 2]}\n" for i in range(60))
    notes = read_table(write(tmp_path, "x,z,n,y\n" + rows), ["y"]).notes
    told = [note.split()[0] for note in notes if "alone tells the targets of every row" in note]
    assert told == ["z", "n"]


def test_rows_are_divided_by_their_sums_when_asked_for(tmp_path):
    path = write(tmp_path, "x,a,b\n1,3,1\n2,0,0\n3,10,30\n")
    with pytest.raises(
        DataError, match=r"line 2: the targets sum to 4; .* --normalize divides each"
    ):
        read_table(path, ["a", "b"])
    table = read_table(path, ["a", "b"], options=ReadOptions(normalize=True))
    assert (table.kind, table.Y.tolist()) == ("proportions", [[0.75, 0.25], [0, 0], [0.25, 0.75]])
    assert table.notes == ("each row of targets is divided by its sum (0 to 40)",)
    with pytest.raises(DataError, match="line 3: target column 'b': -1 is negative"):
        read_table(
            write(tmp_path, "x,a,b\n1,3,1\n2,5,-1\n"),
            ["a", "b"],
            options=ReadOptions(normalize=True),
        )


def test_a_single_name_above_decimal_commas_is_refused(tmp_path):
    """Not read as row names and a column, which gave wrong numbers without a word."""
    (tmp_path / "t.csv").write_text("a\n2,12\n8,50\n")
    with pytest.raises(DataError, match=r"names one column.*separate fields by ';'"):
        read_table(tmp_path / "t.csv", targets=["a"])
