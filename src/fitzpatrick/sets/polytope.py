r"""A polytope that is known by its linear oracle alone: Wolfe's min-norm point algorithm.

The projection of x is a mixture of few vertices, the *active* ones. A step asks the oracle for the
vertex v that is best for :math:`x - p`. The gap :math:`\langle x - p, v - p\rangle` bounds how far
p is from the projection, :math:`\|p - P(x)\|^2 \le` gap, and certifies it where it is zero. Else v
becomes active, and the nearest point of the affine hull of the active vertices is found; vertices
whose weight would be negative are dropped on the way.
"""

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, NamedTuple

import numpy as np

from .._array import Array, NumpyArray, as_real, on_host, with_derivative
from ._base import ConvergenceError, ConvexSet


class PolytopeStatus(Enum):
    """How a projection ended; the value is the sentence for the user."""

    CONVERGED = "The gap is below the tolerance."
    LIMIT = (
        "The projection {where} needs more than max_calls={limit} calls of the oracle: its gap is "
        "still {gap:.3g}. Raise max_calls, or accept a larger gap with tolerance."
    )
    STALLED = (
        "The projection {where} ended at a gap of {gap:.3g}, where the oracle returns a vertex "
        "that is active already. The oracle may not return an exact maximizer; if its vertices "
        "have rounding errors, accept a larger gap with tolerance."
    )


class ActiveSet(NamedTuple):
    """Vertices (m, k) and their weights (m,), which mix to the projection of a row."""

    vertices: NumpyArray
    weights: NumpyArray


# Of one row: its point, gap, status, number of calls and active set.
_RowProjection = tuple[NumpyArray, float, PolytopeStatus, int, ActiveSet]


@dataclass(frozen=True, eq=False)
class PolytopeProjection:
    """Projections of rows (n, k), with their certificates.

    Attributes:
        point: the projections.
        gap: of each row, (n,); the squared distance to the true projection is at most that.
        status: how each row ended.
        n_calls: vertices that each row asked the oracle for, (n,).
        active: the vertices and weights of each row, which ``Polytope.solve`` takes as a start.
    """

    point: NumpyArray
    gap: NumpyArray
    status: tuple[PolytopeStatus, ...]
    n_calls: NumpyArray
    active: tuple[ActiveSet, ...]


def _nearest_weights(vertices: NumpyArray, x: NumpyArray) -> NumpyArray:
    """Weights, which sum to one, of the point of the affine hull of the vertices next to x."""
    if len(vertices) == 1:
        return np.ones(1)
    base = vertices[0]
    others = np.linalg.lstsq((vertices[1:] - base).T, x - base, rcond=None)[0]
    return np.concatenate([[1 - others.sum()], others])


def _settle(active: ActiveSet, x: NumpyArray) -> ActiveSet:
    """The nearest point to x in the hull of some of the vertices, no farther than the given one."""
    vertices, weights = active
    while True:
        nearest = _nearest_weights(vertices, x)
        falls = nearest < 0
        if not falls.any():
            return ActiveSet(vertices, nearest)
        # as far towards it as all weights stay non-negative, and without those that are zero there
        reach = np.full(len(weights), np.inf)
        reach[falls] = weights[falls] / (weights[falls] - nearest[falls])
        share = reach.min()
        weights = weights + share * (nearest - weights)
        kept = weights > 0
        kept[reach.argmin()] = False
        vertices, weights = vertices[kept], weights[kept] / weights[kept].sum()


