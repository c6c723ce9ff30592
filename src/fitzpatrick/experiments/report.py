"""Results as text of 80 columns, as CSV, and as one self-contained HTML page."""

import csv
import io
import math
import platform
import re
import textwrap
from collections.abc import Collection, Sequence
from dataclasses import astuple, dataclass, fields, replace
from html import escape
from importlib.metadata import version
from itertools import pairwise
from pathlib import Path
from typing import Any

from .. import __version__
from .._page import read_asset, render_document
from ..datasets import DATASETS
from . import svg
from .protocol import MAX_STEP, FitPath, LossChoice, Protocol, describe
from .records import Record
from .summary import LEVEL, RESAMPLES, Difference, Evaluation, LossSummary

# the paper's grid; a loss of tightness c wants about 1/(1 + c) of the penalty
COARSE = (
    "  With one α per power of ten the two may be at different distances from their\n"
    "  best α: a * can be due to the grid. compare searches between its α."
)
DIFFERENCE = "minus Fenchel-Young"  # what the differences are
_MAX_DIGITS = 9
_SHA256 = re.compile(r"\b[0-9a-f]{64}\b")


def number(value: float, digits: int = 4) -> str:
    """Errors as the paper prints them, without the leading zero.

    Example:
        >>> number(0.18656), number(-0.5, 2), number(1.25, 2)
        ('.1866', '-.50', '1.25')
    """
    text = f"{value:.{digits}f}"
    sign, text = ("-", text[1:]) if text.startswith("-") else ("", text)
    return sign + text.removeprefix("0")


def signed(value: float, digits: int = 4) -> str:
    """A number with its sign always shown."""
    return number(value, digits) if value < 0 else f"+{number(value, digits)}"


def signed_alike(*values: float) -> list[str]:
    """Numbers with their signs, and so many digits that none but zero looks like zero.

    Example:
        >>> signed_alike(0.0213, -0.00002), signed_alike(-0.5, 0.0)
        (['+.02130', '-.00002'], ['-.5000', '+.0000'])
    """
    digits = 4
    while digits < _MAX_DIGITS and any(value and not round(value, digits) for value in values):
        digits += 1
    return [signed(value, digits) for value in values]


def wrapped(text: str) -> list[str]:
    """Lines of at most 79 columns, indented below the first."""
    return textwrap.wrap(
        text, 79, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False
    )


def edge_of_grid(alpha: float, *, is_weakest: bool) -> str:
    """A sentence on a choice at an end of the grid, with the way beyond it."""
    end, factor = ("weakest", 0.1) if is_weakest else ("strongest", 10.0)
    further = ",".join(f"{alpha * factor**step:g}" for step in (0, 1, 2))
    return f"α = {alpha:g} is the {end} penalty that was tried: --alphas {further} goes further"


def results_table(title: str, evaluation: Evaluation, paper: dict[str, float] | None) -> str:
    """One block: a line per loss, the paper's number beside ours, differences in each family."""
    width = _width(evaluation.summaries)
    column = f"  {'paper':>5}" if paper else ""
    error = "ours" if paper else "error"
    lines = [f"{title:<{width + 2}}{error:>7} {'±':>6}{column}  {DIFFERENCE}", "-" * 80]
    for summary in evaluation.summaries:
        mark = "*" if summary.loss in evaluation.better else " "
        if paper:
            published = paper.get(str(summary.loss))
            column = f"  {'–' if published is None else number(published, 3):>5}"
        found = evaluation.differences.get(summary.loss)
        lines.append(
            f"  {summary.loss!s:<{width}}{number(summary.error):>7}{mark}{spread(summary):>6}"
            f"{column}  {interval_text(found) if found else ''}".rstrip()
        )
    return "\n".join([*lines, *_unconverged(evaluation.summaries)])


def comparison_table(
    title: str, evaluation: Evaluation, best: Collection[LossChoice], *, has_classes: bool
) -> str:
    """One block: a line per loss and one for the baseline, the best marked; 80 columns.

    Args:
        title: of the first column.
        evaluation: what to show.
        best: the losses to mark.
        has_classes: whether each sample has one class, so that accuracy and log loss are shown.
    """
    rows = [*evaluation.summaries, *([evaluation.baseline] if evaluation.baseline else [])]
    width = _width(rows)
    scores = f"{'accuracy':>10}{'log loss':>10}" if has_classes else ""
    lines = [f"{title:<{width + 2}}{'error':>7} {'±':>6}{scores}  α chosen", "-" * 80]
    for row in rows:
        mark = "*" if row.loss in best else " "
        scores = f"{row.accuracy:>10.1%}{log_loss_text(row):>10}" if has_classes else ""
        lines.append(
            f"  {row.loss!s:<{width}}{number(row.error):>7}{mark}{spread(row):>6}{scores}"
            f"  {alphas_text(row)}".rstrip()
        )
    return "\n".join([*lines, *_unconverged(evaluation.summaries)])


