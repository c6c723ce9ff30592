"""How functions are compiled: without the GIL, and once per installation where that is possible.

The formulas of a regularizer at a tightness are methods of a ``NamedTuple`` of numbers, and loops
take that as an argument: Numba compiles a loop for each class of formulas, with the methods
inlined, and passes the numbers at run time.

Numba keeps what it compiled beside the source, or in the user's own cache folder, and looks for it
under the function's name. A function of this folder may hold inlined code or numbers of another
file, so the name ends with a digest of all of them.
"""

import functools
import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar, cast

import numba
from numba import types
from numba.extending import overload_method

F = TypeVar("F", bound=Callable[..., Any])

_HERE = Path(__file__).parent
# the last three hold formulas and numbers that compiled code takes in
SOURCES = [
    *sorted(_HERE.glob("*.py")),
    _HERE.parent / "negentropy.py",
    _HERE.parents[1] / "_root.py",
    _HERE.parents[1] / "regularizers" / "tsallis.py",
]
_DIGEST = hashlib.sha256(b"".join(path.read_bytes() for path in SOURCES)).hexdigest()[:12]

_EXACT: dict[str, Any] = {"error_model": "numpy", "fastmath": {"contract"}, "forceinline": True}
_ANY_ORDER = {**_EXACT, "fastmath": {"contract", "reassoc"}}


def elementwise(function: F) -> F:
    """A function of numbers, each operation of which is rounded as written, or fused."""
    return cast(F, numba.njit(function, **_EXACT))


def part(function: F) -> F:
    """A part of a loop, for each of its rows: a call would cost as much as a short row."""
    return cast(F, numba.njit(function, **_ANY_ORDER))


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


# what formulas without a root, or with scores that are not shifted, leave out
_DEFAULTS: dict[str, Any] = {
    "start": lambda _, s, y: (0.0, 0.0),  # noqa: ARG005
    "refine": lambda _, u, known, y: (u, 0.0),  # noqa: ARG005
    "shift": lambda _, y: 0.0,  # noqa: ARG005
}


def _declare(name: str, n_arguments: int) -> None:
    """Let compiled code call a method of a NamedTuple by its name and number of arguments."""

    def find(formula: Any) -> Any:
        return getattr(formula.instance_class, name, _DEFAULTS.get(name))

    # Numba counts the arguments
    finders: dict[int, Callable[..., Any]] = {
        1: lambda self, _: find(self),
        2: lambda self, _, __: find(self),
        3: lambda self, _, __, ___: find(self),
        4: lambda self, _, __, ___, ____: find(self),
    }
    declare: Any = overload_method  # whose stubs know fewer options
    for kind in (types.NamedTuple, types.NamedUniTuple):
        declare(kind, name, jit_options=_EXACT, strict=False)(finders[n_arguments])


# the methods that the loops call, by the number of their arguments; _entries.py and _simplex.py say
# what they mean
for _count, _names in {
    1: ("shift", "equal", "part", "others"),
    2: ("start", "slope", "own_part", "step", "own"),
    3: ("refine",),
    4: ("finish",),
}.items():
    for _name in _names:
        _declare(_name, _count)
