"""From the cells of a file to a recipe, or to a refusal with a way out.

A guess is made where it is safe, and noted. It is refused where a wrong one would go unnoticed:
numbers with a few words among them, dates, texts that hardly repeat, ``1,234``.
"""

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from ._errors import DataError, option
from ._frame import Attribute, Frame, Reading, choose_formats
from ._numbers import FORMATS, MAX_NUMBER, NumberFormat, Unit, no_and_yes, own_numbers
from ._table import MAX_CLASSES, listed
from ._targets import Targets
from .columns import (
    MAX_CATEGORIES,
    MAX_TEXT,
    SEPARATORS,
    Boolean,
    Category,
    Cells,
    Column,
    Columns,
    Ignored,
    Number,
    Ordinal,
    Tags,
    Tally,
    Texts,
    as_texts,
    split_tags,
)

MAX_VALUES = 1_000_000  # different words of a column that a recipe is applied to
MIN_IDS = 20  # fewer different words, each in one row, may be categories
_ID_NAME = re.compile(r"(?i:id|uuid|guid|.*[_ .-]id|row[_ .-]?(?:id|nr|no|number))|.*[a-z]I[dD]")
_ROW_NUMBER_NAMES = ("X", "index", "Unnamed: 0", "rownames", "row.names", "Nr", "Nr.", "No", "No.")
_TIME = r"\d{1,2}:\d{2}(?::\d{2}(?:[.,]\d+)?)?(?: ?[AaPp][Mm])?\s?(?:Z|UTC|[+-]\d{2}:?\d{2})?"
_DATE = re.compile(
    r"(?:\d{4}[-/.]\d{1,2}[-/.]\d{1,2}|\d{1,2}[-/.]\d{1,2}[-/.]\d{2,4}"
    r"|\d{1,2}[- .]{1,2}[A-Za-z]{3,9}[- .]{1,2}\d{2,4}|[A-Za-z]{3,9}\.? \d{1,2},? \d{4})"
    rf"(?:(?:[T ]|, ){_TIME})?|{_TIME}",
    re.ASCII,
)
_MEASURE = re.compile(r"[+-]?[\d.,]*\d\s?(?P<unit>[^\W\d_]{1,6}|°[CF]?)")
_SENTINELS = (-99.0, -999.0, -9999.0, -99999.0)
_EXACT_BELOW = 2.0**53  # whole numbers from here on are not all told apart
_SHOWN_WORDS = 5
_IDENTIFIER = "a different text in every row, so probably a name"
_NO_VALUE = "no row has a value"


def learn(
    frame: Frame, names: Sequence[str], targets: Mapping[str, Reading]
) -> tuple[Columns, dict[str, Cells], dict[str, np.ndarray], list[str]]:
    """The recipe of a training file, the cells of its used columns, the numbers of its targets.

    Args:
        frame: the file.
        names: of the columns that may become features.
        targets: the target columns that are numbers.

    Returns:
        These three, and notes on numbers that may not be what they seem.
    """
    options = frame.options
    readings: dict[str, Reading] = {}
    plain = {name for name in names if frame.is_sparse(name) and _is_plain(frame, name)}
    for name in names:
        kind = options.kind_of(name)
        if kind in (None, "number") and name not in plain and not _is_declared(frame, name):
            reading = Reading.of(frame.cells[name], frame.marks.get(name, ""))
            if kind == "number" or reading.are_numbers:
                check_words(frame, name, reading)
                readings[name] = reading
    found = choose_formats(frame, {**targets, **readings}, {})
    learned: list[Column] = []
    used: dict[str, Cells] = {}
    notes: list[str] = []
    column: Column
    for name in names:
        if name in plain:
            fill = frame.median(name) if options.missing != "error" else None
            learned.append(Number(name, fill))
            continue
        if options.kind_of(name) == "ignored":
            learned.append(Ignored(name, "as told"))
            continue
        cells = found[name][0] if name in readings else frame.cells[name]
        if name in readings:
            numbers, written = found[name]
            is_first = name == names[0]
            column = _learn_number(
                frame, name, numbers, written, readings[name].unit, is_first=is_first
            )
            if column.is_used:
                notes += _doubts(name, numbers)
        elif _is_declared(frame, name):
            column = _learn_declared(frame, frame.attributes[name], cells)
        else:
            column = _learn_texts(frame, name, as_texts(cells))
        if column.can_be_missing:
            check_missing(frame, name, cells)
        if column.is_used:
            used[name] = cells
        learned.append(column)
    columns = Columns(tuple(learned), missing_values=tuple(options.missing_values))
    return columns, used, {name: found[name][0] for name in targets}, notes


