"""From the cells of a column of the training file to its recipe, or to a refusal with a way out.

A guess is made where it is safe, and noted. It is refused where a wrong one would go unnoticed:
numbers with a few words among them, dates, texts that hardly repeat, ``1,234``.
"""

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ._errors import DataError
from ._numbers import FORMATS, PLAIN, Evidence, NumberFormat, Unit, choose_format, no_and_yes
from ._sketch import Sketch
from ._table import MAX_CLASSES
from .columns import (
    MAX_CATEGORIES,
    MAX_TEXT,
    SEPARATORS,
    Boolean,
    Category,
    Column,
    Ignored,
    Number,
    Tags,
    Texts,
    split_tags,
)
from .options import ReadOptions

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
_SHOWN_WORDS = 5


@dataclass(frozen=True)
class Place:
    """A file, and what its reader was told."""

    path: Path
    options: ReadOptions


def number_format(
    name: str, sketch: Sketch, evidence: Evidence, place: Place, usual: NumberFormat | None = None
) -> NumberFormat:
    """The format of a column of numbers; refused where ``1,234`` may be one thing or the other."""
    formats = sketch.formats
    if not sketch.has_marks:
        return formats[0]
    if place.options.decimal is not None:
        formats = tuple(one for one in formats if one.decimal == place.options.decimal)
        if not formats:
            problem = f"column {name!r}: the decimal mark is not {place.options.decimal!r}"
            raise DataError(problem, place.path)
    chosen = choose_format(formats, evidence, usual)
    if chosen is None:
        mark = "." if PLAIN in formats else ","
        problem = f"column {name!r}: the {mark!r} in its numbers may be a decimal mark or stand"
        problem += " between thousands, and no other column tells"
        raise DataError(problem, place.path, None, "--decimal . or --decimal , tells")
    return chosen


def evidence_of(sketches: Mapping[str, Sketch], *, semicolons: bool) -> Evidence:
    """What the columns of numbers say about the decimal mark of the file."""
    return Evidence.of(
        (one.formats for one in sketches.values() if one.has_marks and not one.is_text),
        semicolons=semicolons,
    )


def is_misread(sketch: Sketch, kind: str | None) -> bool:
    """Whether a column that was read as numbers holds words, or codes such as 007."""
    if sketch.is_text or kind == "number":
        return False
    return sketch.n_words > sketch.n_numbers or sketch.code_line is not None


def check_words(name: str, sketch: Sketch, place: Place, *, is_target: bool = False) -> None:
    """Raise if there are words among the numbers, with all of them and the first one's line."""
    if not sketch.n_words:
        return
    words = sorted(sketch.words, key=lambda word: sketch.lines[word])
    sign = sketch.unit.sign if sketch.unit else ""
    if sign and sign not in words[0]:
        problem = f"column {name!r}: {words[0][:40]!r} has no {sign}, as other numbers have"
        advice = None if is_target else f"--ignore {option(name)} leaves the column out"
        raise DataError(problem, place.path, sketch.lines[words[0]], advice)
    raise _mixed(name, words, sketch.lines, place, sketch.n_numbers, is_target=is_target)


