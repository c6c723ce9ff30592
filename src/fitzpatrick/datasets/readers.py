"""One door to every format: by its suffix, or by the name that the caller gives.

Every format ends in one frame of columns, and one function makes a table of it.
"""

import os
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from . import _learn, _tables, _targets
from ._arff import ArffFile, expand_targets
from ._csv import CsvFile
from ._errors import DataError
from ._frame import CellError, Cells, Frame, Notes, Texts, find_pandas
from ._numbers import MISSING_WORDS
from ._table import MAX_FEATURES, Matrix, Table, check_target_cells, counted, listed
from ._text import member_name, plain_suffix, read_text
from .columns import Column, Columns, Ignored, Number, finder
from .libsvm import read_libsvm
from .options import DEFAULT, ReadOptions

FilePath = str | os.PathLike[str]

NamedFile = CsvFile | ArffFile
FORMATS = ("libsvm", "csv", "arff", "parquet", "xlsx", "jsonl")
_SUFFIXES = {
    ".csv": "csv", ".tsv": "csv", ".svm": "libsvm", ".libsvm": "libsvm", ".svmlight": "libsvm",
    ".arff": "arff", ".parquet": "parquet", ".xlsx": "xlsx", ".xlsm": "xlsx", ".jsonl": "jsonl",
    ".ndjson": "jsonl",
}  # fmt: skip
_TEXT = (".txt", ".data", ".dat")  # of which the first line tells
_SPREADSHEETS = (".xls", ".xlsb", ".ods", ".numbers")
_LIBSVM_LINE = re.compile(rb"[\d,]*(?:\s+\d+:\S+)+\s*")


def format_of(path: FilePath) -> str:
    """The format that a file's suffix stands for, or the first line of a text file.

    Example:
        >>> format_of("yeast_train.svm.gz")
        'libsvm'
    """
    path = Path(path)
    suffix = plain_suffix(path)
    if not suffix and path.suffix.lower() == ".zip" and path.is_file():
        suffix = plain_suffix(member_name(path))
    if suffix in _SUFFIXES:
        return _SUFFIXES[suffix]
    if not path.exists():
        raise DataError("no such file", path)
    if path.is_dir():
        raise DataError("is a folder; expected a file", path)
    if suffix in _SPREADSHEETS:
        raise DataError("a spreadsheet; save the sheet as CSV", path)
    if suffix in _TEXT:
        lines = read_text(path, []).split(b"\n")
        first = next((line for line in lines if line.strip()), b"")
        if first.lstrip()[:1] in (b"@", b"%"):
            return "arff"
        return "libsvm" if _LIBSVM_LINE.fullmatch(first) else "csv"
    known = ", ".join((*_SUFFIXES, *_TEXT))
    what = f"{suffix} file" if suffix else "file without a suffix"
    problem = f"the format of a {what} is not known; expected {known}"
    raise DataError(problem, path, None, "--format tells, such as csv or jsonl")


def read_table(
    path: FilePath,
    targets: Sequence[str | Path] | str | Path | None = None,
    format: str | None = None,  # noqa: A002  (the option is called --format)
    like: Table | None = None,
    *,
    ignore: Sequence[str] = (),
    plain: bool = False,
    options: ReadOptions = DEFAULT,
) -> Table:
    """Features and targets of a file of any known format.

    Args:
        path: a CSV, LIBSVM multi-label, ARFF, Parquet, Excel or JSON lines file; text files may be
            compressed.
        targets: target columns; CSV files need them, ARFF files may say it themselves. One column:
            its values are class names, or tags. Several: 0/1 indicators, proportions that sum to
            one in each row, or percentages. The path of one of Mulan's XML files stands for the
            labels that it names.
        format: ``"csv"``, ``"libsvm"``, ``"arff"``, ``"parquet"``, ``"xlsx"`` or ``"jsonl"``; by
            default what the suffix says.
        like: the table of the training file: features are made as there, by name, and not every
            class of it need occur here.
        ignore: columns that are neither features nor targets.
        plain: True if targets are numbers as they are, such as counts.
        options: how to treat missing values, words and ambiguous numbers.
    """
    path = Path(path)
    if like is not None and like.columns is None:
        raise ValueError("the table was not read from a file: it has no recipe of columns")
    columns = None if like is None else like.columns
    kind = format or format_of(path)
    names = expand_targets(targets, path)
    if kind == "libsvm":
        if names or ignore or options.named or options.sheet or not options.header:
            problem = "LIBSVM files have no named columns and no sheets"
            advice = "leave --targets, --ignore, --kinds, --tags, --no-header and --sheet out"
            raise DataError(problem, path, None, advice)
        _refuse_words(columns, path)
        table = read_libsvm(path, n_features=None if like is None else like.X.shape[1])
    else:
        file = _open(path, kind, options)
        if kind != "arff" and not names:
            problem = f"which columns are targets? The columns are {listed(file.names)}"
            ways = filter(None, ("--targets NAMES names them", file.doubt))
            raise DataError(problem, path, None, "; ".join(ways))
        if like is not None:
            names = tuple(file.targets(names))
            options = _as_target_of(like, names, options)
        table = _read(file, names, columns, ignore, options, plain=plain)
    return table if like is None else replace(_as_in(like, table, path), columns=columns)