def follow(
    frame: Frame, columns: Columns, targets: Mapping[str, Reading]
) -> tuple[dict[str, Cells], dict[str, np.ndarray]]:
    """The cells that a recipe asks for, and the numbers of the targets."""
    has_commas = any(one.decimal == "," for one in columns.used if isinstance(one, Number))
    readings: dict[str, Reading] = {}
    usual: dict[str, NumberFormat] = {}
    used: dict[str, Cells] = {}
    for column in columns.used:
        attribute = frame.attributes.get(column.name)
        if attribute is not None:
            problem = column.misfit(attribute.values if attribute.type == "nominal" else None)
            if problem and attribute.type in ("nominal", "numeric"):
                problem = f"attribute {column.name!r} {problem}"
                raise DataError(problem, frame.path, attribute.line)
        if frame.is_sparse(column.name) and column.is_number and not column.not_plain:
            continue
        cells = frame.cells[column.name]
        if isinstance(column, Number) and not _is_declared(frame, column.name):
            mark = frame.marks.get(column.name, "")
            readings[column.name] = reading = Reading.of(cells, mark, Unit(column.unit))
            check_words(frame, column.name, reading)
            # whole numbers of a file with decimal commas do not say what 1.234 is
            if not (has_commas and column.decimal == "."):
                usual[column.name] = column.format
        elif isinstance(cells, Texts) and not _can_be_held(cells, MAX_VALUES):
            problem = f"column {column.name!r}: more than {MAX_VALUES} different values, or "
            raise DataError(f"{problem}one of more than {MAX_TEXT} characters", frame.path)
        used[column.name] = cells
    found = choose_formats(frame, {**targets, **readings}, usual)
    used |= {name: found[name][0] for name in readings}
    return used, {name: found[name][0] for name in targets}


def refit(columns: Columns, cells: Mapping[str, Cells], frame: Frame) -> Columns:
    """The recipe after rows with missing values have been left out; declared values stay."""

    def again(column: Column) -> Column:
        attribute = frame.attributes.get(column.name)
        if not column.is_used or (isinstance(column, Category) and attribute):
            return column
        if column.name not in cells:
            return Number(column.name, frame.median(column.name))
        return column.refit(cells[column.name])

    return replace(columns, items=tuple(map(again, columns.items)))


# Targets -----------------------------------------------------------------------------------------


def target_readings(frame: Frame, names: Sequence[str]) -> dict[str, Reading]:
    """The target columns that are numbers, as they are read."""
    found = {}
    for name in names:
        attribute = frame.attributes.get(name)
        cells = frame.cells[name]
        if attribute is not None and isinstance(cells, Texts):
            continue
        reading = Reading.of(cells, frame.marks.get(name, ""))
        if reading.n_words <= reading.n_numbers:
            found[name] = reading
    return found


