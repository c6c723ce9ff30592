"""Links and entry-wise losses on a CPU against their peers, in one run.

One thread, 8192 x 256 float64, with Numba and without: value and gradient of the sigmoid, Poisson
and squared losses next to scikit-learn's, and links next to SciPy's softmax. Then links of PyTorch
tensors, forward and backward, next to entmax's. Contenders take turns; ratios are of medians, in
CPU time, which other work on the machine disturbs least.
``python benchmarks/cpu_links.py --quick`` is a short version.
"""

import argparse
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import entmax
import numpy as np
import torch
from _machine import RESULTS, write_record
from _timing import Contender, Timing, race
from scipy.special import softmax
from sklearn._loss.loss import HalfBinomialLoss, HalfPoissonLoss, HalfSquaredError
from threadpoolctl import threadpool_limits
from torch_cpu import link_step

import fitzpatrick as fp
from fitzpatrick import engines
from fitzpatrick.engines import table
from fitzpatrick.torch import functional

# What is allowed without Numba, over what is allowed with it.
PLAIN = 3.0
# Shapes of PyTorch links, and how many calls make a run that a clock can measure.
TENSORS = (((64, 10), 200), ((8, 8, 64, 64), 2), ((512, 4096), 1))


@dataclass(frozen=True)
class Line:
    """A contender against its peer."""

    what: str
    engine: str
    ratio: float
    limit: float | None
    timing: Timing

    def __str__(self) -> str:
        limit = "" if self.limit is None else f"<= {self.limit:g}"
        verdict = "" if self.limit is None else "kept" if self.ratio <= self.limit else "MISSED"
        low, high = self.timing.quartiles
        return (
            f"{self.what:44} {self.engine:6} {self.ratio:7.2f} {limit:>8} {verdict:6}   "
            f"{1e3 * self.timing.median:.2f} ({1e3 * low:.2f} - {1e3 * high:.2f}) ms"
        )

    def record(self) -> dict[str, object]:
        """What goes into the JSON file."""
        return {
            "what": self.what,
            "engine": self.engine,
            "ratio": round(self.ratio, 3),
            "limit": self.limit,
            "median_ms": round(1e3 * self.timing.median, 4),
        }


def scikit_learn(loss: Any, y: Any, theta: Any) -> Callable[[], object]:
    """Value and gradient of every entry, into buffers."""
    flat, scores = y.ravel(), theta.ravel()
    out = {"loss_out": np.empty_like(scores), "gradient_out": np.empty_like(scores)}
    return lambda: loss.loss_gradient(y_true=flat, raw_prediction=scores, n_threads=1, **out)


def entries(n: int, k: int, repeats: int) -> Iterator[Line]:
    """Entry-wise losses."""
    rng = np.random.default_rng(0)
    theta = rng.normal(size=(n, k))
    out = np.empty(n), np.empty((n, k))
    hard = (rng.random((n, k)) < 0.3).astype(float)
    counts = rng.poisson(2.0, (n, k)).astype(float)
    soft = rng.random((n, k))
    # the peer, targets, and limits at tightness 0, 1 and between them
    problems: list[tuple[str, str, Any, Any, tuple[float | None, ...]]] = [
        ("sigmoid", "sigmoid", HalfBinomialLoss(), soft, (1.0, 3.0, None)),
        ("sigmoid, 0/1", "sigmoid", HalfBinomialLoss(), hard, (1.0, 1.5, None)),
        ("poisson", "poisson", HalfPoissonLoss(), counts, (1.2, 3.0, None)),
        ("squared", "squared", HalfSquaredError(), rng.normal(size=(n, k)), (1.0, 3.0, None)),
        ("sparse_sigmoid", "sparse_sigmoid", HalfSquaredError(), soft, (None, None, None)),
    ]
    for title, name, peer, y, limits in problems:
        omega = fp.get_loss(name).regularizer
        contenders = [Contender("peer", scikit_learn(peer, y, theta))]
        keys = []
        for engine in ("numba", "numpy"):
            for tightness, limit in zip((0.0, 1.0, 0.5), limits, strict=True):
                bound = engines.bind(omega, tightness, y, k, n_threads=1, engine=engine)
                key = f"{title}, tightness {tightness:g}", engine
                allowed = limit if limit is None or engine == "numba" else PLAIN * limit
                keys.append((key, allowed))
                contenders.append(
                    Contender(str(key), lambda bound=bound: bound.value_and_gradient(theta, out))  # type: ignore[misc]
                )
        timings = race(contenders, repeats, cpu_time=True)
        for key, allowed in keys:
            timing = timings[str(key)]
            ratio = timing.median / timings["peer"].median
            yield Line(f"{key[0]} / {type(peer).__name__}", key[1], ratio, allowed, timing)