def read_csv(
    path: FilePath,
    targets: Sequence[str] | None,
    columns: Columns | None = None,
    *,
    ignore: Sequence[str] = (),
    plain: bool = False,
    options: ReadOptions = DEFAULT,
) -> Table:
    """Read a CSV file; the arguments are as in :func:`read_table`, except for two.

    Without ``targets`` every column is a feature, and Y has no columns. ``columns`` is the recipe
    of a training file, whose columns are read, and no others.

    Raises:
        DataError: with the line, for whatever cannot be read, or only by a guess.
    """
    return _read(_open(Path(path), "csv", options), targets, columns, ignore, options, plain=plain)


def read_arff(
    path: FilePath,
    targets: Sequence[str] | None = None,
    columns: Columns | None = None,
    *,
    ignore: Sequence[str] = (),
    plain: bool = False,
    options: ReadOptions = DEFAULT,
) -> Table:
    """Read an ARFF file; the arguments are as in :func:`read_csv`.

    Without ``targets``, the XML file of the same stem or the ``-C`` option in the relation's name
    says which attributes are labels. An empty list: there are no labels.

    Raises:
        DataError: with the line, for whatever is not in the format.
    """
    return _read(_open(Path(path), "arff", options), targets, columns, ignore, options, plain=plain)


def read_inputs(
    path: FilePath,
    columns: Columns,
    format: str | None = None,  # noqa: A002  (the option is called --format)
    *,
    header: bool = True,
    decimal: str | None = None,
    sheet: str = "",
) -> Table:
    """The features of a file without targets, such as one to predict; other columns are not read.

    Args:
        path: the file.
        columns: the recipe of the training file, ``Table.columns``.
        format: as in :func:`read_table`.
        header: as in :class:`ReadOptions`.
        decimal: as in :class:`ReadOptions`.
        sheet: as in :class:`ReadOptions`.

    Returns:
        A table of the kind ``"none"``, whose notes say what was done, and to which column.
    """
    path, options = Path(path), ReadOptions(header=header, decimal=decimal, sheet=sheet)
    kind = format or format_of(path)
    if kind != "libsvm":
        return _read(_open(path, kind, options), (), columns, (), options)
    _refuse_words(columns, path)
    table = read_libsvm(path, n_features=columns.n_features, need_labels=False)
    Y = np.zeros((table.X.shape[0], 0))
    return replace(table, Y=Y, kind="none", target_names=(), columns=columns)


def read_cells(
    path: FilePath,
    names: Sequence[str],
    format: str | None = None,  # noqa: A002  (the option is called --format)
    *,
    header: bool = True,
    sheet: str = "",
) -> dict[str, list[str]]:
    """Columns of a file as they are, in the rows that :func:`read_inputs` reads.

    Args:
        path: a file with named columns.
        names: of the columns.
        format: as in :func:`read_table`.
        header: as in :class:`ReadOptions`.
        sheet: as in :class:`ReadOptions`.
    """
    path = Path(path)
    kind = format or format_of(path)
    if kind == "libsvm":
        raise DataError("LIBSVM files have no named columns to keep", path)
    file = _open(path, kind, ReadOptions(header=header, sheet=sheet))
    names = file.known_as(names)
    _check_known(names, file)
    return file.cells(names)


