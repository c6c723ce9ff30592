"""From the cells of a file to a recipe, or to a refusal with a way out.

A guess is made where it is safe, and noted. It is refused where a wrong one would go unnoticed:
numbers with a few words among them, dates, texts that hardly repeat, ``1,234``.
"""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import isfinite

import numpy as np
from scipy import sparse

from . import columns as kinds
from ._errors import DataError, option
from ._frame import Attribute, Frame, Reading, Texts, as_texts, is_missing, read_numbers
from ._numbers import FORMATS, MAX_NUMBER, PLAIN, NumberFormat, no_and_yes, own_numbers, unit_of
from ._table import listed
from .columns import MAX_CATEGORIES, MAX_TEXT, SEPARATORS, Column, Columns, split_tags, tags_among

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
_SHOWN_WORDS = 5
_IDENTIFIER = "a different text in every row, so probably a name"
_NO_VALUE = "no row has a value"


def learn(frame: Frame, names: Sequence[str], targets: Mapping[str, Reading]) -> Columns:
    """The recipe of a training file; columns of numbers become arrays."""
    options, readings, learned = frame.options, dict[str, Reading](), list[Column]()
    for name in names:
        kind = options.kind_of(name)
        if kind not in (None, "number") or frame.declares_words(name):
            continue
        if sparse.issparse(frame.cells[name]) and not _ID_NAME.fullmatch(name):
            continue
        reading = frame.reading(name)
        if kind == "number" or reading.are_numbers:
            check_words(frame, name, reading)
            readings[name] = reading
    formats = read_numbers(frame, {**targets, **readings}, {})
    column: Column
    for name in names:
        cells = frame.cells.get(name)
        if cells is None:
            column = kinds.Ignored(name, "as told")
        elif name in readings:
            is_first = name == names[0]
            column = _learn_number(frame, readings[name], name, formats[name], is_first=is_first)
        elif frame.declares_words(name):
            column = _learn_declared(frame, frame.attributes[name], as_texts(cells))
        elif sparse.issparse(cells) and options.kind_of(name) in (None, "number"):
            column = kinds.Number(name)
        else:
            column = _learn_texts(frame, name, as_texts(cells))
        learned.append(column)
    return Columns(tuple(learned), missing_values=tuple(options.missing_values))


def follow(frame: Frame, columns: Columns, targets: Mapping[str, Reading]) -> None:
    """Read a file by a recipe; columns of numbers become arrays."""
    has_commas = any(one.decimal == "," for one in columns.used if isinstance(one, kinds.Number))
    readings: dict[str, Reading] = {}
    usual: dict[str, NumberFormat] = {}
    for column in columns.used:
        name, cells = column.name, frame.cells[column.name]
        _check_declared(frame, column)
        if isinstance(column, kinds.Number) and not frame.declares_words(name):
            if sparse.issparse(cells) and column.is_plain:
                continue
            readings[name] = frame.reading(name, column.unit)
            check_words(frame, name, readings[name])
            # whole numbers of a file with decimal commas do not say what 1.234 is
            if not (has_commas and column.decimal == "."):
                usual[name] = NumberFormat(column.decimal, column.thousands)
        elif isinstance(cells, Texts):
            check_size(frame, name, cells, MAX_VALUES)
    read_numbers(frame, {**targets, **readings}, usual)


def settle_gaps(frame: Frame, columns: Columns, targets: Sequence[Column]) -> Columns:
    """Refuse missing values or leave their rows out, as told, and fit the recipe to the rest.

    A recipe that is there already is returned as it is; its features may have gaps.
    """
    options, of_training = frame.options, frame.notes.of_training
    features = [column for column in columns.items if column.can_be_missing and of_training]
    targets = [column for column in targets if column.can_be_missing]
    if options.missing in ("impute", "error"):
        for column in (*(features if options.missing == "error" else ()), *targets):
            _refuse_gaps(frame, column.name)
    if options.missing == "drop":
        _drop_gaps(frame, (*targets, *features), "values")
    if of_training:
        fitted = (one.fit(frame.cells.get(one.name), options) for one in columns.items)
        columns = replace(columns, items=tuple(fitted))
    if options.missing == "drop-targets":
        _drop_gaps(frame, targets, "targets")
    return columns


