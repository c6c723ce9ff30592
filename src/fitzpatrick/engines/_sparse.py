"""The sparsemax and the entmax15 formula, without a sort and mostly without a full Newton pass.

Entries with y > 0 are kept apart from the start, and few of the others come near τ. Blocks in
which many do, or in which most entries have y > 0, are treated as a whole.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, NamedTuple

import numpy as np

from ._blocks import LARGE_BLOCK_BYTES, FloatArray, Scratch, pieces, row_dot
from ._output import Output
from ._row_kernel import BlockTask, CoreKernel, RowKernel, write_slope
from ._sparse_formulas import Entmax15, SparseFormula, Sparsemax
from ._targets import DenseTargets, Support, TargetForm, support_of
from ._threshold import Active, Entries, Tau, active_entries, as_columns, lower_bound, newton

if TYPE_CHECKING:
    from ..losses import Loss

# A larger share of positive targets is treated as a whole.
_DENSE_SHARE = 0.25
# Dense targets need several arrays of the size of a block.
_DENSE_BYTES = 1 << 20
# Passes over whole rows are fast while two such arrays stay in the second-level cache.
_WHOLE_BYTES = 1 << 19


def bind_sparsemax(loss: "Loss", targets: TargetForm) -> RowKernel:
    """Sparsemax rows."""
    return SparseKernel(loss, targets, Sparsemax(loss.tightness))


def bind_entmax15(loss: "Loss", targets: TargetForm) -> RowKernel:
    """Entmax15 rows."""
    return SparseKernel(loss, targets, Entmax15(loss.tightness))


@dataclass(frozen=True, eq=False)
class SparseKernel(RowKernel):
    """Targets of any form."""

    formula: SparseFormula

    block_bytes: ClassVar[int] = LARGE_BLOCK_BYTES

    def compute(self, task: BlockTask) -> None:
        output, rows, theta, _, out, scratch = task
        if out is None:
            out = scratch.array("p", theta.shape, theta.dtype)
        for inside, y in self._pieces(rows, theta, scratch):
            part = task._replace(out=out).part(inside)
            if not self._solve(y, part, out[inside]):
                CoreKernel(self.loss, self.targets).compute(part)
            elif output == Output.SLOPE:
                write_slope(self.loss, y, out[inside])

    def _pieces(
        self, rows: slice, theta: FloatArray, scratch: Scratch
    ) -> Iterator[tuple[slice, Support | FloatArray]]:
        """Pieces of the block, counted from its start, and y: its support where it is small.

        Dense targets come in smaller pieces.
        """
        if not isinstance(self.targets, DenseTargets):
            yield slice(0, len(theta)), self.targets.support(rows)
            return
        for piece in pieces(rows, theta.shape[1], theta.itemsize, _DENSE_BYTES):
            y = self.targets.dense(piece, scratch)
            inside = slice(piece.start - rows.start, piece.stop - rows.start)
            is_dense = np.count_nonzero(y) > _DENSE_SHARE * y.size
            yield inside, y if is_dense else support_of(y)

    def _solve(self, y: Support | FloatArray, part: BlockTask, out: FloatArray) -> bool:
        """Write the maximizer or, where a value is wanted, that and the gradient.

        False where the block holds NaN or infinite scores: the core knows what they mean.
        """
        if not np.isfinite(part.theta.max(initial=0)):
            return False
        if isinstance(y, Support):
            return self._solve_support(y, part, out)
        return self._solve_dense(y, part, out)

    def _solve_support(self, own: Support, part: BlockTask, out: FloatArray) -> bool:
        theta = part.theta
        active = active_entries(theta, self.formula, part.scratch)
        if active is not None:
            return self._solve_rows(own, part, active, out)
        return all(
            self._solve_rows(own.part(piece), part.part(piece), None, out[piece])
            for piece in pieces(slice(0, len(theta)), theta.shape[1], theta.itemsize, _WHOLE_BYTES)
        )

    def _solve_rows(
        self, own: Support, part: BlockTask, active: Active | None, out: FloatArray
    ) -> bool:
        """The same by the entries that come near τ, or by whole rows where they are not known."""
        formula, theta, value, scratch = self.formula, part.theta, part.value, part.scratch
        top = np.maximum.reduce(theta, axis=1) if active is None else active.top
        # y is added after the highest is taken off, or θ + y would round it away
        x = own.gather(theta) - own.spread(top)
        if not formula.knows(x):
            return False
        if formula.shift:
            x += formula.shift * own.y
        given = _AtSupport(own, x, formula.bend(own.y))
        if active is not None:
            tau, rest = self._spread_active(active, given, out, scratch)
        else:
            full = scratch.array("x", theta.shape, theta.dtype)
            np.subtract(theta, top[:, None], out=full)
            tau, rest = self._spread_whole(full, given, out, scratch)
            if not tau.is_known:
                return False
        s = tau.entries(x, own)
        q = s.copy()
        formula.above(q, given.bend)
        p = formula.spread(q)
        if value is None:
            own.scatter(out, p)
            return True
        miss = p - own.y
        own.scatter(out, miss)
        value[:] = formula.loss(s, own.y, q, miss, own.dot) + rest * formula.cost
        return True

    def _spread_active(
        self, active: Active, given: "_AtSupport", out: FloatArray, scratch: Scratch
    ) -> tuple[Tau, FloatArray]:
        """Find τ, write p at the entries with y = 0, and sum their q p."""
        own, others = given.support, active.entries
        mark = scratch.zeros("mark", out.size, np.bool_)
        mark[own.flat] = True
        z = others.y - others.spread(active.top)
        z[mark[others.flat]] = -np.inf
        mark[own.flat] = False
        parts = [_AtSupport(others, z).columns(), given.columns()]
        tau = newton(parts, active.least - active.top, self.formula)
        q = tau.entries(z, others)
        np.clip(q, 0, np.inf, out=q)
        p = self.formula.spread(q)
        out.fill(0)
        others.scatter(out, p)
        return tau, others.dot(q, p)

    def _spread_whole(
        self, full: FloatArray, given: "_AtSupport", out: FloatArray, scratch: Scratch
    ) -> tuple[Tau, FloatArray]:
        """The same with all entries, which are overwritten; τ is NaN where a row holds NaN."""
        own, x, bend = given
        own.scatter(full, x)
        lower = lower_bound(full, np.maximum(own.highest(x), 0), self.formula)
        q = self._buffer(out, scratch)
        parts = [Entries(full, 1, q)]
        if bend is not None:
            own.scatter(full, -np.inf)
            parts.append(given.columns())
        tau = newton(parts, lower, self.formula)
        np.clip(tau.rows(full, q), 0, np.inf, out=q)
        own.scatter(q, 0)
        self.formula.spread(q, out)
        return tau, row_dot(q, out)

    def _buffer(self, out: FloatArray, scratch: Scratch) -> FloatArray:
        """An array for q, which is ``out`` where p = q."""
        return out if self.formula.power == 1 else scratch.array("q", out.shape, out.dtype)

    def _solve_dense(self, y: FloatArray, part: BlockTask, out: FloatArray) -> bool:
        formula, theta, value, scratch = self.formula, part.theta, part.value, part.scratch
        x = scratch.array("x", theta.shape, theta.dtype)
        top = np.maximum.reduce(theta, axis=1)
        np.subtract(theta, top[:, None], out=x)
        if not np.isfinite(top).all() or x.min(initial=0) == -np.inf or not formula.knows(x):
            return False
        if formula.shift:
            x += formula.shift * y
        q = self._buffer(out, scratch)
        entries = Entries(x, 1, q, formula.bend(y))
        active = active_entries(x, formula, scratch) if entries.bend is None else None
        if active is None:
            tau = newton([entries], lower_bound(x, np.maximum.reduce(x, axis=1), formula), formula)
        else:
            others = active.entries
            z = others.y - others.spread(active.top)
            tau = newton([_AtSupport(others, z).columns()], active.least - active.top, formula)
            x -= active.top[:, None]
        if not tau.is_known:
            return False
        np.copyto(q, tau.rows(x, x))
        formula.above(q, entries.bend)
        formula.spread(q, out)
        if value is None:
            return True
        out -= y
        value[:] = formula.loss(x, y, q, out, row_dot)
        return True


class _AtSupport(NamedTuple):
    """Entries x at a support, and what bends them."""

    support: Support
    x: FloatArray
    bend: FloatArray | None = None

    def columns(self) -> Entries:
        """The entries of each row in a column of its own."""
        columns = as_columns(self.x, self.support, -np.inf)
        bends = None if self.bend is None else as_columns(self.bend, self.support, 0.0)
        return Entries(columns, 0, np.empty_like(columns), bends)
