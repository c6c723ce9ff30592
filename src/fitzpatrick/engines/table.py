"""Who computes a loss or a link: one table, from an engine and a regularizer to its kernel.

A kernel serves every tightness. What the table has no entry for runs through the formulas of the
core. The choice depends on Ω, the form of the targets and the number of scores, never on earlier
calls. Importing the table loads no other library: entries are names, and resolved when used.
"""

import functools
import warnings
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Literal

from ..regularizers import Bernoulli, Negentropy, Regularizer, SquaredNorm, Tsallis
from ..sets import Box, ConvexSet, Orthant, Reals, Simplex, isotonic
from .rows import CoreKernel
from .targets import NoTargets, TargetForm

Engine = Literal["numba", "numpy"]

# From this many scores on, a fit of a few hundred evaluations gains what loading Numba and the
# compiled rows costs: half a second, and a few seconds once after an installation. Where NumPy is
# nearly as fast it takes more of them.
MIN_COMPILED_SIZE = 1 << 12


@dataclass(frozen=True)
class Entry:
    """Regularizers on some kinds of sets, and the name of the kernel that they have."""

    regularizers: tuple[type[Regularizer], ...]
    domains: tuple[type[ConvexSet], ...]
    kernel: str
    entmax_alpha: float | None = None  # the α that Ω has to have; None for any
    patience: int = 1  # times MIN_COMPILED_SIZE: the scores that are worth loading it for

    def serves(self, omega: Regularizer) -> bool:
        """True if the kernel is one for Ω; a subclass may have formulas of its own."""
        return (
            type(omega) in self.regularizers
            and type(omega.domain) in self.domains
            and self.entmax_alpha in (None, omega.entmax_alpha)
        )


_LOGISTIC, _SPARSEMAX, _ENTMAX = (Negentropy, Tsallis), (SquaredNorm, Tsallis), (Tsallis,)
_SIMPLEX, _INTERVALS = (Simplex,), (Reals, Orthant, Box)

# On a CPU a kernel is "module:maker" within this package, called with Ω, the tightness and the
# targets; NoTargets ask for the link, which the compiled kernels of single entries do not have. On
# a GPU it is the name that the Triton kernels know Ω by, with its parameter.
KERNELS: dict[str, list[Entry]] = {
    "numpy": [Entry(_LOGISTIC, _SIMPLEX, "negentropy:bind_logistic", 1.0)],
    "numba": [
        Entry(_LOGISTIC, _SIMPLEX, "compiled.negentropy:bind_logistic", 1.0, patience=8),
        Entry(_SPARSEMAX, _SIMPLEX, "compiled.squared:bind_sparsemax", 2.0, patience=8),
        Entry(_ENTMAX, _SIMPLEX, "compiled.tsallis:bind_tsallis"),
        Entry((Negentropy,), (Orthant,), "compiled.negentropy:bind_poisson"),
        Entry((Bernoulli,), (Box,), "compiled.bernoulli:bind_bernoulli"),
        Entry((SquaredNorm,), _INTERVALS, "compiled.squared:bind_clipped", patience=8),
    ],
    "triton": [
        Entry(_LOGISTIC, _SIMPLEX, "logistic", 1.0),
        Entry(_SPARSEMAX, _SIMPLEX, "sparsemax", 2.0),
        Entry(_ENTMAX, _SIMPLEX, "entmax15", 1.5),
        Entry(_ENTMAX, _SIMPLEX, "tsallis:{omega.alpha!r}"),
        Entry((Negentropy,), (Orthant,), "poisson"),
        Entry((Bernoulli,), (Box,), "sigmoid"),
        Entry(
            (SquaredNorm,),
            _INTERVALS,
            "clipped:{omega.domain.bounds[0]}:{omega.domain.bounds[1]}",
        ),
    ],
}

# Projections are computed below the engines: there they ask for a module with kernels.
isotonic.KERNELS["cuda"] = f"{__package__}.triton.isotonic"


def find_entry(engine: str, omega: Regularizer) -> Entry | None:
    """The first entry of an engine that serves Ω, or None."""
    return next((entry for entry in KERNELS[engine] if entry.serves(omega)), None)


def find_kernel(engine: str, omega: Regularizer) -> str | None:
    """The name of the kernel that an engine has for Ω, or None.

    Example:
        >>> find_kernel("triton", Tsallis(1.5)), find_kernel("triton", Tsallis(1.3))
        ('entmax15', 'tsallis:1.3')
    """
    found = find_entry(engine, omega)
    return None if found is None else found.kernel.format(omega=omega)


@functools.cache
def load_kernel(name: str) -> Any:
    """What a name of the table for a CPU stands for."""
    module, function = name.split(":")
    return getattr(import_module(f".{module}", __package__), function)


@functools.cache
def _numba() -> Any:
    """The package numba, or None with one warning if it cannot be imported."""
    try:
        import numba
    except ImportError as error:  # such as after an upgrade of NumPy
        warnings.warn(
            f"numba cannot be imported ({error}), so that NumPy computes large problems, several "
            "times slower; install a numba that fits this NumPy",
            RuntimeWarning,
            stacklevel=2,
        )
        return None
    return numba


def numba_compiles() -> bool:
    """True if Numba can be imported and its compiler is not disabled."""
    return _numba() is not None and not _numba().config.DISABLE_JIT


def find_compiled(omega: Regularizer, *, is_link: bool) -> Entry | None:
    """The entry of the compiled rows of Ω, or of its link; single entries have no link."""
    return None if is_link and omega.is_entrywise else find_entry("numba", omega)


def kernel_maker(omega: Regularizer, targets: TargetForm, engine: Engine | None = None) -> Any:
    """What makes the row kernel of Ω from Ω, a tightness and targets.

    Raises if the requested engine is not available.
    """
    if engine not in ("numba", "numpy", None):
        raise ValueError(f"engine must be 'numba', 'numpy' or None, got {engine!r}")
    size, is_asked = targets.shape[0] * targets.shape[1], engine == "numba"
    if is_asked or (engine is None and size >= MIN_COMPILED_SIZE):
        compiled = find_compiled(omega, is_link=isinstance(targets, NoTargets))
        if is_asked and compiled is None:
            raise ValueError(
                f"there is no compiled loss for {omega}; leave the choice to engine=None"
            )
        is_worth_it = compiled is not None and size >= MIN_COMPILED_SIZE * compiled.patience
        if compiled is not None and (is_asked or is_worth_it) and numba_compiles():
            return load_kernel(compiled.kernel)
        if is_asked:
            raise ImportError(
                "engine='numba' needs a numba that can be imported, with its compiler enabled; "
                "install one, or leave the choice to engine=None"
            )
    plain = find_entry("numpy", omega)
    return CoreKernel if plain is None else load_kernel(plain.kernel)
