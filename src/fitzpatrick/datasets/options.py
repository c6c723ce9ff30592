"""What the readers of CSV and ARFF files are told about a file's columns."""

import csv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

MISSING = ("impute", "drop-targets", "drop", "error")
CATEGORIES = ("encode", "error")
KINDS = ("number", "category", "tags", "ignored")


@dataclass(frozen=True)
class ReadOptions:
    """How columns become features, if the defaults are not what you want.

    Attributes:
        missing: ``"impute"`` replaces missing numbers by the median of their column and marks them
            in a feature of their own, and takes missing words for a category; ``"drop-targets"``
            does so and leaves out the rows whose target is missing; ``"drop"`` leaves out all rows
            with a missing value; ``"error"`` refuses them. Targets are never imputed.
        categories: ``"encode"`` makes a 0/1 feature of each value of a column of words;
            ``"error"`` refuses words.
        kinds: column → ``"number"``, ``"category"``, ``"tags"`` or ``"ignored"``, whatever it looks
            like.
        tags: columns of several words a cell, such as ``rock;jazz``: short for their kind.
        missing_values: words that stand for a missing value, besides those that are known.
        decimal: decimal mark, ``"."`` or ``","``, of files that leave it open.
        nominal: ``"encode"`` makes categories of the nominal attributes of ARFF files;
            ``"positions"`` takes the position of a value in the declaration for a number, as the
            published LIBSVM versions of Mulan's files do.
        normalize: True if several target columns, such as counts, are divided by their sum in each
            row, whatever it is.
        header: False if the first line of a CSV file, or of a sheet, is a row of data; its columns
            are called ``column_1``, ``column_2`` and so on then.
        sheet: name of the sheet of an Excel workbook to read, by default the first.
    """

    missing: str = "impute"
    categories: str = "encode"
    kinds: Mapping[str, str] = field(default_factory=dict)
    tags: Sequence[str] = ()
    missing_values: Sequence[str] = ()
    decimal: str | None = None
    nominal: str = "encode"
    normalize: bool = False
    header: bool = True
    sheet: str = ""

    def __post_init__(self) -> None:
        for name, value, known in (
            ("missing", self.missing, MISSING),
            ("categories", self.categories, CATEGORIES),
            ("decimal", self.decimal, (None, ".", ",")),
            ("nominal", self.nominal, ("encode", "positions")),
            *((f"kinds[{name!r}]", kind, KINDS) for name, kind in self.kinds.items()),
        ):
            if value not in known:
                expected = ", ".join(repr(one) for one in known if one is not None)
                raise ValueError(f"{name} must be one of {expected}, got {value!r}")
        for name in self.tags:
            if self.kinds.get(name, "tags") != "tags":
                raise ValueError(f"{name!r} is among tags, and of the kind {self.kinds[name]!r}")

    def kind_of(self, name: str) -> str | None:
        """The kind that a column is said to have, or None."""
        return "tags" if name in self.tags else self.kinds.get(name)

    @property
    def named(self) -> tuple[str, ...]:
        """The columns that are named."""
        return (*self.tags, *self.kinds)


DEFAULT = ReadOptions()


def split_names(text: str) -> list[str]:
    """Names between commas, as one option holds them; a name with a comma stands in quotes.

    Example:
        >>> split_names('height, "width, in cm"')
        ['height', 'width, in cm']
    """
    (fields,) = csv.reader([text], skipinitialspace=True)
    return [name for name in map(str.strip, fields) if name]
