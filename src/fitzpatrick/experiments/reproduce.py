"""The paper's Table 1 beside our own numbers, data set by data set."""

import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from ..datasets import DATASETS, DataError, DatasetMismatchWarning, UnavailableError, load_dataset
from . import protocol as paper
from .report import (
    FitLine,
    Section,
    fit_lines,
    heading,
    number,
    render,
    results_table,
    to_csv,
    wrapped,
    write_results,
)
from .runner import RunOptions, progress, run_experiment
from .summary import evaluate

Say = Callable[[str], None]


def reproduce(
    names: Sequence[str], options: RunOptions, say: Say, warn: Say, split: int | None = None
) -> int:
    """Run the data sets, print the table, write ``table.txt``, ``fits.csv`` and ``report.html``.

    Returns how many data sets could be run; ``warn`` gets a line with the reason for each other.
    """
    sections: list[Section] = []
    blocks = [heading(options.protocol, options.seeds)]
    failures: dict[str, str] = {}
    fits: list[FitLine] = []
    say(blocks[0])
    for name in names:
        info = DATASETS[name]
        try:
            with warnings.catch_warnings(record=True) as caught, _downloads(name) as report:
                warnings.simplefilter("always", DatasetMismatchWarning)
                data = load_dataset(name, split=split, progress=report)
            experiment = paper.Experiment.of_dataset(data)
            paper.check(experiment, options.protocol, options.seeds)
        except (DataError, UnavailableError) as error:
            # the advice is on options of the commands that read a file of the user's
            failures[name] = str(error.without_advice() if isinstance(error, DataError) else error)
            blocks.append("\n".join(wrapped(f"{name} was not run: {failures[name]}")))
            warn(f"{name} was not run: {failures[name]}")
            continue
        records = run_experiment(experiment, options)
        evaluation = evaluate(records, options.protocol)
        fits += fit_lines(name, options.protocol.scaling, options.protocol.intercept, records)
        mismatches = tuple(str(warning.message) for warning in caught)
        notes = (*mismatches, *((info.note,) if info.note else ()))
        blocks.append(results_table(name, evaluation, info.paper))
        blocks[-1] += "".join(f"\n  note: {note}" for note in notes)
        say(f"\n{blocks[-1]}")
        settings = {**paper.describe(options.protocol), "dev splits": options.seeds}
        sections.append(
            Section(
                name, evaluation, info.paper, settings, experiment.digests, (data.source, *notes)
            )
        )
    if sections:
        lead = f"{_LEAD} {_distance(sections)}"
        page = render(_TITLE, lead, sections, failures, commands=[options.command])
        contents = {
            "table.txt": "\n\n".join(blocks) + "\n",
            "fits.csv": to_csv(fits),
            "report.html": page,
        }
        say("")
        if failures:
            say(f"{len(sections)} of {len(names)} data sets were run")
        write_results({options.output / name: one for name, one in contents.items()}, say)
    return len(sections)


@contextmanager
def _downloads(title: str) -> Iterator[Callable[[int, int | None], None]]:
    """The bytes of downloads on a bar, which appears with the first of them."""
    bars: list[Any] = []

    def report(done: int, total: int | None) -> None:
        if not bars:
            bars.append(progress(f"{title}: downloading", None, "B"))
        bars[0].total = total
        bars[0].update(done - bars[0].n)

    try:
        yield report
    finally:
        for bar in bars:
            bar.close()


def _distance(sections: list[Section]) -> str:
    """Where our numbers are farthest from the paper's, in a sentence."""
    distances = {
        (section.title, str(one.loss)): abs(one.error - section.paper[str(one.loss)])
        for section in sections
        if section.paper
        for one in section.evaluation.summaries
        if str(one.loss) in section.paper
    }
    if not distances:
        return ""
    title, loss = max(distances, key=lambda place: distances[place])
    largest = number(distances[title, loss])
    return f"The largest distance between the two is {largest} ({title}, {loss})."


_TITLE = "Learning with Fitzpatrick losses: the experiment"
_LEAD = (
    "Linear models of label proportions, fitted with Fenchel-Young and Fitzpatrick losses, with "
    "the test errors of the paper's Table 1 beside ours."
)
