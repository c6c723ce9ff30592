"""How functions are compiled: without the GIL, and once per installation where that is possible.

Numba keeps what it compiled beside the source, or in the user's own cache folder, and looks for it
under the function's name. A function of this folder may hold inlined code of another file, so the
name ends with a digest of all of them.
"""

import functools
import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar, cast

import numba

F = TypeVar("F", bound=Callable[..., Any])

_SOURCES = sorted(Path(__file__).parent.glob("*.py"))
_DIGEST = hashlib.sha256(b"".join(path.read_bytes() for path in _SOURCES)).hexdigest()[:12]


def elementwise(function: F) -> F:
    """A function of numbers, each operation of which is rounded as written, or fused."""
    compiled = numba.njit(function, error_model="numpy", fastmath={"contract"}, forceinline=True)
    return cast(F, compiled)


def part(function: F) -> F:
    """A part of such a function, for each of its rows: a call would cost as much as a short row."""
    compiled = numba.njit(
        function, error_model="numpy", fastmath={"contract", "reassoc"}, forceinline=True
    )
    return cast(F, compiled)


def loop(function: F) -> F:
    """A function of arrays, whose sums may be taken in any order, but which knows ∞ and NaN."""
    function.__qualname__ = f"{function.__name__}_{_DIGEST}"
    compile_function = functools.partial(
        numba.njit, nogil=True, error_model="numpy", fastmath={"contract", "reassoc"}
    )
    try:
        return cast(F, compile_function(function, cache=True))
    except RuntimeError:  # no folder to write to: compiled anew in each process
        return cast(F, compile_function(function))
