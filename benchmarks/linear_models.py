"""Linear models, compared with scikit-learn's and with their own matrix products.

All contenders use their default number of threads. The parts are:

- fits: the time to a relative objective gap of 1e-6. Each solver is given the loosest tolerance,
  in half decades, that reaches the gap, found beforehand; then the solvers take turns in
  rounds. Ratios are medians over the rounds of ours by theirs; a peer that takes more than five
  seconds runs once. The data are scene and yeast with the first label of each sample as its class,
  standardized, no intercept.
- path: nine penalties from 1e4 to 1e-4, one after the other, against one fit from zero at the alpha
  that takes longest. Both begin with the features as they are given, and both come within 1e-6 of
  every minimum: the path with the loosest tolerance that does so for all nine alphas, the single
  fit with the loosest one for its alpha, and, for comparison, with that of the path.
- evaluation: objective and gradient at delicious' shape against their two matrix products.
- memory: the most that a sparse fit takes beyond its data, in a process of its own.

Run: FITZPATRICK_DATA=folder-of-the-svm-files python benchmarks/linear_models.py [part …] [--save]
"""

import argparse
import functools
import itertools
import json
import os
import resource
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from _machine import describe
from scipy import sparse
from sklearn.datasets import load_svmlight_file
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler

import fitzpatrick as fp
from fitzpatrick import engines
from fitzpatrick.linear_model import FitzpatrickClassifier, fit_path
from fitzpatrick.linear_model._design import make_design
from fitzpatrick.linear_model._objective import Objective
from fitzpatrick.linear_model._preconditioner import Preconditioner
from fitzpatrick.linear_model._sums import LocalSums

GAP = 1e-6
FEATURES = {"scene": 294, "yeast": 103}
ALPHAS = 10.0 ** np.arange(4, -5, -1)
OURS = "fitzpatrick"
TOLERANCES = 10.0 ** np.arange(-1, -12, -0.5)
PATHS = [(name, loss) for name in FEATURES for loss in ("logistic", "fitzpatrick_logistic")]
PATHS.append(("yeast", "fitzpatrick_sparsemax"))
PAUSE = 0.2  # seconds; waiting threads spin, and would take cores from the next contender
SLOW = 5.0  # a peer that takes longer runs once
RESULTS = Path(__file__).parent / "results" / "linear_models.json"

Record = dict[str, Any]


def record(name: str, against: str, ratio: float, promise: float | None, **details: Any) -> Record:
    """One line of the results, printed."""
    kept = "" if promise is None else "kept" if ratio <= promise else "MISSED"
    said = "" if promise is None else f"<= {promise:g}"
    shown = "  ".join(f"{key}={value:.4g}" for key, value in details.items())
    print(f"  {name:34s} {against:24s} {ratio:8.3f} {said:7s} {kept:7s} {shown}", flush=True)
    return {"name": name, "against": against, "ratio": round(ratio, 4), "promise": said, **details}


def load(name: str) -> tuple[Any, Any]:
    """Standardized features, and the first label of each sample."""
    folder = os.environ.get("FITZPATRICK_DATA")
    if folder is None:
        sys.exit("set FITZPATRICK_DATA to the folder of the svm files")
    file, options = Path(folder) / f"{name}_train.svm.gz", {"multilabel": True, "zero_based": False}
    X, labels = load_svmlight_file(str(file), n_features=FEATURES[name], **options)
    return StandardScaler().fit_transform(X.toarray()), np.asarray([int(row[0]) for row in labels])


def seconds(work: Callable[[], Any]) -> float:
    """Seconds of a call, after a pause in which idle BLAS threads fall asleep."""
    time.sleep(PAUSE)
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def objective(model: Any, X: Any, labels: Any, alpha: float) -> float:
    """The logistic objective, the same for all solvers."""
    y = np.searchsorted(model.classes_, labels)
    values = fp.get_loss("logistic").value(y, X @ model.coef_.T)
    return float(values.sum() + alpha / 2 * np.square(model.coef_).sum())


