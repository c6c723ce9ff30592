r"""The figures: losses with the lower bound, as gaps, as level sets, and at several tightnesses.

Every curve comes from the public losses and divergences; nothing is computed here but grids. Lines
differ in dash pattern and in lightness as well as in color, so that a print in black and white can
be read.
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import divergences
from .._array import Array
from ..datasets._files import atomic_path
from ..losses import FenchelYoungLoss, FitzpatrickLoss, Loss, ends, get_loss
from ..regularizers import Regularizer

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

FORMATS = ("png", "svg", "pdf")

# dark, middle and light: three grays once the color is gone
FENCHEL_YOUNG = {"color": "#08306b", "linestyle": "-", "linewidth": 2.0}
FITZPATRICK = {"color": "#d94801", "linestyle": (0, (6, 2)), "linewidth": 2.0}
BOUND = {"color": "#111111", "linestyle": (0, (1, 1.6)), "linewidth": 2.6}
FAINT = {"color": "#9a9a9a", "linewidth": 0.8}
FAMILY: dict[float, dict[str, Any]] = {
    0.0: FENCHEL_YOUNG,
    0.5: {"color": "#2171b5", "linestyle": (0, (8, 1.5, 1.5, 1.5)), "linewidth": 2.0},
    1.0: FITZPATRICK,
    2.0: {"color": "#fdae6b", "linestyle": (0, (2, 1)), "linewidth": 2.4},
}  # styles by tightness

# a palette for categories that the color-blind can tell apart: Okabe and Ito's
COLORS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9")
STYLE: Any = {
    "figure.constrained_layout.use": True,
    "axes.axisbelow": True,
    "axes.grid": True,
    "axes.prop_cycle": f"cycler('color', {list(COLORS)})",
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlesize": "medium",
    "font.size": 11.5,  # the pages show the pictures smaller than they are
    "grid.alpha": 0.4,
    "grid.color": FAINT["color"],
    "grid.linewidth": FAINT["linewidth"],
    "legend.frameon": False,
}  # for ``matplotlib.pyplot.style.use``: the look of the gallery

_PAIRS = ("logistic", "sparsemax")
_OFFSET: dict[str, Any] = {"textcoords": "offset points", "fontsize": 10}
_GAP = {"arrowstyle": "<->", "color": "black", "shrinkA": 3, "shrinkB": 3}
_DOT = {"color": "white", "markeredgecolor": "black", "clip_on": False, "zorder": 5}


def _new_figure(rows: int, columns: int, size: tuple[float, float]) -> tuple["Figure", Array]:
    """A figure in the look of the gallery that needs no display and no global state."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    with mpl.rc_context(STYLE):
        figure = Figure(figsize=size)
        return figure, figure.subplots(rows, columns, squeeze=False)


def _scores() -> tuple[Array, Array, Array]:
    """s, scores θ = (s, 0) and the targets e_1."""
    s = np.linspace(-6.0, 6.0, 601)
    return s, np.stack([s, 0 * s], axis=-1), np.stack([s**0, 0 * s], axis=-1)


def lower_bound_figure() -> "Figure":
    """Figure 1: both pairs and the lower bound, for y = e_1 and θ = (s, 0)."""
    figure, axes = _new_figure(1, len(_PAIRS), (9.0, 3.6))
    s, theta, y = _scores()
    for ax, name in zip(axes[0], _PAIRS, strict=True):
        omega = get_loss(name).regularizer
        for label, value, style in (
            (name, FenchelYoungLoss(omega).value(y, theta), FENCHEL_YOUNG),
            (f"Fitzpatrick {name}", FitzpatrickLoss(omega).value(y, theta), FITZPATRICK),
            ("lower bound", divergences.lower_bound(omega, y, theta), BOUND),
        ):
            ax.plot(s, value, label=label, **style)
        ax.set(xlabel="s", ylabel="L(e₁, (s, 0))", ylim=(-0.1, 4.1), title=f"{name} pair")
        ax.legend(frameon=False)
    return figure