def _project_row(
    x: NumpyArray, start: ActiveSet | None, tolerance: float, max_calls: int
) -> Generator[NumpyArray, NumpyArray, _RowProjection]:
    """Yields directions, is sent the oracle's vertices, and returns the projection."""
    n_calls = 0
    if start is None:
        first = yield x
        n_calls, start = 1, ActiveSet(first[None], np.ones(1))
    active = _settle(start, x)
    while True:
        p = active.weights @ active.vertices
        normal = x - p
        vertex = yield normal
        n_calls += 1
        gap = float(normal @ (vertex - p))
        # rounding errors of the gap: p has the errors of its vertices, however short x − p is
        largest = 1 + np.abs(active.vertices).max() + np.abs(vertex).max()
        size = largest * (np.linalg.norm(normal) + 0.1 * largest)
        is_active = (active.vertices == vertex).all(axis=1).any()
        if gap < -max(tolerance, 1e-10) * size:
            raise ValueError(
                f"the oracle returned a point that scores {-gap:.3g} less than a mixture of points "
                "which it returned before; it has to return a maximizer of ⟨v, direction⟩, not a "
                "minimizer, over one and the same polytope"
            )
        if gap <= tolerance * size:
            return p, max(gap, 0.0), PolytopeStatus.CONVERGED, n_calls, active
        if is_active or n_calls >= max_calls:
            status = PolytopeStatus.STALLED if is_active else PolytopeStatus.LIMIT
            return p, gap, status, n_calls, active
        grown = ActiveSet(
            np.concatenate([active.vertices, vertex[None]]), np.append(active.weights, 0.0)
        )
        active = _settle(grown, x)


