"""Cartesian products of sets."""

from dataclasses import dataclass

from .._array import Array, as_real, namespace
from ._base import ConvexSet


@dataclass(frozen=True, init=False)
class Product(ConvexSet):
    r"""The Cartesian product :math:`C_1 \times \dots \times C_m`: each set has entries of its own.

    Args:
        sets: the sets, in the order of the entries.
        sizes: how many entries each has; by default all have the same number.

    Example:
        Two labels, one of three classes and one of two:

        >>> import numpy as np
        >>> from fitzpatrick.sets import Simplex
        >>> pair = Product(Simplex(), Simplex(), sizes=(3, 2))
        >>> pair.project(np.asarray([1.0, 0.5, -3.0, 0.2, 0.4]))
        array([0.75, 0.25, 0.  , 0.4 , 0.6 ])
    """

    sets: tuple[ConvexSet, ...]
    sizes: tuple[int, ...] | None

    def __init__(self, *sets: ConvexSet, sizes: tuple[int, ...] | None = None) -> None:
        if not sets or any(getattr(part, "n_axes", 0) != 1 for part in sets):
            raise TypeError(
                f"Product needs sets of vectors, such as Simplex(), got {sets}; sets of matrices "
                "become sets of vectors in fitzpatrick.sets.Flat"
            )
        if sizes is not None:
            sizes = tuple(int(size) for size in sizes)
            if len(sizes) != len(sets) or min(sizes) < 1:
                raise ValueError(
                    f"Product needs one positive size for each of its {len(sets)} sets, got {sizes}"
                )
        object.__setattr__(self, "sets", sets)
        object.__setattr__(self, "sizes", sizes)

    @property
    def has_interior(self) -> bool:  # type: ignore[override]  # depends on the sets
        return all(s.has_interior for s in self.sets)

    def _blocks(self, x: Array) -> list[slice]:
        k, m = x.shape[-1], len(self.sets)
        sizes = self.sizes or (k // m,) * m
        if sum(sizes) != k:
            expected = f"{sum(sizes)} entries" if self.sizes else f"a multiple of {m} entries"
            raise ValueError(f"rows of {self!r} have {expected}, got {k}")
        ends = [sum(sizes[: i + 1]) for i in range(m)]
        return [slice(end - size, end) for end, size in zip(ends, sizes, strict=True)]

    def _each(self, method: str, *arrays: Array) -> list[Array]:
        """What a method of each set makes of its entries."""
        pairs = zip(self.sets, self._blocks(arrays[0]), strict=True)
        return [getattr(part, method)(*(x[..., block] for x in arrays)) for part, block in pairs]

    def _joined(self, method: str, *arrays: Array) -> Array:
        return namespace(*arrays).concat(self._each(method, *arrays), axis=-1)

    def _everywhere(self, method: str, *arrays: Array) -> Array:
        xp = namespace(*arrays)
        return xp.all(xp.stack(self._each(method, *arrays), axis=-1), axis=-1)

    def project(self, x: Array) -> Array:
        return self._joined("project", as_real(x, "x"))

    def maximize(self, theta: Array) -> Array:
        return self._joined("maximize", as_real(theta, "theta"))

    def contains(self, x: Array) -> Array:
        return self._everywhere("contains", as_real(x, "x"))

    def normal_gap(self, y: Array, p: Array, normal: Array) -> Array:
        return sum(self._each("normal_gap", y, p, normal))

    def project_derivative(self, x: Array, v: Array) -> Array:
        return self._joined("project_derivative", x, v)

    def maximize_derivative(self, theta: Array, v: Array) -> Array:
        return self._joined("maximize_derivative", theta, v)

    def same_face(self, y: Array, z: Array) -> Array:
        return self._everywhere("same_face", y, z)

    def violation(self, row: Array) -> str:
        for i, (part, block) in enumerate(zip(self.sets, self._blocks(row), strict=True)):
            if not bool(part.contains(row[block])):
                return f"in block {i} (entries {block.start} to {block.stop - 1}) " + (
                    part.violation(row[block])
                )
        return "it is valid"
