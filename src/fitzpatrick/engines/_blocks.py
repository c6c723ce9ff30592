"""Row blocks that stay in cache, the buffers they work in, and the threads that share them.

The partition into blocks depends on the shape alone, never on the number of threads, so that
neither do the results.
"""

import os
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

# What a block of scores may take of the cache of one core.
BLOCK_BYTES = 1 << 19
# More threads than this would wait for memory, and their buffers add up.
MAX_DEFAULT_THREADS = 8
# Below this many scores a second thread costs more than it saves.
_MIN_THREADED_SIZE = 1 << 17

FloatArray = np.ndarray[Any, np.dtype[np.floating[Any]]]
IntArray = np.ndarray[Any, np.dtype[np.integer[Any]]]


class Scratch:
    """The buffers of one thread, by name; they grow once and are used for every block."""

    def __init__(self) -> None:
        self._buffers: dict[str, np.ndarray[Any, Any]] = {}

    def array(
        self, name: str, shape: tuple[int, ...], dtype: DTypeLike, order: str = "C"
    ) -> np.ndarray[Any, Any]:
        """An uninitialised array; what an earlier call of this name returned is overwritten."""
        dtype = np.dtype(dtype)
        size = 1
        for length in shape:
            size *= length
        buffer = self._buffers.get(name)
        if buffer is None or buffer.nbytes < size * dtype.itemsize:
            buffer = self._buffers[name] = np.empty(size * dtype.itemsize, dtype=np.uint8)
        flat = buffer[: size * dtype.itemsize].view(dtype)
        return flat.reshape(shape[::-1]).T if order == "F" else flat.reshape(shape)


def block_rows(k: int, itemsize: int) -> int:
    """Rows of a block for k classes."""
    return max(1, BLOCK_BYTES // (k * itemsize))


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
) -> None:
    """Call ``work(rows, scratch)`` on every block of rows, on several threads where it pays."""
    n, k = shape
    step = block_rows(k, itemsize)
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
