"""Records and committed results of the reproduction: merge runs, compare models."""

import csv
import json
from collections.abc import Callable
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from fitzpatrick.datasets import DataError
from fitzpatrick.experiments.protocol import FitPath, LossChoice
from fitzpatrick.experiments.records import FILE_NAME, Record, choose, stored_runs
from fitzpatrick.experiments.summary import percentile_interval, resampled_means
from fitzpatrick.losses import ends

Line = TypeVar("Line", "FitLine", "DifferenceLine")
Grids = dict[FitPath, list[Record]]
Errors = dict[int, np.ndarray]  # of the test samples, by seed
RunKey = tuple[str, str, bool]  # data set, scaling of the features, intercept

# settings in which the stores of a data set can differ; the fingerprint covers the checksums
_MAY_DIFFER = ("device", "alphas", "checksums", "scaling", "intercept")
_MILLIONTH = 1e-6


@dataclass(frozen=True)
class FitLine:
    """One fit, as in the CSV file of ``reproduce``."""

    dataset: str
    features: str  # "standardize" or "none"
    intercept: bool
    loss: str
    seed: int | None  # of the dev split; None for a fit to train and dev together
    alpha: float
    dev_error: float  # NaN for a fit to train and dev
    test_error: float
    zeros: float
    n_iter: int
    converged: bool
    seconds: float
    device: str
    tightness: float | None = None  # if it differs from the default of the loss
    model: str = "linear"
    rounds: int | None = None


@dataclass(frozen=True)
class DifferenceLine:
    """One paired bootstrap over dev splits and test samples.

    Attributes:
        dataset: its name.
        features: ``"standardize"`` or ``"none"``.
        rows: ``"train"``, or ``"train+dev"`` for the models of ``refit``.
        comparison: ``"pair"``: Fitzpatrick minus Fenchel-Young; ``"intercept"``: with an intercept
            minus without, each with its own α; ``"intercept, same α"``: both with the α that was
            chosen without an intercept.
        intercept: True if a pair was fitted with one; None for comparisons of intercepts.
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


@dataclass(frozen=True, eq=False)
class Run:
    """All fits of one data set with one scaling and with or without an intercept.

    Attributes:
        settings: the common settings of its stores, and the checksums of the data.
        grids: the fits of each path, from the strongest penalty to the weakest.
    """

    settings: dict[str, Any]
    grids: Grids


@dataclass(frozen=True, eq=False)
class Models:
    """The models of one run that comparisons need.

    Attributes:
        settings: the settings of the run.
        chosen: the α that was chosen on dev, by path.
        errors: squared errors of the test samples, by path and α, for the chosen models, for the
            models with the α that was chosen without an intercept, and for refits of both.
    """

    settings: dict[str, Any]
    chosen: dict[FitPath, float]
    errors: dict[tuple[FitPath, float], np.ndarray]


def load_runs(*folders: Path) -> dict[RunKey, Run]:
    """All records below some folders, by data set, scaling of the features and intercept.

    Stores with the same three are merged, even with different losses, alphas or devices. Stores of
    one data set with different data or solver settings raise an error.
    """
    runs: dict[RunKey, Run] = {}
    first: dict[str, tuple[str, dict[str, Any]]] = {}
    files = (file for root in folders for file in sorted(root.rglob(FILE_NAME)))
    for about, store in (one for file in files for one in stored_runs(file)):
        own = {key: value for key, value in about.items() if key not in _MAY_DIFFER}
        place = f"the run {store.run} of {store.file}"
        before, known = first.setdefault(about["name"], (place, own))
        for setting in sorted(known.keys() | own.keys()):
            here, there = own.get(setting), known.get(setting)
            if here != there:
                raise DataError(
                    f"{setting!r} is {here!r} in the run {store.run}, but {there!r} in {before}: "
                    "such fits cannot be put together or compared; collect the two separately",
                    store.file,
                )
        settings = {key: about[key] for key in about if key not in ("device", "alphas")}
        key = about["name"], about["scaling"], about["intercept"]
        grids = runs.setdefault(key, Run(settings, {})).grids
        for name, found in store.read().items():
            path = _path_of(name)
            records = {record.setting: record for record in [*found, *grids.get(path, [])]}
            grids[path] = sorted(records.values(), key=lambda record: -record.setting)
    return runs


def _path_of(name: str) -> FitPath:
    """The inverse of ``FitPath.name``."""
    slug, _, seed = name.rpartition("-")
    loss, _, tightness = slug.partition("-tightness")
    choice = LossChoice(loss, float(tightness) if tightness else None)
    return FitPath(choice, None if seed == "whole" else int(seed.removeprefix("seed")))


def compared_models(runs: dict[RunKey, Run]) -> dict[RunKey, Models]:
    """The parts of each run that comparisons need."""
    chosen = {
        key: {
            path: choose(grid).setting for path, grid in run.grids.items() if path.seed is not None
        }
        for key, run in runs.items()
    }
    found = {}
    for key, run in runs.items():
        dataset, features, _ = key
        wanted = {
            (where, alpha)
            for choice in (chosen[key], chosen.get((dataset, features, False), {}))
            for path, alpha in choice.items()
            for where in (path, FitPath(path.loss, None))
        }
        errors = {
            (path, record.setting): record.test_errors
            for path, grid in run.grids.items()
            for record in grid
            if (path, record.setting) in wanted
        }
        found[key] = Models(run.settings, chosen[key], errors)
    return found


def write_models(folder: Path, models: dict[RunKey, Models]) -> None:
    """Settings and choices as ``models.json``, errors of the test samples as ``DATASET.npz``.

    The errors are written as whole numbers of millionths, which take little space.
    """
    about = [
        {**one.settings, "chosen": {path.name: alpha for path, alpha in one.chosen.items()}}
        for one in models.values()
    ]
    (folder / "models.json").write_text(json.dumps(about, indent=1) + "\n", encoding="utf-8")
    archives: dict[str, dict[str, Any]] = {}
    for key, one in models.items():
        for (path, alpha), errors in one.errors.items():
            rounded = np.rint(errors.astype(np.float64) / _MILLIONTH).astype(np.int32)
            archives.setdefault(key[0], {})[f"{_start(key)}{path.name}/{alpha!r}"] = rounded
    for dataset, entries in archives.items():
        np.savez_compressed(folder / f"{dataset}.npz", **entries)


def read_models(folder: Path) -> dict[RunKey, Models]:
    """Read the files of :func:`write_models`."""
    models: dict[RunKey, Models] = {}
    for about in json.loads((folder / "models.json").read_text(encoding="utf-8")):
        choices = about.pop("chosen")
        key = about["name"], about["scaling"], about["intercept"]
        start = _start(key)
        with np.load(folder / f"{about['name']}.npz") as stored:
            errors = {}
            for entry in (entry for entry in stored if entry.startswith(start)):
                path, alpha = entry.removeprefix(start).split("/")
                errors[_path_of(path), float(alpha)] = stored[entry] * _MILLIONTH
        chosen = {_path_of(name): alpha for name, alpha in choices.items()}
        models[key] = Models(about, chosen, errors)
    return models


def _start(key: RunKey) -> str:
    """The prefix of the names of a run's entries."""
    _, features, intercept = key
    return f"{features}/{'intercept' if intercept else 'none'}/"