def _refuse_gaps(frame: Frame, name: str) -> None:
    missing = is_missing(frame.cells[name])
    if not missing.any():
        return
    count = f" in {missing.sum()} rows, the first here" if missing.sum() > 1 else ""
    ways = "--missing drop leaves such rows out", "--missing impute replaces the values"
    if name in frame.targets:
        ways = "--missing drop-targets leaves such rows out", "--missing drop all rows with gaps"
    raise frame.error(name, f"no value{count}", int(missing.argmax()), *ways)


def _drop_gaps(frame: Frame, columns: Sequence[Column], what: str) -> None:
    """Leave out the rows that lack a value of some columns."""
    gaps = np.zeros(frame.lines.size, dtype=bool)
    for column in columns:
        gaps |= is_missing(frame.cells[column.name])
    if gaps.all():
        raise DataError(f"every row has missing {what}", frame.path)
    if gaps.any():
        frame.notes.add(f"left out: {gaps.sum()} of {gaps.size} rows, with missing {what}")
        frame.drop(gaps)


def _check_declared(frame: Frame, column: Column) -> None:
    """Raise if no value that an ARFF file declares can be one of the recipe's."""
    attribute, problem = frame.attributes.get(column.name), ""
    if attribute is None:
        return
    is_number, has_words = isinstance(column, kinds.Number), attribute.type == "nominal"
    if is_number and has_words and own_numbers(attribute.values) is None:
        problem = f"has the values {listed(attribute.values)}; in the training file it is a number"
    elif isinstance(column, kinds.Category | kinds.Ordinal) and attribute.type == "numeric":
        has_numbers = any(map(PLAIN.matches, column.values))
        words = f"is numeric; in the training file its values are {listed(column.values)}"
        problem = "" if has_numbers else words
    if problem:
        raise DataError(f"attribute {column.name!r} {problem}", frame.path, attribute.line)


def check_words(frame: Frame, name: str, reading: Reading) -> None:
    """Raise if there are words among the numbers, with all of them and the first one's line."""
    if not reading.n_words:
        return
    sign, word = reading.unit, reading.words[0]
    by_recipe = not (frame.notes.of_training or name in frame.targets)
    numbers = "its numbers in the training file" if by_recipe else "other numbers"
    if sign and sign not in word:
        problem = f"{word[:40]!r} has no {sign}, as {numbers} have"
    elif by_recipe and not sign and unit_of(word):
        problem = f"{word[:40]!r} has the sign {unit_of(word)}, and {numbers} have none"
    else:
        raise _mixed(frame, name, reading.words, reading.n_numbers)
    raise frame.error(name, problem, word, frame.ignoring(name))


def _mixed(frame: Frame, name: str, words: Sequence[str], n_numbers: int) -> DataError:
    are_numbers = all(
        any(form.matches(word) and isfinite(form.parse(word)) for form in FORMATS) for word in words
    )
    problem = f"{words[0][:40]!r} is not a number"
    if are_numbers:
        problem = f"{words[0][:40]!r} has another decimal mark than other numbers"
    elif n_numbers:
        problem += f", as {n_numbers} of its values are"
    others = [
        f"{word[:20]!r} in line {frame.line(name, word)}" for word in words[1 : _SHOWN_WORDS + 1]
    ]
    if others:
        problem += f"; {'so has' if are_numbers else 'nor is'} {', '.join(others)}"
        problem += ", …" * (len(words) - 1 > _SHOWN_WORDS)
    ways, shown, is_target = list[str](), words[:_SHOWN_WORDS], name in frame.targets
    if not are_numbers and all("," not in word and word.isprintable() for word in shown):
        missing = option(*(word[:20] for word in shown))
        ways.append(f"--missing-values {missing} reads such words as missing")
        ways += ["and --missing drop leaves such rows out"] * is_target
    if not is_target:
        ways += [_as_category(name), frame.ignoring(name)]
    return frame.error(name, problem, words[0], *ways)