def loosest(value_at: Callable[[float], Any], best: Any) -> float:
    """The largest tolerance with which all fits reach the gap."""
    for tol in TOLERANCES:
        if np.all(np.asarray(value_at(float(tol))) <= (1 + GAP) * np.asarray(best)):
            return float(tol)
    raise RuntimeError("no tolerance reached the gap")


def contenders(alpha: float) -> dict[str, Callable[[float], Any]]:
    """Estimators of the same problem, by name, as functions of their tolerance."""

    def ours(tol: float) -> Any:
        return FitzpatrickClassifier("logistic", alpha, fit_intercept=False, tol=tol)

    def theirs(solver: str) -> Callable[[float], Any]:
        return lambda tol: LogisticRegression(
            C=1 / alpha, solver=solver, fit_intercept=False, max_iter=10000, tol=tol
        )

    return {
        OURS: ours,
        "sklearn newton-cg": theirs("newton-cg"),
        "sklearn lbfgs": theirs("lbfgs"),
    }


PROMISES = {"sklearn newton-cg": 1.0, "sklearn lbfgs": 0.5}


def compare_fits(name: str, alpha: float, rounds: int) -> list[Record]:
    X, labels = load(name)
    makers = contenders(alpha)

    def value(make: Callable[[float], Any], tol: float) -> float:
        return objective(make(tol).fit(X, labels), X, labels, alpha)

    best = value(makers[OURS], 1e-10)
    models = {
        key: make(loosest(functools.partial(value, make), best)) for key, make in makers.items()
    }
    times = {
        key: [seconds(functools.partial(model.fit, X, labels))] for key, model in models.items()
    }
    for _ in range(rounds - 1):
        for key, model in models.items():
            if times[key][0] < SLOW:
                times[key].append(seconds(functools.partial(model.fit, X, labels)))
    ours = np.asarray(times[OURS])
    return [
        record(
            f"{name} alpha={alpha:g}",
            key,
            float(np.median(ours[: len(taken)] / taken)),
            PROMISES[key],
            ours_ms=1e3 * float(np.median(ours)),
            theirs_ms=1e3 * float(np.median(taken)),
            our_tol=models[OURS].tol,
            their_tol=models[key].tol,
        )
        for key, taken in times.items()
        if key != OURS
    ]


def benchmark_fits(rounds: int) -> list[Record]:
    print(f"\nfits: time to a relative gap of {GAP:g}, ours by theirs")
    cases = itertools.product(FEATURES, (1.0, 0.01))
    return [line for name, alpha in cases for line in compare_fits(name, alpha, rounds)]


def compare_path(name: str, loss: str, rounds: int) -> list[Record]:
    X, labels = load(name)
    y = np.unique(labels, return_inverse=True)[1]

    def path(alphas: Any, tol: float) -> list[float]:
        path = fit_path(X, y, loss, alphas, fit_intercept=False, tol=tol, max_iter=10000)
        return [model.objective for model in path.models]

    best = path(ALPHAS, 1e-12)
    path_tol = loosest(functools.partial(path, ALPHAS), best)
    singles = [functools.partial(path, [alpha], path_tol) for alpha in ALPHAS]
    hardest = int(np.argmax([min(seconds(single) for _ in range(3)) for single in singles]))
    alpha = float(ALPHAS[hardest])
    fit_tol = loosest(functools.partial(path, [alpha]), [best[hardest]])
    given = (ALPHAS, path_tol), ([alpha], fit_tol), ([alpha], path_tol)
    runs = [functools.partial(path, *arguments) for arguments in given]
    times = np.asarray([[seconds(run) for run in runs] for _ in range(rounds)])
    return [
        record(
            f"{name} {loss}",
            against,
            float(np.median(times[:, 0] / times[:, column])),
            promise,
            path_ms=1e3 * float(np.median(times[:, 0])),
            fit_ms=1e3 * float(np.median(times[:, column])),
            alpha=alpha,
            path_tol=path_tol,
            fit_tol=tol,
        )
        for column, against, promise, tol in (
            (1, "one fit", 3.0, fit_tol),
            (2, "one fit, same tolerance", None, path_tol),
        )
    ]


