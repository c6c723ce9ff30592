"""The command line: ``fitzpatrick`` or ``python -m fitzpatrick``."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from .losses import get_loss, loss_names

app = typer.Typer(
    name="fitzpatrick",
    help="Fenchel-Young and Fitzpatrick losses: the paper's experiment, and your own data.",
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


class FigureFormat(StrEnum):
    """File formats of the figures."""

    PNG = "png"
    SVG = "svg"
    PDF = "pdf"


@app.callback(invoke_without_command=True)
def overview(context: typer.Context) -> None:
    """Fenchel-Young and Fitzpatrick losses: the paper's experiment, and your own data.

    Without a command: every loss, with its link and a worked example.
    """
    if context.invoked_subcommand is not None:
        return
    typer.echo(losses_table())
    for path in _write_figures(Path("out"), ["png"], ["figure1"]):
        typer.echo(f"\nwrote {path}")


def losses_table() -> str:
    """Every loss of the registry at one target and one row of scores."""
    y, theta = np.asarray([0.5, 0.5, 0.0]), np.asarray([1.5, 0.2, -1.0])
    lines = [
        "Each Fitzpatrick loss has the link of its Fenchel-Young loss and is never above it.",
        f"Example: target y = {_row(y)}, scores θ = {_row(theta)}",
        "",
        f"{'loss':<28}{'L(y, θ)':>8}   {'link ŷ(θ)':<20}{'maximiser y*(y, θ)'}",
    ]
    for name in sorted(loss_names(), key=lambda name: (name.removeprefix("fitzpatrick_"), name)):
        loss = get_loss(name)
        value, link, y_star = loss.value(y, theta), loss.link(theta), loss.y_star(y, theta)
        lines.append(f"{name:<28}{float(value):8.4f}   {_row(link):<20}{_row(y_star)}")
    return "\n".join(lines)


def _row(values: np.ndarray) -> str:
    return "(" + ", ".join(f"{value:.2f}".rstrip("0").rstrip(".") for value in values) + ")"


@app.command()
def figures(
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder to write to.")] = Path(
        "out"
    ),
    formats: Annotated[
        list[FigureFormat], typer.Option("--format", "-f", help="Format; may be repeated.")
    ] = [FigureFormat.PNG],  # noqa: B006  (typer reads the default, nobody writes to it)
) -> None:
    """Draw the figures: lower bound, loss as a gap, level sets on the simplex."""
    from .experiments.figures import FIGURES

    for path in _write_figures(output, [choice.value for choice in formats], list(FIGURES)):
        typer.echo(f"wrote {path}")


def _write_figures(folder: Path, formats: list[str], names: list[str]) -> list[Path]:
    from .experiments.figures import write_figures

    return write_figures(folder, tuple(formats), tuple(names))


def main() -> None:
    """Run the command line."""
    app()