def _mixed(
    name: str,
    words: list[str],
    lines: Mapping[str, int],
    place: Place,
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
        where = (f"{word[:20]!r} in line {lines[word]}" for word in words[1 : _SHOWN_WORDS + 1])
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
    return DataError(problem, place.path, lines[first], ", ".join(ways) or None)


def check_missing(name: str, sketch: Sketch, place: Place, *, is_target: bool = False) -> None:
    """Raise at the first missing value, where there must be none."""
    if not sketch.n_missing or place.options.missing == "drop":
        return
    if place.options.missing == "error" or is_target:
        count = f" in {sketch.n_missing} rows" if sketch.n_missing > 1 else ""
        what = "target column" if is_target else "column"
        problem = f"{what} {name!r}: no value{count and f'{count}, the first here'}"
        advice = "--missing drop leaves such rows out"
        if not is_target:
            advice += ", --missing impute replaces the values"
        raise DataError(problem, place.path, sketch.first_missing, advice)


def learn_number(
    name: str,
    numbers: np.ndarray,
    options: ReadOptions,
    written: NumberFormat,
    unit: Unit,
    *,
    is_first: bool = False,
) -> Column:
    """The recipe of a column of numbers."""
    present = numbers[~np.isnan(numbers)]
    if not present.size:
        return Ignored(name, "no row has a value")
    if options.kind_of(name) != "number" and present.size > 1:
        steps = np.diff(present)
        if _ID_NAME.fullmatch(name) and _are_different_wholes(present):
            return Ignored(name, "a different number in every row, so probably an identifier")
        is_row_number = present.size == numbers.size and (steps == 1.0).all()
        if is_first and name in _ROW_NUMBER_NAMES and is_row_number:
            return Ignored(name, "it numbers the rows")
    fill = float(np.median(present)) if options.missing != "error" else None
    marks = present.size < numbers.size
    return Number(name, fill, marks, unit.sign, written.decimal, written.thousands)


def _are_different_wholes(numbers: np.ndarray) -> bool:
    return bool((numbers == np.floor(numbers)).all()) and np.unique(numbers).size == numbers.size


def learn_texts(
    name: str, sketch: Sketch, texts: Texts | None, place: Place, *, is_code: bool = False
) -> Column:
    """The recipe of a column of words; ``texts`` is None where they are too many to hold."""
    options = place.options
    kind = options.kind_of(name)
    n_present = sketch.n_rows - sketch.n_missing
    if n_present == 0:
        return Ignored(name, "no row has a value")
    if texts is None:
        return _too_many(name, sketch, place, kind)
    counts = texts.counts
    values = [value for value, count in zip(texts.values, counts, strict=True) if count]
    marks = bool(texts.is_missing.any()) and options.missing == "impute"
    allows = options.missing != "error"
    if kind is None and not is_code:
        known = no_and_yes(values)
        if known is not None:
            numbers = texts.numbers(known.get, "")
            fill = float(np.nanmedian(numbers)) if allows else None
            return Boolean(name, fill, marks)
        _check_safe(name, sketch, values, place)
    if options.categories == "error" and kind is None:
        first = values[0]
        problem = f"column {name!r}: {first[:40]!r} is not a number"
        advice = f"--categories encode makes features of its values, --ignore {option(name)} "
        raise DataError(problem, place.path, sketch.lines[first], f"{advice}leaves it out")
    separator = _separator(values, certain=kind == "tags")
    if kind == "tags" or (kind is None and separator):
        return learn_tags(name, values, separator or SEPARATORS[0], sketch, place)
    if kind is None and len(values) == n_present and n_present >= MIN_IDS:
        return Ignored(name, "a different text in every row, so probably a name")
    if kind is None and len(values) > max(MIN_IDS, n_present / 2):
        what = f"{len(values)} different texts in {n_present} rows"
        raise _free_text(name, *_first(sketch), place, what, may_encode=True)
    return Category(name, tuple(sorted(values)), marks, allows)


def learn_tags(
    name: str, values: list[str], separator: str, sketch: Sketch, place: Place
) -> Column:
    """The recipe of a column of tags."""
    tags = sorted({tag for value in values for tag in split_tags(value, separator)})
    if len(tags) > MAX_CATEGORIES:
        what = f"more than {MAX_CATEGORIES} different tags"
        raise _free_text(name, *_first(sketch), place, what)
    return Tags(name, tuple(tags), separator)


def target_separator(name: str, sketch: Sketch, place: Place) -> str | None:
    """What separates the labels in the cells of the one target column; None: classes."""
    if sketch.first_long is not None:
        line, text = sketch.first_long
        problem = f"the target column {name!r} has {len(text)} characters, which is no name of a"
        raise DataError(f"{problem} class", place.path, line)
    if not sketch.is_complete:
        problem = f"the target column {name!r} has more than {MAX_CLASSES} different values"
        raise DataError(problem, place.path)
    return tag_separator(list(sketch.words), place.options.kind_of(name))


def tag_separator(values: list[str], kind: str | None) -> str | None:
    """What separates the labels of the cells of a column of this kind, if that is what they are."""
    if kind == "category":
        return None
    separator = _separator(values, certain=kind == "tags")
    return separator or (SEPARATORS[0] if kind == "tags" else None)


def may_be_id(name: str) -> bool:
    """Whether a column is called as ids are."""
    return _ID_NAME.fullmatch(name) is not None


def answers(name: str, sketch: Sketch, place: Place) -> np.ndarray:
    """A target column of words, one of several: no is 0 and yes is 1."""
    known = no_and_yes(list(sketch.words))
    if known is None:
        words = [one for one in sketch.words if no_and_yes([one]) is None] or list(sketch.words)
        first = min(words, key=lambda word: sketch.lines[word])
        problem = f"target column {name!r}: {first[:40]!r} is neither a number, nor no or yes"
        raise DataError(problem, place.path, sketch.lines[first])
    texts = sketch.texts
    return texts.numbers(known.get, "")


def _check_safe(name: str, sketch: Sketch, values: list[str], place: Place) -> None:
    """Raise where the words of a column look like numbers or dates."""
    shown = option(name)
    first = sketch.lines[values[0]]
    if all(map(_DATE.fullmatch, values)):
        problem = f"column {name!r}: {values[0][:40]!r} is a date or a time; write what matters of"
        problem += " it as a number, such as the year or the days since another date"
        advice = f"--ignore {shown} leaves the column out"
        raise DataError(problem, place.path, first, advice)
    units = {match["unit"] if match else "" for match in map(_MEASURE.fullmatch, values)}
    if len(units) == 1 and len(values) > 1 and "" not in units:
        problem = f"column {name!r}: {values[0][:40]!r} is a number and a unit; write the number"
        advice = f"--kinds {shown}=category takes every value for a category"
        raise DataError(f"{problem} alone", place.path, first, advice)
    words = [one for one in values if not any(form.matches(one) for form in FORMATS)]
    n_words = sum(sketch.words[one] for one in words)
    if words and 2 * n_words < sketch.n_words:
        words.sort(key=lambda word: sketch.lines[word])
        raise _mixed(name, words, sketch.lines, place, sketch.n_words - n_words)
    if not words and sketch.code_line is None:
        problem = f"column {name!r}: {values[0][:40]!r} is a number, in another format than "
        problem += "other values of the column"
        raise DataError(problem, place.path, first, f"--ignore {shown} leaves the column out")


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


def _too_many(name: str, sketch: Sketch, place: Place, kind: str | None) -> Column:
    if sketch.first_long is not None:
        what = f"texts of more than {MAX_TEXT} characters"
        raise _free_text(name, *sketch.first_long, place, what)
    if kind is None and sketch.is_unique:
        return Ignored(name, "a different text in every row, so probably a name")
    raise _free_text(name, *_first(sketch), place, f"more than {MAX_CATEGORIES} values")


def _first(sketch: Sketch) -> tuple[int, str]:
    word, line = next(iter(sketch.lines.items()))
    return line, word


def _free_text(
    name: str, line: int, text: str, place: Place, what: str, *, may_encode: bool = False
) -> DataError:
    problem = f"column {name!r}: {what}, such as {text[:40]!r}, are no categories"
    advice = f"--ignore {option(name)} leaves the column out"
    if may_encode:
        advice += f", --kinds {option(name)}=category takes each for a category"
    return DataError(problem, place.path, line, advice)


def option(name: str) -> str:
    """A column's name as one word of a command line."""
    return name if re.fullmatch(r"[\w.-]+", name) else f"'{name}'"


def _quoted(words: list[str]) -> str:
    joined = ",".join(word[:20] for word in words)
    return joined if re.fullmatch(r"[\w.,-]+", joined) else f"'{joined}'"
