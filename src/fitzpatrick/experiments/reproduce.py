"""The paper's Table 1 beside our own numbers, data set by data set."""

import csv
import io
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ..datasets import (
    DATASETS,
    PAPER_LOSSES,
    DataError,
    DatasetMismatchWarning,
    UnavailableError,
    load_dataset,
)
from ..datasets._files import write_atomically
from . import protocol as paper
from .progress import download_progress, progress
from .records import PathRecords, Record, Store, all_records
from .report import Section, render
from .runner import run
from .summary import RESAMPLES, summarize
from .tables import heading, results_table

Say = Callable[[str], None]
Fit = tuple[str, paper.FitPath, str, Record]  # data set, path, rows that were fitted, record


@dataclass(frozen=True)
class Options:
    """What ``fitzpatrick reproduce`` was asked for."""

    protocol: paper.Protocol = field(default_factory=paper.Protocol)
    losses: tuple[str, ...] = PAPER_LOSSES
    seeds: int = 5
    n_jobs: int = 1
    output: Path = Path("out")


def run_experiment(
    experiment: paper.Experiment, options: Options
) -> dict[paper.FitPath, PathRecords]:
    """Every path of an experiment, from the records where they are there."""
    store = Store.of(
        options.output / "records", experiment.name, options.protocol, experiment.checksums
    )
    paths = paper.paths(options.losses, options.seeds)
    with progress(experiment.name, len(paths) * options.protocol.fits) as report:
        run(experiment, store, paths, options.n_jobs, report)
    return all_records(store, paths)


def reproduce(names: Sequence[str], options: Options, say: Say) -> int:
    """Run the data sets, print the table, write ``table.txt``, ``fits.csv`` and ``report.html``.

    Returns:
        The number of data sets that could be run; the others are named with the reason.
    """
    sections: list[Section] = []
    blocks = [heading(options.seeds, RESAMPLES)]
    failures: dict[str, str] = {}
    fits: list[Fit] = []
    say(blocks[0])
    for name in names:
        info = DATASETS[name]
        try:
            with (
                warnings.catch_warnings(record=True) as caught,
                download_progress(name) as report_download,
            ):
                warnings.simplefilter("always", DatasetMismatchWarning)
                data = load_dataset(name, progress=report_download)
        except (DataError, UnavailableError) as error:
            failures[name] = str(error)
            say(f"\n{name} was not run: {error}")
            continue
        records = run_experiment(paper.Experiment.of_dataset(data), options)
        summaries = summarize(records)
        for path, found in records.items():
            fits += [(name, path, "train", record) for record in found.grid]
            if options.protocol.refit:
                fits.append((name, path, "train+dev", found.final))
        mismatches = tuple(str(warning.message) for warning in caught)
        notes = (*mismatches, *((info.note,) if info.note else ()))
        blocks.append(results_table(name, summaries, info.paper))
        blocks[-1] += "".join(f"\n  note: {note}" for note in notes)
        say(f"\n{blocks[-1]}")
        settings = {**paper.describe(options.protocol), "dev splits": options.seeds}
        sections.append(
            Section(name, summaries, info.paper, settings, data.checksums, (data.source, *notes))
        )
    if sections:
        page = render(_TITLE, _LEAD, sections, failures)
        write_atomically(options.output / "table.txt", "\n\n".join(blocks) + "\n")
        write_atomically(options.output / "fits.csv", fits_csv(fits))
        write_atomically(options.output / "report.html", page)
        for file in ("table.txt", "fits.csv", "report.html"):
            say(f"{'' if file != 'table.txt' else chr(10)}wrote {options.output / file}")
    return len(sections)


_TITLE = "Learning with Fitzpatrick losses: the experiment"
_LEAD = (
    "Linear models of label proportions, fitted with Fenchel-Young losses and their Fitzpatrick "
    "twins, with the test errors of the paper's Table 1 beside ours."
)


def fits_csv(fits: list[Fit]) -> str:
    """Every fit in one line, without the errors of single samples."""
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(
        [
            "dataset",
            "loss",
            "seed",
            "rows",
            "alpha",
            "dev_error",
            "test_error",
            "zeros",
            "n_iter",
            "converged",
            "seconds",
        ]
    )
    for name, path, rows, record in fits:
        writer.writerow(
            (
                name,
                path.loss,
                path.seed,
                rows,
                f"{record.alpha:g}",
                f"{record.dev_error:.6g}",
                f"{record.test_error:.6g}",
                f"{record.zeros:.4g}",
                record.n_iter,
                int(record.converged),
                f"{record.seconds:.3g}",
            )
        )
    return buffer.getvalue()
