"""Who computes a loss fast: one table, from an engine and a regularizer to its kernel.

A kernel serves every tightness. What the table has no entry for runs through the formulas of the
core. Importing the table loads no other library: entries are names, and resolved when used.
"""

from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

from ..regularizers import Bernoulli, Negentropy, Regularizer, SquaredNorm, Tsallis
from ..sets import Box, ConvexSet, Orthant, Reals, Simplex


@dataclass(frozen=True)
class Entry:
    """Regularizers of one class on one kind of set, and the name of the kernel that they have."""

    regularizer: type[Regularizer]
    domain: type[ConvexSet]
    kernel: str
    parameters: dict[str, float] = field(default_factory=dict)  # that Ω has to have

    def serves(self, omega: Regularizer) -> bool:
        """Whether the kernel is one for Ω; a subclass may have formulas of its own."""
        return (
            type(omega) is self.regularizer
            and type(omega.domain) is self.domain
            and all(getattr(omega, name) == value for name, value in self.parameters.items())
        )


_CLIPPED = "clipped:{omega.domain.bounds[0]}:{omega.domain.bounds[1]}"

# On a CPU a kernel is "module:maker" within this package, which makes it of the loss and its
# targets. On a GPU it is the name that the Triton kernels know Ω by, with its parameter.
KERNELS: dict[str, list[Entry]] = {
    "numpy": [
        Entry(Negentropy, Simplex, "_logistic:bind_logistic"),
        Entry(SquaredNorm, Simplex, "_sparse:bind_sparsemax"),
        Entry(Tsallis, Simplex, "_logistic:bind_logistic", {"alpha": 1.0}),
        Entry(Tsallis, Simplex, "_sparse:bind_sparsemax", {"alpha": 2.0}),
        Entry(Tsallis, Simplex, "_sparse:bind_entmax15", {"alpha": 1.5}),
        Entry(Negentropy, Orthant, "_entries:CountKernel"),
        Entry(Bernoulli, Box, "_entries:CoinKernel"),
        Entry(SquaredNorm, Reals, "_entries:ClippedKernel"),
        Entry(SquaredNorm, Orthant, "_entries:ClippedKernel"),
        Entry(SquaredNorm, Box, "_entries:ClippedKernel"),
    ],
    "numba": [
        Entry(Negentropy, Simplex, "compiled.negentropy:bind_logistic"),
        Entry(Negentropy, Orthant, "compiled.negentropy:bind_poisson"),
        Entry(Bernoulli, Box, "compiled.bernoulli:bind_bernoulli"),
        Entry(SquaredNorm, Simplex, "compiled.squared:bind_sparsemax"),
        Entry(SquaredNorm, Reals, "compiled.squared:bind_clipped"),
        Entry(SquaredNorm, Orthant, "compiled.squared:bind_clipped"),
        Entry(SquaredNorm, Box, "compiled.squared:bind_clipped"),
        Entry(Tsallis, Simplex, "compiled.negentropy:bind_logistic", {"alpha": 1.0}),
        Entry(Tsallis, Simplex, "compiled.squared:bind_sparsemax", {"alpha": 2.0}),
        Entry(Tsallis, Simplex, "compiled.tsallis:bind_tsallis"),
    ],
    "triton": [
        Entry(Negentropy, Simplex, "logistic"),
        Entry(SquaredNorm, Simplex, "sparsemax"),
        Entry(Tsallis, Simplex, "logistic", {"alpha": 1.0}),
        Entry(Tsallis, Simplex, "sparsemax", {"alpha": 2.0}),
        Entry(Tsallis, Simplex, "entmax15", {"alpha": 1.5}),
        Entry(Tsallis, Simplex, "tsallis:{omega.alpha!r}"),
        Entry(Negentropy, Orthant, "poisson"),
        Entry(Bernoulli, Box, "sigmoid"),
        Entry(SquaredNorm, Reals, _CLIPPED),
        Entry(SquaredNorm, Orthant, _CLIPPED),
        Entry(SquaredNorm, Box, _CLIPPED),
    ],
}


def find_kernel(engine: str, omega: Regularizer) -> str | None:
    """The name of the kernel that an engine has for Ω; None where it has none.

    Example:
        >>> find_kernel("triton", Tsallis(1.5)), find_kernel("triton", Tsallis(1.3))
        ('entmax15', 'tsallis:1.3')
    """
    found = next((entry.kernel for entry in KERNELS[engine] if entry.serves(omega)), None)
    return None if found is None else found.format(omega=omega)


def load_kernel(name: str) -> Any:
    """What a name of the table for a CPU stands for."""
    module, function = name.split(":")
    return getattr(import_module(f".{module}", __package__), function)
