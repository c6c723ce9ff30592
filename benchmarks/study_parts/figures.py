"""Figures of the study."""

from pathlib import Path

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from .statistics import Ranks

COLORS = {"0.5": "#9ecae1", "1": "#3182bd", "2": "#fd8d3c", "4": "#b3261e"}
LIMIT = 10.0  # percent; larger differences are drawn at the edge


def save(figure: Figure, path: Path) -> None:
    """Write a file that depends only on the numbers."""
    with mpl.rc_context({"svg.hashsalt": "study"}):
        figure.savefig(path, metadata={"Date": None} if path.suffix == ".svg" else None, dpi=120)


def tightness(path: Path, found: dict[str, dict[str, pd.DataFrame]]) -> None:
    """Relative differences of each tightness to 0, set by set, with the interval of c = 1."""
    order = next(iter(found.values()))["1"]["mean"].sort_values(ascending=False).index
    figure = Figure(figsize=(9.5, 1.2 + 0.23 * len(order)), layout="constrained")
    axes = figure.subplots(1, len(found), sharey=True)
    y = np.arange(len(order))
    for axis, (title, by_c) in zip(axes, found.items(), strict=True):
        axis.axvline(0, color="0.3", lw=0.8)
        axis.axvspan(-1, 1, color="0.93", zorder=0)
        for c, color in COLORS.items():
            one = (100 * by_c[c][["mean", "low", "high"]].reindex(order)).clip(-LIMIT, LIMIT)
            if c == "1":
                axis.hlines(y, one["low"], one["high"], color=color, lw=1)
            axis.plot(one["mean"], y, "o", ms=4, color=color, label=f"c = {c}", alpha=0.9)
        axis.set(title=title, xlim=(-LIMIT - 0.5, LIMIT + 0.5))
        axis.set_yticks(y, order, fontsize=8)
        axis.set_xlabel("error against c = 0, %", fontsize=9)
        axis.spines[["top", "right"]].set_visible(False)
    axes[-1].legend(fontsize=7, loc="upper right")
    save(figure, path)


def ranks(path: Path, names: list[str], found: Ranks) -> None:
    """A critical-difference diagram: bars connect candidates that do not differ significantly."""
    order = np.argsort(found.mean)
    low, high, half = 1, len(names), (len(names) + 1) // 2
    bars = cliques(found.mean[order], found.critical)
    top = -0.4 - 0.2 * len(bars)  # of the names
    figure = Figure(figsize=(9, 1.2 + 0.3 * half), layout="constrained")
    axis = figure.subplots()
    axis.set(xlim=(low - 2.9, high + 2.9), ylim=(top - 0.5 * half, 1.4))
    axis.axis("off")
    axis.hlines(0, low, high, color="black", lw=1)
    for tick in range(low, high + 1):
        axis.vlines(tick, 0, 0.12, color="black", lw=1)
        axis.text(tick, 0.2, str(tick), ha="center", va="bottom", fontsize=8)
    axis.hlines(0.95, low, low + found.critical, color="black", lw=2)
    axis.text(low, 1.05, f"critical difference {found.critical:.2f}", fontsize=8, va="bottom")
    for i, places in enumerate(bars):
        begin, end = found.mean[order][list(places)]
        axis.hlines(-0.2 - 0.2 * i, begin - 0.04, end + 0.04, color="#b3261e", lw=3)
    for place, i in enumerate(order):
        is_left = place < half
        y = top - 0.5 * (place if is_left else len(order) - 1 - place)
        x, side = (low - 0.3, "right") if is_left else (high + 0.3, "left")
        axis.plot([found.mean[i], found.mean[i], x], [0, y, y], color="0.4", lw=0.8)
        axis.text(x, y, f" {names[i]} ({found.mean[i]:.2f}) ", ha=side, va="center", fontsize=8)
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
    ticks = (-10, 0, 10, 100, 1000)
    factors = list(dict.fromkeys(next(iter(effects.values()))["factor"]))
    figure = Figure(figsize=(9.5, 3.0), layout="constrained")
    for axis, factor in zip(figure.subplots(1, len(factors), sharey=True), factors, strict=True):
        axis.axhline(0, color="0.3", lw=0.8)
        for j, ((loss, c), frame) in enumerate(effects.items()):
            one = frame[frame["factor"] == factor]
            x = np.arange(len(one)) + 0.08 * (j - 1.5)
            ends = 100 * np.abs(one[["low", "high"]].to_numpy().T - one["mean"].to_numpy())
            style = {"logistic": "o-", "sparsemax": "s--"}[loss]
            axis.errorbar(x, 100 * one["mean"], ends, fmt=style, color=COLORS[c], ms=3.5, lw=1,
                          label=f"{loss}, c = {c}")  # fmt: skip
        axis.set_xticks(np.arange(len(one)), [f"{value:g}" for value in one["value"]])
        axis.set_title(factor, fontsize=9)
        axis.set_yscale("symlog", linthresh=10)
        axis.set_yticks(ticks, [f"{tick:+g}" for tick in ticks], minor=False)
        axis.spines[["top", "right"]].set_visible(False)
        axis.tick_params(labelsize=8)
    figure.axes[0].set_ylabel("error against c = 0, %", fontsize=9)
    figure.legend(*figure.axes[0].get_legend_handles_labels(), fontsize=8, ncols=4, frameon=False,
                  loc="outside lower center")  # fmt: skip
    save(figure, path)
