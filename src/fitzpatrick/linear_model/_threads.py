"""How many threads the BLAS libraries use during a fit.

NumPy and SciPy each carry a BLAS with its own pool of threads. Threads of one pool that wait for
work keep a core busy while the other pool computes, which makes fits many times slower. The matrix
products here are NumPy's, so that SciPy's pool gets a single thread while a fit runs.

The size of a pool belongs to the process. Fits that run in several threads set it as they come and
go, and the last one to end puts back what the first one found.
"""

import functools
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from threadpoolctl import ThreadpoolController

MAX_SERIAL_OPERATIONS = 2e7  # operations of a product that takes about a millisecond

_lock = threading.Lock()
_active = 0
_found: list[int] = []


@functools.cache
def _pools() -> ThreadpoolController:
    """The BLAS libraries that are loaded at the first fit: NumPy's and SciPy's are."""
    return ThreadpoolController().select(user_api="blas")


def blas_threads(n_threads: int | None, operations: float) -> int | None:
    """``n_threads``, or by default 1 for products of few operations, and None for larger ones.

    A second thread saves little on small products, and costs milliseconds for each of them where
    another process keeps the cores busy.
    """
    return 1 if n_threads is None and operations < MAX_SERIAL_OPERATIONS else n_threads


@contextmanager
def limited_blas(n_threads: int | None) -> Iterator[None]:
    """Give SciPy's BLAS one thread, and every other one ``n_threads`` unless that is None."""
    global _active
    pools = _pools().lib_controllers
    with _lock:
        before = [pool.get_num_threads() for pool in pools]
        if _active == 0:
            _found[:] = before
        _active += 1
        for pool in pools:
            if "scipy.libs" in pool.filepath:
                pool.set_num_threads(1)
            elif n_threads is not None:
                pool.set_num_threads(n_threads)
    try:
        yield
    finally:
        with _lock:
            _active -= 1
            for pool, number in zip(pools, before if _active else _found, strict=True):
                pool.set_num_threads(number)
