"""Which loss for your own file: the same protocol on a held-out part, and an answer in words."""

import textwrap
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ..datasets import DataError, Table
from ..datasets._files import sha256, write_atomically
from ..datasets._text import COMPRESSED_SUFFIXES
from ..linear_model import constant_columns
from ..losses import ends, regularizers_by_name
from ..preprocessing import label_proportions
from . import protocol as paper
from .records import final_models
from .report import Section, is_of_other_data, render
from .results import fit_lines, to_csv
from .runner import RunOptions, run_experiment
from .summary import LEVEL, MIN_TEST_SAMPLES, LossSummary, difference, evaluate
from .tables import heading, interval_text, results_table
from .text import number, wrapped

SIMPLEX_LOSSES = tuple(
    name
    for family, omega in regularizers_by_name().items()
    if omega.domain.has_labels and omega.has_curvature
    for name in ends(family)
)
MIN_SAMPLES = 16
MIN_RELATIVE_DIFFERENCE = 0.01  # of the error; smaller ones are not reported
MIN_SPLITS = 10  # fewer are said to be few
MIN_ZEROS = 0.01  # share of zero predictions from which they are mentioned
TEST_SHARE = 4  # a quarter is held out
_TEST_SEED = 0


def experiment_of(
    table: Table, file: Path, test: Table | None, test_file: Path | None, options: RunOptions
) -> tuple[paper.Experiment, tuple[str, ...]]:
    """The file's labelled rows; a quarter is held out for testing unless a test file is given.

    Returns:
        The experiment, and notes on what was left out.
    """
    table = table.labelled(file)
    notes = list(table.notes)
    checksums = {file.name: sha256(file)}
    if test is not None and test_file is not None:
        test = test.labelled(test_file)
        notes += [f"{test_file.name}: {note}" for note in test.notes]
        checksums[f"{test_file.name} (test)"] = sha256(test_file)
        X, Y, X_test, Y_test = table.X, table.Y, test.X, test.Y
    else:
        order = np.random.default_rng(_TEST_SEED).permutation(table.X.shape[0])
        size = -(-order.size // TEST_SHARE)
        held, kept = np.sort(order[:size]), np.sort(order[size:])
        X, Y, X_test, Y_test = table.X[kept], table.Y[kept], table.X[held], table.Y[held]
    if X.shape[0] < MIN_SAMPLES:
        raise DataError(f"{X.shape[0]} samples to learn from, expected {MIN_SAMPLES} or more", file)
    constant = constant_columns(X, zero_only=not options.protocol.centered).size
    if constant:
        are = "is" if constant == 1 else "are"
        notes.append(f"{constant} of {X.shape[1]} features {are} constant and left out")
    experiment = paper.Experiment(
        name=_stem(file),
        X=X,
        Y=label_proportions(Y),
        X_test=X_test,
        Y_test=label_proportions(Y_test),
        checksums=checksums,
        file=file,
    )
    paper.check(experiment, options.protocol, options.seeds)
    return experiment, tuple(notes)


def _stem(file: Path) -> str:
    """A file's name without its ending, and without that of its compression before."""
    name = Path(file.name)
    while name.suffix.lower() in COMPRESSED_SUFFIXES:
        name = name.with_suffix("")
    return name.stem


@dataclass(frozen=True)
class Recommendation:
    """What to fit, why in a few sentences, and the evidence point by point."""

    loss: paper.LossChoice
    alpha: float
    answer: str
    points: list[str]


def recommend(summaries: list[LossSummary]) -> Recommendation:
    """The loss with the lowest test error, and the α with its least mean dev error."""
    ranked = sorted(summaries, key=lambda summary: summary.error)
    best, others = ranked[0], ranked[1:]
    splits, n_test = best.errors.size, best.n_test
    at = int(np.argmin(best.dev_curve))
    alpha = best.grid[at]
    found = {other.loss: difference(best, other) for other in others}
    worse = [
        name
        for name, one in found.items()
        if one.better
        and n_test >= MIN_TEST_SAMPLES
        and abs(one.mean) >= MIN_RELATIVE_DIFFERENCE * best.error
    ]
    tied = [name for name in found if name not in worse]
    samples = f"{n_test} test sample{'s' * (n_test > 1)}"
    error = number(best.error)
    if splits > 1:
        error += f" (mean over {splits} dev splits, each with the α that it chose)"
    if others and not worse:
        answer = f"No loss stands out on {samples}: take any. "
        answer += f"{best.loss} has the lowest test error, {error}."
    else:
        answer = f"Use {best.loss}: test error {error}"
        answer += f", the lowest of {len(ranked)}." if others else "."
    answer += f" Fit it with α = {alpha:g}, which has the least {'mean ' * (splits > 1)}dev error."
    points = [f"better than {name}: {interval_text(found[name])}" for name in worse]
    if worse:
        over = f"{splits} dev splits and {samples}" if splits > 1 else f"{samples}, not over splits"
        points.append(
            f"the brackets are {LEVEL:.0%} intervals of the difference (paired bootstrap over "
            f"{over}); the winner was picked on these samples, so they flatter it a little"
        )
    if others and n_test < MIN_TEST_SAMPLES:
        points.append(f"too few test samples for a verdict; it takes {MIN_TEST_SAMPLES} or more")
    elif tied:
        names = ", ".join(map(str, tied))
        points.append(
            f"no clear difference, or less than {MIN_RELATIVE_DIFFERENCE:.0%} of its error: {names}"
        )
    if others and splits < MIN_SPLITS:
        few = f"{splits} dev splits are few" if splits > 1 else "one dev split says little"
        points.append(f"{few}: see whether --seeds 20 agrees")
    if at in (0, len(best.grid) - 1):
        end = "weakest" if at else "strongest"
        points.append(f"α = {alpha:g} is the {end} penalty that was tried")
    if best.zeros > MIN_ZEROS:
        points.append(f"{best.zeros:.0%} of its predicted proportions are exactly zero")
    return Recommendation(best.loss, alpha, answer, points)


def compare(
    experiment: paper.Experiment,
    kind: str,
    notes: tuple[str, ...],
    options: RunOptions,
    say: Callable[[str], None],
) -> Recommendation:
    """Run, print the table and the recommendation, and write both and the report."""
    head = heading(options.protocol, options.seeds)
    say(head)
    records = run_experiment(experiment, options)
    evaluation = evaluate(final_models(records))
    advice = recommend(evaluation.summaries)
    blocks = [results_table(experiment.name, evaluation, None)]
    if notes:
        blocks.append("\n".join(line for note in notes for line in wrapped(f"note: {note}")))
    bullets = [line for point in advice.points for line in wrapped(f"- {point}")]
    blocks.append("\n".join([*textwrap.wrap(advice.answer, 79), *bullets]))
    text = "\n\n".join(blocks)
    say(f"\n{text}\n")
    protocol = options.protocol
    settings = {
        "targets": kind,
        "samples": f"{experiment.X.shape[0]} to learn from, {experiment.X_test.shape[0]} to test",
        **paper.describe(protocol),
        "dev splits": options.seeds,
    }
    section = Section(experiment.name, evaluation, None, settings, experiment.digests, notes)
    page = render(
        f"Which loss for {experiment.name}?",
        advice.answer,
        [section],
        {},
        points=advice.points,
        command=options.command,
    )
    lines = fit_lines(experiment.name, protocol.scaling, protocol.intercept, records)
    contents = {".txt": f"{head}\n\n{text}\n", ".csv": to_csv(lines), ".html": page}
    stem = options.output / f"compare-{experiment.name}"
    if is_of_other_data(Path(f"{stem}.html"), page):
        say(f"note: {stem}.* were of other data, and are replaced; -o FOLDER keeps both")
    for suffix, content in contents.items():
        path = Path(f"{stem}{suffix}")
        write_atomically(path, content)
        say(f"wrote {path}")
    return advice
