"""Small plots as inline SVG whose colours follow the page, light or dark.

Series differ in dash pattern and marker as well as in shade. Text is set in the page's own font;
every plot has a title for readers who cannot see it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

import numpy as np

WIDTH = 560
_LEFT, _RIGHT, _TOP, _BOTTOM = 170, 24, 10, 34
_ROW = 26
_DASHES = ("", "7 3", "2 3", "9 3 2 3", "4 2", "1 2", "12 4", "6 2 1 2 1 2")
_MARKERS = ("circle", "square", "diamond", "triangle")


@dataclass(frozen=True)
class Interval:
    """A value with its interval and, where there is one, a reference beside it."""

    label: str
    value: float
    low: float
    high: float
    reference: float | None = None


def interval_plot(title: str, rows: Sequence[Interval], axis: str) -> str:
    """One dot with whiskers per row; a hollow diamond for the reference."""
    references = [row.reference for row in rows if row.reference is not None]
    low = min([row.low for row in rows] + references)
    high = max([row.high for row in rows] + references)
    scale = _Scale(low, high)
    height = _TOP + _ROW * len(rows) + _BOTTOM
    parts = [scale.axis(height, axis)]
    for i, row in enumerate(rows):
        y = _TOP + _ROW * (i + 0.5)
        parts.append(_row_label(row.label, y))
        parts.append(
            f'<line class="ink" x1="{scale(row.low):.1f}" x2="{scale(row.high):.1f}" '
            f'y1="{y:.1f}" y2="{y:.1f}"/>'
        )
        parts.append(_marker("circle", scale(row.value), y, "fill"))
        if row.reference is not None:
            parts.append(_marker("diamond", scale(row.reference), y, "hollow"))
    return _figure(title, height, parts)


def bar_plot(title: str, rows: Sequence[tuple[str, float]], axis: str, unit: str = "") -> str:
    """One bar per row from zero, with its value written beside it."""
    scale = _Scale(0.0, max(max(value for _, value in rows), 1e-9) * 1.15, pad=0.0)
    height = _TOP + _ROW * len(rows) + _BOTTOM
    parts = [scale.axis(height, axis)]
    for i, (label, value) in enumerate(rows):
        y = _TOP + _ROW * (i + 0.5)
        width = scale(value) - scale(0.0)
        parts.append(_row_label(label, y))
        parts.append(
            f'<rect class="bar" x="{scale(0.0):.1f}" y="{y - 8:.1f}" width="{width:.1f}" '
            'height="16"/>'
        )
        parts.append(
            f'<text x="{scale(value) + 5:.1f}" y="{y + 4:.1f}">{value:.3g}{escape(unit)}</text>'
        )
    return _figure(title, height, parts)


def line_plot(
    title: str, x: Sequence[float], series: Sequence[tuple[str, np.ndarray]], axes: tuple[str, str]
) -> str:
    """Lines over a logarithmic x axis, each with its own dash and marker."""
    left, top, bottom = 58, 10 + 18 * len(series), 40
    height = top + 210 + bottom
    logs = np.log10(np.asarray(x, dtype=float))
    values = np.concatenate([line for _, line in series])
    low, high = float(values.min()), float(values.max())
    span = (high - low) or 1.0
    low, high = low - 0.04 * span, high + 0.04 * span

    def to_x(value: float) -> float:
        width = float(logs.max() - logs.min()) or 1.0
        return left + (value - float(logs.min())) / width * (WIDTH - left - _RIGHT)

    def to_y(value: float) -> float:
        return top + (high - value) / (high - low) * 210

    parts = [
        f'<line class="grid" x1="{left}" x2="{WIDTH - _RIGHT}" y1="{to_y(tick):.1f}" '
        f'y2="{to_y(tick):.1f}"/><text class="end" x="{left - 6}" y="{to_y(tick) + 4:.1f}">'
        f"{tick:.3g}</text>"
        for tick in _ticks(low, high)
    ]
    parts += [
        f'<text class="middle" x="{to_x(position):.1f}" y="{height - bottom + 18}">'
        f"{10**position:g}</text>"
        for position in logs
    ]
    parts.append(
        f'<text class="middle" x="{(left + WIDTH) / 2}" y="{height - 4}">{escape(axes[0])}</text>'
    )
    for i, (label, line) in enumerate(series):
        dash = (
            f' stroke-dasharray="{_DASHES[i % len(_DASHES)]}"' if _DASHES[i % len(_DASHES)] else ""
        )
        shade = f"s{i % 4}"
        points = " ".join(
            f"{to_x(a):.1f},{to_y(float(b)):.1f}" for a, b in zip(logs, line, strict=True)
        )
        parts.append(f'<polyline class="line {shade}"{dash} points="{points}"/>')
        marker = _MARKERS[i % len(_MARKERS)]
        parts += [
            _marker(marker, to_x(a), to_y(float(b)), f"fill {shade}")
            for a, b in zip(logs, line, strict=True)
        ]
        y = 14 + 18 * i
        parts.append(
            f'<line class="line {shade}"{dash} x1="{left}" x2="{left + 40}" y1="{y}" y2="{y}"/>'
        )
        parts.append(_marker(marker, left + 20, y, f"fill {shade}"))
        parts.append(f'<text x="{left + 48}" y="{y + 4}">{escape(label)}</text>')
    return _figure(f"{title} ({axes[1]} over {axes[0]})", height, parts)


class _Scale:
    """Values to horizontal positions."""

    def __init__(self, low: float, high: float, pad: float = 0.08) -> None:
        span = (high - low) or 1.0
        self.low, self.high = low - pad * span, high + pad * span

    def __call__(self, value: float) -> float:
        return _LEFT + (value - self.low) / (self.high - self.low) * (WIDTH - _LEFT - _RIGHT)

    def axis(self, height: float, label: str) -> str:
        bottom = height - _BOTTOM
        ticks = "".join(
            f'<line class="grid" x1="{self(tick):.1f}" x2="{self(tick):.1f}" y1="{_TOP}" '
            f'y2="{bottom}"/><text class="middle" x="{self(tick):.1f}" y="{bottom + 15}">'
            f"{tick:.4g}</text>"
            for tick in _ticks(self.low, self.high)
        )
        middle = (_LEFT + WIDTH - _RIGHT) / 2
        return ticks + f'<text class="middle" x="{middle}" y="{height - 4}">{escape(label)}</text>'


def _ticks(low: float, high: float) -> list[float]:
    """Four or five round numbers inside the range."""
    raw = (high - low) / 4
    power = 10.0 ** np.floor(np.log10(raw))
    step = power * min((1, 2, 2.5, 5, 10), key=lambda factor: abs(factor * power - raw))
    first = np.ceil(low / step) * step
    return [float(tick) + 0.0 for tick in np.arange(first, high + 1e-9 * step, step)]


def _row_label(label: str, y: float) -> str:
    return f'<text class="end" x="{_LEFT - 10}" y="{y + 4:.1f}">{escape(label)}</text>'


def _marker(kind: str, x: float, y: float, style: str) -> str:
    corners: tuple[tuple[int, int], ...]
    match kind:
        case "circle":
            return f'<circle class="{style}" cx="{x:.1f}" cy="{y:.1f}" r="4"/>'
        case "square":
            return (
                f'<rect class="{style}" x="{x - 3.5:.1f}" y="{y - 3.5:.1f}" width="7" height="7"/>'
            )
        case "diamond":
            corners = ((0, -6), (6, 0), (0, 6), (-6, 0))
        case _:
            corners = ((0, -5), (5, 4), (-5, 4))
    points = " ".join(f"{x + dx:.1f},{y + dy:.1f}" for dx, dy in corners)
    return f'<polygon class="{style}" points="{points}"/>'


def _figure(title: str, height: float, parts: Sequence[str]) -> str:
    return (
        f"<figure><figcaption>{escape(title)}</figcaption>"
        f'<svg viewBox="0 0 {WIDTH} {height:.0f}" role="img" aria-label="{escape(title)}">'
        f"{''.join(parts)}</svg></figure>"
    )