def class_target(frame: Frame, name: str, *, of_training: bool) -> Targets:
    """The one target column whose cells are classes, or several labels each."""
    cells, kind = frame.cells[name], frame.options.kind_of(name)
    attribute = frame.attributes.get(name)
    if not isinstance(cells, Texts) and (np.abs(cells) >= _EXACT_BELOW).any():
        row = int((np.abs(cells) >= _EXACT_BELOW).argmax())
        problem = f"class {cells[row]:.17g} of {name!r} is too large a number"
        raise DataError(f"{problem}; declare the values in braces", frame.path, frame.line(row))
    texts = as_texts(cells)
    if not _can_be_held(texts, MAX_CLASSES):
        long = next((value for value in texts.present if len(value) > MAX_TEXT), None)
        if long is None:
            problem = f"the target column {name!r} has more than {MAX_CLASSES} different values"
            raise DataError(problem, frame.path)
        problem = f"the target column {name!r} has {len(long)} characters, which is no name of a"
        raise DataError(f"{problem} class", frame.path, frame.first_line(texts, long))
    separator = None
    if kind != "category":
        separator = _separator(texts.present, certain=kind == "tags")
        separator = separator or (SEPARATORS[0] if kind == "tags" else None)
    if separator is None:
        check_missing(frame, name, texts, is_target=True)
    is_nominal = attribute is not None and attribute.type == "nominal"
    return Targets((name,), texts, separator, are_classes=is_nominal or not of_training)


def number_targets(
    frame: Frame, names: Sequence[str], readings: Mapping[str, Reading], found: Mapping[str, Cells]
) -> Targets:
    """Target columns of numbers; no is 0 and yes is 1."""
    for name, reading in readings.items():
        check_words(frame, name, reading, is_target=True)
    columns = [found[name] if name in found else _answers(frame, name) for name in names]
    cells = np.column_stack([one for one in columns if isinstance(one, np.ndarray)])
    lacking = np.isnan(cells)
    if lacking.any() and frame.options.missing != "drop":
        column = int(lacking[int(lacking.any(axis=1).argmax())].argmax())
        check_missing(frame, names[column], cells[:, column], is_target=True)
    percent = [name for name, one in readings.items() if one.unit.sign == "%"]
    notes = (f"the sign % is left out and the numbers divided by 100: {listed(percent)}",)
    return Targets(tuple(names), cells, notes=notes if percent else ())


def _answers(frame: Frame, name: str) -> np.ndarray:
    """A target column of words, one of several."""
    texts, attribute = as_texts(frame.cells[name]), frame.attributes.get(name)
    values = list(attribute.values) if attribute and attribute.values else texts.present
    known = no_and_yes(values) or (own_numbers(values) if attribute else None)
    if attribute and (known is None or not set(known.values()) <= {0.0, 1.0}):
        problem = f"label {name!r} has other values than 0 and 1, or no and yes"
        raise DataError(problem, frame.path, attribute.line)
    if known is None:
        first = next((one for one in values if no_and_yes([one]) is None), values[0])
        problem = f"target column {name!r}: {first[:40]!r} is neither a number, nor no or yes"
        raise DataError(problem, frame.path, frame.first_line(texts, first))
    return texts.numbers(known.get, "")


# Checks ------------------------------------------------------------------------------------------


def check_words(frame: Frame, name: str, reading: Reading, *, is_target: bool = False) -> None:
    """Raise if there are words among the numbers, with all of them and the first one's line."""
    if not reading.n_words or not isinstance(reading.cells, Texts):
        return
    sign, words, texts = reading.unit.sign, reading.words, reading.cells
    if sign and sign not in words[0]:
        problem = f"column {name!r}: {words[0][:40]!r} has no {sign}, as other numbers have"
        advice = None if is_target else f"--ignore {option(name)} leaves the column out"
        raise DataError(problem, frame.path, frame.first_line(texts, words[0]), advice)
    raise _mixed(frame, name, texts, words, reading.n_numbers, is_target=is_target)


