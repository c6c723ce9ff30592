"""What was made of a file's columns, in sentences that name them."""

from collections.abc import Mapping

from ._errors import one_line
from ._table import counted, listed
from .columns import Boolean, Category, Columns, Number, Tags, Tally


def column_notes(columns: Columns, tally: Tally, *, of_training: bool) -> tuple[str, ...]:
    """Notes on a file that was read: what the recipe does, and what the file made it do.

    Args:
        columns: the recipe.
        tally: what occurred in this file.
        of_training: whether the recipe was learned from this very file.
    """
    if columns.n_numbered:
        return ()
    numbers = [column for column in columns.items if isinstance(column, Number)]
    notes = [f"left out: {column.name} ({column.reason})" for column in columns.ignored]
    commas = [column.name for column in numbers if column.decimal == ","]
    groups = [column.name for column in numbers if column.thousands]
    if of_training and commas:
        notes.append(f"decimal commas: {listed(commas)}")
    if of_training and groups:
        notes.append(f"marks between thousands are left out: {listed(groups)}")
    for sign in dict.fromkeys(column.unit for column in numbers if column.unit):
        names = [column.name for column in numbers if column.unit == sign]
        divided = {"%": " and the numbers divided by 100", "‰": " and the numbers divided by 1000"}
        notes.append(f"the sign {sign} is left out{divided.get(sign, '')}: {listed(names)}")
    answers = [column.name for column in columns.items if isinstance(column, Boolean)]
    if answers:
        notes.append(f"no is 0 and yes is 1: {listed(answers)}")
    categories = [
        f"{column.name} ({counted(len(column.values), 'value')})"
        for column in columns.items
        if isinstance(column, Category)
    ]
    if categories:
        notes.append(f"categories, a 0/1 feature for each value: {listed(categories)}")
    for column in columns.items:
        if isinstance(column, Tags):
            each = f"a 0/1 feature for each of {counted(len(column.values), 'tag')}"
            notes.append(f"tags, split at {column.separator!r}, {each}: {column.name}")
    notes += _missing(columns, tally, of_training=of_training) + _unseen(tally)
    return tuple(map(one_line, notes))


def _missing(columns: Columns, tally: Tally, *, of_training: bool) -> list[str]:
    marked = {one.name for one in columns.items if getattr(one, "marks_missing", False)}
    whose = "the column" if of_training else "the training file"
    filled = f"missing numbers are replaced by the median of {whose}"
    notes = []
    for counts, with_mark, without in (
        (tally.filled, f"{filled} and marked in a 0/1 feature", filled),
        (
            tally.missing_categories,
            "missing values are a category of their own",
            "missing values, of which the training file had none, belong to no category",
        ),
    ):
        for text, chosen in (
            (with_mark, {name: count for name, count in counts.items() if name in marked}),
            (without, {name: count for name, count in counts.items() if name not in marked}),
        ):
            if chosen:
                notes.append(f"{text}: {_counted(chosen)}")
    return notes


def _unseen(tally: Tally) -> list[str]:
    return [
        f"values not seen in training are encoded as all zeros: {name} "
        f"({counted(count, 'row')}: {listed(word[:40] for word in words[:5])}"
        f"{', …' * (len(words) > 5)})"
        for name, (count, words) in tally.unseen.items()
    ]


def _counted(counts: Mapping[str, int]) -> str:
    return listed(f"{name} ({counted(count, 'row')})" for name, count in counts.items())
