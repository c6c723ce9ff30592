"""Boosted trees: the cost of our objectives, and a comparison with linear models.

    python benchmarks/boosting.py speed
    FITZPATRICK_DATA=DIR python benchmarks/boosting.py accuracy [-j JOBS] [data set …]
    python benchmarks/boosting.py table

``speed`` prints the time of LightGBM with our objectives over its time with its own ``multiclass``,
and the cost of copied rows, the usual way to learn shares. ``accuracy`` uses ten random splits of
each data set, with three quarters for training. Both models choose their settings on the training
part: the linear model its penalty by three folds, the trees their rounds, leaves and tightness on a
tenth of the samples. The results are in ``results/boosting.csv``; ``table`` prints paired
differences with their intervals.
"""

import argparse
import csv
import os
import resource
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
from _timing import Contender, race
from joblib import Parallel, delayed
from sklearn.datasets import load_svmlight_file
from sklearn.model_selection import train_test_split
from study_parts.data import distributions

from fitzpatrick import metrics
from fitzpatrick.boosting import BoostedProportionRegressor, lightgbm_objective
from fitzpatrick.linear_model import ProportionRegressorCV
from fitzpatrick.preprocessing import label_proportions

RESULTS = Path(__file__).parent / "results" / "boosting.csv"
LABELS = {"emotions": (72, 6), "flags": (19, 7), "scene": (294, 6), "yeast": (103, 14)}
SHARES = ("yeast_alpha", "music", "painting", "emotion6")
LOSSES = ("logistic", "fitzpatrick_logistic", "sparsemax", "fitzpatrick_sparsemax")
LEAVES = (4, 15)
SPLITS = 10
FIELDS = ("data", "split", "loss", "model", "squared_error", "chebyshev")


def speed() -> None:
    """Ratios of times, and the memory of copies."""
    import lightgbm

    rng = np.random.default_rng(0)
    n, d, k = 50_000, 50, 10
    X = rng.normal(size=(n, d))
    labels = (X[:, :k] + rng.gumbel(size=(n, k))).argmax(axis=1)
    params = {"num_class": k, "verbosity": -1, "num_threads": 1}

    def train(objective: Any, data: Any, rounds: int = 5) -> Any:
        return lightgbm.train({**params, "objective": objective}, data, rounds)

    data = lightgbm.Dataset(X, labels, free_raw_data=False).construct()
    contenders = [
        Contender("multiclass of LightGBM", lambda: train("multiclass", data)),
        *(
            Contender(loss, partial(train, lightgbm_objective(loss, labels), data))
            for loss in LOSSES
        ),
    ]
    # CPU time, and the best of several turns, so that other load hardly matters
    best = {name: min(t.seconds) for name, t in race(contenders, 7, cpu_time=True).items()}
    base = best["multiclass of LightGBM"]
    print("CPU time over that of LightGBM's own multiclass, 50,000 × 50, 10 classes, 5 rounds")
    for name, seconds in best.items():
        print(f"{name:26s} {seconds / base:5.2f}")
    spawn = get_context("spawn")
    found = {}
    for how in ("shares", "copies"):
        with ProcessPoolExecutor(1, mp_context=spawn) as pool:
            found[how] = pool.submit(train_on_shares, how).result()
    (ours, own_memory), (theirs, memory) = found["shares"], found["copies"]
    print(f"shares of 10 classes, 20,000 rows: copies take {theirs / ours:.1f} × the time, and")
    print(f"{memory:.0f} MB beyond the data, where ours takes {own_memory:.0f} MB")


def train_on_shares(how: str) -> tuple[float, float]:
    """Seconds and peak memory in MB beyond the data, in a separate process."""
    import lightgbm

    rng = np.random.default_rng(0)
    n, d, k = 20_000, 50, 10
    X, shares = rng.normal(size=(n, d)), rng.dirichlet(np.ones(k), size=n)
    params = {"num_class": k, "verbosity": -1, "num_threads": 1}
    lightgbm.train(
        {**params, "objective": "multiclass"}, lightgbm.Dataset(X[:99], np.arange(99) % k), 1
    )
    lightgbm_objective("logistic", shares)(np.zeros((n, k)), None)  # compiles
    before = peak()
    start = perf_counter()
    if how == "shares":
        objective: Any = lightgbm_objective("logistic", shares)
        data = lightgbm.Dataset(X, np.zeros(n))
    else:
        objective = "multiclass"
        data = lightgbm.Dataset(
            np.repeat(X, k, axis=0), np.tile(np.arange(k), n), weight=shares.ravel()
        )
    lightgbm.train({**params, "objective": objective}, data, 10)
    return perf_counter() - start, peak() - before