def links(n: int, k: int, repeats: int) -> Iterator[Line]:
    """Links, with scores of three scales; small ones have dense links."""
    for scale in (1.0, 0.1, 10.0):
        theta = np.random.default_rng(0).normal(size=(n, k)) * scale
        names = ["sparsemax", "entmax15", "logistic"]
        if scale == 1:
            names += ["sigmoid", "poisson"]
        contenders = [Contender("softmax", lambda theta=theta: softmax(theta, axis=1))]  # type: ignore[misc]
        for name in names:
            contenders += [
                Contender(f"{name} {engine}", _link(fp.get_loss(name), theta, engine))
                for engine in ("numba", "numpy")
            ]
        timings = race(contenders, repeats, cpu_time=True)
        for contender in contenders[1:]:
            name, engine = contender.name.split()
            is_sparse = name in ("sparsemax", "entmax15")
            limit = (1.5 if engine == "numba" else 1.5 * PLAIN) if is_sparse else None
            timing = timings[contender.name]
            ratio = timing.median / timings["softmax"].median
            yield Line(f"{name} link, scale {scale:g} / softmax", engine, ratio, limit, timing)


def _link(loss: Any, theta: Any, engine: str) -> Callable[[], object]:
    """The link as users call it; without Numba by a size that no problem has."""
    least = {"numba": 0, "numpy": 1 << 62}[engine]

    def run() -> object:
        before, table.MIN_COMPILED_SIZE = table.MIN_COMPILED_SIZE, least
        try:
            return loss.link(theta, n_threads=1)
        finally:
            table.MIN_COMPILED_SIZE = before

    return run


def _fixed(link: Any, *parameter: Any) -> Callable[..., Any]:
    return lambda scores, dim: link(scores, *parameter, dim)


def tensors(repeats: int) -> Iterator[Line]:
    """Links of float32 tensors, forward and backward."""
    for shape, calls in TENSORS:
        generator = torch.Generator().manual_seed(0)
        scores = torch.randn(shape, generator=generator)
        upstream = torch.randn(shape, generator=generator)
        orders = 1.2 + 0.7 * torch.rand((*shape[:-1], 1), generator=generator)
        pairs: dict[str, tuple[Any, Any, tuple[Any, ...]]] = {
            "sparsemax": (entmax.sparsemax, functional.sparsemax, ()),
            "entmax15": (entmax.entmax15, functional.entmax15, ()),
            "entmax of a tensor": (entmax.entmax_bisect, functional.entmax, (orders,)),
            "normmax of a tensor": (entmax.normmax_bisect, functional.normmax, (orders,)),
            "budget": (entmax.budget_bisect, functional.budget, (2.0,)),
        }
        for name, (peer, ours, parameter) in pairs.items():
            contenders = [
                Contender(title, partial(link_step, _fixed(f, *parameter), scores, upstream, calls))
                for title, f in (("entmax", peer), ("ours", ours))
            ]
            timings = race(contenders, repeats, cpu_time=True)
            ratio = timings["ours"].median / timings["entmax"].median
            size = " x ".join(map(str, shape))
            yield Line(f"{name} tensor, {size} / entmax", "", ratio, 1.0, timings["ours"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer rows and repeats; no JSON")
    arguments = parser.parse_args()
    n, repeats = (1024, 5) if arguments.quick else (8192, 15)
    torch.set_num_threads(1)
    lines = []
    print(f"{'contender / peer':44} engine   ratio    limit          median (quartiles)")
    with threadpool_limits(1):
        for part in (entries(n, 256, repeats), links(n, 256, repeats), tensors(repeats)):
            for line in part:
                print(line, flush=True)
                lines.append(line)
    missed = [line.what for line in lines if line.limit is not None and line.ratio > line.limit]
    print(f"missed: {missed}")
    if not arguments.quick:
        write_record(RESULTS / "cpu_links.json", lines=[line.record() for line in lines])


if __name__ == "__main__":
    main()