def frame_features(frame: Any, columns: Columns) -> Matrix:
    """The features of a data frame, by the recipe of the training file.

    Args:
        frame: from pandas or polars, or a mapping from names to columns; others are not looked at.
        columns: the recipe, ``Table.columns``.

    Raises:
        ValueError: for a column that is not there, or a cell that does not go with the recipe.

    Example:
        >>> from fitzpatrick.datasets.columns import Boolean, Number
        >>> columns = Columns((Number("width", fill=2.0), Boolean("sold", fill=0.0)))
        >>> frame_features({"sold": ["yes", "no"], "width": [1.5, None]}, columns)
        array([[1.5, 1. ],
               [2. , 0. ]])
    """
    known = frame.keys() if isinstance(frame, Mapping) else frame.columns
    cells: dict[str, Cells] = {}
    rows: int | None = None
    for name in (column.name for column in columns.used):
        if name not in known:
            raise ValueError(f"no column is called {name!r}; there are {listed(map(str, known))}")
        values = np.asarray(frame[name])
        rows = len(values) if rows is None and values.ndim else rows
        if values.shape != (rows,):
            raise ValueError(f"column {name!r} has the shape {values.shape}, expected ({rows},)")
        cells[name] = _cells_in_memory(values, columns.missing_values)
        if not isinstance(cells[name], Texts) and np.isinf(cells[name]).any():
            row = int(np.isinf(cells[name]).argmax()) + 1
            raise ValueError(f"column {name!r}, row {row}: the number is infinite")
    try:
        return columns.encode(cells, Notes())
    except CellError as error:
        raise ValueError(f"column {error.column!r}, row {error.row + 1}: {error}") from None


def _cells_in_memory(values: np.ndarray, missing_values: Sequence[str]) -> Cells:
    """The cells of a column of a data frame: numbers and booleans, or words."""
    if values.dtype.kind in "fiub":
        return values.astype(np.float64)
    gaps = find_pandas().isna(values)
    if values.dtype.kind in "mM":
        values = values.astype(str)  # dates, not the nanoseconds that they are stored as
    words = ["" if gap else str(cell) for cell, gap in zip(values.tolist(), gaps, strict=True)]
    return Texts.of(words, MISSING_WORDS.union(missing_values))


def _open(path: Path, kind: str, options: ReadOptions) -> NamedFile:
    if kind not in FORMATS[1:]:
        raise DataError(f"format {kind!r} is not one of {', '.join(FORMATS)}", path)
    if not options.header and kind not in ("csv", "xlsx"):
        problem = f"{kind} files have no line of names that could be missing"
        raise DataError(problem, path, None, "leave --no-header out")
    if options.sheet and kind != "xlsx":
        raise DataError(f"{kind} files have no sheets", path, None, "leave --sheet out")
    if kind == "arff":
        return ArffFile(path)
    if kind == "jsonl":
        return CsvFile(path, _tables.json_lines_as_csv(path), 0)  # no line holds the names
    if kind == "parquet":
        return CsvFile(path, _tables.parquet_as_csv(path))
    if kind == "csv":
        return CsvFile(path, has_header=options.header)
    content, sheets = _tables.workbook_as_csv(path, options.sheet)
    file = CsvFile(path, content, has_header=options.header)
    if others := [] if options.sheet else sheets[1:]:
        count = f"{counted(len(others), 'other')} {'are' if others[1:] else 'is'} left out"
        note = f"the first sheet of the workbook is read, {sheets[0]!r}; {count}: "
        note += f"{listed(others, most=5)}; --sheet NAME reads another"
        file.notes.insert(0, note)
        file.doubt = "; ".join(filter(None, (note, file.doubt)))
    return file


def _read(
    file: NamedFile,
    targets: Sequence[str] | None,
    columns: Columns | None,
    ignore: Sequence[str],
    options: ReadOptions,
    *,
    plain: bool = False,
) -> Table:
    """A file of named columns, by a recipe or by what is learned from it."""
    targets, ignore = file.targets(targets), file.known_as(ignore)
    twice = next((name for name, count in Counter(targets).items() if count > 1), None)
    if twice is not None:
        raise DataError(f"the target {twice!r} is named twice", file.path)
    both = next((name for name in targets if name in ignore), None)
    if both is not None:
        raise DataError(f"{both!r} is named as a target and as a column to ignore", file.path)
    if columns is None:
        _check_known((*targets, *options.named, *ignore), file)
        names = [name for name in file.names if name not in {*targets, *ignore}]
        if not names:
            problem = f"every {file.word} is a target or ignored; there is no feature"
            raise DataError(problem, file.path, file.header_line)
        wanted = [name for name in names if options.kind_of(name) != "ignored"]
        words = {name for name in wanted if options.kind_of(name) not in (None, "number")}
    else:
        wanted = names = [column.name for column in columns.used]
        _check_known((*targets, *names), file)
        missing = (*options.missing_values, *columns.missing_values)
        options = replace(options, missing_values=missing)
        words = {one.name for one in columns.used if not isinstance(one, Number) or one.unit}
    classes = targets[0] if len(targets) == 1 and not plain else ""
    frame = file.read([*targets, *wanted], options, {classes, *words}, classes)
    frame.targets, frame.notes.of_training = targets, columns is None
    return _table(frame, names, columns, plain=plain)