def _mixed(
    frame: Frame,
    name: str,
    texts: Texts,
    words: Sequence[str],
    n_numbers: int,
    *,
    is_target: bool = False,
) -> DataError:
    first, shown = words[0], option(name)
    are_numbers = all(any(form.matches(word) for form in FORMATS) for word in words)
    problem = f"column {name!r}: {first[:40]!r} is not a number"
    if are_numbers:
        problem = f"column {name!r}: {first[:40]!r} has another decimal mark than other numbers"
    elif n_numbers:
        problem += f", as {n_numbers} of its values are"
    if len(words) > 1:
        where = (
            f"{word[:20]!r} in line {frame.first_line(texts, word)}"
            for word in words[1 : _SHOWN_WORDS + 1]
        )
        problem += f"; so {'has' if are_numbers else 'is'} {', '.join(where)}"
        problem += ", …" * (len(words) - 1 > _SHOWN_WORDS)
    ways = []
    can_be_given = all("," not in word and word.isprintable() for word in words[:_SHOWN_WORDS])
    if not are_numbers and can_be_given:
        way = f"--missing-values {_quoted(words[:_SHOWN_WORDS])} reads such words as missing"
        ways.append(f"{way}, and --missing drop leaves such rows out" if is_target else way)
    if not is_target:
        ways.append(f"--kinds {shown}=category takes every value for a category")
        ways.append(f"--ignore {shown} leaves the column out")
    return DataError(problem, frame.path, frame.first_line(texts, first), ", ".join(ways) or None)


def is_missing(cells: Cells) -> np.ndarray:
    """Where cells are missing."""
    return cells.is_missing if isinstance(cells, Texts) else np.isnan(cells)


def check_missing(frame: Frame, name: str, cells: Cells, *, is_target: bool = False) -> None:
    """Raise at the first missing value, where there must be none."""
    allowed = ("drop",) if is_target else ("drop", "impute")
    missing = is_missing(cells)
    if frame.options.missing in allowed or not missing.any():
        return
    count = f" in {missing.sum()} rows, the first here" if missing.sum() > 1 else ""
    problem = f"{'target ' * is_target}column {name!r}: no value{count}"
    advice = "--missing drop leaves such rows out"
    if not is_target:
        advice += ", --missing impute replaces the values"
    raise DataError(problem, frame.path, frame.line(int(missing.argmax())), advice)


def _can_be_held(texts: Texts, max_values: int) -> bool:
    return len(texts.values) <= max_values and max(map(len, texts.values), default=0) <= MAX_TEXT


# Kinds of columns ---------------------------------------------------------------------------------


def _is_declared(frame: Frame, name: str) -> bool:
    """Whether an ARFF file declares what the words of a column are: a list, or strings."""
    return name in frame.attributes and isinstance(frame.cells[name], Texts)


def _is_plain(frame: Frame, name: str) -> bool:
    """Whether a sparse column of numbers is a feature as it is, whatever the numbers are."""
    return frame.options.kind_of(name) in (None, "number") and not _ID_NAME.fullmatch(name)


def _learn_number(
    frame: Frame,
    name: str,
    numbers: np.ndarray,
    written: NumberFormat,
    unit: Unit,
    *,
    is_first: bool,
) -> Column:
    """The recipe of a column of numbers."""
    options = frame.options
    present = numbers[~np.isnan(numbers)]
    if not present.size:
        return Ignored(name, _NO_VALUE)
    if options.kind_of(name) != "number" and present.size > 1:
        if _ID_NAME.fullmatch(name) and _are_different_wholes(present):
            return Ignored(name, "a different number in every row, so probably an identifier")
        is_row_number = present.size == numbers.size and (np.diff(present) == 1.0).all()
        if is_first and name in _ROW_NUMBER_NAMES and is_row_number and not frame.attributes:
            return Ignored(name, "it numbers the rows")
    fill = float(np.median(present)) if options.missing != "error" else None
    marks = present.size < numbers.size
    return Number(name, fill, marks, unit.sign, written.decimal, written.thousands)


def _are_different_wholes(numbers: np.ndarray) -> bool:
    return bool((numbers == np.floor(numbers)).all()) and np.unique(numbers).size == numbers.size


def _doubts(name: str, numbers: np.ndarray) -> list[str]:
    """Notes on numbers that may be no measurements."""
    notes = []
    if numbers.size >= MIN_IDS and numbers[0] in (0.0, 1.0) and (np.diff(numbers) == 1.0).all():
        notes.append(
            f"{name}: numbers the rows, {numbers[0]:.0f} to {numbers[-1]:.0f}; "
            f"if that is no feature, --ignore {option(name)} leaves it out"
        )
    least = np.nanmin(numbers)
    if least in _SENTINELS and np.nanmin(np.where(numbers > least, numbers, np.inf)) > least / 9:
        count = int((numbers == least).sum())
        notes.append(
            f"{name}: {least:.0f} in {count} of {numbers.size} rows is taken as a number; if it "
            f"stands for a missing value, --missing-values {least:.0f} reads it so"
        )
    return notes


