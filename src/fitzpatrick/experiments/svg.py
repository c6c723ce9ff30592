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
_ROW = 43
_PLOT = 210  # height of a line plot's area
MAX_RATIO = 2.0  # of the largest to the least value that a line plot shows
HUES = 4
_RING = 8  # radius of what marks a minimum
_CORNERS = {
    "square": ((-4, -4), (4, -4), (4, 4), (-4, 4)),
    "diamond": ((0, -6), (6, 0), (0, 6), (-6, 0)),
    "triangle": ((0, -5), (5, 4), (-5, 4)),
    "wedge": ((0, 5), (5, -4), (-5, -4)),
    "bar": ((-1.5, -6), (1.5, -6), (1.5, 6), (-1.5, 6)),
}
MARKERS = ("circle", *_CORNERS)


@dataclass(frozen=True)
class Row:
    """A value, with its interval and a reference if there are any."""

    label: str
    value: float
    interval: tuple[float, float] | None = None
    reference: float | None = None


@dataclass(frozen=True, eq=False)
class Series:
    """One line of a plot: losses with one link share a hue, the Fitzpatrick ones are dashed."""

    label: str
    x: Sequence[float]
    values: np.ndarray
    hue: int
    dashed: bool


def row_plot(title: str, rows: Sequence[Row], axis: str, unit: str = "") -> str:
    """Below each label a bar from zero with its value, or a dot with its interval.

    Above the dot a hollow diamond is the reference.
    """
    ends = [
        end for row in rows for end in (*(row.interval or ()), row.reference) if end is not None
    ]
    most = max(row.value for row in rows) or 1.0
    low, high = _axis_range(ends) if ends else (0.0, 1.25 * most)
    height = _TOP + _ROW * len(rows) + _BOTTOM
    bottom = height - _BOTTOM

    def to_x(value: float) -> float:
        return _MARGIN + (value - low) / (high - low) * (WIDTH - 2 * _MARGIN)

    parts = [_text("middle soft", WIDTH / 2, height - 6, axis)]
    for tick in _ticks(low, high):
        x = to_x(tick)
        if _MARGIN + 8 < x < WIDTH - _MARGIN - 8 or tick == 0.0:
            parts.append(_line("grid", x, _TOP, x, bottom))
            parts.append(_text("middle", x, bottom + 17, f"{tick:.4g}"))
    for i, row in enumerate(rows):
        y, x, tip = _TOP + _ROW * i + 32, to_x(row.value), f"{row.label}: {row.value:.4g}{unit}"
        if row.interval is None:
            size = f'x="{to_x(0):.1f}" y="{y - 9}" height="14" width="{x - to_x(0):.1f}"'
            drawn = f'<rect class="bar" {size}{_tip(tip)}/>'
            drawn += _text("", x + 5, y + 3, f"{row.value:.3g}{unit}")
        else:
            start, end = row.interval
            drawn = _line("ink", to_x(start), y, to_x(end), y)
            drawn += _marker("circle", x, y, "fill", f"{tip}, from {start:.4g} to {end:.4g}")
        if row.reference is not None:
            tip = f"{row.label}, reference: {row.reference:.4g}"
            drawn += _marker("diamond", to_x(row.reference), y - 8, "hollow", tip)
        parts.append(_of_loss(row.label, _text("", _MARGIN, y - 16, row.label), "legend"))
        parts.append(_of_loss(row.label, drawn))
    return _figure(title, height, parts)