def tightness_figure() -> "Figure":
    """The family of each link at several tightnesses, and what each gains on the first of them."""
    figure, axes = _new_figure(2, len(_PAIRS), (9.0, 6.4))
    s, theta, y = _scores()
    for name, (above, below) in zip(_PAIRS, axes.T, strict=True):
        omega = get_loss(name).regularizer
        first = FenchelYoungLoss(omega).value(y, theta)
        for tightness, style in FAMILY.items():
            value = FitzpatrickLoss(omega, tightness).value(y, theta)
            above.plot(s, value, label=f"c = {tightness:g}", **style)
            below.plot(s, first - value, **style)
        above.set(title=f"{name} family", ylabel="$L_c(e_1, (s, 0))$", ylim=(-0.1, 4.1))
        below.set(xlabel="s", ylabel="gap $L_0 - L_c$")
        above.legend(frameon=False, title="tightness")
    return figure


def geometry_figure() -> "Figure":
    """Figure 2: each loss is the gap at y between a convex function and its tangent of slope θ.

    For the Fenchel-Young loss the function is Ω; for the Fitzpatrick loss it is
    Ω_y = Ω + D_Ω(y, ·), which lies above Ω and touches it at y, so that its gap is smaller.
    """
    figure, axes = _new_figure(1, 2, (9.0, 4.0))
    omega = get_loss("logistic").regularizer
    y, theta = np.asarray([0.2, 0.8]), np.asarray([1.4, 0.0])
    # away from the corners, where D_Ω(y, ·) is infinite
    p = np.linspace(0.02, 0.98, 481)
    points = np.stack([p, 1.0 - p], axis=-1)
    omega_y = divergences.TargetDependent(omega, y)
    label = r"$\Omega_y = \Omega + D_\Omega(y, \cdot)$"
    curves: tuple[tuple[str, str, str, Regularizer, dict[str, object]], ...] = (
        ("Fenchel-Young loss", "Ω", "ŷ(θ)", omega, FENCHEL_YOUNG),
        ("Fitzpatrick loss", label, "y*(y, θ)", omega_y, FITZPATRICK),
    )
    for ax, (title, label, name, curve, style) in zip(axes[0], curves, strict=True):
        if curve is not omega:
            ax.plot(p, omega.value(points), label="Ω", **{**FENCHEL_YOUNG, "linewidth": 1.0})
        ax.plot(p, curve.value(points), label=label, **style)
        offset = float(curve.conjugate(theta))
        ax.plot(p, points @ theta - offset, label="tangent of slope θ", **BOUND)
        touch = curve.link(theta)
        touch_at, top = float(curve.value(touch)), float(curve.value(y))
        bottom = y @ theta - offset
        ax.plot(touch[0], touch_at, "o", **_DOT)
        ax.plot([y[0], y[0]], [top, bottom], "s", color="black", markersize=4)
        ax.annotate("", (y[0], top), (y[0], bottom), arrowprops=_GAP)
        middle = (y[0], (top + bottom) / 2)
        ax.annotate(f"L = {top - bottom:.3f}", middle, (-8, -4), ha="right", **_OFFSET)
        ax.annotate(name, (touch[0], touch_at), (4, -16), **_OFFSET)
        ax.annotate("y", (y[0], top), (-4, 8), **_OFFSET)
        ax.set(title=title, xlabel="first class of y′ = (p, 1 − p)", ylim=(-1.75, 0.65))
        ax.legend(frameon=False, loc="upper center", fontsize="small")
    return figure


def level_set_figure() -> "Figure":
    """Figure 3: level sets in y of both pairs on the three-class simplex, θ fixed."""
    figure, axes = _new_figure(len(_PAIRS), 2, (8.4, 8.2))
    figure.suptitle("Level sets of L(y, θ) in y on the simplex of three classes, θ fixed")
    scores = {"logistic": np.asarray([1.6, 0.6, -0.8]), "sparsemax": np.asarray([1.0, 0.5, -0.6])}
    y = simplex_grid(120)
    for row, (name, theta) in zip(axes, scores.items(), strict=True):
        written = f"θ = ({', '.join(f'{t:g}' for t in theta)})"
        for ax, loss_name in zip(row, ends(name), strict=True):
            loss = get_loss(loss_name)
            draw_levels(ax, y, loss, theta)
            link = loss.link(theta)
            place = to_plane(link)
            ax.plot(*place, "o", **_DOT)
            shift = (8, -4) if link.all() else (-10, -17)  # beside it, or below the edge it is on
            ax.annotate("ŷ(θ)", place, shift, **_OFFSET)
            title = loss_name.replace("fitzpatrick_", "Fitzpatrick ")
            ax.set_title(f"{title},  {written}", fontsize=11, pad=16)
    return figure


