"""Losses at fixed targets by blocks of rows: blocks, threads, and what a kernel is asked for.

A block stays in cache. The partition into blocks depends on the shape alone, so that results do not
depend on the number of threads.
"""

import os
import sys
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, ClassVar, NamedTuple

import numpy as np

from ..regularizers import Regularizer
from .bound import BoundLoss, CoreLoss, HessianOperator, Out
from .targets import FloatArray, NoTargets, Scratch, TargetForm

# What a block of scores may take of the cache. The core makes some twenty arrays of that size.
BLOCK_BYTES, CORE_BLOCK_BYTES = 1 << 20, 1 << 17
# More threads than this would wait for memory, and their buffers add up.
MAX_DEFAULT_THREADS = 8
# Below this many scores a second thread costs more than it saves.
_MIN_THREADED_SIZE = 3 << 17


def resolve_threads(n_threads: int | None) -> int:
    """Number of threads to use; by default one for each core that this process may run on."""
    if n_threads is None:
        is_linux = sys.platform == "linux"
        cores = len(os.sched_getaffinity(0)) if is_linux else os.cpu_count() or 1
        return min(cores, MAX_DEFAULT_THREADS)
    if n_threads != int(n_threads) or n_threads < 1:
        raise ValueError(f"n_threads must be a positive integer or None, got {n_threads!r}")
    return int(n_threads)


