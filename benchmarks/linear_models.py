"""Linear models against scikit-learn's and against their own matrix products.

What is timed, with the default threads for everyone:

- fits: the time to a relative objective gap of 1e-6. Each solver is given the loosest tolerance,
  in half decades, that reaches the gap, found beforehand; then the solvers take turns in
  rounds. Printed are medians, and medians of the ratios to ours in the same round. The data are
  scene and yeast with the first label of each sample as its class, standardised, no intercept.
- path: nine penalties from 1e4 to 1e-4, each started at the one before, against one fit from zero
  at the alpha that takes longest.
- evaluation: objective and gradient at delicious' shape against their two matrix products.
- memory: the most that a sparse fit takes beyond its data, in a process of its own.

Run: FITZPATRICK_DATA=folder-of-the-svm-files python benchmarks/linear_models.py [part …]
"""

import argparse
import functools
import os
import platform
import resource
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import sklearn
from scipy import sparse
from sklearn.datasets import load_svmlight_file
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler

import fitzpatrick as fp
from fitzpatrick import engines
from fitzpatrick.linear_model import FitzpatrickClassifier
from fitzpatrick.linear_model._design import make_design
from fitzpatrick.linear_model._fitting import Problem, Settings
from fitzpatrick.linear_model._objective import Objective

GAP = 1e-6
FEATURES = {"scene": 294, "yeast": 103}
ALPHAS = 10.0 ** np.arange(4, -5, -1)
OURS = "fitzpatrick"


def load(name: str) -> tuple[Any, Any]:
    """Standardised features, and the first label of each sample."""
    folder = os.environ.get("FITZPATRICK_DATA")
    if folder is None:
        sys.exit("set FITZPATRICK_DATA to the folder of the svm files")
    X, labels = load_svmlight_file(
        str(Path(folder) / f"{name}_train.svm.gz"),
        multilabel=True,
        zero_based=False,
        n_features=FEATURES[name],
    )
    return StandardScaler().fit_transform(X.toarray()), np.asarray([int(row[0]) for row in labels])