def check_size(frame: Frame, name: str, texts: Texts, most: int) -> None:
    """Raise if a column's words are too many, or one is too long."""
    long = next((value for value in texts.values if len(value) > MAX_TEXT), None)
    if long is not None:
        raise _no_words(frame, name, long, f"texts of more than {MAX_TEXT} characters")
    if len(texts.values) > most:
        raise _no_words(frame, name, texts.values[0], f"more than {most} different values")


def _no_words(frame: Frame, name: str, text: str, what: str, *ways: str) -> DataError:
    """A column whose texts are no words for a model."""
    words = "classes" if name in frame.targets else "categories"
    problem = f"{what}, such as {text[:40]!r}, are no {words}"
    return frame.error(name, problem, text, frame.ignoring(name), *ways)


def _as_category(name: str) -> str:
    return f"--kinds {option(name)}=category treats every value as a category"


def _learn_number(
    frame: Frame, reading: Reading, name: str, written: NumberFormat, *, is_first: bool
) -> Column:
    """The recipe of a column of numbers; notes on those that may be no measurements."""
    numbers, notes = frame.cells[name], frame.notes
    present = numbers[~np.isnan(numbers)]
    if not present.size:
        return kinds.Ignored(name, _NO_VALUE)
    counts_rows = present.size == numbers.size and (np.diff(present) == 1.0).all()
    if frame.options.kind_of(name) != "number" and present.size > 1:
        are_wholes = (present == np.floor(present)).all()
        if _ID_NAME.fullmatch(name) and are_wholes and np.unique(present).size == present.size:
            return kinds.Ignored(name, "a different number in every row, so probably an identifier")
        if is_first and name in _ROW_NUMBER_NAMES and counts_rows and not frame.attributes:
            return kinds.Ignored(name, "it numbers the rows")
    if counts_rows and numbers.size >= MIN_IDS and numbers[0] in (0.0, 1.0):
        note = f"{name}: numbers the rows, {numbers[0]:.0f} to {numbers[-1]:.0f}; if that is no "
        notes.add(f"{note}feature, {frame.ignoring(name, 'it')}")
    least = present.min()
    if least in _SENTINELS and present.min(where=present > least, initial=np.inf) > least / 9:
        note = f"{name}: {least:.0f} in {(numbers == least).sum()} of {numbers.size} rows is taken "
        note += "as a number; if it stands for a missing value, --missing-values "
        notes.add(f"{note}{least:.0f} reads it so")
    return kinds.Number(name, None, False, reading.unit, written.decimal, written.thousands)


def _learn_texts(frame: Frame, name: str, texts: Texts) -> Column:
    options, kind = frame.options, frame.options.kind_of(name)
    values, n_present = texts.present, int(texts.counts.sum())
    if n_present == 0:
        return kinds.Ignored(name, _NO_VALUE)
    is_name, is_long = len(values) == n_present, max(map(len, values)) > MAX_TEXT
    if kind is None and is_name and len(values) > MAX_CATEGORIES and not is_long:
        return kinds.Ignored(name, _IDENTIFIER)
    check_size(frame, name, texts, MAX_CATEGORIES)
    # 007, or numbers that a file declares as strings
    are_codes = Reading(texts).is_code
    if name in frame.attributes:
        are_codes = own_numbers(values) is not None
    if kind is None and not are_codes:
        if no_and_yes(values) is not None:
            return kinds.Boolean(name)
        _check_safe(frame, name, texts, values)
    if options.categories == "error" and kind is None:
        problem = f"{values[0][:40]!r} is not a number"
        way = "--categories encode makes features of its values"
        raise frame.error(name, problem, values[0], way, frame.ignoring(name))
    if separator := find_separator(values, kind):
        if len(tags_among(values, separator)) > MAX_CATEGORIES:
            raise _no_words(frame, name, values[0], f"more than {MAX_CATEGORIES} different tags")
        return kinds.Tags(name, separator=separator)
    if kind is None and is_name and n_present >= MIN_IDS:
        return kinds.Ignored(name, _IDENTIFIER)
    if kind is None and len(values) > max(MIN_IDS, n_present / 2):
        what = f"{len(values)} different texts in {n_present} rows"
        raise _no_words(frame, name, values[0], what, _as_category(name))
    return kinds.Category(name)


