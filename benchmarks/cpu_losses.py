"""Value and gradient of the losses on a CPU, compared with other libraries in one run.

Every contender computes the loss of each row and the gradient, at the same scores and in the same
dtype. Contenders take turns, and ratios are ratios of medians. Our losses run in code compiled by
Numba, which is the default at these sizes, unless a line says NumPy. ``python
benchmarks/cpu_losses.py --quick`` is a short version.
"""

import argparse
from collections.abc import Sequence
from typing import Literal

import _peers as peers
import entmax
import numpy as np
import optax
import torch
from _machine import RESULTS, write_record
from _timing import Contender, Line, Timing, print_lines, race
from scipy import sparse
from threadpoolctl import threadpool_limits

import fitzpatrick as fp
from fitzpatrick import engines

# The paper's bisection runs on this number of rows; its time is scaled to all rows.
PAPER_ROWS = 128
BASE, MULTINOMIAL, SORTING = "logistic, labels", "scikit-learn multinomial", "sort-based sparsemax"
# the title of a line: the loss and the form of its targets
LABELS = [
    f"{loss}, labels"
    for name in ("logistic", "sparsemax", "entmax15")
    for loss in (name, f"Fitzpatrick {name}")
]
DENSE = ["Fitzpatrick logistic, dense", "Fitzpatrick entmax15, dense"]
TITLES = [
    *LABELS, *DENSE, "logistic, CSR", "logistic, dense", "sparsemax, dense", "entmax15, dense",
    "Fitzpatrick logistic, CSR", "Fitzpatrick sparsemax, CSR", "Fitzpatrick sparsemax, dense",
    "Fitzpatrick entmax15, CSR",
]  # fmt: skip


class Problem:
    """Scores, and targets in all forms, of one size."""

    def __init__(self, n: int, k: int, labels_per_row: int, scale: float = 1.0) -> None:
        rng = np.random.default_rng(0)
        self.theta = rng.normal(size=(n, k)) * scale
        self.labels = rng.integers(0, k, n)
        columns = np.sort(
            rng.random((n, k)).argpartition(labels_per_row, axis=1)[:, :labels_per_row]
        )
        edges = np.arange(0, n * labels_per_row + 1, labels_per_row)
        shares = rng.dirichlet(np.ones(labels_per_row), n)
        self.csr = sparse.csr_array((shares.ravel(), columns.ravel(), edges), shape=(n, k))
        self.dense = rng.dirichlet(np.ones(k), n)
        self.out = np.empty(n), np.empty((n, k))

    def ours(
        self, title: str, n_threads: int = 1, engine: Literal["numba", "numpy"] = "numba"
    ) -> peers.Run:
        """One of our losses, bound to targets, into buffers."""
        name, form = title.split(", ")
        loss, k = fp.get_loss(name.lower().replace(" ", "_")), self.theta.shape[1]
        y = getattr(self, form.lower())
        bound = engines.bind(
            loss.regularizer, loss.tightness, y, k, n_threads=n_threads, engine=engine
        )
        return lambda: bound.value_and_gradient(self.theta, self.out)

    def contenders(self, *titles: str) -> list[Contender]:
        """Our losses on one thread."""
        return [Contender(title, self.ours(title)) for title in titles]


def compare(
    timings: dict[str, Timing], lines: Sequence[tuple[str, str, float | None]], label: str
) -> list[Line]:
    return [
        Line(f"{name} [{label}]", against, timings[name], timings[against], limit)
        for name, against, limit in lines
    ]


def main_size(n: int, k: int, repeats: int) -> list[Line]:
    """The promises of the performance page, at one size."""
    problem = Problem(n, k, 16)
    theta, labels = problem.theta, problem.labels
    part = slice(0, PAPER_ROWS)
    bisection = peers.paper_bisection(theta[part], problem.dense[part])
    contenders = [
        *problem.contenders(*LABELS, "Fitzpatrick logistic, CSR", *DENSE),
        Contender(MULTINOMIAL, peers.scikit_learn(theta, labels, 1)),
        Contender("torch cross_entropy", peers.torch_cross_entropy(theta, labels)),
        Contender(
            "optax cross_entropy",
            peers.of_optax(theta, labels, optax.softmax_cross_entropy_with_integer_labels),
        ),
        Contender(SORTING, peers.sorting_sparsemax(theta, labels), repeats=3),
        Contender(
            "entmax sparsemax_loss", peers.of_torch(theta, labels, entmax.sparsemax_loss), repeats=2
        ),
        Contender(
            "entmax entmax15_loss", peers.of_torch(theta, labels, entmax.entmax15_loss), repeats=2
        ),
        Contender("paper's bisection, dense", bisection, scale=n / PAPER_ROWS, repeats=2),
    ]
    lines = [
        (BASE, MULTINOMIAL, 0.7),
        ("Fitzpatrick logistic, labels", BASE, 1.2),
        ("Fitzpatrick logistic, labels", MULTINOMIAL, None),
        ("Fitzpatrick logistic, CSR", BASE, 1.6),
        ("Fitzpatrick logistic, CSR", MULTINOMIAL, 1),
        ("Fitzpatrick logistic, dense", BASE, 8),
        ("Fitzpatrick logistic, dense", "paper's bisection, dense", 0.01),
        ("torch cross_entropy", BASE, None),
        ("optax cross_entropy", BASE, None),
        ("entmax sparsemax_loss", "sparsemax, labels", None),
        ("entmax15, labels", BASE, None),
        ("Fitzpatrick entmax15, labels", BASE, None),
        ("Fitzpatrick entmax15, dense", BASE, None),
        ("entmax entmax15_loss", "entmax15, labels", None),
    ]
    return compare(race(contenders, repeats), lines, f"{n} x {k}")


