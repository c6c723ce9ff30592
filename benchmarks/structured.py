"""Structured sets, compared with other libraries in one run.

Projections onto the permutahedron are compared with a loop over scikit-learn's isotonic regression,
Sinkhorn's scaling with POT (if it is installed) at the same error of the sums, and the oracle calls
of ``Polytope`` with away-step Frank-Wolfe. All run on one thread and take turns. Ratios are ratios
of medians, in CPU time, which other load affects least. ``--gpu`` compares projections, links and
ranks on a GPU with one core of its host, and with PyTorch's sort on the GPU, in wall-clock time
until all results are available. ``--learn`` adds the results of learning: label ranking (with files
in ``FITZPATRICK_DATA``), and the shortest paths of a 5 × 5 grid. ``--quick`` is a short version.
"""

import argparse
import csv
import os
import time
from collections.abc import Callable, Iterator
from functools import partial
from importlib.util import find_spec
from pathlib import Path

import numpy as np
from _gpu import machine, require_gpu
from _machine import RESULTS, write_record
from _timing import Contender, race
from sklearn.isotonic import isotonic_regression
from sklearn.model_selection import GridSearchCV, KFold
from threadpoolctl import threadpool_limits

import fitzpatrick as fp
from fitzpatrick.linear_model import LabelRanker
from fitzpatrick.regularizers import Negentropy
from fitzpatrick.sets import Birkhoff, Flat, Permutahedron, Polytope

FloatArray = np.ndarray


def loop_over_rows(x: FloatArray, weights: FloatArray) -> FloatArray:
    """Projections onto the permutahedron, by scikit-learn, row by row."""
    out = np.empty_like(x)
    for i, row in enumerate(x):
        order = np.argsort(-row)
        ordered = row[order]
        out[i, order] = ordered - isotonic_regression(ordered - weights, increasing=False)
    return out


def versus(
    ours: Callable[[], object], peer: Callable[[], object], repeats: int
) -> tuple[float, float]:
    """Our seconds, and their ratio to the peer's."""
    contenders = [Contender("ours", ours), Contender("peer", peer)]
    times = race(contenders, repeats, cpu_time=True)
    return times["ours"].median, times["ours"].median / times["peer"].median


def permutahedron(repeats: int) -> Iterator[tuple[str, float, float | None]]:
    x = np.random.default_rng(0).normal(size=(1000, 100)) * 30
    weights = np.arange(100.0, 0, -1)
    domain = Permutahedron(100)
    assert np.allclose(domain.project(x), loop_over_rows(x, weights))
    ours, ratio = versus(lambda: domain.project(x), lambda: loop_over_rows(x, weights), repeats)
    yield f"permutahedron 1000 x 100 ({1e3 * ours:.1f} ms) / loop", ratio, 0.5


def sinkhorn(repeats: int) -> Iterator[tuple[str, float, float | None]]:
    rng = np.random.default_rng(1)
    theta = rng.normal(size=(256, 32, 32))
    omega = Negentropy(Birkhoff())
    for scale in (1.0, 1e3):
        plan = omega.link(scale * theta)
        error = max(np.abs(plan.sum(axis=axis) - 1).max() for axis in (-1, -2))
        yield f"error of the sums at regularization {1 / scale:g}", error, 1e-12
    if find_spec("ot") is None:
        return
    import ot  # type: ignore[import-not-found,unused-ignore]

    ones = np.ones(32)

    def peer() -> None:
        for row in theta:
            ot.sinkhorn(ones, ones, -row, 1.0, stopThr=1e-13, numItermax=10_000)

    ours, ratio = versus(lambda: omega.link(theta), peer, repeats)
    yield f"Birkhoff 256 x 32 x 32 ({1e3 * ours:.0f} ms) / POT", ratio, 1.0


def away_steps(
    oracle: Callable[[FloatArray], FloatArray], x: FloatArray, tolerance: float, limit: int
) -> int:
    """Calls of the oracle until the gap of away-step Frank-Wolfe is below a tolerance."""
    vertices, weights = [oracle(x)], [1.0]
    for calls in range(2, limit):
        p = np.asarray(weights) @ np.asarray(vertices)
        normal = x - p
        vertex = oracle(normal)
        gap = normal @ (vertex - p)
        if gap <= tolerance:
            return calls
        scores = np.asarray(vertices) @ normal
        worst = int(np.argmin(scores))
        away_gap = normal @ p - scores[worst]
        if gap >= away_gap or weights[worst] == 1:
            direction, longest, away = vertex - p, 1.0, None
        else:
            direction, away = p - vertices[worst], worst
            longest = weights[worst] / (1 - weights[worst])
        step = min(longest, normal @ direction / (direction @ direction))
        if away is None:
            weights = [w * (1 - step) for w in weights]
            known = [i for i, v in enumerate(vertices) if np.array_equal(v, vertex)]
            if known:
                weights[known[0]] += step
            else:
                vertices.append(vertex)
                weights.append(step)
        else:
            weights = [w * (1 + step) for w in weights]
            weights[away] -= step
        kept = [i for i, w in enumerate(weights) if w > 1e-15]
        vertices, weights = [vertices[i] for i in kept], [weights[i] for i in kept]
    return limit


