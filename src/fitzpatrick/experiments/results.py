"""Fits as lines of a CSV file: what a run writes, and what the page of results is made of."""

import csv
import io
import math
from dataclasses import astuple, dataclass, fields
from pathlib import Path

from .protocol import FitPath, Protocol
from .records import Record


@dataclass(frozen=True)
class FitLine:
    """One fit, without the errors of single samples.

    Attributes:
        dataset: its name.
        features: ``"standardize"`` or ``"none"``, as in :class:`.protocol.Protocol`.
        intercept: whether there was one.
        loss: its name.
        seed: of the dev split; None for a fit to train and dev together.
        alpha: strength of the penalty.
        dev_error: error on dev, NaN where there is none.
        test_error: error on the test samples.
        zeros: share of exact zeros among the test predictions.
        n_iter: iterations of the solver.
        converged: whether it reached its tolerance.
        seconds: time it took.
        device: what computed it.
    """

    dataset: str
    features: str
    intercept: bool
    loss: str
    seed: int | None
    alpha: float
    dev_error: float
    test_error: float
    zeros: float
    n_iter: int
    converged: bool
    seconds: float
    device: str


_NAMES = [field.name for field in fields(FitLine)]


def fit_lines(
    dataset: str, protocol: Protocol, grids: dict[FitPath, list[Record]]
) -> list[FitLine]:
    """The fits of one data set."""
    return [
        FitLine(
            dataset=dataset,
            features=protocol.scaling,
            intercept=protocol.intercept,
            loss=path.loss,
            seed=path.seed,
            alpha=record.alpha,
            dev_error=record.dev_error,
            test_error=record.test_error,
            zeros=record.zeros,
            n_iter=record.n_iter,
            converged=record.converged,
            seconds=record.seconds,
            device=record.device,
        )
        for path, grid in grids.items()
        for record in grid
    ]


def _text(value: object) -> str:
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ""
    if isinstance(value, bool):
        return str(int(value))
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def write_csv(lines: list[FitLine]) -> str:
    """A header and one line per fit."""
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(_NAMES)
    writer.writerows([_text(value) for value in astuple(line)] for line in lines)
    return buffer.getvalue()


def read_csv(path: Path) -> list[FitLine]:
    """The inverse of :func:`write_csv`, up to the digits that are written."""
    with path.open(newline="", encoding="utf-8") as file:
        return [
            FitLine(
                dataset=row["dataset"],
                features=row["features"],
                intercept=row["intercept"] == "1",
                loss=row["loss"],
                seed=int(row["seed"]) if row["seed"] else None,
                alpha=float(row["alpha"]),
                dev_error=float(row["dev_error"] or "nan"),
                test_error=float(row["test_error"]),
                zeros=float(row["zeros"]),
                n_iter=int(row["n_iter"]),
                converged=row["converged"] == "1",
                seconds=float(row["seconds"]),
                device=row["device"],
            )
            for row in csv.DictReader(file)
        ]
