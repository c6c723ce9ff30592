"""Whether a change made the CPU losses slower: this tree against another checkout, in one run.

``python benchmarks/before_after.py --base PATH`` starts one process for each tree, which take turns
on the same problems: value and gradient of the losses at tightness 0 and 1, for all forms of
targets, in NumPy and compiled by Numba, on one thread (in CPU time, which other work on the machine
disturbs less) and on two. A ratio is that of the fastest runs; the median and the quartiles of the
ratios of neighboring runs stand beside it. At the end tightness ½ runs against tightness 1, both in
this tree.
"""

import argparse
import inspect
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
LIMIT, HALF_LIMIT = 1.05, 1.15
PAIRS = ("logistic", "sparsemax", "entmax15")
FORMS = ("labels", "CSR", "dense")


def problem(n: int, k: int) -> tuple[Any, dict[str, Any]]:
    """Scores, and targets in all forms."""
    import numpy as np
    from scipy import sparse

    rng = np.random.default_rng(0)
    theta = rng.normal(size=(n, k))
    count = min(16, k // 2)
    columns = np.sort(rng.random((n, k)).argpartition(count, axis=1)[:, :count])
    shares = rng.dirichlet(np.ones(count), n)
    edges = np.arange(0, n * count + 1, count)
    csr = sparse.csr_array((shares.ravel(), columns.ravel(), edges), shape=(n, k))
    return theta, {
        "labels": rng.integers(0, k, n),
        "CSR": csr,
        "dense": rng.dirichlet(np.ones(k), n),
    }


def work(n: int, k: int) -> None:
    """Answer each line "name form tightness engine threads" by the seconds of one run."""
    import numpy as np

    import fitzpatrick as fp
    from fitzpatrick import engines

    theta, targets = problem(n, k)
    out = np.empty(n), np.empty((n, k))
    runs: dict[str, Callable[[], object]] = {}
    for line in sys.stdin:
        key = line.strip()
        if key not in runs:
            name, form, tightness, engine, threads = key.split()
            c = float(tightness)
            if c in (0, 1):  # which every edition has a name for
                loss = fp.get_loss(name if c == 0 else f"fitzpatrick_{name}")
            else:
                loss = fp.get_loss(f"fitzpatrick_{name}", tightness=c)
            bind: Any = engines.bind
            # earlier editions bound a loss
            knows_omega = "omega" in inspect.signature(bind).parameters
            given = (loss.regularizer, c) if knows_omega else (loss,)
            bound = bind(*given, targets[form], k, n_threads=int(threads), engine=engine)
            runs[key] = lambda bound=bound: bound.value_and_gradient(theta, out)  # type: ignore[misc]
            runs[key]()
        clock = time.process_time if key.endswith(" 1") else time.perf_counter
        start = clock()
        runs[key]()
        print(clock() - start, flush=True)


class Tree:
    """A process that runs one checkout."""

    def __init__(self, path: Path, n: int, k: int) -> None:
        environment = {**os.environ, "PYTHONPATH": str(path / "src"), "OMP_NUM_THREADS": "1"}
        self._process = subprocess.Popen(
            [sys.executable, __file__, "--worker", "--size", str(n), str(k)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=environment,
            text=True,
        )

    def seconds(self, key: str) -> float:
        """One run."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(key + "\n")
        self._process.stdin.flush()
        return float(self._process.stdout.readline())

    def close(self) -> None:
        """End the process."""
        self._process.communicate()


def compare(
    title: str, ours: Callable[[], float], theirs: Callable[[], float], repeats: int, limit: float
) -> bool:
    """Print one line, and return whether the limit holds."""
    ours(), theirs()
    pairs = [(ours(), theirs()) for _ in range(repeats)]
    ratio = min(a for a, _ in pairs) / min(b for _, b in pairs)
    low, median, high = statistics.quantiles([a / b for a, b in pairs], n=4)
    kept = ratio <= limit or median <= limit
    print(
        f"{title:42} {ratio:6.3f} {median:7.3f} ({low:.3f} - {high:.3f}) "
        f"{1e3 * min(a for a, _ in pairs):8.1f} ms {'' if kept else 'SLOWER'}",
        flush=True,
    )
    return kept


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--base", type=Path, help="the other checkout")
    parser.add_argument("--repeats", type=int, default=21)
    parser.add_argument("--size", type=int, nargs=2, default=(2048, 1024), help="n and k")
    parser.add_argument("--only", default="", help="run lines that contain this")
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.worker:
        work(*arguments.size)
        return
    here = Tree(ROOT, *arguments.size)
    kept = []
    lines = [
        (name, form, engine, threads)
        for engine in ("numba", "numpy")
        for threads in (1, 2)
        for name in PAIRS
        for form in FORMS
    ]
    print(f"{'loss, targets, c, engine, threads':42}   best  median (quartiles of the ratios)")
    if arguments.base:
        base = Tree(arguments.base, *arguments.size)
        for name, form, engine, threads in lines:
            for c in (0, 1):
                key = f"{name} {form} {c} {engine} {threads}"
                if arguments.only in key:
                    kept.append(
                        compare(
                            key,
                            lambda key=key: here.seconds(key),  # type: ignore[misc]
                            lambda key=key: base.seconds(key),  # type: ignore[misc]
                            arguments.repeats,
                            LIMIT,
                        )
                    )
        base.close()
    print("tightness 1/2 against 1, this tree")
    for name, form, engine, threads in lines:
        half, one = (f"{name} {form} {c} {engine} {threads}" for c in (0.5, 1))
        if arguments.only in half:
            kept.append(
                compare(
                    half,
                    lambda half=half: here.seconds(half),  # type: ignore[misc]
                    lambda one=one: here.seconds(one),  # type: ignore[misc]
                    arguments.repeats,
                    HALF_LIMIT,
                )
            )
    here.close()
    print(f"{sum(kept)} of {len(kept)} within their limits")


if __name__ == "__main__":
    main()
