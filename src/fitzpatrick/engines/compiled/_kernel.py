"""What compiled kernels share: arrays in the layout that they know, and the core for the rest."""

import functools
from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import DTypeLike

from ..rows import BlockTask, CoreKernel, Output, RowKernel
from ..targets import FloatArray, Labels, NoTargets, Scratch, SparseTargets, TargetForm
from ._rows import gather
from ._stats import row_stats

# as numbers that compiled code knows
GRADIENT, Y_STAR, SLOPE = (int(output) for output in Output)
# in place of by-products that are not asked for
NO_STATS = np.empty((0, 4))
# Exponentials of this many scores stay in the second-level cache.
_STATS_SCORES = 1 << 14


def usable(x: Any, dtype: DTypeLike | None = None) -> Any:
    """x, or a copy, as the kernels are compiled for: contiguous, and not read-only."""
    if type(x) is np.ndarray and x.flags.carray and (dtype is None or x.dtype == dtype):
        return x
    return np.require(x, dtype, ["C_CONTIGUOUS", "ALIGNED", "WRITEABLE"])


@dataclass(frozen=True, eq=False)
class CompiledKernel(RowKernel):
    """Rows of one loss by compiled code, which computes in float64 whatever the scores are.

    NaN as the loss of a row says that the row holds something that compiled code does not know. The
    core computes all rows from the first such row of a block to the last.
    """

    block_bytes: ClassVar[int] = 1 << 20
    knows_stats: ClassVar[bool] = False  # True if its own pass writes them

    @abstractmethod
    def run(self, task: BlockTask) -> Any:
        """Call the compiled code on contiguous arrays that may be written to."""

    def compute(self, task: BlockTask) -> None:
        theta, value, out = usable(task.theta), task.value, task.out
        own_value = _buffer(value, "value", theta.shape[:1], theta.dtype, task.scratch)
        own_out = _buffer(out, "out", theta.shape, theta.dtype, task.scratch)
        whole = task._replace(theta=theta, value=own_value, out=own_out)
        self.run(whole)
        if task.stats is not None and not self.knows_stats:
            lists = support_lists(self.targets, task.rows, task.scratch)
            k = theta.shape[1]
            step = max(1, _STATS_SCORES // k)
            top = task.scratch.array("tops", (step,), np.float64)
            e = task.scratch.array("exponentials", (step * k,), np.float64)
            row_stats(theta, *lists, top, e, task.stats)
        bad = np.flatnonzero(np.isnan(own_value))
        if len(bad):
            part = slice(int(bad[0]), int(bad[-1]) + 1)
            CoreKernel(self.omega, self.tightness, self.targets).compute(whole.part(part))
        if value is not None and value is not own_value:
            value[...] = own_value
        if out is not None and out is not own_out:
            out[...] = own_out


def _buffer(
    given: FloatArray | None, name: str, shape: tuple[int, ...], dtype: Any, scratch: Scratch
) -> FloatArray:
    """What was given, if compiled code can write into it."""
    if given is not None and given.flags.carray:
        return given
    return scratch.array(f"compiled {name}", shape, dtype)


@functools.lru_cache(maxsize=8)
def _one_per_row(n: int) -> tuple[Any, Any]:
    """Where the entries of n rows begin that have y = 1 in one place, and y; only to be read."""
    return np.arange(n + 1, dtype=np.uintp), np.ones(n)


def support_lists(targets: TargetForm, rows: slice, scratch: Scratch) -> tuple[Any, Any, Any]:
    """Where the support of each row of a block begins, its columns, and y there.

    An index that is known not to be negative lets LLVM vectorise: hence unsigned numbers.
    """
    if isinstance(targets, NoTargets):
        return np.zeros(rows.stop - rows.start + 1, np.uintp), np.empty(0, np.intp), np.empty(0)
    if isinstance(targets, Labels):
        labels = usable(targets.labels[rows], np.intp)
        starts, ones = _one_per_row(len(labels))
        return starts, labels, ones
    if isinstance(targets, SparseTargets):
        edges = targets.matrix.indptr[rows.start : rows.stop + 1]
        stored = slice(edges[0], edges[-1])
        return (
            (edges - edges[0]).astype(np.uintp),
            usable(targets.matrix.indices[stored], np.intp),
            usable(targets.matrix.data[stored], np.float64),
        )
    y = usable(targets.y[rows], np.float64)
    starts = np.empty(len(y) + 1, np.uintp)
    columns = scratch.array("columns", (y.size,), np.intp)
    values = scratch.array("values", (y.size,), np.float64)
    size = gather(y, starts, columns, values)
    return starts, columns[:size], values[:size]
