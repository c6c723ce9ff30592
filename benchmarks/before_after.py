"""Compare the speed of the losses in this tree and in another checkout, in one run.

    git worktree add base SOME_COMMIT
    python benchmarks/before_after.py --base base
    python benchmarks/before_after.py --base base --gpu

Each tree has its own process and package path. The processes take turns on the same problems, in
alternating order. On a CPU, value and gradient of the losses are timed at tightness 0 and 1, for
all forms of targets, in NumPy and compiled by Numba, on one thread (in CPU time, which other load
affects less) and on two. At the end, tightness ½ is compared with tightness 1 in this tree. On a
GPU, forward and backward of the named losses are timed on labels and proportions, on the shapes of
:mod:`gpu_losses`, between CUDA events, behind other work. A ratio compares the fastest runs; next
to it are the median and the quartiles of the ratios of neighboring runs.
"""

import argparse
import functools
import inspect
import itertools
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
LIMIT, HALF_LIMIT = 1.05, 1.15
PAIRS = ("logistic", "sparsemax", "entmax15")
FORMS = ("labels", "CSR", "dense")
GPU_RUNS = 15

Step = Callable[[], float]


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


class OnCpu:
    """Times one run of a case: name, form, tightness, engine, threads."""

    def __init__(self, n: int, k: int) -> None:
        import numpy as np

        self.theta, self.targets = problem(n, k)
        self.out = np.empty(n), np.empty((n, k))

    @functools.cache  # noqa: B019
    def _run(self, name: str, form: str, c: float, engine: str, threads: int) -> Callable[[], Any]:
        import fitzpatrick as fp
        from fitzpatrick import engines

        if c in (0, 1):  # which have names in every version
            loss = fp.get_loss(name if c == 0 else f"fitzpatrick_{name}")
        else:
            loss = fp.get_loss(f"fitzpatrick_{name}", tightness=c)
        bind: Any = engines.bind
        # earlier versions bound a loss
        knows_omega = "omega" in inspect.signature(bind).parameters
        given = (loss.regularizer, c) if knows_omega else (loss,)
        k = self.theta.shape[1]
        bound = bind(*given, self.targets[form], k, n_threads=threads, engine=engine)
        bound.value_and_gradient(self.theta, self.out)
        return lambda: bound.value_and_gradient(self.theta, self.out)

    def time(self, *case: Any) -> float:
        """Seconds."""
        run = self._run(*case)
        clock = time.process_time if case[-1] == 1 else time.perf_counter
        start = clock()
        run()
        return clock() - start


class OnGpu:
    """Times some runs of a case: loss, target, rows, classes, dtype, seed."""

    @functools.lru_cache(maxsize=1)  # noqa: B019
    def _tensors(self, target: str, n: int, k: int, dtype: str, seed: int) -> tuple[Any, Any]:
        import torch

        torch.cuda.empty_cache()
        generator = torch.Generator("cuda").manual_seed(seed)
        kind = getattr(torch, dtype)
        scores = torch.randn(n, k, device="cuda", generator=generator).to(kind)
        if target == "labels":
            y = torch.randint(0, k, (n,), device="cuda", generator=generator)
        else:
            y = torch.randn(n, k, device="cuda", generator=generator).softmax(-1).to(kind)
        return scores.requires_grad_(), y

    def time(self, loss: str, *case: Any) -> float:
        """Seconds, the median of the runs."""
        from _gpu import timed_behind_work

        from fitzpatrick.torch import functional

        x, y = self._tensors(*case)
        function = getattr(functional, f"{loss}_loss")

        def step() -> None:
            x.grad = None
            function(x, y).backward()

        step()
        median, _, _ = timed_behind_work(step, GPU_RUNS)
        x.grad = None
        return median / 1e3


