"""One door to every format: by its suffix, or by the name that the caller gives."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from ._csv_dialect import column_names
from ._errors import DataError
from ._mulan import expand_targets
from ._table import Matrix, Table, check_target_cells, listed
from ._text import plain_suffix
from .arff import read_arff, read_arff_cells
from .columns import Boolean, CellError, Columns, Number, Tally, as_cells, join_features
from .csv_table import read_csv, read_csv_cells
from .libsvm import read_libsvm
from .options import DEFAULT, ReadOptions

FORMATS = ("csv", "libsvm", "arff")
_SUFFIXES = {
    ".csv": "csv",
    ".tsv": "csv",
    ".svm": "libsvm",
    ".libsvm": "libsvm",
    ".svmlight": "libsvm",
    ".arff": "arff",
}
_SPREADSHEETS = (".xls", ".xlsx", ".xlsm", ".xlsb", ".ods", ".numbers")


def format_of(path: Path) -> str:
    """The format that a file's suffix stands for.

    Example:
        >>> format_of(Path("yeast_train.svm.gz"))
        'libsvm'
    """
    suffix = plain_suffix(path)
    if suffix in _SUFFIXES:
        return _SUFFIXES[suffix]
    if path.is_dir():
        raise DataError("is a folder; expected a file", path)
    if suffix in _SPREADSHEETS:
        raise DataError("a spreadsheet; save the sheet as CSV", path)
    known = ", ".join(_SUFFIXES)
    what = f"{suffix} file" if suffix else "file without a suffix"
    problem = f"the format of a {what} is not known; expected {known}"
    raise DataError(problem, path, None, "--format csv, libsvm or arff tells")


def read_table(
    path: Path,
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
        path: a CSV, LIBSVM multi-label or ARFF file, plain or compressed.
        targets: target columns; CSV files need them, ARFF files may say it themselves. The path of
            one of Mulan's XML files stands for the labels that it names.
        format: ``"csv"``, ``"libsvm"`` or ``"arff"``; by default what the suffix says.
        like: the table of the training file: features are made as there, by name, and not every
            class of it need occur here.
        ignore: columns that are neither features nor targets.
        plain: whether targets are numbers as they are, such as counts.
        options: what is made of missing values, words and ambiguous numbers.
    """
    columns = None if like is None else _columns_of(like)
    ignore = ignore if like is None else ()
    kind = format or format_of(path)
    names = expand_targets(targets, path)
    match kind:
        case "libsvm":
            if names or ignore or options.named:
                problem = "LIBSVM files have no named columns"
                advice = "leave --targets, --ignore, --kinds and --tags out"
                raise DataError(problem, path, None, advice)
            _refuse_words(columns, path)
            table = read_libsvm(path, n_features=None if like is None else like.X.shape[1])
        case "arff":
            table = read_arff(path, names, columns, ignore=ignore, plain=plain, options=options)
        case "csv":
            if not names:
                problem = f"which columns are targets? The columns are {listed(column_names(path))}"
                raise DataError(problem, path, None, "--targets NAMES names them")
            table = read_csv(path, names, columns, ignore=ignore, plain=plain, options=options)
        case other:
            raise _unknown(other, path)
    return table if like is None else replace(_as_in(like, table, path), columns=columns)


def read_inputs(
    path: Path,
    columns: Columns,
    format: str | None = None,  # noqa: A002  (the option is called --format)
) -> Table:
    """The features of a file without targets, such as one to predict; other columns are not read.

    Args:
        path: the file.
        columns: the recipe of the training file, ``Table.columns``.
        format: as in :func:`read_table`.

    Returns:
        A table of the kind ``"none"``, whose notes say what was done, and to which column.
    """
    kind = format or format_of(path)
    match kind:
        case "libsvm":
            _refuse_words(columns, path)
            table = read_libsvm(path, n_features=columns.n_features, need_labels=False)
            Y = np.zeros((table.X.shape[0], 0))
            return replace(table, Y=Y, kind="none", target_names=(), columns=columns)
        case "arff":
            return read_arff(path, (), columns)
        case "csv":
            return read_csv(path, None, columns)
        case other:
            raise _unknown(other, path)


def read_cells(
    path: Path,
    names: Sequence[str],
    format: str | None = None,  # noqa: A002  (the option is called --format)
) -> dict[str, list[str]]:
    """Columns of a file as they are, in the rows that :func:`read_inputs` reads.

    Args:
        path: a CSV or ARFF file.
        names: of the columns.
        format: as in :func:`read_table`.
    """
    match format or format_of(path):
        case "csv":
            return read_csv_cells(path, names)
        case "arff":
            return read_arff_cells(path, names)
        case "libsvm":
            raise DataError("LIBSVM files have no named columns to keep", path)
        case other:
            raise _unknown(other, path)


def frame_features(frame: Any, columns: Columns) -> Matrix:
    """The features of a data frame, by the recipe of the training file.

    Args:
        frame: from pandas or polars, or a mapping from names to columns; others are not looked at.
        columns: the recipe, ``Table.columns``.

    Raises:
        ValueError: for a column that is not there, or a cell that does not go with the recipe.

    Example:
        >>> columns = Columns((Number("width", fill=2.0), Boolean("sold", fill=0.0)))
        >>> frame_features({"sold": ["yes", "no"], "width": [1.5, None]}, columns)
        array([[1.5, 1. ],
               [2. , 0. ]])
    """
    blocks = []
    for column in columns.used:
        try:
            cells = as_cells(frame[column.name], columns.missing_values)
            blocks.append(column.encode(cells, Tally()))
        except KeyError:
            known = listed(map(str, frame.keys() if isinstance(frame, dict) else frame.columns))
            raise ValueError(f"no column is called {column.name!r}; there are {known}") from None
        except CellError as error:
            raise ValueError(f"column {column.name!r}, row {error.row + 1}: {error}") from None
    return join_features(blocks, blocks[0].shape[0])


def _columns_of(table: Table) -> Columns:
    if table.columns is None:
        raise ValueError("the table was not read from a file: it has no recipe of columns")
    return table.columns


def _refuse_words(columns: Columns | None, path: Path) -> None:
    """LIBSVM files hold the numbers of each feature, and no words."""
    if columns is None or columns.n_numbered:
        return
    for column in columns.used:
        if not (isinstance(column, Number | Boolean) and column.is_plain):
            what = "categories" if not isinstance(column, Number) else "missing values or units"
            problem = f"LIBSVM files hold numbers; {column.name!r} has {what} in the training file"
            raise DataError(problem, path)


def _unknown(name: str, path: Path) -> DataError:
    return DataError(f"format {name!r} is not one of {', '.join(FORMATS)}", path)


def _as_in(like: Table, table: Table, path: Path) -> Table:
    """The table with the classes of another one."""
    if table.target_names == like.target_names:
        return table
    position = {name: i for i, name in enumerate(like.target_names)}
    foreign = [name for name in table.target_names if name not in position]
    if foreign or table.kind == "proportions":
        what = f"class {foreign[0]!r}" if foreign else "its target columns"
        raise DataError(f"{what}: not among those of the training file", path)
    check_target_cells(table.Y.shape[0], len(position), path)
    Y = np.zeros((table.Y.shape[0], len(position)), dtype=table.Y.dtype)
    Y[:, [position[name] for name in table.target_names]] = table.Y
    return replace(table, Y=Y, target_names=like.target_names)
