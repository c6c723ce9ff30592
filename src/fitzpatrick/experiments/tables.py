"""The numbers as text, in 80 columns."""

from dataclasses import replace

from .protocol import Protocol, describe
from .summary import LEVEL, RESAMPLES, Difference, Evaluation
from .text import number, signed, wrapped

DIFFERENCE = "minus Fenchel-Young"  # what the differences are


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
