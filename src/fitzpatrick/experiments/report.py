"""Results as text of 80 columns, as CSV, and as one self-contained HTML page."""

import csv
import io
import math
import platform
import re
import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from html import escape
from importlib.metadata import version
from pathlib import Path
from typing import Any

from .. import __version__
from .._page import read_asset, render_document
from ..datasets import DATASETS
from ..datasets._files import write_atomically
from . import svg
from .learners import can_boost
from .protocol import MODELS, LossChoice, Protocol, describe
from .records import Grids
from .summary import LEVEL, RESAMPLES, Difference, Evaluation, LossSummary

DIFFERENCE = "minus Fenchel-Young"  # what the differences are
_CURVES = {"linear": "Dev curve", "boosted": "Dev curve of boosted trees"}
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
    """Numbers with their signs, and with enough digits that only zero looks like zero.

    Example:
        >>> signed_alike(0.0213, -0.00002), signed_alike(-0.5, 0.0)
        (['+.02130', '-.00002'], ['-.5000', '+.0000'])
    """
    digits = 4
    while digits < _MAX_DIGITS and any(value and not round(value, digits) for value in values):
        digits += 1
    return [signed(value, digits) for value in values]


def wrapped(text: str) -> str:
    """Lines of at most 79 columns, indented below the first."""
    return textwrap.fill(
        text, 79, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False
    )


def edge_of_grid(alpha: float, *, is_weakest: bool) -> str:
    """A sentence on a choice at an end of the grid, with the way beyond it."""
    end, factor = ("weakest", 0.1) if is_weakest else ("strongest", 10.0)
    further = ",".join(f"{alpha * factor**step:g}" for step in (0, 1, 2))
    return f"α = {alpha:g} is the {end} penalty that was tried: --alphas {further} goes further"


# widths of the columns of a table as text; the last one is as wide as it needs
_WIDTHS = {"±": 6, "paper": 7, "accuracy": 10, "log loss": 10}


