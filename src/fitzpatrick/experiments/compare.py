"""Which loss for your own file: the same protocol on a held-out part, and an answer in words."""

import textwrap
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ..datasets import DataError, Table, split_table
from ..datasets._files import sha256
from ..datasets._table import counted
from ..datasets._text import COMPRESSED_SUFFIXES
from ..linear_model._design import constant_columns
from ..losses import ends, regularizers_by_name
from . import protocol as paper
from . import report, summary
from .report import interval_text, number
from .runner import RunOptions, run_experiment
from .summary import LEVEL, MIN_TEST_SAMPLES, Difference, Evaluation, LossSummary

SIMPLEX_LOSSES = tuple(
    name
    for family, omega in regularizers_by_name().items()
    if omega.domain.has_labels and omega.has_curvature
    for name in ends(family)
)
LABEL_LOSSES = ends("sigmoid")  # for labels that may occur together
MIN_SAMPLES = 16
MIN_RELATIVE_DIFFERENCE = 0.01  # of the error; smaller ones are not reported
MAX_NAMED = 6  # of losses that cannot be told apart
MIN_SPLITS = 10  # fewer are said to be few
MIN_ZEROS = 0.01  # share of zero predictions from which they are mentioned
TEST_SHARE = 4  # a quarter is held out
_TEST_SEED = 0
_BOOSTED = (
    "LightGBM, the rounds chosen on dev as α is; learning rate 0.1, 31 leaves, each of 20 samples "
    "or a tenth of them; intercept, scaling and α are of linear models alone"
)
_CLASS_SCORES = (
    "Accuracy: of the class with the largest probability. Log loss: n/a where a\n"
    "class that occurs was given the probability 0."
)