Comparison = tuple[str, bool | None, str, Errors, Errors]  # what, intercept, loss, two sides


def difference_lines(models: dict[RunKey, Models]) -> list[DifferenceLine]:
    """All possible comparisons of the models, over the common seeds."""
    about, deltas = [], []
    for (dataset, features, intercept), run in models.items():
        without = models.get((dataset, features, False)) if intercept else None
        for rows in ("train", "train+dev"):
            for what, fitted_with, loss, first, second in _comparisons(
                run, without, intercept, rows
            ):
                seeds = sorted(first.keys() & second.keys())
                if seeds:
                    deltas.append(np.stack([first[seed] - second[seed] for seed in seeds]))
                    about.append((dataset, features, rows, what, fitted_with, loss))
    intervals: dict[int, tuple[float, float]] = {}
    for shape in {delta.shape for delta in deltas}:  # equal shapes share their resamples
        same = [i for i, delta in enumerate(deltas) if delta.shape == shape]
        resampled = resampled_means(np.stack([deltas[i] for i in same]))
        intervals |= dict(zip(same, map(percentile_interval, resampled), strict=True))
    return [
        DifferenceLine(*about[i], float(delta.mean()), *intervals[i])
        for i, delta in enumerate(deltas)
    ]


def _comparisons(
    run: Models, without: Models | None, intercept: bool, rows: str
) -> list[Comparison]:
    """Pairs of losses of a run, and the same losses without an intercept."""
    tested = _tested(run, run.chosen, rows)
    found: list[Comparison] = [
        ("pair", intercept, loss, tested[loss], tested[ends(loss)[0]])
        for loss in tested
        if loss != ends(loss)[0] and ends(loss)[0] in tested
    ]
    if without is not None:
        plain = _tested(without, without.chosen, rows)
        same = _tested(run, without.chosen, rows)
        found += [("intercept", None, x, tested[x], plain[x]) for x in tested if x in plain]
        found += [("intercept, same α", None, x, same[x], plain[x]) for x in same if x in plain]
    return found


def _tested(run: Models, chosen: dict[FitPath, float], rows: str) -> dict[str, Errors]:
    """Errors of the test samples by loss and seed, for the chosen alphas of a run."""
    found: dict[str, Errors] = {}
    for path, alpha in chosen.items():
        where = path if rows == "train" else FitPath(path.loss, None)
        if path.seed is not None and (where, alpha) in run.errors:
            errors = run.errors[where, alpha].astype(np.float64)
            found.setdefault(path.loss.name, {})[path.seed] = errors
    return found


_PARSE: dict[str, Callable[[str], Any]] = {
    "str": str,
    "int": int,
    "float": lambda text: float(text or "nan"),
    "bool": lambda text: text == "1",
    "int | None": lambda text: int(text) if text else None,
    "float | None": lambda text: float(text) if text else None,
    "bool | None": lambda text: text == "1" if text else None,
}


def from_csv(path: Path, kind: type[Line]) -> list[Line]:
    """Read the lines of a file of :func:`to_csv`."""
    parse = {
        field.name: _PARSE[str(getattr(field.type, "__name__", field.type))]
        for field in fields(kind)
    }
    with path.open(newline="", encoding="utf-8") as file:
        return [
            kind(**{name: parse[name](text) for name, text in row.items()})
            for row in csv.DictReader(file)
        ]