def on_gpu(repeats: int) -> Iterator[tuple[str, float, float | None]]:
    """GPU over CPU, and GPU over sort; soft ranks and sorts with their gradients."""
    import torch

    from fitzpatrick.torch import functional as F  # noqa: N812

    def ranks(function: Callable[..., torch.Tensor], how: str) -> Callable[..., object]:
        def step(x: torch.Tensor) -> torch.Tensor:
            x = x.detach().requires_grad_()
            return torch.autograd.grad(function(x, how).square().sum(), x)[0]

        return step

    def on_device(step: Callable[..., object], x: torch.Tensor, n_calls: int) -> Callable[[], None]:
        def waited() -> None:
            for _ in range(n_calls):
                step(x)
            torch.cuda.synchronize()

        return waited

    def sort(x: torch.Tensor) -> object:
        return torch.sort(x, dim=-1)

    rng = np.random.default_rng(3)
    scores, many = 30 * rng.normal(size=(1000, 100)), 300 * rng.normal(size=(512, 1000))
    matrices = rng.normal(size=(256, 32, 32))
    tasks: list[tuple[str, Callable[..., object], FloatArray, float | None]] = [
        ("permutahedron 1000 x 100", Permutahedron(100).project, scores, 1 / 20),
        ("permutahedron 512 x 1000", Permutahedron(1000).project, many, None),
        ("soft_rank and gradient 1000 x 100", ranks(F.soft_rank, "l2"), scores, None),
        ("soft_rank and gradient 512 x 1000", ranks(F.soft_rank, "l2"), many, None),
        ("soft_rank, kl, and gradient 512 x 1000", ranks(F.soft_rank, "kl"), many, None),
        ("soft_sort and gradient 512 x 1000", ranks(F.soft_sort, "l2"), many, None),
        ("Birkhoff, projection 256 x 32 x 32", Birkhoff().project, matrices, None),
        ("Birkhoff, Sinkhorn 256 x 32 x 32", Negentropy(Birkhoff()).link, matrices, None),
    ]
    for name, step, x, limit in tasks:
        there = torch.asarray(x, device="cuda")
        # the core is fastest with NumPy arrays, and PyTorch functions need tensors
        here = torch.asarray(x) if "soft" in name else x
        n_calls = 1 if x is matrices else 20  # short ones in a row, as in training
        contenders = [
            Contender("cpu", partial(step, here)),
            Contender("gpu", on_device(step, there, n_calls), 1 / n_calls),
            Contender("sort", on_device(sort, there, n_calls), 1 / n_calls),
        ]
        times = race(contenders, repeats)
        gpu = times["gpu"].median
        yield f"{name} ({1e3 * gpu:.2f} ms on the GPU) / CPU", gpu / times["cpu"].median, limit
        yield f"{name} / sort on the GPU", gpu / times["sort"].median, None


class Grid:
    """Monotone paths through a grid of n × n nodes: scores of edges to the best path."""

    def __init__(self, n: int) -> None:
        nodes = [(i, j) for i in range(n) for j in range(n)]
        across = [((i, j), (i, j + 1)) for i in range(n) for j in range(n - 1)]
        down = [((i, j), (i + 1, j)) for i in range(n - 1) for j in range(n)]
        edges = sorted(across + down, key=lambda e: (e[0][0], e[0][0] != e[1][0], e[0][1]))
        number = {node: at for at, node in enumerate(nodes)}
        self.size, self.length = len(edges), 2 * (n - 1)
        # the edges into each node, twice if there is one only
        into: list[list[tuple[int, int]]] = [[] for _ in nodes]
        for at, (start, end) in enumerate(edges):
            into[number[end]].append((at, number[start]))
        self.into = np.asarray([(pair * 2)[:2] if pair else [(0, 0)] * 2 for pair in into])

    def best_paths(self, scores: FloatArray) -> FloatArray:
        """The best path of each row, by dynamic programming."""
        rows = np.arange(len(scores))
        value = np.zeros((len(scores), len(self.into)))
        choice = np.zeros_like(value, dtype=int)
        for node in range(1, len(self.into)):
            edges, starts = self.into[node].T
            candidates = value[:, starts] + scores[:, edges]
            choice[:, node] = candidates.argmax(axis=1)
            value[:, node] = candidates.max(axis=1)
        paths = np.zeros_like(scores)
        at = np.full(len(scores), len(self.into) - 1)
        for _ in range(self.length):
            edge, start = self.into[at, choice[rows, at]].T
            paths[rows, edge] = 1
            at = start
        return paths


