"""Draw the figures of the README and the site that no example draws, into ``docs/figures``.

    python docs/make_figures.py

Losses are computed. Benchmarks are read from the files in ``benchmarks/results``.
"""

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

import fitzpatrick as fp
from fitzpatrick.experiments.figures import FAINT, FAMILY, FENCHEL_YOUNG, FITZPATRICK, save_figure

HERE = Path(__file__).parent
FIGURES = HERE / "figures"
RESULTS = HERE.parent / "benchmarks" / "results"
GRID: dict[str, Any] = {**FAINT, "alpha": 0.4}
OURS, PEER = FITZPATRICK["color"], FENCHEL_YOUNG["color"]

Bar = tuple[str, float, bool]  # label, ratio, True for this library


def losses_figure() -> Figure:
    """Three families at a hard label, as the score of the true class rises."""
    figure = Figure(figsize=(10.0, 3.1), layout="constrained")
    axes = figure.subplots(1, 3, sharey=True)
    s = np.linspace(-4.0, 4.0, 401)
    theta, labels = np.stack([s, np.zeros_like(s)], axis=-1), np.zeros(s.size, dtype=np.int64)
    for ax, name in zip(axes, ("logistic", "entmax15", "sparsemax"), strict=True):
        omega = fp.get_loss(name).regularizer
        for tightness, style in FAMILY.items():
            value = fp.FitzpatrickLoss(omega, tightness).value(labels, theta)
            names = {0.0: " (Fenchel-Young)", 1.0: " (Fitzpatrick)"}
            label = f"tightness {tightness:g}{names.get(tightness, '')}"
            ax.plot(s, value, label=label, **style)
        ax.set(title=name, xlabel="score of the true class minus the other's", ylim=(-0.1, 4.1))
        ax.grid(**GRID)
    axes[0].set_ylabel("loss")
    axes[0].legend(frameon=False, fontsize="small")
    return figure


def draw_bars(ax: Axes, title: str, bars: list[Bar]) -> None:
    """Horizontal bars, the first on top, with their numbers; a logarithmic axis for wide ranges."""
    places = np.arange(len(bars))[::-1]
    ratios = [ratio for _, ratio, _ in bars]
    ax.barh(places, ratios, color=[OURS if is_ours else PEER for _, _, is_ours in bars])
    ax.set_yticks(places, [label for label, _, _ in bars], fontsize=8)
    is_wide = max(ratios) > 20 * min(ratios)
    ax.set_xscale("log" if is_wide else "linear")
    ax.set_xlim(0.5 if is_wide else 0.0, max(ratios) * (2.5 if is_wide else 1.22))
    ax.axvline(1.0, color="#111111", linewidth=1.0)
    for place, ratio in zip(places, ratios, strict=True):
        ax.annotate(
            f"{ratio:.3g}",
            (max(ratio, 1.0), place),
            (3, 0),
            textcoords="offset points",
            va="center",
            size=8,
        )
    ax.set_title(title, fontsize=10)
    ax.grid(axis="x", **GRID)
    ax.set_axisbelow(True)


def panels(title: str, columns: dict[str, list[Bar]]) -> Figure:
    """A panel of bars for each title."""
    height = 1.0 + 0.21 * max(len(bars) for bars in columns.values())
    figure = Figure(figsize=(5.0 * len(columns), height), layout="constrained")
    axes = figure.subplots(1, len(columns), squeeze=False)[0]
    for ax, (name, bars) in zip(axes, columns.items(), strict=True):
        draw_bars(ax, name, bars)
    figure.suptitle(f"{title}; orange is ours, smaller is better", fontsize=11)
    return figure


def read_csv(name: str) -> list[dict[str, str]]:
    """The rows of a benchmark."""
    with (RESULTS / name).open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def gpu_links_figure() -> Figure:
    """Links on a GPU, two shapes."""
    columns: dict[str, list[Bar]] = {}
    for row in read_csv("gpu_links.csv"):
        shape = f"{row['rows']} × {row['classes']} {row['dtype']}"
        if row["times_floor"] and shape in ("65536 × 1024 float32", "16384 × 32768 bfloat16"):
            link = "entmax, α = 1.3" if row["link"] == "entmax" else row["link"]
            bar = (f"{link} ({row['library']})", float(row["times_floor"]))
            columns.setdefault(shape, []).append((*bar, row["library"] == "fitzpatrick"))
    return panels("Links, forward and backward, × the memory floor (H200)", columns)


def gpu_entries_figure() -> Figure:
    """Entry-wise losses on a GPU, soft and hard targets."""
    titles = {"soft": "targets inside (0, 1)", "hard": "targets 0 and 1"}
    columns: dict[str, list[Bar]] = {title: [] for title in titles.values()}
    for row in read_csv("gpu_entries.csv"):
        if row["target"] in titles and row["library"] in ("fitzpatrick", "torch"):
            is_ours = row["library"] == "fitzpatrick"
            label = row["loss"] if is_ours else f"{row['loss']} (PyTorch)"
            columns[titles[row["target"]]].append((label, float(row["times_floor"]), is_ours))
    return panels("Entry-wise losses, 65536 × 1024 float32, × the memory floor (H200)", columns)


def cpu_links_figure() -> Figure:
    """Losses and links of NumPy arrays on one CPU thread."""
    lines = json.loads((RESULTS / "cpu_links.json").read_text(encoding="utf-8"))["lines"]
    named = [(line["what"].replace(", scale 1 ", " "), line["ratio"], True) for line in lines]
    named = [bar for bar in named if "scale" not in bar[0] and "tensor" not in bar[0]]
    columns = {"value and gradient": named[:-5], "links": named[-5:]}
    return panels("8192 × 256 float64 on one CPU thread, × the time of the peer", columns)


def torch_cpu_figure() -> Figure:
    """PyTorch's losses on one CPU thread."""
    lines = json.loads((RESULTS / "torch_cpu.json").read_text(encoding="utf-8"))["lines"]
    columns: dict[str, list[Bar]] = {}
    for line in lines:
        if line["loss"] != "cross_entropy" and line["rows"] == 512:
            targets = {"labels": "class indices"}.get(line["targets"], line["targets"])
            title = f"{line['rows']} × {line['classes']}, {targets}"
            columns.setdefault(title, []).append((line["loss"], line["ratio"], True))
    return panels("PyTorch on one CPU thread, × the time of cross_entropy", columns)


def main() -> None:
    """Draw all figures."""
    for draw in (
        losses_figure,
        gpu_links_figure,
        gpu_entries_figure,
        cpu_links_figure,
        torch_cpu_figure,
    ):
        path = FIGURES / f"{draw.__name__.removesuffix('_figure')}.png"
        save_figure(draw(), path)
        print(path.relative_to(HERE.parent), f"{path.stat().st_size // 1000} kB")


if __name__ == "__main__":
    main()