def seconds(work: Callable[[], Any]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def objective(model: Any, X: Any, labels: Any, alpha: float) -> float:
    """The logistic objective, the same for all solvers."""
    y = np.searchsorted(model.classes_, labels)
    values = fp.get_loss("logistic").value(y, X @ model.coef_.T)
    return float(values.sum() + alpha / 2 * np.square(model.coef_).sum())


def loosest(make: Callable[[float], Any], X: Any, labels: Any, alpha: float, best: float) -> float:
    """The largest tolerance whose fit comes within the gap."""
    for tol in 10.0 ** np.arange(-1, -11, -0.5):
        value = objective(make(tol).fit(X, labels), X, labels, alpha)
        if value - best <= GAP * best:
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


def compare_fits(name: str, alpha: float, rounds: int) -> None:
    X, labels = load(name)
    makers = contenders(alpha)
    best = objective(makers[OURS](1e-10).fit(X, labels), X, labels, alpha)
    models = {key: make(loosest(make, X, labels, alpha, best)) for key, make in makers.items()}
    times = {key: np.empty(rounds) for key in models}
    for i in range(rounds):
        for key, model in models.items():
            times[key][i] = seconds(functools.partial(model.fit, X, labels))
    for key, taken in times.items():
        print(
            f"  {name:6s} alpha={alpha:<5g} {key:18s} {1e3 * np.median(taken):8.1f} ms"
            f"  {np.median(taken / times[OURS]):7.2f} x ours   tol={models[key].tol:.0e}"
        )


def benchmark_fits(rounds: int) -> None:
    print(f"\nfits: time to a relative gap of {GAP:g}")
    for name in FEATURES:
        for alpha in (1.0, 0.01):
            compare_fits(name, alpha, rounds)


def settings(tol: float) -> Settings:
    return Settings(
        loss=fp.get_loss("fitzpatrick_logistic"),
        fit_intercept=False,
        standardize=False,
        solver="auto",
        tol=tol,
        max_iter=1000,
        verbose=0,
        n_threads=None,
    )


def compare_path(name: str, rounds: int) -> None:
    X, labels = load(name)
    classes, y = np.unique(labels, return_inverse=True)
    rows = engines.bind(fp.get_loss("fitzpatrick_logistic"), y, len(classes))
    problem = Problem(X, rows, len(classes), None, settings(1e-6))
    singles = [
        min(seconds(functools.partial(problem.fit, alpha)) for _ in range(2)) for alpha in ALPHAS
    ]
    hardest = ALPHAS[int(np.argmax(singles))]
    times = np.asarray(
        [
            (seconds(lambda: problem.path(ALPHAS)), seconds(lambda: problem.fit(hardest)))
            for _ in range(rounds)
        ]
    )
    path, single = np.median(times, axis=0)
    print(
        f"  {name:6s} path {1e3 * path:8.1f} ms   alpha={hardest:g}: {1e3 * single:8.1f} ms"
        f"   ratio {np.median(times[:, 0] / times[:, 1]):.2f}"
    )


def benchmark_path(rounds: int) -> None:
    print("\npath: nine alphas against the hardest one from zero, fitzpatrick_logistic")
    for name in FEATURES:
        compare_path(name, rounds)


def benchmark_evaluation(rounds: int) -> None:
    n, d, k, labels_per_row = 9682, 500, 983, 19
    print(f"\nevaluation: {n} x {d}, k = {k}, sparse targets, float64")
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, d))
    columns = np.concatenate([rng.choice(k, labels_per_row, replace=False) for _ in range(n)])
    y = sparse.csr_array(
        (
            np.full(n * labels_per_row, 1 / labels_per_row),
            columns,
            np.arange(0, n * labels_per_row + 1, labels_per_row),
        ),
        shape=(n, k),
    )
    design = make_design(X, None, fit_intercept=False, standardize=False, n_scores=k)
    parameters = rng.standard_normal((d, k)) / np.sqrt(d)
    theta, gradient = np.empty((n, k)), np.empty((d, k))

    def products() -> None:
        np.matmul(design.matrix, parameters, out=theta)
        np.matmul(design.matrix.T, theta, out=gradient)

    for name in ("logistic", "fitzpatrick_logistic", "sparsemax", "fitzpatrick_sparsemax"):
        target = Objective(design, engines.bind(fp.get_loss(name), y, k), None, 1.0, k)
        evaluate = functools.partial(target.evaluate, parameters)
        times = np.asarray([(seconds(products), seconds(evaluate)) for _ in range(rounds + 1)])[1:]
        both, all_of_it = np.median(times, axis=0)
        print(
            f"  {name:22s} {1e3 * all_of_it:7.1f} ms   products {1e3 * both:7.1f} ms"
            f"   ratio {np.median(times[:, 1] / times[:, 0]):.2f}"
        )


def resident_megabytes() -> float:
    """What this process holds now (Linux)."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() / 2**20


def peak_megabytes() -> float:
    """The most memory this process has had so far (Linux: kilobytes)."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def sparse_fit() -> None:
    """Generate, fit, and print what the fit took beyond what was there before."""
    n, d, k, per_row = 6683, 92401, 10, 100
    rng = np.random.default_rng(0)
    X = sparse.csr_array(
        (
            rng.random(n * per_row),
            rng.integers(0, d, n * per_row),
            np.arange(0, n * per_row + 1, per_row),
        ),
        shape=(n, d),
    )
    X.sum_duplicates()
    y = rng.integers(0, k, n)
    before = resident_megabytes()
    model = FitzpatrickClassifier(alpha=1.0)
    taken = seconds(lambda: model.fit(X, y))
    print(
        f"  {n} x {d}, {per_row} non-zeros a row, k = {k}: {peak_megabytes() - before:.0f} MB "
        f"beyond the data, {taken:.1f} s, {model.n_iter_} iterations, {model.status_.value}"
    )


def benchmark_memory(_: int) -> None:
    print("\nmemory: a sparse fit")
    sys.stdout.flush()
    subprocess.run([sys.executable, __file__, "sparse-fit"], check=True)


PARTS: dict[str, Callable[[int], None]] = {
    "fits": benchmark_fits,
    "path": benchmark_path,
    "evaluation": benchmark_evaluation,
    "memory": benchmark_memory,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("parts", nargs="*", choices=[*PARTS, "sparse-fit", []], default=[])
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    if arguments.parts == ["sparse-fit"]:
        sparse_fit()
        return
    warnings.simplefilter("error")
    print(
        f"{platform.machine()}, {os.cpu_count()} cores, NumPy {np.__version__}, "
        f"scikit-learn {sklearn.__version__}, fitzpatrick {fp.__version__}"
    )
    for part in arguments.parts or PARTS:
        PARTS[part](arguments.rounds)


if __name__ == "__main__":
    main()