def simplex_grid(steps: int) -> Array:
    """The points of the three-class simplex whose entries are multiples of 1/steps."""
    i, j = np.triu_indices(steps + 1)
    return np.stack([i, j - i, steps - j], axis=-1) / steps


def to_plane(y: Array) -> Array:
    """Corners e_1, e_2, e_3 at the left, the right and the top of a triangle."""
    corners = np.asarray([[0.0, 0.0], [1.0, 0.0], [0.5, np.sqrt(0.75)]])
    return np.asarray(y @ corners)


_LEVELS = np.asarray([0.05, 0.2, 0.5, 1.0, 2.0])
_BOX: dict[str, Any] = {"boxstyle": "round,pad=0.15", "facecolor": "white", "edgecolor": "none"}


def draw_levels(ax: "Axes", y: Array, loss: Loss, theta: Array) -> None:
    """Level sets of L(·, θ), from its values at points y of the three-class simplex."""
    from matplotlib.tri import Triangulation

    value = loss.value(y, np.broadcast_to(theta, y.shape))
    plane = to_plane(y)
    mesh = Triangulation(plane[:, 0], plane[:, 1])
    # from white to gray in even steps, so that neighbours differ in print too
    grays = [str(gray) for gray in np.linspace(1.0, 0.45, _LEVELS.size + 1)]
    ax.tricontourf(mesh, value, levels=[0.0, *_LEVELS, 10.0], colors=grays)
    ax.tricontour(mesh, value, levels=_LEVELS, colors="black", linewidths=0.8)
    for level, point in _label_points(loss, theta):
        ax.annotate(f"{level:g}", to_plane(point), ha="center", va="center", fontsize=8, bbox=_BOX)
    draw_simplex(ax)


def draw_simplex(ax: "Axes", corners: Sequence[str] = ("e₁", "e₂", "e₃")) -> None:
    """The triangle of :func:`to_plane` with names at its corners, and no axes around it."""
    places = to_plane(np.eye(3))
    ax.plot(*places[[0, 1, 2, 0]].T, color="black", linewidth=1.2)
    styles: tuple[dict[str, Any], ...] = (
        {"xytext": (-4, -4), "ha": "right", "va": "top"},
        {"xytext": (4, -4), "ha": "left", "va": "top"},
        {"xytext": (0, 6), "ha": "center", "va": "bottom"},
    )
    for place, name, style in zip(places, corners, styles, strict=True):
        ax.annotate(name, place, **style, **_OFFSET)
    ax.set_aspect("equal")
    ax.set_axis_off()
    ax.margins(0.08)


def _label_points(loss: Loss, theta: Array) -> list[tuple[float, Array]]:
    """For each level that is reached, the point of it on the way from ŷ(θ) to where L is largest.

    The way leads along the middle of the simplex, so that labels stay off its edges.
    """
    far = np.asarray([0.04, 0.04, 0.92])
    steps = np.linspace(0.0, 1.0, 2001)[:, None]
    way = (1 - steps) * loss.link(theta) + steps * far
    value = loss.value(way, np.broadcast_to(theta, way.shape))
    return [(level, way[np.argmax(value >= level)]) for level in _LEVELS if value.max() >= level]


FIGURES: dict[str, Callable[[], "Figure"]] = {
    "figure1": lower_bound_figure,
    "figure2": geometry_figure,
    "level_sets": level_set_figure,
    "tightness": tightness_figure,
}


def write_figures(folder: Path, formats: Sequence[str]) -> list[Path]:
    """Write every figure into ``folder`` in each format, and return the paths."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for name, draw in FIGURES.items():
        figure = draw()
        for suffix in formats:
            path = folder / f"{name}.{suffix}"
            save_figure(figure, path)
            paths.append(path)
    return paths


def save_figure(figure: "Figure", path: Path) -> None:
    """Write one figure; the bytes are the same every time."""
    import matplotlib as mpl

    suffix = path.suffix.lstrip(".")
    if suffix not in FORMATS:
        raise ValueError(f"{path}: figures are written as {', '.join(FORMATS)}, not {suffix!r}")
    # no date and no random identifiers: a figure changes only when its content does
    metadata = {"png": {}, "svg": {"Date": None}, "pdf": {"CreationDate": None}}[suffix]
    with (
        mpl.rc_context({"svg.hashsalt": "fitzpatrick", "svg.fonttype": "none"}),
        atomic_path(path) as temporary,
    ):
        figure.savefig(temporary, format=suffix, dpi=160, metadata=metadata)