def _width(rows: list[LossSummary]) -> int:
    return max(22, *(len(str(row.loss)) for row in rows))


def _unconverged(summaries: list[LossSummary]) -> list[str]:
    count = sum(summary.unconverged for summary in summaries)
    fits = sum(summary.fits for summary in summaries)
    return [f"  {count} of {fits} fits did not converge"] if count else []


def spread(summary: LossSummary) -> str:
    """Standard deviation over the splits."""
    return number(summary.spread) if summary.errors.size > 1 and summary.alphas else "–"


def log_loss_text(summary: LossSummary) -> str:
    """The log loss, where every class that occurs has a positive probability."""
    return number(summary.log_loss) if math.isfinite(summary.log_loss) else "n/a"


def alphas_text(summary: LossSummary) -> str:
    """The penalties that dev chose: one or two, or from the least to the largest."""
    alphas = [f"{alpha:g}" for alpha in sorted(set(summary.alphas))]
    return ", ".join(alphas) if len(alphas) < 3 else f"{alphas[0]} to {alphas[-1]}"


def interval_text(found: Difference) -> str:
    """Mean and interval of a difference."""
    mean, low, high = signed_alike(found.mean, found.low, found.high)
    return f"{mean} [{low}, {high}]"


def heading(protocol: Protocol, seeds: int) -> str:
    """What the columns mean, and what was run; the table is the same on every device."""
    return "\n".join(
        [
            *error_lines(seeds),
            f"{DIFFERENCE}: difference to the Fenchel-Young loss of the same link.",
            f"* the better one: the {LEVEL:.0%} interval of the difference excludes 0",
            f"  (paired bootstrap over {resampled(seeds)}, {RESAMPLES} resamples).",
            *([COARSE] if is_coarse(protocol) else []),
            *settings_lines(protocol),
        ]
    )


def is_coarse(protocol: Protocol) -> bool:
    """Whether neighboring penalties are too far apart to say which loss of a pair is better."""
    steps = [a > MAX_STEP * b for a, b in pairwise(protocol.alphas)]
    return any(steps) and not protocol.refine


def comparison_heading(protocol: Protocol, seeds: int, *, has_classes: bool) -> str:
    """What the columns of :func:`comparison_table` mean, and what was run."""
    lines = error_lines(seeds)
    lines += ["* the lowest error, and every loss that is not clearly worse."]
    if has_classes:
        lines += ["Accuracy: of the class with the largest probability. Log loss: n/a where a"]
        lines += ["class that occurs was given the probability 0."]
    return "\n".join([*lines, *settings_lines(protocol)])


def error_lines(seeds: int) -> list[str]:
    """What the error is."""
    splits = f"the mean over {seeds} dev splits, ± their standard deviation"
    return [
        "Test error: squared error summed over classes, averaged over test samples;",
        f"{splits if seeds > 1 else 'one dev split'}.",
    ]


def settings_lines(protocol: Protocol) -> list[str]:
    """The settings that matter most, and those that are not the default."""
    default = describe(Protocol())
    settings = [
        f"{name}: {value}"
        for name, value in describe(replace(protocol, device=None)).items()
        if name in ("intercept", "features", "final model") or value != default[name]
    ]
    return wrapped(f"Settings: {'; '.join(settings)}.")


def resampled(seeds: int) -> str:
    """What the bootstrap draws anew."""
    return "splits and test samples" if seeds > 1 else "test samples, not splits"


def datasets_table(available: dict[str, str]) -> str:
    """Table 2 of the paper, and where to get each set."""
    head = f"{'data set':<12}{'train':>7}{'dev':>6}{'test':>7}{'features':>10}{'classes':>9}  copy"
    lines = [head, "-" * 80]
    for info in DATASETS.values():
        said = info.published
        lines.append(
            f"{info.name:<12}{said.train:>7}{said.dev:>6}{said.test:>7}{said.features:>10}"
            f"{said.classes:>9}  {available[info.name].partition(':')[0]}"
        )
    for name, place in available.items():
        if place.startswith("unusable"):
            lines += wrapped(f"{name}: {place}")
    return "\n".join(lines)


