"""Predict, then optimize: learn the costs of the edges of a grid from shortest paths.

The oracle is SciPy's shortest-path solver. ``Polytope`` turns it into a projection, and the
Fitzpatrick sparseMAP loss of the paths trains a linear model of the costs.

Run: python examples/shortest_path.py
"""

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import dijkstra

from fitzpatrick.sets import Polytope

SIDE = 4
EDGES = [
    (SIDE * i + j, SIDE * i + j + step)
    for i in range(SIDE)
    for j in range(SIDE)
    for step in (1, SIDE)
    if (j < SIDE - 1 if step == 1 else i < SIDE - 1)
]
STARTS, ENDS = np.asarray(EDGES, dtype=np.int32).T
PLACES = {edge: at for at, edge in enumerate(EDGES)}


def shortest_path(costs: np.ndarray) -> np.ndarray:
    """The edges of the shortest path between opposite corners, as zeros and ones."""
    n = SIDE * SIDE
    # all paths have the same number of edges, so a constant makes costs positive for dijkstra
    positive = costs - costs.min() + 1.0
    graph = sparse.csr_array((positive, (STARTS, ENDS)), shape=(n, n))
    before = dijkstra(graph, indices=0, return_predecessors=True)[1]
    path, node = np.zeros(len(EDGES)), n - 1
    while node != 0:
        path[PLACES[int(before[node]), node]] = 1
        node = int(before[node])
    return path


def main(n_train: int = 60, n_test: int = 200, n_steps: int = 25, tightness: float = 1.0) -> None:
    """Learn costs from paths only, and compare the resulting paths with the shortest paths."""
    rng = np.random.default_rng(0)
    n = n_train + n_test
    features = np.hstack([rng.normal(size=(n, 5)), np.ones((n, 1))])
    mixing = rng.binomial(1, 0.5, (len(EDGES), 5))
    costs = (features[:, :5] @ mixing.T / np.sqrt(5) + 3) ** 4 / 100
    paths = np.asarray([shortest_path(row) for row in costs])

    paths_of_scores = Polytope(lambda scores: shortest_path(-scores))
    X, y = features[:n_train], paths[:n_train]
    W, active = np.zeros((len(EDGES), 6)), None
    for _ in range(n_steps):
        # the maximizer of the loss is the projection of a combination of scores and targets
        mixture = (X @ W.T + tightness * y) / (1 + tightness)
        solution = paths_of_scores.solve(mixture, start=active)
        active = solution.active  # the next projection starts from these vertices
        W -= 0.5 * (solution.point - y).T @ X / n_train
    print(f"largest gap of the last projections: {solution.gap.max():.1e}")

    X, true, best = features[n_train:], costs[n_train:], paths[n_train:]
    chosen = np.asarray([shortest_path(-row) for row in X @ W.T])
    least = np.sum(true * best)
    print(f"paths cost {100 * (np.sum(true * chosen) / least - 1):.1f} % more than the best ones")
    any_path = shortest_path(np.ones(len(EDGES)))
    print(f"one path for all costs {100 * (np.sum(true @ any_path) / least - 1):.1f} % more")


if __name__ == "__main__":
    main()
