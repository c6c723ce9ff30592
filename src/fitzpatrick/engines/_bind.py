"""Where the path is chosen: from the loss, the form of its targets and their size.

Problems that are large enough use a kernel compiled by Numba, where that is installed and the
table has one, and others a kernel in NumPy. Every other loss that works row by row has the core on
blocks of rows, and the rest the core on all rows at once.
"""

import functools
import warnings
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import DTypeLike
from scipy import sparse

from .._array import is_numpy
from ..regularizers import Regularizer
from ._blocks import Scratch, resolve_threads
from ._bound import BoundLoss, CoreLoss
from ._row_blocks import RowBlocks
from ._row_kernel import CoreKernel
from ._targets import Labels, TargetForm, as_targets
from .table import find_kernel, load_kernel

if TYPE_CHECKING:
    from ..losses import Loss

Engine = Literal["numba", "numpy"]

_DTYPES = (np.dtype(np.float32), np.dtype(np.float64))
# From this many scores on the compiled rows are worth loading Numba, which takes about a second,
# and a few more the first time after an installation.
MIN_COMPILED_SIZE = 1 << 19


@functools.cache
def _numba() -> Any:
    """The package numba, or None where it is not there, or does not work."""
    if find_spec("numba") is None:
        return None
    try:
        import numba
    except ImportError as error:  # such as after an upgrade of NumPy
        warnings.warn(
            f"numba is installed but cannot be imported ({error}): rows are computed by NumPy",
            RuntimeWarning,
            stacklevel=2,
        )
        return None
    return numba


def _numba_compiles() -> bool:
    return _numba() is not None and not _numba().config.DISABLE_JIT


def kernel_name(
    omega: Regularizer, shape: tuple[int, int], engine: Engine | None = None
) -> str | None:
    """Who computes the rows of Ω at this size; None leaves them to the core.

    Raises where an engine was asked for in vain.
    """
    if engine not in ("numba", "numpy", None):
        raise ValueError(f"engine must be 'numba', 'numpy' or None, got {engine!r}")
    plain, compiled = find_kernel("numpy", omega), find_kernel("numba", omega)
    if engine == "numpy" or (engine is None and shape[0] * shape[1] < MIN_COMPILED_SIZE):
        return plain
    if engine is None:
        return compiled if compiled is not None and _numba_compiles() else plain
    if compiled is None:
        raise ValueError(f"there is no compiled loss for {omega}; leave the choice to engine=None")
    if not _numba_compiles():
        raise ImportError(
            "engine='numba' needs the package numba, with its compiler enabled; "
            "install fitzpatrick[numba], or leave the choice to engine=None"
        )
    return compiled


def bind(
    loss: "Loss",
    y: Any,
    n_classes: int,
    dtype: DTypeLike = np.float64,
    n_threads: int | None = None,
    engine: Engine | None = None,
) -> BoundLoss:
    """Check the targets once and prepare them for many evaluations.

    Args:
        loss: any loss of the package, or one of your own.
        y: targets: dense (n, k), a SciPy sparse array of that shape, which is never densified as a
            whole, or (n,) integer labels, which are never one-hot encoded.
        n_classes: k.
        dtype: float32 or float64, that of the scores to come.
        n_threads: how many threads to use, by default one per core that the process may use. The
            results do not depend on it.
        engine: ``"numba"`` or ``"numpy"`` asks for compiled rows or for those in NumPy, and raises
            where there are none. By default problems of half a million scores and more use Numba,
            if it is installed and the loss has a kernel.

    Example:
        >>> import fitzpatrick as fp
        >>> bound = bind(fp.get_loss("sparsemax"), np.asarray([[0.5, 0.5], [1.0, 0.0]]), 2)
        >>> bound.value(np.zeros((2, 2)))
        array([0.  , 0.25])
        >>> hessian = bound.hessian_operator(np.zeros((2, 2)))
        >>> hessian(np.asarray([[1.0, 0.0], [0.0, 0.0]]))
        array([[ 0.5, -0.5],
               [ 0. ,  0. ]])
    """
    dtype = np.dtype(dtype)
    if dtype not in _DTYPES:
        raise TypeError(f"scores must be float32 or float64 to bind a loss, got dtype {dtype}")
    if n_classes < 1:
        raise ValueError(f"n_classes must be at least 1, got {n_classes}")
    if not sparse.issparse(y) and not is_numpy(y):
        y = np.asarray(y)
    if y.ndim == 0:
        raise ValueError("y must have shape (n,) or (n, k), got a single number")
    return _bind(loss, y, (y.shape[0], n_classes), dtype, n_threads, engine)


def try_bind(loss: "Loss", y: Any, theta: Any, n_threads: int | None) -> BoundLoss | None:
    """The loss bound to y for the scores θ, or None where the core serves them better.

    That is: other array libraries, half precision, one pair or more than one batch axis, and
    regularizers and sets beyond those that the engine has rows for.
    """
    if type(theta) is not np.ndarray or theta.dtype not in _DTYPES:
        return None
    if theta.ndim != 2 or theta.shape[1] == 0:
        return None
    if not (sparse.issparse(y) or isinstance(y, (np.ndarray, list, tuple))):
        return None
    if not loss.regularizer.is_row_wise:
        return None
    n, k = theta.shape
    return _bind(loss, y, (n, k), theta.dtype, n_threads)


def _bind(
    loss: "Loss",
    y: Any,
    shape: tuple[int, int],
    dtype: np.dtype[Any],
    n_threads: int | None,
    engine: Engine | None = None,
) -> BoundLoss:
    n_threads = resolve_threads(n_threads)
    targets = as_targets(y, shape, loss.regularizer.domain, dtype)
    bound = bind_trusted(loss, targets, n_threads, engine)
    if bound is not None:
        return bound
    if isinstance(targets, Labels):
        return CoreLoss(loss, targets.labels)
    return CoreLoss(loss, targets.dense(slice(0, shape[0]), Scratch()))


def bind_trusted(
    loss: "Loss", targets: TargetForm, n_threads: int | None = None, engine: Engine | None = None
) -> BoundLoss | None:
    """The loss bound to targets that need no check; None where the core alone has it.

    On the simplex every row has a positive entry.
    """
    name = kernel_name(loss.regularizer, targets.shape, engine)
    if not loss.regularizer.is_row_wise:
        return None
    make = CoreKernel if name is None else load_kernel(name)
    return RowBlocks(make(loss, targets), resolve_threads(n_threads))