def dataset_details() -> str:
    """Source, license and notes of each set."""
    blocks = []
    for info in DATASETS.values():
        block = wrapped(f"{info.name}: {info.source}") + wrapped(f"  license: {info.licence}")
        if info.note:
            block += wrapped(f"  note: {info.note}")
        blocks.append("\n".join(block))
    return "\n".join(blocks)


@dataclass(frozen=True)
class FitLine:
    """One fit, without the errors of single samples.

    Attributes:
        dataset: its name.
        features: ``"standardize"`` or ``"none"``, as in :class:`.protocol.Protocol`.
        intercept: whether there was one.
        loss: its name.
        seed: of the dev split; None for a fit to train and dev together.
        alpha: strength of the penalty.
        dev_error: error on dev, NaN where there is none.
        test_error: error on the test samples.
        zeros: share of exact zeros among the test predictions.
        n_iter: iterations of the solver.
        converged: whether it reached its tolerance.
        seconds: time it took.
        device: what computed it.
        tightness: of the loss, where it is not that of its name.
    """

    dataset: str
    features: str
    intercept: bool
    loss: str
    seed: int | None
    alpha: float
    dev_error: float
    test_error: float
    zeros: float
    n_iter: int
    converged: bool
    seconds: float
    device: str
    tightness: float | None = None


def fit_lines(
    dataset: str, features: str, intercept: bool, grids: dict[FitPath, list[Record]]
) -> list[FitLine]:
    """The fits of one data set."""
    shared = {field.name for field in fields(FitLine)} & {field.name for field in fields(Record)}
    return [
        FitLine(
            dataset,
            features,
            intercept,
            path.loss.name,
            path.seed,
            test_error=record.test_error,
            tightness=path.loss.tightness,
            **{name: getattr(record, name) for name in shared},
        )
        for path, grid in grids.items()
        for record in grid
    ]


def to_csv(lines: Sequence[Any]) -> str:
    """A header and one line for each dataclass; six digits are written."""
    rows = [[_text(value) for value in astuple(line)] for line in lines]
    return csv_text([[field.name for field in fields(lines[0])], *rows])


def csv_text(rows: Sequence[Sequence[str]]) -> str:
    """Lines with commas, quoted if need be."""
    buffer = io.StringIO()
    csv.writer(buffer, lineterminator="\n").writerows(rows)
    return buffer.getvalue()


def _text(value: object) -> str:
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ""
    if isinstance(value, bool):
        return str(int(value))
    return f"{value:.6g}" if isinstance(value, float) else str(value)


@dataclass(frozen=True, eq=False)
class Section:
    """One data set of a report.

    Attributes:
        title: its heading.
        evaluation: its losses, and how they compare.
        paper: the paper's errors, if there are any.
        settings: what it was run with, in words.
        checksums: of the data.
        notes: sentences to put under the heading.
        best: losses to mark, the one with the lowest error and those that are not clearly worse;
            None marks the better ones of each family.
        has_classes: whether accuracy and log loss are shown.
    """

    title: str
    evaluation: Evaluation
    paper: dict[str, float] | None
    settings: dict[str, object]
    checksums: dict[str, str]
    notes: tuple[str, ...] = ()
    best: tuple[LossChoice, ...] | None = None
    has_classes: bool = False


def render(
    title: str,
    lead: str,
    sections: list[Section],
    failures: dict[str, str],
    *,
    points: Sequence[str] = (),
    commands: Sequence[str] = (),
) -> str:
    """The page.

    Args:
        title: its heading.
        lead: the result in a sentence or two.
        sections: one per data set.
        failures: data sets that could not be run, with the reason.
        points: a list below the lead.
        commands: the line that made it, and those to go on with.
    """
    body = [f"<h1>{escape(title)}</h1>", f'<p class="lead">{escape(lead)}</p>']
    if points:
        body.append(f"<ul>{''.join(f'<li>{escape(point)}</li>' for point in points)}</ul>")
    body += [f"<pre>{escape(command)}</pre>" for command in commands if command]
    body += [_section(section) for section in sections]
    if failures:
        rows = "".join(
            f'<tr><td>{escape(name)}</td><td class="text">{escape(reason)}</td></tr>'
            for name, reason in failures.items()
        )
        body.append(f'<h2>Not run</h2><div class="scroll"><table>{rows}</table></div>')
    body.append(_versions())
    return render_document(
        title,
        "".join(body),
        styles=[read_asset(__package__, "report.css")],
        scripts=[read_asset(__package__, "report.js")],
    )


def is_of_other_data(file: Path, page: str) -> bool:
    """Whether a page is there that names data which the one to replace it does not."""
    if not file.is_file():
        return False
    there = file.read_text(encoding="utf-8", errors="replace")
    return not set(_SHA256.findall(there)) <= set(_SHA256.findall(page))