def _learn_declared(frame: Frame, attribute: Attribute, texts: Texts) -> Column:
    """The recipe of an ARFF attribute: nominal ones are numbers where they are 0 and 1."""
    name, values, options = attribute.name, attribute.values, frame.options
    forced, numbers = options.kind_of(name), own_numbers(values)
    if attribute.type != "nominal" or forced == "tags":
        return _learn_texts(frame, name, texts)
    if len(values) > MAX_CATEGORIES or any(len(value) > MAX_TEXT for value in values):
        problem = f"attribute {name!r} declares more than {MAX_CATEGORIES} values, or one of more "
        raise DataError(f"{problem}than {MAX_TEXT} characters", frame.path, attribute.line)
    column: Column
    if forced == "category":
        return kinds.Category(name, values)
    if no_and_yes(values) is not None:
        column = kinds.Boolean(name)
    elif numbers is not None and (forced == "number" or set(numbers.values()) <= {0.0, 1.0}):
        column = kinds.Number(name)
    elif options.nominal == "positions":
        column = kinds.Ordinal(name, values=values)
    elif forced == "number" or options.categories == "error":
        problem = f"attribute {name!r} has the values {listed(values)}, which are no numbers"
        advice = f"--categories encode makes features of them, {frame.ignoring(name)}"
        raise DataError(problem, frame.path, attribute.line, None if forced else advice)
    elif texts.counts.sum() >= MIN_IDS and texts.counts.max() == 1:
        return kinds.Ignored(name, _IDENTIFIER)
    else:
        return kinds.Category(name, values)
    return column if texts.counts.any() else kinds.Ignored(name, _NO_VALUE)


def _check_safe(frame: Frame, name: str, texts: Texts, values: Sequence[str]) -> None:
    """Raise where the words of a column look like numbers or dates, which are short."""
    words = [one for one in values if not any(form.matches(one) for form in FORMATS)]
    counts = dict(zip(texts.values, texts.counts.tolist(), strict=True))
    n_words, n_all = sum(counts[one] for one in words), int(texts.counts.sum())
    are_short, ways = max(map(len, values)) <= MAX_NUMBER, [frame.ignoring(name)]
    measures = [_MEASURE.fullmatch(value) for value in values] if are_short else [None]
    units = {match["unit"] if match else "" for match in measures}
    if are_short and all(map(_DATE.fullmatch, values)):
        problem = (
            "is a date or a time; write it as a number, such as the year, or days since a date"
        )
    elif len(units) == 1 and len(values) > 1 and "" not in units:
        problem = "is a number and a unit; write the number alone"
        ways.append(_as_category(name))
    elif not words:
        problem = "is a number, in another format than other values of the column"
    elif 2 * n_words < n_all:
        raise _mixed(frame, name, words, n_all - n_words)
    else:
        return
    raise frame.error(name, f"{values[0][:40]!r} {problem}", values[0], *ways)


def find_separator(values: Sequence[str], kind: str | None) -> str | None:
    """What separates the tags; unless they are said to be, they must occur in different company."""
    if kind == "category":
        return None
    certain = kind == "tags"
    for separator in SEPARATORS if certain else SEPARATORS[:2]:
        cells = [split_tags(value, separator) for value in values if separator in value]
        if certain and cells:
            return separator
        alone = {value for value in values if separator not in value}
        together = Counter(tag for cell in cells for tag in cell)
        recurring = sum(count > 1 or tag in alone for tag, count in together.items())
        if len(cells) > 1 and 2 * recurring >= len(together):
            return separator
    return SEPARATORS[0] if certain else None
