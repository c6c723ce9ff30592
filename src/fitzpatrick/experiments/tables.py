"""The numbers as text, in 80 columns."""

import textwrap
from dataclasses import replace

from ..datasets import DATASETS
from .protocol import Protocol, describe
from .summary import LEVEL, RESAMPLES, Difference, Evaluation

DIFFERENCE = "minus Fenchel-Young"  # what the differences are


def number(value: float, digits: int = 4) -> str:
    """Errors as the paper prints them, without the leading zero.

    Example:
        >>> number(0.18656), number(-0.5, 2), number(1.25, 2)
        ('.1866', '-.50', '1.25')
    """
    text = f"{value:.{digits}f}"
    sign, text = ("-", text[1:]) if text.startswith("-") else ("", text)
    return sign + text.removeprefix("0")


def signed(value: float) -> str:
    """The same with its sign always shown."""
    return number(value) if value < 0 else f"+{number(value)}"


def results_table(title: str, evaluation: Evaluation, paper: dict[str, float] | None) -> str:
    """One block: a line per loss, the paper's number beside ours, differences in each family."""
    summaries = evaluation.summaries
    width = max(22, *(len(str(summary.loss)) for summary in summaries))
    column = f"  {'paper':>5}" if paper else ""
    error = "ours" if paper else "error"
    lines = [f"{title:<{width + 2}}{error:>7} {'±':>6}{column}  {DIFFERENCE}", "-" * 80]
    for summary in summaries:
        mark = "*" if summary.loss in evaluation.better else " "
        if paper:
            published = paper.get(str(summary.loss))
            column = f"  {'–' if published is None else number(published, 3):>5}"
        spread = number(summary.spread) if summary.errors.size > 1 else "–"
        found = evaluation.differences.get(summary.loss)
        lines.append(
            f"  {summary.loss!s:<{width}}{number(summary.error):>7}{mark}{spread:>6}"
            f"{column}  {interval_text(found) if found else ''}".rstrip()
        )
    unconverged = sum(summary.unconverged for summary in summaries)
    if unconverged:
        fits = sum(summary.fits for summary in summaries)
        lines.append(f"  {unconverged} of {fits} fits did not converge")
    return "\n".join(lines)


def interval_text(found: Difference) -> str:
    """Mean and interval of a difference."""
    return f"{signed(found.mean)} [{signed(found.low)}, {signed(found.high)}]"


def heading(protocol: Protocol, seeds: int) -> str:
    """What the columns mean, and what was run; the table is the same on every device."""
    default = describe(Protocol())
    settings = [
        f"{name}: {value}"
        for name, value in describe(replace(protocol, device=None)).items()
        if name in ("intercept", "features", "final model") or value != default[name]
    ]
    splits = f"the mean over {seeds} dev splits, ± their standard deviation"
    return "\n".join(
        [
            "Test error: squared error summed over classes, averaged over test samples;",
            f"{splits if seeds > 1 else 'one dev split'}.",
            f"{DIFFERENCE}: difference to the Fenchel-Young loss of the same link.",
            f"* the better one: the {LEVEL:.0%} interval of the difference excludes 0",
            f"  (paired bootstrap over {resampled(seeds)}, {RESAMPLES} resamples).",
            *wrapped(f"Settings: {'; '.join(settings)}."),
        ]
    )


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


def wrapped(text: str) -> list[str]:
    """Lines of at most 79 columns, indented below the first."""
    return textwrap.wrap(
        text, 79, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False
    )


def dataset_details() -> str:
    """Source, license and notes of each set."""
    blocks = []
    for info in DATASETS.values():
        block = wrapped(f"{info.name}: {info.source}") + wrapped(f"  license: {info.licence}")
        if info.note:
            block += wrapped(f"  note: {info.note}")
        blocks.append("\n".join(block))
    return "\n".join(blocks)
