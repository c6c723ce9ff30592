"""The time that ``compare`` saves by stopping paths, and whether its choices stay the same.

For each data set, the script runs the whole grid of nine penalties, on the dev splits and on train
and dev together, and then the search that stops once the dev error has clearly risen. Both use all
losses on the simplex, one process and a new folder for records. ``cal500-like`` is drawn at random
with the sizes of cal500: 502 samples, 68 features, 174 classes, about 26 labels per sample.

Run: FITZPATRICK_DATA=folder-of-the-svm-files python benchmarks/compare_patience.py [data set …]
"""

import argparse
import statistics
import tempfile
import time
from pathlib import Path

import numpy as np

from fitzpatrick.datasets import load_dataset
from fitzpatrick.experiments.compare import SIMPLEX_LOSSES, recommend
from fitzpatrick.experiments.protocol import (
    MAX_STEP,
    Experiment,
    FitPath,
    Protocol,
    at_tightnesses,
)
from fitzpatrick.experiments.records import Record, choose
from fitzpatrick.experiments.runner import RunOptions, run_experiment
from fitzpatrick.experiments.summary import evaluate
from fitzpatrick.preprocessing import label_proportions

CAL500 = "cal500-like"
DATA = ("emotions", "yeast", "scene", CAL500)
SEEDS = 1
QUICK_RUNS = 3  # the median counts, because a search of small fits takes a second


def experiment_of(name: str) -> Experiment:
    """A data set with its official split, or the drawn one."""
    return drawn(name) if name == CAL500 else Experiment.of_dataset(load_dataset(name))


def drawn(name: str) -> Experiment:
    """Labels of very different frequency that depend a little on correlated features."""
    generator = np.random.default_rng(500)
    n, width, classes = 502, 68, 174
    X = generator.normal(size=(n, 8)) @ generator.normal(size=(8, width))
    X += generator.normal(size=(n, width))
    popularity = 1.2 * generator.normal(size=classes) - 2.6
    scores = 0.06 * X @ generator.normal(size=(width, classes)) + popularity
    labels = generator.random((n, classes)) < 1 / (1 + np.exp(-scores))
    labels[~labels.any(axis=1), 0] = True
    Y = label_proportions(labels.astype(float))
    return Experiment(name, X[:401], Y[:401], X[401:], Y[401:], {})


def timed(experiment: Experiment, *, whole_grid: bool) -> tuple[float, dict[FitPath, list[Record]]]:
    """Seconds, and the records."""
    with tempfile.TemporaryDirectory() as folder:
        options = RunOptions(
            losses=at_tightnesses(SIMPLEX_LOSSES),
            protocol=Protocol(intercept=True, refit=True, whole_grid=whole_grid, refine=True),
            seeds=SEEDS,
            output=Path(folder),
        )
        begin = time.perf_counter()
        records = run_experiment(experiment, options)
        return time.perf_counter() - begin, records


def chosen(records: dict[FitPath, list[Record]]) -> dict[FitPath, float]:
    """The penalty of each path."""
    return {path: choose(grid).setting for path, grid in records.items() if path.seed is not None}


def main() -> None:
    """Print one line per data set."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("names", nargs="*", default=DATA, help=f"among {', '.join(DATA)}")
    print("| data set | whole grid | stopped | ratio | fits | same α | same answer |")
    print("|---|---|---|---|---|---|---|")
    for name in parser.parse_args().names:
        experiment = experiment_of(name)
        timed(_few(experiment), whole_grid=False)  # imports, compilation
        runs = [timed(experiment, whole_grid=False) for _ in range(QUICK_RUNS)]
        quick, stopped = statistics.median(seconds for seconds, _ in runs), runs[0][1]
        slow, whole = timed(experiment, whole_grid=True)
        answers = [recommend(evaluate(records, Protocol())) for records in (stopped, whole)]
        same = {(one.loss, one.tied) for one in answers}
        fits = [sum(map(len, records.values())) for records in (stopped, whole)]
        pairs = zip(chosen(stopped).values(), chosen(whole).values(), strict=True)
        verdicts = [all(1 / MAX_STEP < a / b < MAX_STEP for a, b in pairs), len(same) == 1]
        cells = [name, f"{slow:.1f} s", f"{quick:.1f} s", f"{quick / slow:.3f}"]
        cells += [f"{fits[0]} of {fits[1]}", *("yes" if one else "no" for one in verdicts)]
        print(f"| {' | '.join(cells)} |", flush=True)


def _few(experiment: Experiment) -> Experiment:
    given = experiment.X[:40], experiment.Y[:40], experiment.X_test[:9], experiment.Y_test[:9]
    return Experiment("few", *given, {})


if __name__ == "__main__":
    main()
