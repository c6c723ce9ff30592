"""The numbers as text, in 80 columns."""

import math
from collections.abc import Collection
from dataclasses import replace

from .protocol import LossChoice, Protocol, describe
from .summary import LEVEL, RESAMPLES, Difference, Evaluation, LossSummary
from .text import number, signed_alike, wrapped

DIFFERENCE = "minus Fenchel-Young"  # what the differences are


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
        alphas = ", ".join(f"{alpha:g}" for alpha in sorted(set(row.alphas)))
        lines.append(
            f"  {row.loss!s:<{width}}{number(row.error):>7}{mark}{spread(row):>6}{scores}"
            f"  {alphas}".rstrip()
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
            *settings_lines(protocol),
        ]
    )


def comparison_heading(protocol: Protocol, seeds: int, *, has_classes: bool) -> str:
    """The same for :func:`comparison_table`."""
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