def benchmark_path(rounds: int) -> list[Record]:
    print(f"\npath: nine alphas against the hardest one from zero, all within {GAP:g}")
    # these are short
    return [line for name, loss in PATHS for line in compare_path(name, loss, 3 * rounds)]


def rows_of(columns: Any, values: Any, shape: tuple[int, int]) -> Any:
    """A CSR array with as many entries in each row."""
    edges = np.arange(0, len(columns) + 1, len(columns) // shape[0])
    return sparse.csr_array((values, columns, edges), shape=shape)


def benchmark_evaluation(rounds: int) -> list[Record]:
    n, d, k, labels_per_row = 9682, 500, 983, 19
    print(f"\nevaluation: {n} x {d}, k = {k}, sparse targets, float64")
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, d))
    columns = np.concatenate([rng.choice(k, labels_per_row, replace=False) for _ in range(n)])
    y = rows_of(columns, np.full(n * labels_per_row, 1 / labels_per_row), (n, k))
    design = make_design(X, None, fit_intercept=False, standardize=False, n_scores=k)
    parameters = rng.standard_normal((d, k)) / np.sqrt(d)
    theta, gradient = np.empty((n, k)), np.empty((d, k))

    def products() -> None:
        np.matmul(design.matrix, parameters, out=theta)
        np.matmul(design.matrix.T, theta, out=gradient)

    lines = []
    for name in ("logistic", "fitzpatrick_logistic", "sparsemax", "fitzpatrick_sparsemax"):
        loss = fp.get_loss(name)
        bound = engines.bind(loss.regularizer, loss.tightness, y, k)
        sums = LocalSums(design, bound, None, k)
        target = Objective(sums, Preconditioner(sums), 1.0)
        evaluate = functools.partial(target.evaluate, parameters)
        times = np.asarray([(seconds(products), seconds(evaluate)) for _ in range(rounds + 1)])[1:]
        both = 1e3 * np.median(times, axis=0)
        ratio = float(np.median(times[:, 1] / times[:, 0]))
        details = {"evaluation_ms": float(both[1]), "products_ms": float(both[0])}
        lines.append(record(name, "its two products", ratio, 1.3, **details))
    return lines


def resident_megabytes() -> float:
    """The current memory of this process (Linux)."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() / 2**20


def peak_megabytes() -> float:
    """The peak memory of this process (Linux: kilobytes)."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def sparse_fit() -> None:
    """Generate data, fit, and print the memory of the fit beyond the data."""
    n, d, k, per_row = 6683, 92401, 10, 100
    rng = np.random.default_rng(0)
    values = rng.random(n * per_row)
    X = rows_of(rng.integers(0, d, n * per_row), values, (n, d))
    X.sum_duplicates()
    y = rng.integers(0, k, n)
    before = resident_megabytes()
    model = FitzpatrickClassifier(alpha=1.0)
    taken = seconds(lambda: model.fit(X, y))
    result = {"megabytes": peak_megabytes() - before, "seconds": taken, "n_iter": model.n_iter_}
    print(json.dumps(result))


def benchmark_memory(_: int) -> list[Record]:
    print("\nmemory: a sparse fit, 6683 x 92401 with 100 non-zeros per row, k = 10")
    sys.stdout.flush()
    command = [sys.executable, __file__, "sparse-fit"]
    output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    result = json.loads(output)
    return [record("sparse fit", "600 MB", result["megabytes"] / 600, 1.0, **result)]


PARTS: dict[str, Callable[[int], list[Record]]] = {
    "fits": benchmark_fits,
    "path": benchmark_path,
    "evaluation": benchmark_evaluation,
    "memory": benchmark_memory,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("parts", nargs="*", choices=[*PARTS, "sparse-fit", []], default=[])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--save", action="store_true", help="store the results of these parts")
    arguments = parser.parse_args()
    if arguments.parts == ["sparse-fit"]:
        sparse_fit()
        return
    warnings.simplefilter("error")
    results = {part: PARTS[part](arguments.rounds) for part in arguments.parts or PARTS}
    if arguments.save:
        saved = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
        saved.update({"machine": describe(), **results})
        RESULTS.write_text(json.dumps(saved, indent=2) + "\n")


if __name__ == "__main__":
    main()
