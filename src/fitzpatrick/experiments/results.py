"""Fits as lines of a CSV file."""

import csv
import io
import math
from collections.abc import Sequence
from dataclasses import astuple, dataclass, fields
from typing import Any

from .protocol import FitPath
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
        tightness: of the loss, where it is not that of its name.
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
    tightness: float | None = None


def fit_lines(
    dataset: str, features: str, intercept: bool, grids: dict[FitPath, list[Record]]
) -> list[FitLine]:
    """The fits of one data set."""
    return [
        FitLine(
            dataset=dataset,
            features=features,
            intercept=intercept,
            loss=path.loss.name,
            seed=path.seed,
            alpha=record.alpha,
            dev_error=record.dev_error,
            test_error=record.test_error,
            zeros=record.zeros,
            n_iter=record.n_iter,
            converged=record.converged,
            seconds=record.seconds,
            device=record.device,
            tightness=path.loss.tightness,
        )
        for path, grid in grids.items()
        for record in grid
    ]


def to_csv(lines: Sequence[Any]) -> str:
    """A header and one line for each dataclass; six digits are written."""
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow([field.name for field in fields(lines[0])])
    writer.writerows([_text(value) for value in astuple(line)] for line in lines)
    return buffer.getvalue()


def _text(value: object) -> str:
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ""
    if isinstance(value, bool):
        return str(int(value))
    return f"{value:.6g}" if isinstance(value, float) else str(value)
