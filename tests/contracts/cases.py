"""The regularizers that every contract runs over: all of the registry, and more.

A registry line is covered as soon as it is there. The others are what users build themselves.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import array_api_compat
import numpy as np

import fitzpatrick as fp
from fitzpatrick.regularizers import (
    Bernoulli,
    FDivergence,
    Indicator,
    Negentropy,
    Quadratic,
    Regularizer,
    SquaredNorm,
    Tsallis,
)
from fitzpatrick.regularizers.chain import Chain
from fitzpatrick.sets import (
    Box,
    Budget,
    CappedSimplex,
    ConvexSet,
    L1Ball,
    L2Ball,
    OrderSimplex,
    Orthant,
    Permutahedron,
    Simplex,
)
from tests.helpers import TEST_ALL, Library, seeded

# The Fenchel-Young loss, the Fitzpatrick loss, two between them and one beyond.
TIGHTNESSES = (0.0, 0.25, 0.5, 1.0, 2.0)


@dataclass(frozen=True)
class Case:
    """A regularizer for arrays of a library with k columns."""

    name: str
    build: Callable[[Library, int], Regularizer]
    # how much less exact than the promise: iterative or differenced answers
    slack: float = 1.0
    # whether permuting the classes permutes the answers
    symmetric: bool = True
    # whether derivatives of a projection come from differences
    differenced: bool = False
    # whether the set says which face a point lies on
    has_faces: bool = True
    tightnesses: tuple[float, ...] = TIGHTNESSES

    def losses(self, xp: Library, k: int) -> tuple[fp.Loss, ...]:
        """The loss of every tightness."""
        omega = self.build(xp, k)
        return (
            fp.FenchelYoungLoss(omega),
            *(
                fp.FitzpatrickLoss(omega, tightness=c)
                for c in self.tightnesses[1:]
                if c < omega.max_tightness or c == 1
            ),
        )

    @property
    def sample(self) -> Regularizer:
        """The regularizer on NumPy arrays with two columns, to ask what it can do."""
        return self.build(Library("numpy"), 2)


@dataclass(frozen=True)
class Corner(ConvexSet):
    """A user's own set, {x >= 0, Σ x <= 1}: a projection and an oracle, nothing else."""

    def project(self, x):
        xp = array_api_compat.array_namespace(x)
        positive = xp.where(x < 0, xp.zeros_like(x), x)
        inside = xp.sum(positive, axis=-1, keepdims=True) <= 1
        return xp.where(inside, positive, Simplex().project(x))

    def maximize(self, theta):
        xp = array_api_compat.array_namespace(theta)
        top = xp.max(theta, axis=-1, keepdims=True)
        return xp.where(top > 0, Simplex().maximize(theta), xp.zeros_like(theta))


def _quadratic(xp: Library, k: int) -> Quadratic:
    factor = seeded(5).normal(size=(k, k)) / np.sqrt(k)
    return Quadratic(xp.asarray(factor @ factor.T + np.eye(k), "float64"))


def _hellinger(xp: Library, k: int) -> FDivergence:
    """Squared Hellinger distance from frequencies that differ."""
    return FDivergence("hellinger", reference=np.arange(1.0, k + 1) / (k * (k + 1) / 2))


def _constant(omega: Regularizer) -> Callable[[Library, int], Regularizer]:
    return lambda *_: omega


def _registry_cases() -> list[Case]:
    """One case for each regularizer of the registry, under its shortest name."""
    found: dict[Regularizer, str] = {}
    for name in sorted(fp.loss_names(), key=len):
        found.setdefault(fp.get_loss(name).regularizer, name)
    return [Case(name, _constant(omega)) for omega, name in found.items()]


REGISTRY = _registry_cases()
# Of the other regularizers some do what a neighbor does; ``make test-all`` runs them too.
ALPHAS = (1.0, 1.75, 1.999, 2.0) if TEST_ALL else (1.999,)
OTHERS = [
    *(Case(f"tsallis {alpha}", _constant(Tsallis(alpha))) for alpha in ALPHAS),
    # results lose about 1/(α − 1) ulp as α approaches 1
    Case("tsallis 1.25", _constant(Tsallis(1.25)), slack=4),
    Case("tsallis 1.01", _constant(Tsallis(1.01)), slack=100),
    Case("sparsemap orthant", _constant(SquaredNorm(Orthant()))),
    Case("sparsemap l2 ball", _constant(SquaredNorm(L2Ball(0.75))), slack=10),
    Case("sparsemap l1 ball", _constant(SquaredNorm(L1Ball(2.0))), slack=10),
    Case(
        "sparsemap user set",
        _constant(SquaredNorm(Corner())),
        slack=100,
        differenced=True,
        has_faces=False,
    ),
    # Half of the entries, whatever their number. The normal part, scores less their projection, has
    # rounding errors of the size of the scores.
    Case("sparsemap subsets", lambda _, k: SquaredNorm(CappedSimplex(k / 2)), slack=100),
    Case("sparsemap budget", lambda _, k: SquaredNorm(Budget(k / 4, k / 2)), slack=100),
    Case(
        "sparsemap rankings",
        lambda _, k: SquaredNorm(Permutahedron(k)),
        slack=100,
        has_faces=False,
    ),
    Case("sparsemap levels", _constant(SquaredNorm(OrderSimplex())), slack=100, symmetric=False),
    Case("sigmoid subsets", lambda _, k: Bernoulli(CappedSimplex(k / 2)), slack=10),
    Case("perceptron subsets", lambda _, k: Indicator(CappedSimplex(k / 2)), slack=10),
    Case(
        "perceptron rankings", lambda _, k: Indicator(Permutahedron(k)), slack=10, has_faces=False
    ),
    Case("perceptron box", _constant(Indicator(Box(-1.0, 2.0)))),
    Case("perceptron l2 ball", _constant(Indicator(L2Ball())), slack=10),
    Case("perceptron l1 ball", _constant(Indicator(L1Ball(0.5)))),
    Case("perceptron user set", _constant(Indicator(Corner())), slack=10, has_faces=False),
    Case("jensen-shannon", _constant(FDivergence("jensen_shannon")), slack=4),
    Case("hellinger", _hellinger, slack=4, symmetric=False),
    Case("quadratic", _quadratic, slack=100, symmetric=False),
]
CASES = [*REGISTRY, *OTHERS]
# Losses of order 3, whose equations are solved to the 0.9th power of a rounding error.
ORDER_CASES = [
    Case(f"{name}, order 3", _constant(Chain(omega, 3)), slack=100, tightnesses=(0.0, 1.0))
    for name, omega in {
        "logistic": Negentropy(),
        "poisson": Negentropy(Orthant()),
        "sigmoid": Bernoulli(),
        "entmax15": Tsallis(1.5),
    }.items()
]
LABEL_CASES = [case for case in [*CASES, *ORDER_CASES] if case.sample.domain.has_labels]
