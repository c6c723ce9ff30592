"""Links and entry-wise losses on a CPU, compared with other libraries in one run.

On one thread, with 8192 x 256 float64 scores, value and gradient of the sigmoid, Poisson and
squared losses are compared with scikit-learn's, and links with SciPy's softmax. Links of PyTorch
tensors, forward and backward, are compared with the package entmax. Contenders take turns; ratios
are ratios of medians, in CPU time, which other load affects least. ``python benchmarks/cpu_links.py
--quick`` is a short version.
"""

import argparse
import itertools
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import entmax
import numpy as np
import torch
from _machine import RESULTS, write_record
from _timing import Contender, Line, print_lines, race
from scipy.special import softmax
from sklearn._loss.loss import HalfBinomialLoss, HalfPoissonLoss, HalfSquaredError
from threadpoolctl import threadpool_limits
from torch_cpu import link_step

import fitzpatrick as fp
from fitzpatrick import engines
from fitzpatrick.torch import functional

TIGHTNESSES = (0.0, 1.0, 0.5)
# Shapes of PyTorch links, and the number of calls in a measurable run.
TENSORS = (((64, 10), 200), ((8, 8, 64, 64), 2), ((512, 4096), 1))


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
    # the peer, targets, and limits at tightness 0, at 1 and in between
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
        for tightness in TIGHTNESSES:
            bound = engines.bind(omega, tightness, y, k, n_threads=1, engine="numba")
            run = partial(bound.value_and_gradient, theta, out)
            contenders.append(Contender(f"{title}, tightness {tightness:g}", run))
        timings = race(contenders, repeats, cpu_time=True)
        for contender, limit in zip(contenders[1:], limits, strict=True):
            yield _line(contender.name, type(peer).__name__, timings, "peer", limit)


def links(n: int, k: int, repeats: int) -> Iterator[Line]:
    """Links, with scores of three scales; small ones have dense links."""
    for scale in (1.0, 0.1, 10.0):
        theta = np.random.default_rng(0).normal(size=(n, k)) * scale
        names = ["sparsemax", "entmax15", "logistic"]
        if scale == 1:
            names += ["sigmoid", "poisson"]
        contenders = [Contender("softmax", partial(softmax, theta, axis=1))]
        for name in names:
            link = partial(fp.get_loss(name).link, theta, n_threads=1)
            contenders.append(Contender(f"{name} link, scale {scale:g}", link))
        timings = race(contenders, repeats, cpu_time=True)
        for contender, name in zip(contenders[1:], names, strict=True):
            limit = 1.5 if name in ("sparsemax", "entmax15") else None
            yield _line(contender.name, "softmax", timings, "softmax", limit)


def _line(name: str, against: str, timings: Any, peer: str, limit: float | None) -> Line:
    return Line(name, against, timings[name], timings[peer], limit)


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
            "entmax of orders": (entmax.entmax_bisect, functional.entmax, (orders,)),
            "normmax of orders": (entmax.normmax_bisect, functional.normmax, (orders,)),
            "budget": (entmax.budget_bisect, functional.budget, (2.0,)),
        }
        for name, (peer, ours, parameter) in pairs.items():
            contenders = [
                Contender(title, partial(link_step, _fixed(f, *parameter), scores, upstream, calls))
                for title, f in (("entmax", peer), ("ours", ours))
            ]
            timings = race(contenders, repeats, cpu_time=True)
            size = " x ".join(map(str, shape))
            yield Line(f"{name} tensor, {size}", "entmax", timings["ours"], timings["entmax"], 1.0)


def record(line: Line) -> dict[str, object]:
    """The data of the figure on the performance page."""
    figures = line.record()
    kept = {key: figures[key] for key in ("ratio", "limit", "median_ms")}
    return {"what": f"{line.name} / {line.against}", **kept}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer rows and repeats; no JSON")
    arguments = parser.parse_args()
    n, repeats = (1024, 5) if arguments.quick else (8192, 15)
    torch.set_num_threads(1)
    with threadpool_limits(1):
        parts = entries(n, 256, repeats), links(n, 256, repeats), tensors(repeats)
        lines = print_lines(itertools.chain(*parts))
    if not arguments.quick:
        write_record(RESULTS / "cpu_links.json", lines=[record(line) for line in lines])


if __name__ == "__main__":
    main()