def _as_points(answer: Any, shape: tuple[int, ...], hint: str) -> NumpyArray:
    """The oracle's answer as an array; raise unless it has the shape of the scores."""
    try:
        points = np.asarray(answer, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise TypeError(f"the oracle has to return numbers, got {answer!r}") from error
    if answer is None:
        raise TypeError(f"the oracle returned None, not a point of shape {shape}; did it return?")
    if points.shape != shape:
        what = f"an array of shape {points.shape}" if points.ndim else f"the number {answer!r}"
        raise ValueError(f"the oracle returned {what} for scores of shape {shape}{hint}")
    return points


@dataclass(frozen=True)
class Polytope(ConvexSet):
    r"""The convex hull of all points that a linear oracle returns, such as paths, trees, schedules.

    Any solver that finds the best structure for given scores is an oracle. The projection onto the
    polytope (SparseMAP) is exact up to a certified gap, and asks for few more vertices than it
    mixes. It is computed on the host in float64, for scores of any library.

    Args:
        oracle: takes scores (k,) and returns a maximizer of ⟨v, scores⟩, (k,); the same point for
            the same scores.
        batched: True if the oracle takes scores (n, k) and returns (n, k).
        tolerance: the gap that counts as zero, relative to the sizes of the vectors in it.
        max_calls: how many vertices a row may ask for; more raise a ``ConvergenceError``.

    Example:
        Paths from left to right, over one of two edges each time:

        >>> import numpy as np
        >>> def best_path(scores):
        ...     pairs = scores.reshape(-1, 2)
        ...     return np.eye(2)[pairs.argmax(axis=1)].ravel()
        >>> Polytope(best_path).project(np.asarray([0.6, 0.4, 3.0, -1.0]))
        array([0.6, 0.4, 1. , 0. ])
    """

    oracle: Callable[[NumpyArray], Any]
    batched: bool = False
    tolerance: float = 1e-12
    max_calls: int = 10_000

    def __post_init__(self) -> None:
        if not callable(self.oracle):
            raise TypeError(f"Polytope needs a function of scores, got {self.oracle!r}")
        if not (self.tolerance > 0 and self.max_calls >= 1):
            raise ValueError(
                f"Polytope needs tolerance > 0 and max_calls >= 1, got {self.tolerance} and "
                f"{self.max_calls}"
            )

    def _ask(self, directions: NumpyArray) -> NumpyArray:
        """The oracle's vertices for directions (n, k), checked."""
        if self.batched:
            vertices = _as_points(self.oracle(directions), directions.shape, "")
        else:
            hint = "; pass batched=True if it takes many rows at once"
            shape = directions.shape[1:]
            vertices = np.stack([_as_points(self.oracle(row), shape, hint) for row in directions])
        if not np.isfinite(vertices).all():
            row = int(np.argwhere(~np.isfinite(vertices))[0][0])
            raise ValueError(
                f"the oracle returned NaN or infinity for the scores {directions[row]!r}"
            )
        return vertices

    def _check_direction(self, row: NumpyArray) -> None:
        """Raise if the oracle minimizes: solvers of shortest paths and assignments often do."""
        ahead, back = self._ask(row), self._ask(-row)
        difference = float(np.sum((ahead - back) * row))
        if difference < -1e-9 * (1 + np.abs(row).max() * np.abs(ahead - back).sum()):
            raise ValueError(
                "the oracle minimizes: its point for the opposite of the scores is better than "
                "that for the scores; let it maximize, by giving its solver the costs -scores"
            )

    def solve(self, x: Any, start: Sequence[ActiveSet] | None = None) -> PolytopeProjection:
        """Projections of rows (n, k) or of one row (k,), with gaps, statuses and active vertices.

        Rows that fail are told by their status; ``project`` raises for them.

        Args:
            x: points of the host.
            start: ``active`` of the projection of nearby points, which saves calls of the oracle.
        """
        rows = np.atleast_2d(np.asarray(x, dtype=np.float64))
        if not np.isfinite(rows).all():
            raise ValueError("Polytope projects finite numbers, and x holds NaN or infinity")
        if start is None and len(rows):
            self._check_direction(rows[:1])
        starts: Sequence[ActiveSet | None] = [None] * len(rows) if start is None else start
        if len(starts) != len(rows):
            raise ValueError(f"start holds {len(starts)} active sets for {len(rows)} rows")
        projections = [
            _project_row(row, active, self.tolerance, self.max_calls)
            for row, active in zip(rows, starts, strict=True)
        ]
        found: dict[int, _RowProjection] = {}
        waiting = {i: next(projection) for i, projection in enumerate(projections)}
        while waiting:
            vertices = self._ask(np.stack(list(waiting.values())))
            for i, vertex in zip(list(waiting), vertices, strict=True):
                try:
                    waiting[i] = projections[i].send(vertex)
                except StopIteration as end:
                    found[i] = end.value
                    del waiting[i]
        ordered = (found[i] for i in range(len(rows)))
        point, gap, status, n_calls, active = tuple(zip(*ordered, strict=True)) or ((),) * 5
        points = np.asarray(point).reshape(np.shape(x))
        return PolytopeProjection(points, np.asarray(gap), status, np.asarray(n_calls), active)

    def _certified(self, x: NumpyArray) -> PolytopeProjection:
        """The projections of rows, or an error with the first one that failed."""
        solution = self.solve(x)
        for i, status in enumerate(solution.status):
            if status is not PolytopeStatus.CONVERGED:
                message = status.value.format(
                    where=f"of row {i}", limit=self.max_calls, gap=solution.gap[i]
                )
                raise ConvergenceError(status, message)
        return solution

    def project(self, x: Array) -> Array:
        x = as_real(x, "x")
        p = on_host(_by_rows(lambda rows: self._certified(rows).point), x)
        return with_derivative(p, x, lambda v: self.project_derivative(x, v))

    def maximize(self, theta: Array) -> Array:
        return on_host(_by_rows(self._ask), as_real(theta, "theta"))

    def project_derivative(self, x: Array, v: Array) -> Array:
        """The part of v along the face that the active vertices span."""

        def projectors(rows: NumpyArray) -> NumpyArray:
            active = self._certified(rows).active
            bases = [np.linalg.qr((s.vertices[1:] - s.vertices[0]).T)[0] for s in active]
            return np.stack([basis @ basis.T for basis in bases])

        k = x.shape[-1]
        matrix = on_host(_by_rows(projectors, (k, k)), x, (k, k))
        return (matrix @ v[..., None])[..., 0]


def _by_rows(
    function: Callable[[NumpyArray], NumpyArray], shape: tuple[int, ...] = ()
) -> Callable[[NumpyArray], NumpyArray]:
    """A function of rows (n, k), n > 0, for arrays (…, k) in which rows with NaN stay NaN."""

    def by_rows(x: NumpyArray) -> NumpyArray:
        rows = x.reshape(-1, x.shape[-1]).astype(np.float64)
        out = np.full((len(rows), *(shape or x.shape[-1:])), np.nan)
        is_known = ~np.isnan(rows).any(axis=1)
        if is_known.any():
            out[is_known] = function(rows[is_known])
        return out.reshape(*x.shape[:-1], *out.shape[1:])

    return by_rows
