"""One self-contained HTML page: tables, plots, settings, versions and checksums of the data."""

import platform
import re
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from importlib.metadata import version
from pathlib import Path

from .. import __version__
from .._page import read_asset, render_document
from . import svg
from .protocol import LossChoice
from .summary import LEVEL, RESAMPLES, Evaluation
from .tables import DIFFERENCE, interval_text, log_loss_text, resampled, spread
from .text import number

_SHA256 = re.compile(r"\b[0-9a-f]{64}\b")


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
                ", ".join(f"{alpha:g}" for alpha in sorted(set(summary.alphas))),
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
    alphas = summaries[0].grid
    families = list(dict.fromkeys(one.loss.loss.regularizer for one in summaries))
    curves = [
        svg.Series(
            str(one.loss),
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
        svg.line_plot("Dev curve", alphas, curves, ("α", "dev error")),
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