def line_plot(
    title: str, ticks: Sequence[float], series: Sequence[Series], axes: tuple[str, str]
) -> str:
    """Lines over a logarithmic x axis from the first tick to the last, and rings around minima.

    The least values are the point: what is far above them is cut off.
    """
    left, right, top = 70, 22, 12 + 20 * len(series)
    width, height = WIDTH - left - right, top + _PLOT + _BOTTOM
    logs = np.sort(np.log10(np.asarray(ticks, dtype=float)))
    least = [float(np.nanmin(line.values)) for line in series]
    highest = max(float(np.nanmax(line.values)) for line in series)
    low, high = min(least), min(highest, max(MAX_RATIO * min(least), 1.1 * max(least)))
    low, high = _axis_range([low, high])

    def to_x(value: float) -> float:
        share = (value - float(logs[0])) / (float(np.ptp(logs)) or 1.0)
        return _RING + 1 + share * (width - 2 * _RING - 2)

    def to_y(value: float) -> float:
        return (high - value) / (high - low) * _PLOT

    parts = [_text("middle soft", left + width / 2, height - 6, axes[0])]
    for tick in _ticks(low, high):
        y = top + to_y(tick)
        parts.append(_line("grid", left, y, left + width, y))
        parts.append(_text("end", left - 6, y + 5, f"{tick:.3g}"))
    parts += [
        _text("middle", left + to_x(position), top + _PLOT + 18, f"{10**position:g}")
        for position in logs[:: -(-len(logs) // 5)]
    ]
    turned = _text("middle soft", -top - _PLOT / 2, _MARGIN, axes[1])
    parts.append(f'<g transform="rotate(-90)">{turned}</g>')
    # an inner svg cuts off what leaves its area
    lines, legend = "", ""
    for i, line in enumerate(series):
        marker, hue = MARKERS[i % len(MARKERS)], f"s{line.hue % HUES}"
        stroke = f"line {hue}{' dashed' * line.dashed}"
        present = np.isfinite(line.values)  # a path may end before the axis does
        x, values = np.asarray(line.x, dtype=float)[present], line.values[present]
        places = list(zip(map(to_x, np.log10(x)), map(to_y, values), strict=True))
        points = " ".join(f"{a:.1f},{b:.1f}" for a, b in places)
        drawn = f'<polyline class="{stroke}" points="{points}"/>'
        for (a, b), setting, value in zip(places, x, values, strict=True):
            tip = f"{line.label}, {axes[0]} = {setting:g}: {value:.4g}"
            drawn += _marker(marker, a, b, f"fill {hue}", tip)
        a, b = places[int(values.argmin())]
        drawn += f'<circle class="ring" cx="{a:.1f}" cy="{b:.1f}" r="{_RING}"/>'
        lines += _of_loss(line.label, drawn)
        y = 12 + 20 * i
        entry = _line(stroke, _MARGIN, y, _MARGIN + 44, y)
        entry += _marker(marker, _MARGIN + 22, y, f"fill {hue}")
        entry += _text("", _MARGIN + 54, y + 5, line.label)
        legend += _of_loss(line.label, entry, "legend")
    parts.append(f'<svg x="{left}" y="{top}" width="{width}" height="{_PLOT}">{lines}</svg>')
    title += f": {axes[1]} over {axes[0]}, minima circled"
    return _figure(title + (", cut off above" if highest > high else ""), height, [*parts, legend])


def _axis_range(values: Sequence[float]) -> tuple[float, float]:
    """A little wider than the values, and at least a hundredth of them."""
    low, high = min(values), max(values)
    width = max(high - low, 0.01 * max(abs(low), abs(high))) or 1.0
    return low - 0.06 * width, max(high, low + width) + 0.06 * width


def _ticks(low: float, high: float) -> list[float]:
    """Four or five round numbers inside the range."""
    raw = (high - low) / 4
    power = 10.0 ** np.floor(np.log10(raw))
    step = power * min((1, 2, 2.5, 5, 10), key=lambda factor: abs(factor * power - raw))
    first = np.ceil(low / step) * step
    return [float(tick) + 0.0 for tick in np.arange(first, high + 1e-9 * step, step)]


def _line(style: str, x1: float, y1: float, x2: float, y2: float) -> str:
    return f'<line class="{style}" x1="{x1:.1f}" x2="{x2:.1f}" y1="{y1:.1f}" y2="{y2:.1f}"/>'


def _text(style: str, x: float, y: float, content: str) -> str:
    return f'<text class="{style}" x="{x:.1f}" y="{y:.1f}">{escape(content)}</text>'


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
