"""Small plots as inline SVG whose colors follow the page, light or dark.

Plots are as wide as a telephone, so that their text is never scaled down much; labels stand above
their rows. Series differ in marker and dash as well as in shade. Text is set in the page's own
font; every plot has a title for readers who cannot see it.

``report.js`` makes them answer: a mark has its value in words (``data-tip``), all that belongs to a
loss names it (``data-loss``), and what a reader clicks to hide it is a ``legend``.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

import numpy as np

WIDTH = 360
_MARGIN, _TOP, _BOTTOM = 14, 4, 46
_LABEL, _ROW = 20, 43
_PLOT = 210  # height of a line plot's area
MAX_RATIO = 2.0  # of the largest to the least value that a line plot shows
HUES = 4
MARKERS = ("circle", "square", "diamond", "triangle", "wedge", "bar")
_CORNERS = {
    "square": ((-4, -4), (4, -4), (4, 4), (-4, 4)),
    "diamond": ((0, -6), (6, 0), (0, 6), (-6, 0)),
    "triangle": ((0, -5), (5, 4), (-5, 4)),
    "wedge": ((0, 5), (5, -4), (-5, -4)),
    "bar": ((-1.5, -6), (1.5, -6), (1.5, 6), (-1.5, 6)),
}


@dataclass(frozen=True)
class Interval:
    """A value with its interval and, where there is one, a reference beside it."""

    label: str
    value: float
    low: float
    high: float
    reference: float | None = None


@dataclass(frozen=True, eq=False)
class Series:
    """One line of a plot: losses with one link share a hue, the Fitzpatrick ones are dashed."""

    label: str
    x: Sequence[float]
    values: np.ndarray
    hue: int
    dashed: bool


def interval_plot(title: str, rows: Sequence[Interval], axis: str) -> str:
    """One dot with whiskers per row; above it a hollow diamond for the reference."""
    references = [row.reference for row in rows if row.reference is not None]
    low = min([row.low for row in rows] + references)
    high = max([row.high for row in rows] + references)
    scale = _Scale(low, high)
    height = _TOP + _ROW * len(rows) + _BOTTOM
    parts = [scale.axis(height, axis)]
    for i, row in enumerate(rows):
        y = _TOP + _ROW * i + _LABEL + 12
        parts.append(_row_label(row.label, y))
        value = (
            f'<line class="ink" x1="{scale(row.low):.1f}" x2="{scale(row.high):.1f}" '
            f'y1="{y}" y2="{y}"/>'
        )
        tip = f"{row.label}: {row.value:.4g}, from {row.low:.4g} to {row.high:.4g}"
        value += _marker("circle", scale(row.value), y, "fill", tip)
        if row.reference is not None:
            tip = f"{row.label}, reference: {row.reference:.4g}"
            value += _marker("diamond", scale(row.reference), y - 8, "hollow", tip)
        parts.append(_of_loss(row.label, value))
    return _figure(title, height, parts)


def bar_plot(title: str, rows: Sequence[tuple[str, float]], axis: str, unit: str = "") -> str:
    """One bar per row from zero, with its value written beside it."""
    scale = _Scale(0.0, max(max(value for _, value in rows), 1e-9) * 1.25, pad=0.0)
    height = _TOP + _ROW * len(rows) + _BOTTOM
    parts = [scale.axis(height, axis)]
    for i, (label, value) in enumerate(rows):
        y = _TOP + _ROW * i + _LABEL + 10
        width = scale(value) - scale(0.0)
        parts.append(_row_label(label, y))
        bar = (
            f'<rect class="bar" x="{scale(0.0):.1f}" y="{y - 7}" width="{width:.1f}" height="14"'
            f"{_tip(f'{label}: {value:.4g}{unit}')}/>"
            f'<text x="{scale(value) + 5:.1f}" y="{y + 5}">{value:.3g}{escape(unit)}</text>'
        )
        parts.append(_of_loss(label, bar))
    return _figure(title, height, parts)


def line_plot(
    title: str, ticks: Sequence[float], series: Sequence[Series], axes: tuple[str, str]
) -> str:
    """Lines over a logarithmic x axis from the first tick to the last, and rings around minima.

    The least values are the point: what is far above them is cut off.
    """
    left, right, top = 70, 22, 12 + 20 * len(series)
    width, height = WIDTH - left - right, top + _PLOT + _BOTTOM
    logs = np.log10(np.asarray(ticks, dtype=float))
    least = [float(np.nanmin(line.values)) for line in series]
    highest = max(float(np.nanmax(line.values)) for line in series)
    cut = max(MAX_RATIO * min(least), 1.1 * max(least))
    low, high = min(least), min(highest, cut)
    span = (high - low) or 1.0
    low, high = low - 0.06 * span, high + 0.06 * span

    def to_x(value: float) -> float:
        return 6 + (value - float(logs.min())) / (float(np.ptp(logs)) or 1.0) * (width - 12)

    def to_y(value: float) -> float:
        return (high - value) / (high - low) * _PLOT

    parts = [
        f'<line class="grid" x1="{left}" x2="{left + width}" y1="{top + to_y(tick):.1f}" '
        f'y2="{top + to_y(tick):.1f}"/><text class="end" x="{left - 6}" '
        f'y="{top + to_y(tick) + 5:.1f}">{tick:.3g}</text>'
        for tick in _ticks(low, high)
    ]
    parts += [
        f'<text class="middle" x="{left + to_x(position):.1f}" y="{top + _PLOT + 18}">'
        f"{10**position:g}</text>"
        for position in sorted(logs)[:: -(-len(logs) // 5)]
    ]
    parts.append(_axis_title(axes[0], left + width / 2, height))
    parts.append(
        f'<text class="middle soft" x="{-top - _PLOT / 2:.1f}" y="{_MARGIN}" '
        f'transform="rotate(-90)">{escape(axes[1])}</text>'
    )
    # an inner svg cuts off what leaves its area
    parts.append(f'<svg x="{left}" y="{top}" width="{width}" height="{_PLOT}">')
    for i, line in enumerate(series):
        present = np.isfinite(line.values)  # a path may end before the axis does
        x, values = np.asarray(line.x, dtype=float)[present], line.values[present]
        pairs = list(zip(x, values, strict=True))
        places = [(to_x(float(np.log10(a))), to_y(float(b))) for a, b in pairs]
        tips = [f"{line.label}, {axes[0]} = {a:g}: {b:.4g}" for a, b in pairs]
        points = " ".join(f"{a:.1f},{b:.1f}" for a, b in places)
        drawn = f'<polyline class="{_stroke(line)}" points="{points}"/>'
        for (a, b), tip in zip(places, tips, strict=True):
            drawn += _marker(_marker_of(i), a, b, f"fill s{line.hue % HUES}", tip)
        a, b = places[int(values.argmin())]
        drawn += f'<circle class="ring" cx="{a:.1f}" cy="{b:.1f}" r="8"/>'
        parts.append(_of_loss(line.label, drawn))
    parts.append("</svg>")
    for i, line in enumerate(series):
        y = 12 + 20 * i
        entry = (
            f'<line class="{_stroke(line)}" x1="{_MARGIN}" x2="{_MARGIN + 44}" y1="{y}" y2="{y}"/>'
        )
        entry += _marker(_marker_of(i), _MARGIN + 22, y, f"fill s{line.hue % HUES}")
        entry += f'<text x="{_MARGIN + 54}" y="{y + 5}">{escape(line.label)}</text>'
        parts.append(_of_loss(line.label, entry, "legend"))
    title += f": {axes[1]} over {axes[0]}, minima circled"
    return _figure(title + (", cut off above" if highest > high else ""), height, parts)


def _marker_of(i: int) -> str:
    return MARKERS[i % len(MARKERS)]


def _stroke(line: Series) -> str:
    return f"line s{line.hue % HUES}{' dashed' if line.dashed else ''}"


class _Scale:
    """Values to horizontal positions."""

    def __init__(self, low: float, high: float, pad: float = 0.06) -> None:
        span = (high - low) or 1.0
        self.low, self.high = low - pad * span, high + pad * span

    def __call__(self, value: float) -> float:
        return _MARGIN + (value - self.low) / (self.high - self.low) * (WIDTH - 2 * _MARGIN)

    def axis(self, height: float, label: str) -> str:
        bottom = height - _BOTTOM
        ticks = "".join(
            f'<line class="grid" x1="{self(tick):.1f}" x2="{self(tick):.1f}" y1="{_TOP}" '
            f'y2="{bottom}"/><text class="middle" x="{self(tick):.1f}" y="{bottom + 17}">'
            f"{tick:.4g}</text>"
            for tick in _ticks(self.low, self.high)
            if _MARGIN + 8 < self(tick) < WIDTH - _MARGIN - 8 or tick == 0.0
        )
        return ticks + _axis_title(label, WIDTH / 2, height)


def _axis_title(label: str, x: float, height: float) -> str:
    return f'<text class="middle soft" x="{x:.1f}" y="{height - 6}">{escape(label)}</text>'


def _ticks(low: float, high: float) -> list[float]:
    """Four or five round numbers inside the range."""
    raw = (high - low) / 4
    power = 10.0 ** np.floor(np.log10(raw))
    step = power * min((1, 2, 2.5, 5, 10), key=lambda factor: abs(factor * power - raw))
    first = np.ceil(low / step) * step
    return [float(tick) + 0.0 for tick in np.arange(first, high + 1e-9 * step, step)]


def _row_label(label: str, y: float) -> str:
    text = f'<text x="{_MARGIN}" y="{y - 16}">{escape(label)}</text>'
    return _of_loss(label, text, "legend")


def _of_loss(label: str, parts: str, style: str = "") -> str:
    return f'<g class="{style}" data-loss="{escape(label)}">{parts}</g>'


def _tip(text: str) -> str:
    return f' data-tip="{escape(text)}"' if text else ""


def _marker(kind: str, x: float, y: float, style: str, tip: str = "") -> str:
    if kind == "circle":
        return f'<circle class="{style}" cx="{x:.1f}" cy="{y:.1f}" r="4.5"{_tip(tip)}/>'
    points = " ".join(f"{x + dx:.1f},{y + dy:.1f}" for dx, dy in _CORNERS[kind])
    return f'<polygon class="{style}" points="{points}"{_tip(tip)}/>'


def _figure(title: str, height: float, parts: Sequence[str]) -> str:
    return (
        f"<figure><figcaption>{escape(title)}</figcaption>"
        f'<svg viewBox="0 0 {WIDTH} {height:.0f}" role="img" aria-label="{escape(title)}">'
        f"{''.join(parts)}</svg></figure>"
    )
