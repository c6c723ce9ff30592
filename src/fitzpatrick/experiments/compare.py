"""Which loss for your own file: the same protocol on a held-out part, and an answer in words."""

import textwrap
from pathlib import Path

import numpy as np

from ..datasets import DataError, Table
from ..datasets._files import sha256, write_atomically
from ..preprocessing import label_proportions
from . import protocol as paper
from .records import final_models
from .report import Section, render
from .reproduce import Options, Say, run_experiment
from .summary import LEVEL, RESAMPLES, Difference, LossSummary, difference, summarize
from .tables import heading, interval_text, number, results_table

SIMPLEX_LOSSES = (
    "logistic",
    "fitzpatrick_logistic",
    "sparsemax",
    "fitzpatrick_sparsemax",
    "entmax15",
    "fitzpatrick_entmax15",
)
MIN_SAMPLES = 16
_TEST_SHARE = 4
_TEST_SEED = 0


def experiment_of(
    table: Table, file: Path, test: Table | None, test_file: Path | None
) -> paper.Experiment:
    """The file's labelled rows; a quarter is held out for testing unless a test file is given."""
    table = _labelled(table, file)
    checksums = {file.name: sha256(file)}
    if test is not None and test_file is not None:
        test = _labelled(test, test_file)
        if test.feature_names != table.feature_names or test.target_names != table.target_names:
            raise DataError(f"its columns are not those of {file}", test_file)
        checksums[f"{test_file.name} (test)"] = sha256(test_file)
        X, Y, X_test, Y_test = table.X, table.Y, test.X, test.Y
    else:
        order = np.random.default_rng(_TEST_SEED).permutation(table.X.shape[0])
        size = -(-order.size // _TEST_SHARE)
        held, kept = np.sort(order[:size]), np.sort(order[size:])
        X, Y, X_test, Y_test = table.X[kept], table.Y[kept], table.X[held], table.Y[held]
    if X.shape[0] < MIN_SAMPLES:
        raise DataError(f"{X.shape[0]} samples to learn from, expected {MIN_SAMPLES} or more", file)
    return paper.Experiment(
        name=file.name.split(".")[0],
        X=X,
        Y=label_proportions(Y),
        X_test=X_test,
        Y_test=label_proportions(Y_test),
        checksums=checksums,
    )


def _labelled(table: Table, file: Path) -> Table:
    rows = np.asarray(table.Y.sum(axis=1) > 0)
    if not rows.any():
        raise DataError("no sample has a label", file)
    if rows.all():
        return table
    return Table(table.X[rows], table.Y[rows], table.kind, table.feature_names, table.target_names)


def recommend(summaries: list[LossSummary], n_test: int) -> str:
    """The answer in words, with the evidence for it."""
    ranked = sorted(summaries, key=lambda summary: summary.error)
    best = ranked[0]
    alpha = _median(best.alphas)
    sentences = [
        f"Use {best.loss} with α = {alpha:g}: its test error, {number(best.error)}, is the lowest."
    ]
    tied: list[tuple[str, Difference]] = []
    worse: list[tuple[str, Difference]] = []
    for other in ranked[1:]:
        found = difference(best, other)
        (tied if found.better is None else worse).append((other.loss, found))
    evidence = f"{LEVEL:.0%} paired bootstrap over {n_test} test samples"
    if worse:
        clear = "; ".join(f"{name} {interval_text(found)}" for name, found in worse)
        sentences.append(f"It is clearly better than {clear} ({evidence}).")
    if tied:
        names = ", ".join(name for name, _ in tied)
        sentences.append(f"These cannot be told apart from it on these data: {names}.")
    if best.zeros > 0.01:
        sentences.append(f"{best.zeros:.0%} of its predicted proportions are exactly zero.")
    return " ".join(sentences)


def _median(alphas: tuple[float, ...]) -> float:
    """The middle one of the chosen alphas, which is on the grid."""
    return sorted(alphas)[len(alphas) // 2]


def compare(experiment: paper.Experiment, kind: str, options: Options, say: Say) -> None:
    """Run, print the table and the recommendation, and write the report."""
    say(heading(options.seeds, RESAMPLES))
    summaries = summarize(final_models(run_experiment(experiment, options)))
    say("\n" + results_table(experiment.name, summaries, None))
    words = recommend(summaries, experiment.Y_test.shape[0])
    say(f"\n{textwrap.fill(words, 79)}\n")
    settings = {
        "targets": kind,
        "samples": f"{experiment.X.shape[0]} to learn from, {experiment.X_test.shape[0]} to test",
        **paper.describe(options.protocol),
        "dev splits": options.seeds,
    }
    section = Section(experiment.name, summaries, None, settings, experiment.checksums)
    page = render(f"Which loss for {experiment.name}?", words, [section], {})
    path = options.output / f"{experiment.name}.html"
    write_atomically(path, page)
    say(f"wrote {path}")