def _learn_texts(frame: Frame, name: str, texts: Texts) -> Column:
    """The recipe of a column of words."""
    options = frame.options
    kind = options.kind_of(name)
    values = texts.present
    n_present = int(texts.counts.sum())
    if n_present == 0:
        return Ignored(name, _NO_VALUE)
    if not _can_be_held(texts, MAX_CATEGORIES):
        long = next((value for value in values if len(value) > MAX_TEXT), None)
        if long is not None:
            what = f"texts of more than {MAX_TEXT} characters"
            raise _free_text(frame, name, texts, long, what)
        if kind is None and len(values) == n_present:
            return Ignored(name, _IDENTIFIER)
        raise _free_text(frame, name, texts, values[0], f"more than {MAX_CATEGORIES} values")
    marks = bool(texts.is_missing.any()) and options.missing == "impute"
    allows = options.missing != "error"
    if kind is None and not _are_codes(frame, name, texts):
        known = no_and_yes(values)
        if known is not None:
            numbers = texts.numbers(known.get, "")
            return Boolean(name, float(np.nanmedian(numbers)) if allows else None, marks)
        _check_safe(frame, name, texts)
    if options.categories == "error" and kind is None:
        problem = f"column {name!r}: {values[0][:40]!r} is not a number"
        advice = f"--categories encode makes features of its values, --ignore {option(name)} "
        line = frame.first_line(texts, values[0])
        raise DataError(problem, frame.path, line, f"{advice}leaves it out")
    separator = _separator(values, certain=kind == "tags")
    if kind == "tags" or (kind is None and separator):
        separator = separator or SEPARATORS[0]
        tags = sorted({tag for value in values for tag in split_tags(value, separator)})
        if len(tags) > MAX_CATEGORIES:
            what = f"more than {MAX_CATEGORIES} different tags"
            raise _free_text(frame, name, texts, values[0], what)
        return Tags(name, tuple(tags), separator)
    if kind is None and len(values) == n_present and n_present >= MIN_IDS:
        return Ignored(name, _IDENTIFIER)
    if kind is None and len(values) > max(MIN_IDS, n_present / 2):
        what = f"{len(values)} different texts in {n_present} rows"
        raise _free_text(frame, name, texts, values[0], what, may_encode=True)
    return Category(name, tuple(sorted(values)), marks, allows)


def _are_codes(frame: Frame, name: str, texts: Texts) -> bool:
    """Whether the words are codes: 007, or numbers that a file declares as strings."""
    if name in frame.attributes:
        return own_numbers(texts.values) is not None
    return Reading.of(texts).is_code


