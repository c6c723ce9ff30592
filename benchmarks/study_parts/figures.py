"""Figures of the study."""

from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from .statistics import Ranks

COLORS = {"0.5": "#9ecae1", "1": "#3182bd", "2": "#fd8d3c", "4": "#b3261e"}
LIMIT = 10.0  # percent; larger differences are drawn at the edge


def save(figure: Figure, path: Path) -> None:
    """The same file from the same numbers."""
    with mpl.rc_context({"svg.hashsalt": "study", "svg.fonttype": "path"}):
        figure.savefig(path, metadata={"Date": None} if path.suffix == ".svg" else None, dpi=150)


def tightness(path: Path, panels: list[tuple[str, Any, str]]) -> None:
    """Relative differences of each tightness to 0, set by set, with the interval of c = 1."""
    found = {
        title: {c: results.compare((loss, c), (loss, "0")) for c in COLORS}
        for title, results, loss in panels
    }
    first = next(iter(found.values()))["1"]
    order = first["mean"].sort_values(ascending=False).index
    figure = Figure(figsize=(9.5, 1.2 + 0.24 * len(order)), layout="constrained")
    axes = figure.subplots(1, len(panels), sharey=True)
    for axis, (title, by_c) in zip(np.atleast_1d(axes), found.items(), strict=True):
        axis.axvline(0, color="0.3", lw=0.8)
        axis.axvspan(-1, 1, color="0.93", zorder=0)
        for c, color in COLORS.items():
            one = 100 * by_c[c][["mean", "low", "high"]].reindex(order)
            y = np.arange(len(order))
            if c == "1":
                axis.hlines(y, one["low"].clip(-LIMIT, LIMIT), one["high"].clip(-LIMIT, LIMIT),
                            color=color, lw=1)  # fmt: skip
            axis.plot(one["mean"].clip(-LIMIT, LIMIT), y, "o", ms=4, color=color, label=f"c = {c}")
        axis.set(title=title, xlim=(-LIMIT - 0.5, LIMIT + 0.5), yticks=np.arange(len(order)))
        axis.set_yticklabels(order, fontsize=8)
        axis.set_xlabel("difference to c = 0, %", fontsize=9)
        axis.spines[["top", "right"]].set_visible(False)
    axes[0].legend(loc="lower left", fontsize=7, frameon=False)
    save(figure, path)


def ranks(path: Path, names: list[str], found: Ranks) -> None:
    """A critical-difference picture: bars join candidates that cannot be told apart."""
    order = np.argsort(found.mean)
    low, high = 1, len(names)
    half = (len(names) + 1) // 2
    figure = Figure(figsize=(9, 1.3 + 0.27 * half + 0.12 * half), layout="constrained")
    axis = figure.subplots()
    axis.set(xlim=(low - 1.6, high + 1.6), ylim=(-1.2 - 0.6 * half, 1.4))
    axis.axis("off")
    axis.hlines(0, low, high, color="black", lw=1)
    for tick in range(low, high + 1):
        axis.vlines(tick, 0, 0.12, color="black", lw=1)
        axis.text(tick, 0.2, str(tick), ha="center", va="bottom", fontsize=8)
    axis.hlines(0.95, low, low + found.critical, color="black", lw=2)
    axis.text(low, 1.05, f"critical difference {found.critical:.2f}", fontsize=8, va="bottom")
    bars = cliques(found.mean[order], found.critical)
    for i, (begin, end) in enumerate(bars):
        axis.hlines(-0.18 - 0.17 * i, found.mean[order][begin] - 0.04, found.mean[order][end] + 0.04,
                    color="#b3261e", lw=3)  # fmt: skip
    top = -0.3 - 0.17 * len(bars)
    for place, i in enumerate(order):
        left = place < half
        y = top - 0.5 * (place if left else len(order) - 1 - place)
        x = low - 0.3 if left else high + 0.3
        axis.plot([found.mean[i], found.mean[i], x], [0, y, y], color="0.4", lw=0.8)
        text = f"{names[i]}  ({found.mean[i]:.2f})"
        axis.text(x, y, f"{text} " if left else f" {text}", ha="right" if left else "left",
                  va="center", fontsize=8)  # fmt: skip
    axis.set_ylim(top - 0.5 * half, 1.4)
    axis.set_xlim(low - 2.9, high + 2.9)
    save(figure, path)


def cliques(ranked: np.ndarray, critical: float) -> list[tuple[int, int]]:
    """First and last place of each longest run of rising ranks within the critical difference."""
    found: list[tuple[int, int]] = []
    for begin in range(len(ranked)):
        end = int(np.searchsorted(ranked, ranked[begin] + critical, side="right")) - 1
        if end > begin and (not found or end > found[-1][1]):
            found.append((begin, end))
    return found


def simulation(path: Path, effects: dict[tuple[str, str], pd.DataFrame]) -> None:
    """One panel for each factor that was varied."""
    factors = list(dict.fromkeys(next(iter(effects.values()))["factor"]))
    figure = Figure(figsize=(9.5, 2.8), layout="constrained")
    axes = figure.subplots(1, len(factors), sharey=True)
    styles = {"logistic": "o-", "sparsemax": "s--"}
    for axis, factor in zip(np.atleast_1d(axes), factors, strict=True):
        axis.axhline(0, color="0.3", lw=0.8)
        for j, ((loss, c), frame) in enumerate(effects.items()):
            one = frame[frame["factor"] == factor]
            x = np.arange(len(one)) + 0.08 * (j - 1.5)
            error = 100 * np.abs(one[["low", "high"]].to_numpy().T - one["mean"].to_numpy())
            axis.errorbar(x, 100 * one["mean"], error, fmt=styles[loss], color=COLORS[c], ms=3.5,
                          lw=1, label=f"{loss}, c = {c}")  # fmt: skip
            axis.set_xticks(np.arange(len(one)), [f"{value:g}" for value in one["value"]])
        axis.set_title(factor, fontsize=9)
        axis.spines[["top", "right"]].set_visible(False)
        axis.tick_params(labelsize=8)
    axes[0].set_ylabel("error against c = 0, %", fontsize=9)
    axes[-1].legend(fontsize=6.5, frameon=False)
    save(figure, path)