def block_rows(k: int, itemsize: int, block_bytes: int) -> int:
    """Rows of a block for k classes."""
    return max(1, block_bytes // (k * itemsize))


def for_each_block(
    shape: tuple[int, int],
    itemsize: int,
    n_threads: int,
    work: Callable[[slice, Scratch], None],
    block_bytes: int = BLOCK_BYTES,
) -> None:
    """Call ``work(rows, scratch)`` on every block of rows, on several threads where it pays."""
    n, k = shape
    step = block_rows(k, itemsize, block_bytes)
    if 0 < n <= step:
        with np.errstate(all="ignore"):  # ±∞ and NaN are handled, or passed on, on purpose
            work(slice(0, n), Scratch())
        return
    starts = iter(range(0, n, step))
    lock = threading.Lock()

    def run() -> None:
        scratch = Scratch()
        with np.errstate(all="ignore"):
            while True:
                with lock:
                    start = next(starts, None)
                if start is None:
                    return
                work(slice(start, min(start + step, n)), scratch)

    helpers = min(n_threads, -(-n // step)) - 1
    if helpers < 1 or n * k < _MIN_THREADED_SIZE:
        run()
        return
    with ThreadPoolExecutor(helpers) as pool:
        running = [pool.submit(run) for _ in range(helpers)]
        run()
    for helper in running:
        helper.result()


class Output(IntEnum):
    """An array of shape (n, k) that a kernel is asked for, besides the loss of each row."""

    GRADIENT = 0  # y* − y
    Y_STAR = 1
    SLOPE = 2  # d = ∂y*/∂s


class BlockTask(NamedTuple):
    """What is asked about one block of rows.

    Attributes:
        output: which array to write.
        rows: the rows that the block covers.
        theta: their scores, (r, k) in any memory order.
        value: any view of r numbers, for the loss of each row; it goes with the gradient.
        out: any view of the shape of the scores, for the output.
        scratch: buffers.
        stats: (r, 4), for what compiled rows tell about evaluation, or None.
    """

    output: Output
    rows: slice
    theta: FloatArray
    value: FloatArray | None
    out: FloatArray | None
    scratch: Scratch
    stats: FloatArray | None = None

    def part(self, inside: slice) -> "BlockTask":
        """The task for some of the rows, counted from the start of the block."""
        return self._replace(
            rows=slice(self.rows.start + inside.start, self.rows.start + inside.stop),
            theta=self.theta[inside],
            value=None if self.value is None else self.value[inside],
            out=None if self.out is None else self.out[inside],
            stats=None if self.stats is None else self.stats[inside],
        )


@dataclass(frozen=True, eq=False)
class RowKernel(ABC):
    """The losses, or the link, of one regularizer at targets of one form, block by block."""

    omega: Regularizer
    tightness: float
    targets: TargetForm

    block_bytes: ClassVar[int] = BLOCK_BYTES
    is_threaded: ClassVar[bool] = True  # True if several threads gain on one

    @abstractmethod
    def compute(self, task: BlockTask) -> None:
        """Write what is asked for about a block."""


@dataclass(frozen=True, eq=False)
class CoreKernel(RowKernel):
    """The formulas of the core, for any row-wise regularizer and any targets."""

    block_bytes: ClassVar[int] = CORE_BLOCK_BYTES
    # many short calls of NumPy: two threads wait for each other, and are slower than one
    is_threaded: ClassVar[bool] = False

    def compute(self, task: BlockTask) -> None:
        output, value, out = task.output, task.value, task.out
        if isinstance(self.targets, NoTargets):
            if out is not None:
                out[...] = self.omega.solve_link(task.theta)
            return
        y = self.targets.plain(task.rows, task.scratch)
        solution = CoreLoss(self.omega, self.tightness, y).solve(task.theta)
        if value is not None:
            value[...] = solution.value()
        if out is None:
            return
        if output == Output.GRADIENT:
            out[...] = solution.gradient()
        else:
            out[...] = solution.y_star if output == Output.Y_STAR else solution.slope()


def _multiply(d: FloatArray, total: FloatArray | None, v: FloatArray, out: FloatArray) -> None:
    """Write d ⊙ (v − ⟨d, v⟩/⟨d, 1⟩), or d ⊙ v where the rows are not coupled."""
    if total is None:
        np.multiply(d, v, out=out)
        return
    mean = np.einsum("ij,ij->i", d, v) / total
    np.subtract(v, mean[:, None], out=out)
    np.multiply(out, d, out=out)


@dataclass(frozen=True, eq=False)
class BlockHessian(HessianOperator):
    """The slope of every entry, and its row sums where the rows are coupled."""

    d: FloatArray
    total: FloatArray | None
    n_threads: int

    def __call__(self, v: FloatArray, out: FloatArray | None = None) -> FloatArray:
        product = np.empty_like(self.d) if out is None else out

        def work(rows: slice, _: Scratch) -> None:
            total = None if self.total is None else self.total[rows]
            _multiply(self.d[rows], total, v[rows], product[rows])

        for_each_block(self.d.shape, self.d.itemsize, self.n_threads, work)
        return product


@dataclass(frozen=True, eq=False)
class RowBlocks(BoundLoss):
    """NumPy scores of the dtype of the targets, by a kernel.

    Attributes:
        kernel: what computes a block.
        n_threads: how many threads to use.
        stats: (n, 4), where a compiled kernel writes what goes with values, or None.
        scratch: the buffers of this thread, which then computes all rows as one block; or None.
    """

    kernel: RowKernel
    n_threads: int
    stats: FloatArray | None = None
    scratch: Scratch | None = None

    def _for_each_block(self, work: Callable[[slice, Scratch], None]) -> None:
        kernel, n_threads = self.kernel, self.n_threads if self.kernel.is_threaded else 1
        shape, itemsize = kernel.targets.shape, kernel.targets.dtype.itemsize
        if self.scratch is not None:
            work(slice(0, shape[0]), self.scratch)
        else:
            for_each_block(shape, itemsize, n_threads, work, kernel.block_bytes)

    def _compute(
        self, output: Output, theta: FloatArray, value: FloatArray | None, out: FloatArray | None
    ) -> None:
        def work(rows: slice, scratch: Scratch) -> None:
            every = slice(0, len(theta))
            whole = BlockTask(output, every, theta, value, out, scratch, self.stats)
            self.kernel.compute(whole.part(rows))

        self._for_each_block(work)

    def value(self, theta: FloatArray) -> FloatArray:
        value = np.empty(len(theta), dtype=theta.dtype)
        self._compute(Output.GRADIENT, theta, value, None)
        return value

    def value_and_gradient(
        self, theta: FloatArray, out: Out = None
    ) -> tuple[FloatArray, FloatArray]:
        if out is None:
            out = np.empty(len(theta), dtype=theta.dtype), np.empty_like(theta)
        self._compute(Output.GRADIENT, theta, *out)
        return out

    def y_star(self, theta: FloatArray) -> FloatArray:
        y_star = np.empty_like(theta)
        self._compute(Output.Y_STAR, theta, None, y_star)
        return y_star

    def hessian_operator(
        self, theta: FloatArray, reach: FloatArray | None = None
    ) -> HessianOperator:
        kernel = self.kernel
        omega: Any = kernel.omega
        if not omega.has_mean_slope:
            reach = None
        d = np.empty_like(theta)
        total = np.empty(len(theta), dtype=theta.dtype) if omega.is_coupled else None

        def work(rows: slice, scratch: Scratch) -> None:
            output = Output.SLOPE if reach is None else Output.Y_STAR
            kernel.compute(BlockTask(output, rows, theta[rows], None, d[rows], scratch))
            if reach is not None:
                at = d[rows], kernel.targets.dense(rows, scratch), kernel.tightness
                d[rows] = omega.mean_slope(*at, theta[rows], reach[rows, None])
            if total is not None:
                np.add.reduce(d[rows], axis=1, out=total[rows])

        self._for_each_block(work)
        return BlockHessian(d, total, self.n_threads)

    def hessian_product(
        self, theta: FloatArray, v: FloatArray, out: FloatArray | None = None
    ) -> FloatArray:
        product = np.empty_like(theta) if out is None else out

        def work(rows: slice, scratch: Scratch) -> None:
            d = scratch.array("d", theta[rows].shape, theta.dtype)
            self.kernel.compute(BlockTask(Output.SLOPE, rows, theta[rows], None, d, scratch))
            total = np.add.reduce(d, axis=1) if self.kernel.omega.is_coupled else None
            _multiply(d, total, v[rows], product[rows])

        self._for_each_block(work)
        return product
