"""Numbers as files write them: decimal points and commas, groups of thousands, units.

A cell alone does not say what ``1,234`` is. A column often does: the formats that all of its cells
have are few, and :func:`choose_format` asks the other columns of the file where more than one is
left. Where that does not help, nobody guesses.
"""

import re
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

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
_DIVISORS = {"%": 100.0, "‰": 1000.0}


@dataclass(frozen=True)
class NumberFormat:
    """How the numbers of a column are written.

    Attributes:
        decimal: ``"."`` or ``","``.
        thousands: between groups of three digits: ``""`` (no groups), ``","``, ``"."``, ``" "``
            (of any kind) or ``"'"``.
    """

    decimal: str = "."
    thousands: str = ""

    @cached_property
    def matches(self) -> Callable[[str], object]:
        """Truthy where a text is a number in this format, and every digit has its place."""
        decimal = re.escape(self.decimal)
        tail = rf"(?:{decimal}\d*)?"
        mark = _GROUP_MARKS.get(self.thousands)
        group = rf"[1-9]\d{{0,2}}(?:{mark}\d{{3}})+|" if mark else ""
        exponent = r"(?:[eE][+-]?\d+)?"
        pattern = rf"\s*[+-]?(?:(?:{group}\d+){tail}|{decimal}\d+){exponent}\s*"
        return re.compile(pattern, re.ASCII).fullmatch

    def parse(self, text: str) -> float:
        """The number that a matching text is."""
        if self.thousands == " ":
            text = "".join(text.split()).replace("\u2009", "")
        elif self.thousands:
            text = text.replace(self.thousands, "").replace("’", "")
        return float(text.replace(",", ".") if self.decimal == "," else text)


_GROUP_MARKS = {",": ",", ".": r"\.", " ": "[ \u00a0\u202f\u2009]", "'": "['’]"}
PLAIN = NumberFormat()
COMMA = NumberFormat(",")
FORMATS = (
    PLAIN,
    COMMA,
    NumberFormat(".", ","),
    NumberFormat(",", "."),
    NumberFormat(",", " "),
    NumberFormat(".", " "),
    NumberFormat(".", "'"),
)


@dataclass(frozen=True)
class Unit:
    """A sign that stands beside every number of a column, or none.

    Example:
        >>> unit = Unit.of("12,5 %")
        >>> unit, unit.strip("-3 %"), unit.divisor
        (Unit(sign='%'), '-3', 100.0)
    """

    sign: str = ""

    @staticmethod
    def of(text: str) -> "Unit":
        match = _WITH_UNIT.fullmatch(text) if len(text) <= MAX_NUMBER else None
        return Unit((match["before"] or match["after"] or "") if match else "")

    def strip(self, text: str) -> str:
        """The number beside the sign; what has no sign comes back as it is only if it is 0."""
        if not self.sign:
            return text
        if self.sign in text:
            return text.replace(self.sign, "", 1).strip()
        return text if not text.strip(" 0.,") else f"{text} (no {self.sign})"

    @property
    def divisor(self) -> float:
        return _DIVISORS.get(self.sign, 1.0)


def plain_number(text: str) -> float:
    """A finite decimal number; underscores, which Python allows in one, are not part of it."""
    value = float(text.replace(MINUS, "-"))
    if "_" in text or not (-_INFINITY < value < _INFINITY):
        raise ValueError(text)
    return value


_INFINITY = float("inf")


def own_numbers(values: Iterable[str]) -> dict[str, float] | None:
    """The numbers that the values are, if all are, and different."""
    try:
        numbers = {value: plain_number(value) for value in values}
    except ValueError:
        return None
    return numbers if len(set(numbers.values())) == len(numbers) else None


def no_and_yes(values: Collection[str]) -> dict[str, float] | None:
    """0 for no and 1 for yes, if that is what the values say; ``0`` and ``1`` are numbers.

    Example:
        >>> no_and_yes(["Yes", "no"])
        {'Yes': 1.0, 'no': 0.0}
    """
    lower = {value.lower() for value in values}
    for no, yes in NO_YES:
        if lower and lower <= {no, yes}:
            return {value: float(value.lower() == yes) for value in values}
    return None


@dataclass(frozen=True)
class Evidence:
    """What the columns of a file that leave no choice say about its decimal marks."""

    points: bool
    commas: bool
    semicolons: bool = False

    @staticmethod
    def of(columns: Iterable[Sequence[NumberFormat]], *, semicolons: bool) -> "Evidence":
        """From the formats that are left for each column with decimal marks or groups."""
        sure = [{one.decimal for one in formats} for formats in columns]
        return Evidence({"."} in sure, {","} in sure, semicolons)


def choose_format(
    formats: Sequence[NumberFormat], evidence: Evidence, usual: NumberFormat | None = None
) -> NumberFormat | None:
    """The one format of a column with decimal marks or groups, or None where two remain.

    Args:
        formats: those that all of its cells have, one or more.
        evidence: of the whole file.
        usual: that of the training file, for want of evidence.
    """
    marks = {one.decimal for one in formats}
    if len(marks) == 1:
        return formats[0]
    if evidence.points != evidence.commas:
        mark = "." if evidence.points else ","
        return next(one for one in formats if one.decimal == mark)
    if evidence.points:  # both: columns of several origins
        return None
    if usual in formats:
        return usual
    # 1.234 is the usual way to write a number with a fraction, unless the file comes from a
    # country of decimal commas, where fields are separated by semicolons
    return PLAIN if PLAIN in formats and not evidence.semicolons else None