@dataclass(frozen=True, eq=False)
class Section:
    """The results of one data set, for a table in a terminal and for the page."""

    title: str
    evaluation: Evaluation
    paper: dict[str, float] = field(default_factory=dict)  # the paper's errors, if there are any
    settings: dict[str, object] = field(default_factory=dict)
    checksums: dict[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()  # sentences to put under the heading
    best: tuple[LossChoice, ...] | None = None  # to mark; None marks the better of each family
    has_classes: bool = False  # each sample has one class: accuracy and log loss are shown

    def rows(self) -> Iterator[tuple[bool, dict[str, str]]]:
        """For each loss, whether it is marked, and its cells by the names of their columns."""
        marked = self.evaluation.better if self.best is None else self.best
        for row in self.evaluation.rows:
            yield row.loss in marked, self._cells(row)

    def _cells(self, row: LossSummary) -> dict[str, str]:
        found = self.evaluation.differences.get(row.loss)
        published = self.paper.get(str(row.loss))
        shown = [f"{setting:g}" for setting in sorted(set(row.settings))]
        chosen = ", ".join(shown) if len(shown) < 3 else f"{shown[0]} to {shown[-1]}"
        cells = {
            "loss": str(row.loss),
            "error": number(row.error),
            "±": number(row.spread) if row.errors.size > 1 and shown else "–",
            "paper": "–" if published is None else number(published, 3),
            "accuracy": f"{row.accuracy:.1%}",
            "log loss": number(row.log_loss) if math.isfinite(row.log_loss) else "n/a",
            DIFFERENCE: interval_text(found) if found else "",
        }
        if row.fits:
            cells |= {
                "chosen": row.loss.in_words(chosen),
                "zeros": f"{row.zeros:.0%}",
                "s per path": f"{row.seconds:.2g}",
                "not converged": f"{row.unconverged} of {row.fits}",
            }
        return cells


def results_table(section: Section) -> str:
    """A line per loss and one for the baseline, the best marked; 80 columns.

    Losses that are compared within their families stand beside the paper's numbers.
    """
    columns = ["error", "±", *["paper"] * bool(section.paper)]
    columns += ["accuracy", "log loss"] * section.has_classes
    columns.append(DIFFERENCE if section.best is None else "chosen")
    rows = section.evaluation.rows
    width = max(22, *(len(str(row.loss)) for row in rows))

    def line(first: str, cells: dict[str, str], is_marked: bool = False) -> str:
        text = f"{first:<{width + 2}}{cells['error']:>7}{'*' if is_marked else ' '}"
        text += "".join(f"{cells[name]:>{_WIDTHS[name]}}" for name in columns[1:-1])
        return f"{text}  {cells.get(columns[-1], '')}".rstrip()

    names = dict(zip(columns, columns, strict=True)) | ({"error": "ours"} if section.paper else {})
    lines = [line(section.title, names), "-" * 80]
    lines += [line(f"  {cells['loss']}", cells, marked) for marked, cells in section.rows()]
    count = sum(row.unconverged for row in rows)
    if count:
        lines.append(f"  {count} of {sum(row.fits for row in rows)} fits did not converge")
    return "\n".join(lines)


def interval_text(found: Difference) -> str:
    """Mean and interval of a difference."""
    mean, low, high = signed_alike(found.mean, found.low, found.high)
    return f"{mean} [{low}, {high}]"


def heading(protocol: Protocol, seeds: int, *marks: str) -> str:
    """What the columns mean, and the settings that matter most or are not the default.

    The device is not among them: tables do not depend on it.
    """
    splits = f"the mean over {seeds} dev splits, ± their standard deviation"
    default = describe(Protocol())
    settings = [
        f"{name}: {value}"
        for name, value in describe(replace(protocol, device=None)).items()
        if name in ("intercept", "features", "final model") or value != default[name]
    ]
    return "\n".join(
        [
            "Test error: squared error summed over classes, averaged over test samples;",
            f"{splits if seeds > 1 else 'one dev split'}.",
            *marks,
            wrapped(f"Settings: {'; '.join(settings)}."),
        ]
    )


def resampled(seeds: int) -> str:
    """What the bootstrap resamples."""
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
            lines.append(wrapped(f"{name}: {place}"))
    return "\n".join(lines)


def dataset_details() -> str:
    """Source, license and notes of each set."""
    lines = []
    for info in DATASETS.values():
        lines += [wrapped(f"{info.name}: {info.source}"), wrapped(f"  license: {info.licence}")]
        if info.note:
            lines.append(wrapped(f"  note: {info.note}"))
    return "\n".join(lines)


Line = dict[str, Any]  # of a CSV file, by the names of its columns
_OF_A_FIT = ("dev_error", "test_error", "zeros", "n_iter", "converged", "seconds", "device")


def fit_lines(dataset: str, features: str, intercept: bool, grids: Grids) -> list[Line]:
    """The fits of one data set, without the errors of single samples."""
    return [
        {
            "dataset": dataset,
            "features": features,
            "intercept": intercept,
            "loss": path.loss.name,
            "seed": path.seed,  # of the dev split; None for a fit to train and dev together
            "alpha": record.setting if path.loss.model == "linear" else None,
            **{name: getattr(record, name) for name in _OF_A_FIT},
            "tightness": path.loss.tightness,  # None: as the name of the loss says
            "model": path.loss.model,
            "rounds": int(record.setting) if path.loss.model == "boosted" else None,
        }
        for path, grid in grids.items()
        for record in grid
    ]


def to_csv(lines: Sequence[Line]) -> str:
    """A header and the lines; six digits are written."""
    return csv_text([[*lines[0]], *(map(_text, line.values()) for line in lines)])


def csv_text(rows: Iterable[Iterable[str]]) -> str:
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


def render(
    title: str,
    lead: str,
    sections: list[Section],
    failures: Mapping[str, str] = {},
    *,
    points: Sequence[str] = (),
    commands: Sequence[str] = (),
) -> str:
    """The page: a lead with a list of points, commands to go on with, and what was not run."""
    body = [f"<h1>{escape(title)}</h1>", f'<p class="lead">{escape(lead)}</p>']
    if points:
        body.append(f"<ul>{''.join(f'<li>{escape(point)}</li>' for point in points)}</ul>")
    body += [f"<pre>{escape(command)}</pre>" for command in commands if command]
    for section in sections:
        notes = "".join(f"<p>{escape(note)}</p>" for note in section.notes)
        body += [f"<h2>{escape(section.title)}</h2>{notes}", _results(section), _plots(section)]
        body.append(f"<h3>Settings</h3>{_pairs_table(section.settings)}")
        body.append(f"<h3>SHA-256 of the data</h3>{_pairs_table(section.checksums)}")
    if failures:
        body.append(f"<h2>Not run</h2>{_pairs_table(failures)}")
    packages = ("numpy", "scipy", "scikit-learn", *(["lightgbm"] if can_boost() else []))
    versions = {
        "fitzpatrick": __version__,
        "Python": platform.python_version(),
        **{name: version(name) for name in packages},
        "platform": f"{platform.system()} {platform.machine()}",
    }
    body.append(f"<h2>Versions</h2>{_pairs_table(versions)}")
    return render_document(
        title,
        "".join(body),
        styles=[read_asset(__package__, "report.css")],
        scripts=[read_asset(__package__, "report.js")],
    )


def write_results(results: dict[Path, str], say: Callable[[str], None]) -> None:
    """Write text, table and page, and say so, and whether the page that was there had other data.

    The page comes last.
    """
    file, page = list(results.items())[-1]
    before = file.read_text(encoding="utf-8", errors="replace") if file.is_file() else ""
    if not set(_SHA256.findall(before)) <= set(_SHA256.findall(page)):
        say(
            f"note: the results in {file.with_suffix('.*')} were of other data, and are replaced; "
            "-o FOLDER keeps both"
        )
    for path, content in results.items():
        write_atomically(path, content)
        say(f"wrote {path}")


def _results(section: Section) -> str:
    columns = ["loss", "error", *["paper"] * bool(section.paper)]
    columns += ["accuracy", "log loss"] * section.has_classes
    columns += [DIFFERENCE, "±", "chosen", "zeros", "s per path", "not converged"]
    rows = []
    for is_marked, cells in section.rows():
        start = '<tr class="better">' if is_marked else "<tr>"
        texts = (escape(cells.get(name, "")) for name in columns)
        rows.append(f"{start}{''.join(f'<td>{text}</td>' for text in texts)}</tr>")
    names = {"error": "test error", "±": "± splits"}
    header = "".join(f"<th>{names.get(name, name)}</th>" for name in columns)
    over = resampled(section.evaluation.summaries[0].errors.size)
    resampling = f"paired bootstrap over {over}, {RESAMPLES} resamples"
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
    summaries, paper = section.evaluation.summaries, section.paper
    families = list(dict.fromkeys(one.loss.family for one in summaries))
    title = f"{LEVEL:.0%} interval of the mean test error{'; diamond: paper' * bool(paper)}"
    rows = [
        svg.Row(str(one.loss), one.error, one.interval, paper.get(str(one.loss)))
        for one in summaries
    ]
    plots = [svg.row_plot(title, rows, "test error")]
    for model, title in _CURVES.items():
        group = [one for one in summaries if one.loss.model == model]
        if not group:
            continue
        ticks = sorted(set(group[0].grid).intersection(*(one.grid for one in group)))
        curves = []
        for one in group:
            hue, is_dashed = families.index(one.loss.family), one.loss.loss.tightness > 0
            curves.append(svg.Series(str(one.loss), one.grid, one.dev_curve, hue, is_dashed))
        plots.append(svg.line_plot(title, ticks, curves, (MODELS[model], "dev error")))
    zeros = [svg.Row(str(one.loss), 100 * one.zeros) for one in summaries]
    seconds = [svg.Row(str(one.loss), one.seconds) for one in summaries]
    plots += [
        svg.row_plot("Zeros among predictions", zeros, "% of the predicted proportions", " %"),
        svg.row_plot("Training time of a path", seconds, "seconds", " s"),
    ]
    return f'<div class="plots">{"".join(plots)}</div>'


def _pairs_table(values: Mapping[str, object]) -> str:
    rows = "".join(
        f'<tr><td>{escape(str(name))}</td><td class="text">{escape(str(value))}</td></tr>'
        for name, value in values.items()
    )
    return f'<div class="scroll"><table>{rows}</table></div>'