def _learn_declared(frame: Frame, attribute: Attribute, cells: Cells) -> Column:
    """The recipe of an ARFF attribute: nominal ones are numbers where they are 0 and 1."""
    name, values, options = attribute.name, attribute.values, frame.options
    texts, forced = as_texts(cells), options.kind_of(name)
    if attribute.type != "nominal" or forced == "tags":
        return _learn_texts(frame, name, texts)
    if len(values) > MAX_CATEGORIES or any(len(value) > MAX_TEXT for value in values):
        problem = f"attribute {name!r} declares more than {MAX_CATEGORIES} values, or one of more "
        raise DataError(f"{problem}than {MAX_TEXT} characters", frame.path, attribute.line)
    allows = options.missing != "error"
    marks = bool(texts.is_missing.any()) and options.missing == "impute"
    answers, numbers = no_and_yes(values), own_numbers(values)
    column: Number | Boolean | Ordinal
    if forced == "category":
        return Category(name, values, marks, allows)
    if answers is not None:
        column = Boolean(name)
    elif numbers is not None and (forced == "number" or set(numbers.values()) <= {0.0, 1.0}):
        column = Number(name)
    elif options.nominal == "positions":
        column = Ordinal(name, values=values)
    elif forced == "number" or options.categories == "error":
        problem = f"attribute {name!r} has the values {listed(values)}, which are no numbers"
        advice = f"--categories encode makes features of them, --ignore {option(name)} "
        advice = f"{advice}leaves it out" if forced is None else ""
        raise DataError(problem, frame.path, attribute.line, advice)
    elif texts.counts.sum() >= MIN_IDS and texts.counts.max() == 1:
        return Ignored(name, _IDENTIFIER)
    else:
        return Category(name, values, marks, allows)
    present = texts.codes >= 0
    if not present.any():
        return Ignored(name, _NO_VALUE)
    fill = float(np.median(column.encode(texts[present], Tally())[:, 0])) if allows else None
    return replace(column, fill=fill, marks_missing=bool(texts.is_missing.any()) and allows)


def _check_safe(frame: Frame, name: str, texts: Texts) -> None:
    """Raise where the words of a column look like numbers or dates."""
    shown, values = option(name), texts.present
    line = frame.first_line(texts, values[0])
    if all(map(_short(_DATE.fullmatch), values)):
        problem = f"column {name!r}: {values[0][:40]!r} is a date or a time; write what matters of"
        problem += " it as a number, such as the year or the days since another date"
        advice = f"--ignore {shown} leaves the column out"
        raise DataError(problem, frame.path, line, advice)
    units = {match["unit"] if match else "" for match in map(_short(_MEASURE.fullmatch), values)}
    if len(units) == 1 and len(values) > 1 and "" not in units:
        problem = f"column {name!r}: {values[0][:40]!r} is a number and a unit; write the number"
        advice = f"--kinds {shown}=category takes every value for a category"
        raise DataError(f"{problem} alone", frame.path, line, advice)
    words = [one for one in values if not any(form.matches(one) for form in FORMATS)]
    counts = dict(zip(texts.values, texts.counts.tolist(), strict=True))
    n_words, n_all = sum(counts[one] for one in words), int(texts.counts.sum())
    if words and 2 * n_words < n_all:
        raise _mixed(frame, name, texts, words, n_all - n_words)
    if not words:
        problem = f"column {name!r}: {values[0][:40]!r} is a number, in another format than "
        problem += "other values of the column"
        raise DataError(problem, frame.path, line, f"--ignore {shown} leaves the column out")


def _short(
    match: Callable[[str], re.Match[str] | None],
) -> Callable[[str], re.Match[str] | None]:
    """A match of short texts alone: no number or date is longer."""
    return lambda text: match(text) if len(text) <= MAX_NUMBER else None


def _separator(values: list[str], *, certain: bool) -> str | None:
    """What separates the tags; unless that is certain, tags must occur in different company."""
    for separator in SEPARATORS if certain else SEPARATORS[:2]:
        cells = [split_tags(value, separator) for value in values if separator in value]
        if not cells:
            continue
        if certain:
            return separator
        alone = {value for value in values if separator not in value}
        together = Counter(tag for cell in cells for tag in cell)
        recurring = sum(count > 1 or tag in alone for tag, count in together.items())
        if len(cells) > 1 and 2 * recurring >= len(together):
            return separator
    return None


def _free_text(
    frame: Frame, name: str, texts: Texts, text: str, what: str, *, may_encode: bool = False
) -> DataError:
    problem = f"column {name!r}: {what}, such as {text[:40]!r}, are no categories"
    advice = f"--ignore {option(name)} leaves the column out"
    if may_encode:
        advice += f", --kinds {option(name)}=category takes each for a category"
    return DataError(problem, frame.path, frame.first_line(texts, text), advice)


def _quoted(words: Sequence[str]) -> str:
    joined = ",".join(word[:20] for word in words)
    return joined if re.fullmatch(r"[\w.,-]+", joined) else f"'{joined}'"
