"""Row blocks that stay in cache, the buffers they work in, and the threads that share them.

The partition into blocks depends on the shape alone, never on the number of threads, so that
neither do the results.
"""

import math
import os
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

# What a block of scores may take of the cache, and what it may take where the work on a few entries
# of each row, which has a fixed cost per block, outweighs the passes over all of them.
BLOCK_BYTES = 1 << 20
LARGE_BLOCK_BYTES = 1 << 22
# More threads than this would wait for memory, and their buffers add up.
MAX_DEFAULT_THREADS = 8
# Below this many scores a second thread costs more than it saves.
_MIN_THREADED_SIZE = 3 << 17

FloatArray = np.ndarray[Any, np.dtype[np.floating[Any]]]
IntArray = np.ndarray[Any, np.dtype[np.integer[Any]]]


class Scratch:
    """The buffers of one thread, by name; they grow once and are used for every block."""

    def __init__(self) -> None:
        self._stacks: dict[str, np.ndarray[Any, Any]] = {}
        self._buffers: dict[str, np.ndarray[Any, Any]] = {}

    def array(
        self, name: str, shape: tuple[int, ...], dtype: DTypeLike, order: str = "C"
    ) -> np.ndarray[Any, Any]:
        """An uninitialized array; what an earlier call of this name returned is overwritten."""
        if order == "F":
            return np.asarray(self.stack(name, 1, shape[::-1], dtype)[0].T)
        return np.asarray(self.stack(name, 1, shape, dtype)[0])

    def zeros(self, name: str, size: int, dtype: DTypeLike) -> np.ndarray[Any, Any]:
        """A flat array of zeros; whoever writes to it puts the zeros back."""
        buffer = self._buffers.get(name)
        if buffer is None or buffer.size < size:
            buffer = self._buffers[name] = np.zeros(size, dtype)
        return buffer[:size]

    def stack(
        self, name: str, count: int, shape: tuple[int, ...], dtype: DTypeLike
    ) -> np.ndarray[Any, Any]:
        """Several such arrays of one shape, to be unpacked."""
        full = (count, *shape)
        stack = self._stacks.get(name)
        if stack is not None and stack.shape == full and stack.dtype == dtype:
            return stack
        n_bytes = math.prod(full) * np.dtype(dtype).itemsize
        buffer = self._buffers.get(name)
        if buffer is None or buffer.nbytes < n_bytes:
            buffer = self._buffers[name] = np.empty(n_bytes, dtype=np.uint8)
        stack = self._stacks[name] = buffer[:n_bytes].view(dtype).reshape(full)
        return stack


def block_rows(k: int, itemsize: int, block_bytes: int = BLOCK_BYTES) -> int:
    """Rows of a block for k classes."""
    return max(1, block_bytes // (k * itemsize))


def _available_cores() -> int:
    if sys.platform == "linux":
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def resolve_threads(n_threads: int | None) -> int:
    """Number of threads to use; by default one for each core that this process may run on."""
    if n_threads is None:
        return min(_available_cores(), MAX_DEFAULT_THREADS)
    if n_threads != int(n_threads) or n_threads < 1:
        raise ValueError(f"n_threads must be a positive integer or None, got {n_threads!r}")
    return int(n_threads)


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
    starts = iter(range(0, n, step))
    lock = threading.Lock()

    def run() -> None:
        scratch = Scratch()
        with np.errstate(all="ignore"):  # ±∞ and NaN are handled, or passed on, on purpose
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


# Above this length a dot product of BLAS may start threads of its own.
_BLAS_LENGTH = 8192


def row_dot(x: FloatArray, y: FloatArray) -> FloatArray:
    """Sum of x y over each row."""
    if x.shape[1] <= _BLAS_LENGTH:
        return np.asarray(np.vecdot(x, y))
    return np.asarray(np.einsum("ij,ij->i", x, y))


def pieces(rows: slice, k: int, itemsize: int, piece_bytes: int) -> Iterator[slice]:
    """Cut a block into smaller ones, for work that needs many arrays of its size."""
    step = block_rows(k, itemsize, piece_bytes)
    for start in range(rows.start, rows.stop, step):
        yield slice(start, min(start + step, rows.stop))
