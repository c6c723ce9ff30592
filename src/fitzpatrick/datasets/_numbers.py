"""Numbers as files write them: decimal points and commas, groups of thousands, units.

A cell alone does not say what ``1,234`` is. A column often does: few formats fit all of its cells,
and the other columns of the file decide among them. If they do not, the column is refused.
"""

import re
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from functools import cached_property
from math import isfinite

NAN = float("nan")
MINUS = "\N{MINUS SIGN}"  # typeset tables have it
MAX_NUMBER = 100  # characters of a number with a sign, of a date

# what stands for a missing value, besides an empty cell; words that are often values of their own
# (none, missing, unknown, 0, -1, 99) are not among them
MISSING_WORDS = frozenset(
    ("", "NA", "N/A", "n/a", "#N/A", "<NA>", "NaN", "nan", "NULL", "null", "None", "?", "-")
)
# class names may be called so: the classes + and -, or None, Mild and Severe
CLASS_NAMES_TOO = frozenset(("-", "None"))

NO_YES = (("no", "yes"), ("n", "y"), ("false", "true"), ("f", "t"))
_UNITS = "%|‰|[$€£¥₹]|USD|EUR|GBP|CHF|JPY"
_WITH_UNIT = re.compile(
    rf"[+-]?(?P<before>{_UNITS})?\s*[+-]?[\d.,'’\s]*\d[.,]?\s*(?P<after>{_UNITS})?"
)
UNIT_DIVISORS = {"%": 100.0, "‰": 1000.0}
_GROUP_MARKS = {",": ",", ".": r"\.", " ": "[ \u00a0\u202f\u2009]", "'": "['’]"}


@dataclass(frozen=True)
class NumberFormat:
    """How the numbers of a column are written."""

    decimal: str = "."
    thousands: str = ""  # between groups of three digits; a space stands for any kind of space

    @cached_property
    def matches(self) -> Callable[[str], object]:
        """Truthy where a text is a number in this format, and every digit has its place."""
        decimal = re.escape(self.decimal)
        mark = _GROUP_MARKS.get(self.thousands)
        group = rf"[1-9]\d{{0,2}}(?:{mark}\d{{3}})+|" if mark else ""
        number = rf"(?:{group}\d+)(?:{decimal}\d*)?|{decimal}\d+"
        return re.compile(rf"\s*[+-]?(?:{number})(?:[eE][+-]?\d+)?\s*", re.ASCII).fullmatch

    def parse(self, text: str) -> float:
        """The number that a matching text is."""
        if self.thousands == " ":
            text = "".join(text.split())
        elif self.thousands:
            text = text.replace(self.thousands, "").replace("’", "")
        return float(text.replace(",", ".") if self.decimal == "," else text)


PLAIN = NumberFormat()
COMMA = NumberFormat(",")
FORMATS = (PLAIN, COMMA, *(NumberFormat(*marks) for marks in (".,", ",.", ". ", ", ", ".'")))


def unit_of(text: str) -> str:
    """The sign beside a number, such as % in 12,5 %, or nothing."""
    match = _WITH_UNIT.fullmatch(text) if len(text) <= MAX_NUMBER else None
    return (match["before"] or match["after"] or "") if match else ""


def strip_unit(text: str, sign: str) -> str:
    """The number beside the sign; zero needs none, and other texts without one are no numbers."""
    if not sign:
        return text
    if sign in text:
        return text.replace(sign, "", 1).strip()
    return text if not text.strip(" 0.,") else f"{text} (no {sign})"


def plain_number(text: str) -> float | None:
    """A finite decimal number, or None; underscores, which Python allows, are not part of one."""
    try:
        value = float(text.replace(MINUS, "-"))
    except ValueError:
        return None
    return value if "_" not in text and isfinite(value) else None


def own_numbers(values: Iterable[str]) -> dict[str, float] | None:
    """The numbers that the values are, if all are, and different."""
    found = {value: plain_number(value) for value in values}
    numbers = {value: number for value, number in found.items() if number is not None}
    return numbers if len(set(numbers.values())) == len(found) else None


def no_and_yes(values: Collection[str]) -> dict[str, float] | None:
    """0 for no and 1 for yes, if that is what the values say; ``0`` and ``1`` are numbers."""
    lower = {value.lower() for value in values}
    for no, yes in NO_YES:
        if lower and lower <= {no, yes}:
            return {value: float(value.lower() == yes) for value in values}
    return None