def experiment_of(
    table: Table, file: Path, test: Table | None, test_file: Path | None, options: RunOptions
) -> tuple[paper.Experiment, tuple[str, ...]]:
    """The file's labelled rows; a quarter is held out for testing unless a test file is given.

    Missing numbers are replaced by the medians of the rows that are learned from. The notes are on
    what was left out.
    """
    train = table.labelled(file)
    notes = list(train.notes)
    checksums = {file.name: sha256(file)}
    samples = train.X.shape[0]
    held_out = -(-samples // TEST_SHARE) if test is None else 0
    kept = samples - held_out
    if kept < MIN_SAMPLES:
        problem = f"{counted(kept, 'sample')} to learn from, expected {MIN_SAMPLES} or more"
        raise DataError(problem, file)
    if test is not None and test_file is not None:
        test = test.labelled(test_file)
        notes += [f"{test_file.name}: {note}" for note in test.notes]
        checksums[f"{test_file.name} (test)"] = sha256(test_file)
    else:
        train, test = split_table(train, (kept, held_out), _TEST_SEED)
    constant = constant_columns(train.X, zero_only=not options.protocol.centered).size
    if constant:
        are = "is" if constant == 1 else "are"
        notes.append(f"{constant} of {train.X.shape[1]} features {are} constant and left out")
    name = Path(file.name)
    while name.suffix.lower() in COMPRESSED_SUFFIXES:
        name = name.with_suffix("")
    experiment = paper.Experiment.of(name.stem, train, test, checksums, file)
    paper.check(experiment, options.protocol, options.seeds)
    return experiment, tuple(notes)


@dataclass(frozen=True)
class Recommendation:
    """What to fit, why in a few sentences, and the evidence point by point."""

    loss: paper.LossChoice  # and its model
    setting: float  # penalty or rounds for it
    tied: tuple[paper.LossChoice, ...]  # losses that are not clearly worse
    answer: str
    points: list[str]


def recommend(evaluation: Evaluation) -> Recommendation:
    """The loss with the lowest test error, and the setting with its least mean dev error."""
    best, *others = sorted(evaluation.summaries, key=lambda one: one.error)
    splits, n_test = best.errors.size, best.n_test
    at = int(np.nanargmin(best.dev_curve))
    setting = best.grid[at]
    found = {other.loss: summary.difference(best, other) for other in others}
    worse = [loss for loss, one in found.items() if _is_worse(one, best)]
    tied = tuple(loss for loss in found if loss not in worse)
    samples = counted(n_test, "test sample")
    error = number(best.error)
    if splits > 1:
        chosen = paper.MODELS[best.loss.model]
        error += f" (mean over {splits} dev splits, each with the {chosen} that it chose)"
    if tied:
        answer = f"{_either((best.loss, *tied))}: no difference could be shown on {samples}. "
        answer += f"{best.loss} has the lowest test error, {error}."
    else:
        answer = f"{best.loss}: test error {error}"
        answer += f", the lowest of {len(others) + 1}." if others else "."
    words = best.loss.in_words(f"{setting:g}")
    have = "has" if best.loss.model == "linear" or setting == 1 else "have"
    answer += f" Fit it with {words}, which {have} the least {'mean ' * (splits > 1)}dev error."
    # of the other kind of model, the nearest says enough
    own = [loss for loss in worse if loss.model == best.loss.model]
    foreign = [loss for loss in worse if loss.model != best.loss.model]
    points = [f"better than {loss}: {interval_text(found[loss])}" for loss in own + foreign[:1]]
    if len(foreign) > 1:
        model = foreign[0].model
        rest = f"{model} one is" if len(foreign) == 2 else f"{len(foreign) - 1} {model} ones are"
        points[-1] += f"; the other {rest} further behind"
    if evaluation.baseline is not None and n_test >= MIN_TEST_SAMPLES:
        points.append(_beside_baseline(best, evaluation.baseline))
    if worse:
        over = f"{splits} dev splits and {samples}" if splits > 1 else f"{samples}, not over splits"
        points.append(
            f"the brackets are {LEVEL:.0%} intervals of the difference (paired bootstrap over "
            f"{over}); the winner was picked on these samples, so they flatter it a little"
        )
    if others and n_test < MIN_TEST_SAMPLES:
        points.append(f"too few test samples for a verdict; it takes {MIN_TEST_SAMPLES} or more")
    elif tied:
        points.append(
            f"differences below {MIN_RELATIVE_DIFFERENCE:.0%} of the error count as none, however "
            "certain they are"
        )
        if any(loss.family == best.loss.family for loss in tied):
            points.append(
                "tightness 0 and 1 seldom differ: by 0.01 % of the error in the median over 29 "
                "public data sets (docs/study.md)"
            )
    if others and splits < MIN_SPLITS:
        few = f"{splits} dev splits are few" if splits > 1 else "one dev split says little"
        points.append(f"{few}: see whether --seeds 20 agrees")
    if best.loss.model == "linear" and at in (0, len(best.grid) - 1):
        points.append(report.edge_of_grid(setting, is_weakest=at > 0))
    linear = [one for one in evaluation.summaries if one.loss.model == "linear"]
    stopped = [end for one in linear for end in one.ends]
    if stopped:
        paths = sum(one.errors.size for one in linear)
        which = f"all {paths} paths" if paths > 1 else "the path"
        which = which if len(stopped) == paths else f"{len(stopped)} of {paths} paths"
        span = " to ".join(dict.fromkeys(f"{end:g}" for end in (max(stopped), min(stopped))))
        points.append(
            f"{which} stopped early, at α = {span}, where the dev error had clearly risen; "
            "--whole-grid goes on to the weakest penalty"
        )
    if best.zeros > MIN_ZEROS:
        points.append(f"{best.zeros:.0%} of its predicted proportions are exactly zero")
    return Recommendation(best.loss, setting, tied, answer, points)


def _is_worse(one: Difference, best: LossSummary) -> bool:
    """True if the second loss of a difference is clearly worse, and not by a trifle."""
    return (
        one.better is not None
        and best.n_test >= MIN_TEST_SAMPLES
        and abs(one.mean) >= MIN_RELATIVE_DIFFERENCE * best.error
    )


def _beside_baseline(best: LossSummary, baseline: LossSummary) -> str:
    one = summary.difference(best, baseline)
    what = "the baseline, which predicts the mean of the training targets for every sample"
    if _is_worse(one, best):
        return f"better than {what}: {interval_text(one)}"
    return f"not clearly better than {what}: the features may say little about the targets"


def _either(losses: Sequence[paper.LossChoice]) -> str:
    """Two losses or more: "a, or b", "a, b or c"; of many, the first one by its name."""
    *first, last = map(str, losses)
    if len(first) >= MAX_NAMED:
        return f"{first[0]}, or one of {len(first)} others (marked * in the table)"
    return f"{', '.join(first)}{',' * (len(first) == 1)} or {last}"


def compare(
    experiment: paper.Experiment,
    kind: str,
    notes: tuple[str, ...],
    options: RunOptions,
    fit_command: Callable[[Recommendation], str],
    say: Callable[[str], None],
) -> None:
    """Run, print the table and the recommendation, and write both and the report."""
    protocol, has_classes = options.protocol, kind == "labels"
    boosted = (
        {"boosted trees": _BOOSTED} if any(one.model == "boosted" for one in options.losses) else {}
    )
    marks = ["* the lowest error, and every loss that is not clearly worse."]
    head = report.heading(protocol, options.seeds, *marks, *[_CLASS_SCORES] * has_classes)
    if boosted:
        head += f"\n{report.wrapped(f'Boosted trees: {_BOOSTED}.')}"
    say(head)
    records = run_experiment(experiment, options)
    baseline = experiment.Y_test, experiment.Y.mean(axis=0)
    evaluation = summary.evaluate(records, protocol, baseline)
    advice = recommend(evaluation)
    if not all(one.loss.has_classes for one in evaluation.summaries):
        sigmoid = "sigmoid losses predict each label by itself; here their predictions are divided "
        notes = (*notes, f"{sigmoid}by their sum, to be compared with proportions")
    samples = f"{experiment.X.shape[0]} to learn from, {experiment.X_test.shape[0]} to test"
    section = report.Section(
        experiment.name,
        evaluation,
        settings={
            "targets": kind,
            "samples": samples,
            **paper.describe(protocol),
            **boosted,
            "dev splits": options.seeds,
        },
        checksums=experiment.digests,
        notes=notes,
        best=(advice.loss, *advice.tied),
        has_classes=has_classes,
    )
    lines = "\n".join(report.wrapped(f"note: {note}") for note in notes)
    bullets = [report.wrapped(f"- {point}") for point in advice.points]
    answer = "\n".join([textwrap.fill(advice.answer, 79), *bullets])
    text = "\n\n".join(filter(None, [report.results_table(section), lines, answer]))
    say(f"\n{text}\n")
    command = fit_command(advice)
    page = report.render(
        f"Which loss for {experiment.name}?",
        advice.answer,
        [section],
        points=advice.points,
        commands=(options.command, command),
    )
    fits = report.fit_lines(experiment.name, protocol.scaling, protocol.intercept, records)
    contents = {"txt": f"{head}\n\n{text}\n", "csv": report.to_csv(fits), "html": page}
    stem = options.output / f"compare-{experiment.name}"
    report.write_results({Path(f"{stem}.{suffix}"): one for suffix, one in contents.items()}, say)
    say(f"next: {command}")