class Checkout:
    """A process that times the losses of one checkout."""

    def __init__(self, root: Path, *options: str) -> None:
        environment = {**os.environ, "PYTHONPATH": str(root / "src"), "OMP_NUM_THREADS": "1"}
        self._process = subprocess.Popen(
            [sys.executable, __file__, "--worker", *options],
            env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip

    def time(self, *case: Any) -> float:
        """One answer of the worker."""
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None
        assert stdout is not None
        stdin.write(json.dumps(case) + "\n")
        stdin.flush()
        return float(stdout.readline())

    def close(self) -> None:
        """End the process."""
        self._process.communicate()


def compare(title: str, ours: Step, theirs: Step, repeats: int, limit: float) -> bool:
    """Print one line, and return True if the ratio is within its limit."""
    ours(), theirs()
    pairs = []
    for turn in range(repeats):
        first, second = (ours, theirs) if turn % 2 == 0 else (theirs, ours)
        times = first(), second()
        pairs.append(times if turn % 2 == 0 else times[::-1])
    best = [min(column) for column in zip(*pairs, strict=True)]
    ratio = best[0] / best[1]
    low, median, high = statistics.quantiles([a / b for a, b in pairs], n=4)
    kept = ratio <= limit or median <= limit
    print(
        f"{title:48} {ratio:6.3f} {median:7.3f} ({low:.3f} - {high:.3f}) "
        f"{1e3 * best[0]:8.2f} ms {'' if kept else 'SLOWER'}",
        flush=True,
    )
    return kept


def cpu_cases() -> Iterator[tuple[str, str, str, int]]:
    """(name, form, engine, threads)."""
    for engine, threads, name, form in itertools.product(("numba", "numpy"), (1, 2), PAIRS, FORMS):
        yield name, form, engine, threads


def gpu_cases(seeds: int) -> Iterator[tuple[Any, ...]]:
    """(loss, target, rows, classes, dtype, seed)."""
    import gpu_losses

    for shape, target, loss, seed in itertools.product(
        gpu_losses.SHAPES, ("labels", "proportions"), gpu_losses.OURS, range(seeds)
    ):
        yield loss, target, *shape, seed


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--base", type=Path, help="the other checkout")
    parser.add_argument("--gpu", action="store_true", help="losses of PyTorch tensors on a GPU")
    parser.add_argument("--seeds", type=int, default=1, help="draws of the scores on a GPU")
    parser.add_argument("--repeats", type=int, default=21, help="turns of both trees for each case")
    parser.add_argument("--size", type=int, nargs=2, default=(2048, 1024), help="n and k on a CPU")
    parser.add_argument("--only", default="", help="run only lines that contain this")
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.worker:
        worker = OnGpu() if arguments.gpu else OnCpu(*arguments.size)
        for line in sys.stdin:
            print(worker.time(*json.loads(line)), flush=True)
        return
    if arguments.gpu and not arguments.base:
        parser.error("--base PATH is the checkout to compare with")
    options = ["--gpu"] if arguments.gpu else ["--size", *map(str, arguments.size)]
    here = Checkout(ROOT, *options)
    base = Checkout(arguments.base.resolve(), *options) if arguments.base else None
    kept = []

    def run(ours: tuple[Any, ...], tree: Checkout, theirs: tuple[Any, ...], limit: float) -> None:
        title = " ".join(map(str, ours))
        if arguments.only in title:
            steps = functools.partial(here.time, *ours), functools.partial(tree.time, *theirs)
            kept.append(compare(title, *steps, arguments.repeats, limit))

    print(f"{'case':48}   best  median (quartiles of the ratios)")
    if base is not None:
        cases = gpu_cases(arguments.seeds) if arguments.gpu else (
            (name, form, c, *rest) for name, form, *rest in cpu_cases() for c in (0, 1)
        )  # fmt: skip
        for case in cases:
            run(case, base, case, LIMIT)
        base.close()
    if not arguments.gpu:
        print("tightness 1/2 against 1, this tree")
        for name, form, *rest in cpu_cases():
            run((name, form, 0.5, *rest), here, (name, form, 1, *rest), HALF_LIMIT)
    here.close()
    print(f"{sum(kept)} of {len(kept)} within their limits")


if __name__ == "__main__":
    main()