def oracle_calls(n_problems: int) -> Iterator[tuple[str, float, float | None]]:
    rng = np.random.default_rng(2)
    grid = Grid(10)
    birkhoff = Flat(Birkhoff(), (10, 10)).maximize
    for name, oracle, size in (
        ("Birkhoff 10 x 10", birkhoff, 100),
        ("paths 10 x 10", lambda x: grid.best_paths(x[None])[0], grid.size),
    ):
        for scale in (0.3, 1.0, 3.0):
            ours, peer = 0.0, 0.0
            for _ in range(n_problems):
                x = scale * rng.normal(size=size)
                # the same gap for both, which is within reach of Frank-Wolfe
                ours += Polytope(oracle, tolerance=1e-9).solve(x).n_calls[0]
                peer += away_steps(oracle, x, 1e-6, 5000)
            what = f"{name}, scale {scale:g}: {ours / n_problems:.0f} calls / away-step"
            yield what, ours / peer, 0.25


def label_ranking() -> Iterator[tuple[str, float, float | None]]:
    folder = Path(os.environ.get("FITZPATRICK_DATA", "data")) / "label_ranking"
    for name in ("glass", "vehicle"):
        with (folder / f"{name}.txt").open() as lines:
            rows = list(csv.reader(lines))[1:]
        X = np.asarray([row[:-1] for row in rows], dtype=float)
        y = np.asarray([row[-1] for row in rows])
        scores = {}
        for loss in ("squared", "sparsemap", "fitzpatrick_sparsemap"):
            grid = {"alpha": 10.0 ** np.arange(-3, 5)}
            inner = KFold(5, shuffle=True, random_state=1)
            search = GridSearchCV(LabelRanker(loss, tol=1e-4), grid, cv=inner)
            folds = KFold(5, shuffle=True, random_state=0).split(X)
            found = [search.fit(X[a], y[a]).score(X[b], y[b]) for a, b in folds]
            scores[loss] = float(np.mean(found))
            yield f"Kendall's tau on {name}, {loss}", scores[loss], None
        assert scores["sparsemap"] > scores["squared"]


def shortest_paths() -> Iterator[tuple[str, float, float | None]]:
    """Regret of linear models on a published task: degree 4, noise 0.5, seed 42, 1000 + 1000."""
    rng = np.random.RandomState(42)
    grid, n_features = Grid(5), 5
    mixing = rng.binomial(1, 0.5, (grid.size, n_features))
    X = rng.normal(0, 1, (2000, n_features))
    costs = ((X @ mixing.T / np.sqrt(n_features) + 3) ** 4 + 1) / 3.5**4
    costs = costs * rng.uniform(0.5, 1.5, costs.shape)
    X = np.hstack([X, np.ones((2000, 1))])
    train, test = slice(0, 1000), slice(1000, 2000)
    paths = grid.best_paths(-costs)
    polytope = Polytope(grid.best_paths, batched=True)
    for tightness in (0.0, 1.0):
        begin, active = time.perf_counter(), None
        W, momentum, size = np.zeros((grid.size, 6)), 0.0, 1e-3
        for _ in range(40):
            theta = X[train] @ W.T
            mixture = (theta + tightness * paths[train]) / (1 + tightness)
            solution = polytope.solve(mixture, start=active)
            active = solution.active
            gradient = (solution.point - paths[train]).T @ X[train]
            momentum = 0.8 * momentum + gradient
            W = W - size * momentum
        chosen = grid.best_paths(X[test] @ W.T)
        best = np.sum(paths[test] * costs[test])
        regret = float((np.sum(chosen * costs[test]) - best) / best)
        seconds = time.perf_counter() - begin
        name = fp.FitzpatrickLoss(fp.regularizers.SquaredNorm(polytope), tightness).tightness
        yield f"regret of shortest paths, tightness {name:g} ({seconds:.0f} s)", regret, 0.08


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer repetitions")
    parser.add_argument("--learn", action="store_true", help="also train models (minutes)")
    parser.add_argument("--gpu", action="store_true", help="only compare a GPU with the CPU")
    options = parser.parse_args()
    repeats, n_problems = (3, 2) if options.quick else (9, 10)
    tables = [permutahedron(repeats), sinkhorn(repeats), oracle_calls(n_problems)]
    if options.gpu:
        require_gpu()
        print(*machine().values())
        tables = [on_gpu(repeats)]
    if options.learn:
        tables += [shortest_paths(), label_ranking()]
    records = []
    with threadpool_limits(1):
        for table in tables:
            for what, number, limit in table:
                verdict = "" if limit is None else "kept" if number <= limit else "MISSED"
                bound = "" if limit is None else f"<= {limit:g}"
                print(f"{what:64} {number:10.3g} {bound:>9} {verdict}", flush=True)
                records.append({"what": what, "number": number, "limit": limit})
    if not (options.quick or options.gpu):
        write_record(RESULTS / "structured.json", lines=records)


if __name__ == "__main__":
    main()