def sparsemax_scales(n: int, k: int, repeats: int) -> list[Line]:
    """Sparsemax on scores of four kinds."""
    rows = []
    names = ["sparsemax, labels", "Fitzpatrick sparsemax, labels"]
    lines = [(name, BASE, 1.5) for name in names]
    lines += [(name, SORTING, 0.33) for name in names]
    for scale in (0.1, 1.0, 10.0, 0.0):
        problem = Problem(n, k, 16, scale)
        sorting = peers.sorting_sparsemax(problem.theta, problem.labels)
        contenders = [*problem.contenders(BASE, *names), Contender(SORTING, sorting, repeats=3)]
        kind = f"scale {scale:g}" if scale else "all equal"
        rows += compare(race(contenders, repeats), lines, kind)
    return rows


def other_sizes(sizes: list[tuple[int, int, int]], repeats: int) -> list[Line]:
    """Losses at other sizes."""
    rows = []
    for n, k, labels_per_row in sizes:
        problem = Problem(n, k, labels_per_row)
        given = problem.theta, problem.labels
        contenders = [
            *problem.contenders(BASE, "Fitzpatrick logistic, labels", "Fitzpatrick logistic, CSR"),
            *problem.contenders("Fitzpatrick sparsemax, labels"),
            Contender("torch cross_entropy", peers.torch_cross_entropy(*given)),
        ]
        lines = [(contender.name, MULTINOMIAL, None) for contender in contenders]
        contenders.append(Contender(MULTINOMIAL, peers.scikit_learn(*given, 1)))
        rows += compare(race(contenders, repeats), lines, f"{n} x {k}")
    return rows


def threads(n: int, k: int, repeats: int) -> list[Line]:
    """Two threads against one."""
    problem = Problem(n, k, 16)
    rows = []
    for title in TITLES:
        one, two = f"{title}, 1 thread", f"{title}, 2 threads"
        contenders = [Contender(one, problem.ours(title)), Contender(two, problem.ours(title, 2))]
        rows += compare(race(contenders, repeats), [(two, one, 0.625)], f"{n} x {k}")
    return rows


def without_numba(n: int, k: int, repeats: int) -> list[Line]:
    """NumPy formulas against compiled rows."""
    problem = Problem(n, k, 16 if k > 16 else 2)
    rows = []
    for title in TITLES:
        plain = Contender(f"{title}, NumPy", problem.ours(title, engine="numpy"))
        timings = race([plain, *problem.contenders(title)], repeats)
        rows += compare(timings, [(plain.name, title, None)], f"{n} x {k}")
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer rows and repeats; no JSON")
    arguments = parser.parse_args()
    repeats = 3 if arguments.quick else 9
    divisor = 16 if arguments.quick else 1
    n, k = 8192 // divisor, 1024
    sizes = [(9682, 983, 19), (65536, 10, 2), (512, 65536, 19)]
    torch.set_num_threads(1)
    with threadpool_limits(1):
        rows = main_size(n, k, repeats)
        rows += sparsemax_scales(n, k, repeats)
        rows += other_sizes([(a // divisor, b, c) for a, b, c in sizes], repeats)
        rows += threads(n, k, repeats)
        rows += without_numba(n, k, repeats)
        rows += without_numba(65536 // divisor, 10, repeats)
    print_lines(rows)
    if arguments.quick:
        print("the promises are for the whole size, and not meaningful for a part of the rows")
    print(f"\nfloat64, one thread by default; {PAPER_ROWS} rows of the bisection, scaled to all")
    if not arguments.quick:
        write_record(RESULTS / "cpu_losses.json", rows=[row.record() for row in rows])


if __name__ == "__main__":
    main()
