"""The paper's Table 1 beside our own numbers, data set by data set."""

import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from typing import Any

from ..datasets import DATASETS, DataError, DatasetMismatchWarning, UnavailableError, load_dataset
from . import protocol as paper
from . import report
from .runner import RunOptions, progress, run_experiment
from .summary import LEVEL, RESAMPLES, evaluate

Say = Callable[[str], None]


def reproduce(
    names: Sequence[str], options: RunOptions, say: Say, warn: Say, split: int | None = None
) -> int:
    """Run the data sets, print the table, write ``table.txt``, ``fits.csv`` and ``report.html``.

    Returns how many data sets could be run; ``warn`` gets a line with the reason for each other.
    """
    protocol, seeds = options.protocol, options.seeds
    sections: list[report.Section] = []
    failures: dict[str, str] = {}
    fits: list[report.Line] = []
    blocks = [report.heading(protocol, seeds, *marks(protocol, seeds))]
    say(blocks[0])
    for name in names:
        info = DATASETS[name]
        try:
            with warnings.catch_warnings(record=True) as caught, _downloads(name) as progressed:
                warnings.simplefilter("always", DatasetMismatchWarning)
                data = load_dataset(name, split=split, progress=progressed)
            experiment = paper.Experiment.of_dataset(data)
            paper.check(experiment, protocol, seeds)
        except (DataError, UnavailableError) as error:
            # the advice is on options of the commands that read a file of the user's
            failures[name] = str(error.without_advice() if isinstance(error, DataError) else error)
            problem = f"{name} was not run: {failures[name]}"
            blocks.append(report.wrapped(problem))
            warn(problem)
            continue
        records = run_experiment(experiment, options)
        fits += report.fit_lines(name, protocol.scaling, protocol.intercept, records)
        notes = (*(str(warning.message) for warning in caught), *filter(None, [info.note]))
        section = report.Section(
            name,
            evaluate(records, protocol),
            info.paper or {},
            {**paper.describe(protocol), "dev splits": seeds},
            experiment.digests,
            (data.source, *notes),
        )
        sections.append(section)
        lines = [report.results_table(section), *(f"  note: {note}" for note in notes)]
        blocks.append("\n".join(lines))
        say(f"\n{blocks[-1]}")
    if sections:
        lead = f"{_LEAD} {_distance(sections)}"
        contents = {
            "table.txt": "\n\n".join(blocks) + "\n",
            "fits.csv": report.to_csv(fits),
            "report.html": report.render(
                _TITLE, lead, sections, failures, commands=[options.command]
            ),
        }
        say("")
        if failures:
            say(f"{len(sections)} of {len(names)} data sets were run")
        report.write_results({options.output / name: one for name, one in contents.items()}, say)
    return len(sections)


def marks(protocol: paper.Protocol, seeds: int) -> Iterator[str]:
    """What the difference means, and the star beside it."""
    yield f"{report.DIFFERENCE}: difference to the Fenchel-Young loss of the same link."
    yield f"* the better one: the {LEVEL:.0%} interval of the difference excludes 0"
    yield f"  (paired bootstrap over {report.resampled(seeds)}, {RESAMPLES} resamples)."
    # a loss of tightness c wants about 1/(1 + c) of the penalty
    if not protocol.refine and any(a > paper.MAX_STEP * b for a, b in pairwise(protocol.alphas)):
        yield "  With one α per power of ten the two may be at different distances from their"
        yield "  best α: a * can be due to the grid. compare searches between its α."


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


def _distance(sections: list[report.Section]) -> str:
    """Where our numbers are farthest from the paper's, in a sentence."""
    distances = {
        (section.title, str(one.loss)): abs(one.error - section.paper[str(one.loss)])
        for section in sections
        for one in section.evaluation.summaries
        if str(one.loss) in section.paper
    }
    if not distances:
        return ""
    (title, loss), largest = max(distances.items(), key=lambda item: item[1])
    return f"The largest distance between the two is {report.number(largest)} ({title}, {loss})."


_TITLE = "Learning with Fitzpatrick losses: the experiment"
_LEAD = (
    "Linear models of label proportions, fitted with Fenchel-Young and Fitzpatrick losses, with "
    "the test errors of the paper's Table 1 beside ours."
)
