"""How many threads the BLAS libraries use during a fit.

NumPy and SciPy each carry a BLAS with its own pool of threads. Threads of one pool that wait for
work keep a core busy while the other pool computes, which makes fits many times slower. The matrix
products here are NumPy's, so that SciPy's pool gets a single thread while a fit runs.
"""

import functools
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from threadpoolctl import ThreadpoolController

_SMALL = 2e7  # operations of a product that takes about a millisecond


@functools.cache
def _pools() -> tuple[ThreadpoolController, ThreadpoolController]:
    """All BLAS libraries of this process, and among them those that came with SciPy."""
    blas = ThreadpoolController().select(user_api="blas")
    paths = [library.filepath for library in blas.lib_controllers]
    scipy_paths = [path for path in paths if "scipy.libs" in path]
    return blas, blas.select(filepath=scipy_paths)


def blas_threads(n_threads: int | None, operations: float) -> int | None:
    """``n_threads``, or by default 1 for products of few operations, and None for larger ones.

    A second thread saves little on small products, and costs milliseconds for each of them where
    another process keeps the cores busy.
    """
    return 1 if n_threads is None and operations < _SMALL else n_threads


@contextmanager
def limited_blas(n_threads: int | None) -> Iterator[None]:
    """Give SciPy's BLAS one thread, and every other one ``n_threads`` unless that is None."""
    everything, scipy_only = _pools()
    with ExitStack() as stack:
        if n_threads is not None:
            stack.enter_context(everything.limit(limits=n_threads))
        stack.enter_context(scipy_only.limit(limits=1))
        yield


@contextmanager
def single_threaded() -> Iterator[None]:
    """One thread for every BLAS."""
    everything, _ = _pools()
    with everything.limit(limits=1):
        yield