def peak() -> float:
    """The peak memory of the process, in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def load(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Features and proportions of all samples that have a label."""
    if name not in LABELS:
        task = distributions(name)
        return task.X, task.Y
    d, k = LABELS[name]
    parts = []
    for part in ("train", "test"):
        file = Path(os.environ["FITZPATRICK_DATA"], f"{name}_{part}.svm.gz")
        X, y = load_svmlight_file(str(file), n_features=d, multilabel=True, zero_based=False)
        Y = np.zeros((len(y), k))
        for row, labels in zip(Y, y, strict=True):
            row[[int(label) for label in labels]] = 1
        parts.append((X.toarray(), Y))
    X, Y = (np.vstack(arrays) for arrays in zip(*parts, strict=True))
    kept = Y.any(axis=1)
    return X[kept], label_proportions(Y[kept])


def compare(name: str, split: int, loss: str) -> list[dict[str, Any]]:
    """Errors of both models on one test part."""
    X, Y = load(name)
    X, X_test, Y, Y_test = train_test_split(X, Y, test_size=0.25, random_state=split)
    linear = ProportionRegressorCV(loss, standardize=True, cv=3).fit(X, Y)
    trees = [
        BoostedProportionRegressor(
            loss, num_leaves=leaves, min_child_samples=10, learning_rate=0.1, n_estimators=300,
            early_stopping_rounds=15, metric="squared_error", random_state=split, n_jobs=1,
        ).fit(X, Y)
        for leaves in LEAVES
    ]  # fmt: skip
    # the part that early stopping held out, which is the same because the seed is
    _, held_out = train_test_split(np.arange(len(X)), test_size=0.1, random_state=split)
    errors = [metrics.squared_error(Y[held_out], model.predict(X[held_out])) for model in trees]
    best = trees[int(np.argmin(errors))]
    found = []
    for kind, model in (("linear", linear), ("boosted", best)):
        predicted = model.predict(X_test)
        found.append({
            "data": name, "split": split, "loss": loss, "model": kind,
            "squared_error": metrics.squared_error(Y_test, predicted),
            "chebyshev": metrics.chebyshev(Y_test, predicted),
        })  # fmt: skip
    return found


def accuracy(names: list[str], jobs: int) -> None:
    cases = [
        (name, split, loss)
        for name in names or [*LABELS, *SHARES]
        for loss in LOSSES
        for split in range(SPLITS)
    ]
    parallel = Parallel(n_jobs=jobs, return_as="generator_unordered")
    with RESULTS.open("w", newline="") as file:
        writer = csv.DictWriter(file, FIELDS)
        writer.writeheader()
        for found in parallel(delayed(compare)(*case) for case in cases):
            writer.writerows(found)
            file.flush()
    table()


def table() -> None:
    """Mean errors, and the mean difference with the interval of Nadeau and Bengio."""
    from scipy import stats

    with RESULTS.open() as file:
        rows = list(csv.DictReader(file))
    errors = {
        (row["data"], row["loss"], row["model"], int(row["split"])): float(row["squared_error"])
        for row in rows
    }
    print(
        "| data | loss | linear | boosted | difference | 95 % interval |\n|---|---|---|---|---|---|"
    )
    for name, loss in sorted({(row["data"], row["loss"]) for row in rows}):
        pair = {
            kind: np.asarray([errors[name, loss, kind, split] for split in range(SPLITS)])
            for kind in ("linear", "boosted")
        }
        gaps = pair["boosted"] - pair["linear"]
        # splits share samples: a test part is a third of its training part
        deviation = np.sqrt((1 / SPLITS + 1 / 3) * gaps.var(ddof=1))
        reach = stats.t.ppf(0.975, SPLITS - 1) * deviation
        print(
            f"| {name} | {loss} | {pair['linear'].mean():.4f} | {pair['boosted'].mean():.4f} | "
            f"{gaps.mean():+.4f} | [{gaps.mean() - reach:+.4f}, {gaps.mean() + reach:+.4f}] |"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=("speed", "accuracy", "table"))
    parser.add_argument("names", nargs="*")
    parser.add_argument("-j", type=int, default=2, help="processes")
    arguments = parser.parse_args()
    if arguments.what == "accuracy":
        accuracy(arguments.names, arguments.j)
    else:
        {"speed": speed, "table": table}[arguments.what]()


if __name__ == "__main__":
    main()