def _section(section: Section) -> str:
    notes = "".join(f"<p>{escape(note)}</p>" for note in section.notes)
    return (
        f"<h2>{escape(section.title)}</h2>{notes}{_results(section)}{_plots(section)}"
        f"<h3>Settings</h3>{_pairs_table(section.settings)}"
        f"<h3>SHA-256 of the data</h3>{_pairs_table(section.checksums)}"
    )


def _results(section: Section) -> str:
    evaluation, paper = section.evaluation, section.paper or {}
    head = ["loss", "test error", *(["paper"] if paper else [])]
    head += ["accuracy", "log loss"] * section.has_classes
    head += [DIFFERENCE, "± splits", "α chosen", "zeros", "s per path", "not converged"]
    marked = evaluation.better if section.best is None else section.best
    rows = []
    for summary in [*evaluation.summaries, evaluation.baseline]:
        if summary is None:
            continue
        found = evaluation.differences.get(summary.loss)
        cells = [escape(str(summary.loss)), number(summary.error)]
        if paper:
            published = paper.get(str(summary.loss))
            cells.append("–" if published is None else number(published, 3))
        if section.has_classes:
            cells += [f"{summary.accuracy:.1%}", log_loss_text(summary)]
        cells += [escape(interval_text(found)) if found else "", spread(summary)]
        if summary.fits:
            cells += [
                alphas_text(summary),
                f"{summary.zeros:.0%}",
                f"{summary.seconds:.2g}",
                f"{summary.unconverged} of {summary.fits}",
            ]
        mark = ' class="better"' if summary.loss in marked else ""
        rows.append(f"<tr{mark}>" + "".join(f"<td>{cell}</td>" for cell in cells) + "</tr>")
    header = "".join(f"<th>{cell}</th>" for cell in head)
    resampling = (
        f"paired bootstrap over {resampled(evaluation.summaries[0].errors.size)}, "
        f"{RESAMPLES} resamples"
    )
    bold = (
        "better than the Fenchel-Young loss with the same link, or that loss itself; the "
        f"{LEVEL:.0%} interval of the difference excludes 0 ({resampling})."
        if section.best is None
        else f"the lowest error, and every loss that is not clearly worse ({resampling})."
    )
    return (
        f'<div class="scroll"><table><tr>{header}</tr>{"".join(rows)}</table></div>'
        '<p class="soft">Squared error summed over classes, averaged over test samples. '
        f"Bold: {bold}</p>"
    )


def _plots(section: Section) -> str:
    summaries, paper = section.evaluation.summaries, section.paper or {}
    rows = [
        svg.Interval(str(one.loss), one.error, *one.interval, paper.get(str(one.loss)))
        for one in summaries
    ]
    reference = "; diamond: paper" if paper else ""
    ticks = sorted(set(summaries[0].grid).intersection(*(one.grid for one in summaries)))
    families = list(dict.fromkeys(one.loss.loss.regularizer for one in summaries))
    curves = [
        svg.Series(
            str(one.loss),
            one.grid,
            one.dev_curve,
            families.index(one.loss.loss.regularizer),
            one.loss.loss.tightness > 0,
        )
        for one in summaries
    ]
    plots = (
        svg.interval_plot(
            f"{LEVEL:.0%} interval of the mean test error{reference}", rows, "test error"
        ),
        svg.line_plot("Dev curve", ticks, curves, ("α", "dev error")),
        svg.bar_plot(
            "Zeros among predictions",
            [(str(s.loss), 100 * s.zeros) for s in summaries],
            "% of the predicted proportions",
            " %",
        ),
        svg.bar_plot(
            "Training time of a path",
            [(str(s.loss), s.seconds) for s in summaries],
            "seconds",
            " s",
        ),
    )
    return f'<div class="plots">{"".join(plots)}</div>'


def _pairs_table(values: dict[str, object] | dict[str, str]) -> str:
    rows = "".join(
        f'<tr><td>{escape(str(name))}</td><td class="text">{escape(str(value))}</td></tr>'
        for name, value in values.items()
    )
    return f'<div class="scroll"><table>{rows}</table></div>'


def _versions() -> str:
    packages = ("numpy", "scipy", "scikit-learn")
    versions = {
        "fitzpatrick": __version__,
        "Python": platform.python_version(),
        **{name: version(name) for name in packages},
        "platform": f"{platform.system()} {platform.machine()}",
    }
    return f"<h2>Versions</h2>{_pairs_table(versions)}"