def _check_known(names: Iterable[str], file: NamedFile) -> None:
    unknown = next((name for name in names if name not in file.names), None)
    if unknown is not None:
        problem = f"no {file.word} is called {unknown!r}; the {file.word}s are {listed(file.names)}"
        raise DataError(problem, file.path, file.header_line, file.doubt or None)


def _table(frame: Frame, names: Sequence[str], columns: Columns | None, *, plain: bool) -> Table:
    """Features and targets of a frame, by a recipe or by what is learned from it."""
    notes, path = frame.notes, frame.path
    has_classes = len(frame.targets) == 1 and not plain
    check_target_cells(frame.lines.size, len(frame.targets), path)
    readings = {} if has_classes else _targets.target_readings(frame)
    if columns is None:
        columns = _learn.learn(frame, names, readings)
    else:
        _learn.follow(frame, columns, readings)
    targets: Sequence[Column]
    if has_classes:
        targets = [_targets.class_target(frame)]
    else:
        targets = _targets.number_targets(frame, readings)
    columns = _learn.settle_gaps(frame, columns, targets)
    for column in columns.items:
        column.describe(notes)
    if columns.n_features == 0:
        reasons = [
            f"{one.name} ({one.reason})" for one in columns.items if isinstance(one, Ignored)
        ]
        left_out = f": {', '.join(reasons[:5])}" if reasons else ""
        raise DataError(f"no column is left to be a feature{left_out}", path)
    if columns.n_features > MAX_FEATURES:
        raise DataError(f"the categories make more than {MAX_FEATURES} features", path)
    try:
        X = columns.encode(frame.cells, notes)
    except CellError as error:
        raise frame.error(error.column, str(error), error.row) from None
    Y, kind, target_names = _targets.read_targets(frame, targets, plain=plain)
    if notes.of_training:
        _targets.note_leaks(X, Y, columns, notes)
    feature_names, lines = columns.feature_names, frame.lines
    return Table(X, Y, kind, feature_names, target_names, notes.sentences, columns, lines)


def _refuse_words(columns: Columns | None, path: Path) -> None:
    """LIBSVM files hold the numbers of each feature, and no words."""
    used = () if columns is None or columns.n_numbered else columns.used
    wrong = next((column.name for column in used if not column.is_plain), None)
    if wrong is not None:
        problem = f"LIBSVM files hold plain numbers; {wrong!r} has words, units or missing values"
        raise DataError(f"{problem} in the training file", path)


def _as_target_of(like: Table, targets: Sequence[str], options: ReadOptions) -> ReadOptions:
    """One target column holds class names, or labels, if that of the training file does."""
    kind = {"labels": "category", "indicators": "tags"}.get(like.kind)
    if kind is None or len(targets) != 1 or options.kind_of(targets[0]) is not None:
        return options
    return replace(options, kinds={**options.kinds, targets[0]: kind})


def _as_in(like: Table, table: Table, path: Path) -> Table:
    """The table with the classes of another one."""
    if table.target_names == like.target_names:
        return table
    find = finder(like.target_names)
    foreign = [name for name in table.target_names if find(name) is None]
    if foreign or table.kind == "proportions":
        what = f"class {foreign[0]!r}" if foreign else "its target columns"
        raise DataError(f"{what}: not in the training file", path)
    check_target_cells(table.Y.shape[0], len(like.target_names), path)
    Y = np.zeros((table.Y.shape[0], len(like.target_names)), dtype=table.Y.dtype)
    for name, column in zip(table.target_names, table.Y.T, strict=True):  # 3 and 3.0 are one
        Y[column != 0, find(name)] = column[column != 0]
    return replace(table, Y=Y, target_names=like.target_names)
