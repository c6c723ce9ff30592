"""Fits and differences as lines of CSV files: what runs are reported by, and compared."""

import csv
import io
import json
import math
from collections.abc import Callable, Sequence
from dataclasses import astuple, dataclass, fields
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from .protocol import FitPath
from .records import Record, choose
from .summary import bootstrap_interval

Line = TypeVar("Line", "FitLine", "DifferenceLine")


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


Grids = dict[FitPath, list[Record]]
Errors = dict[int, np.ndarray]  # of the test samples, by seed


def fit_lines(dataset: str, features: str, intercept: bool, grids: Grids) -> list[FitLine]:
    """The fits of one data set."""
    return [
        FitLine(
            dataset=dataset,
            features=features,
            intercept=intercept,
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


@dataclass(frozen=True)
class DifferenceLine:
    """One paired bootstrap over dev splits and test samples.

    Attributes:
        dataset: its name.
        features: ``"standardize"`` or ``"none"``.
        rows: ``"train"``, or ``"train+dev"`` for the models of ``refit``.
        comparison: ``"pair"``: Fitzpatrick minus its twin; ``"intercept"``: with an intercept minus
            without, each with the α that dev chose; ``"intercept, same α"``: both with the α that
            dev chose without an intercept.
        intercept: whether a pair was fitted with one; None where it is what is compared.
        loss: the (first) loss.
        mean: difference of the test errors, averaged over the seeds.
        low: lower end of its interval.
        high: upper end.
    """

    dataset: str
    features: str
    rows: str
    comparison: str
    intercept: bool | None
    loss: str
    mean: float
    low: float
    high: float


def load_runs(*folders: Path) -> dict[tuple[str, str, bool], Grids]:
    """All records below some folders, by data set, scaling of the features and intercept.

    Stores of the same three, such as of other losses or by another device, are put together.
    """
    runs: dict[tuple[str, str, bool], Grids] = {}
    for file in (file for root in folders for file in sorted(root.rglob("settings.json"))):
        about = json.loads(file.read_text())
        grids = runs.setdefault((about["name"], about["scaling"], about["intercept"]), {})
        for folder in sorted(path for path in file.parent.iterdir() if path.is_dir()):
            loss, _, seed = folder.name.rpartition("-")
            path = FitPath(loss, None if seed == "whole" else int(seed.removeprefix("seed")))
            records = {record.alpha: record for record in grids.get(path, [])}
            for record in (Record.read(file) for file in folder.glob("[0-9][0-9].json")):
                records.setdefault(record.alpha, record)
            grids[path] = sorted(records.values(), key=lambda record: -record.alpha)
    return runs


def difference_lines(runs: dict[tuple[str, str, bool], Grids]) -> list[DifferenceLine]:
    """Every comparison that the records allow, over the seeds that both sides have."""
    lines = []
    for (dataset, features, intercept), grids in runs.items():
        without = runs.get((dataset, features, False))
        for rows in ("train", "train+dev"):
            tested = _tested(grids, grids, rows)
            found: list[tuple[str, bool | None, str, Errors, Errors]] = [
                ("pair", intercept, loss, tested[loss], tested[loss.removeprefix("fitzpatrick_")])
                for loss in tested
                if loss.startswith("fitzpatrick_") and loss.removeprefix("fitzpatrick_") in tested
            ]
            if intercept and without is not None:
                plain = _tested(without, without, rows)
                same = _tested(grids, without, rows)
                found += [("intercept", None, x, tested[x], plain[x]) for x in tested if x in plain]
                found += [
                    ("intercept, same α", None, x, same[x], plain[x]) for x in same if x in plain
                ]
            for comparison, fitted_with, loss, first, second in found:
                seeds = sorted(first.keys() & second.keys())
                if seeds:
                    delta = np.stack([first[seed] - second[seed] for seed in seeds])
                    about = dataset, features, rows, comparison, fitted_with, loss
                    values = float(delta.mean()), *bootstrap_interval(delta)
                    lines.append(DifferenceLine(*about, *values))
    return lines


def _tested(grids: Grids, choosing: Grids, rows: str) -> dict[str, Errors]:
    """Errors of the test samples by loss and seed, with the alphas that other grids choose."""
    found: dict[str, Errors] = {}
    for path, grid in choosing.items():
        if path.seed is None:
            continue
        alpha = choose(grid).alpha
        where = path if rows == "train" else FitPath(path.loss, None)
        for record in grids.get(where, []):
            if record.alpha == alpha:
                found.setdefault(path.loss, {})[path.seed] = record.test_errors.astype(np.float64)
    return found


def to_csv(lines: Sequence[FitLine] | Sequence[DifferenceLine]) -> str:
    """A header and one line each; six digits are written."""
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


_PARSE: dict[str, Callable[[str], Any]] = {
    "str": str,
    "int": int,
    "float": lambda text: float(text or "nan"),
    "bool": lambda text: text == "1",
    "int | None": lambda text: int(text) if text else None,
    "bool | None": lambda text: text == "1" if text else None,
}


def from_csv(path: Path, kind: type[Line]) -> list[Line]:
    """The lines of a file that :func:`to_csv` wrote."""
    parse = {
        field.name: _PARSE[str(getattr(field.type, "__name__", field.type))]
        for field in fields(kind)
    }
    with path.open(newline="", encoding="utf-8") as file:
        return [
            kind(**{name: parse[name](text) for name, text in row.items()})
            for row in csv.DictReader(file)
        ]
