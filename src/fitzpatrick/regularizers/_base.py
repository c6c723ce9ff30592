r"""What the losses ask of a regulariser, and the skeleton shared by all separable ones.

A regulariser is :math:`\Omega = \Psi + \iota_C`, a potential on a convex set. Both of its losses
are a maximisation whose solution gives everything else:

========================  ===============================  =====================================
loss                      maximiser                        value
========================  ===============================  =====================================
Fenchel-Young             :math:`\hat y(\theta)`, the link  :math:`D_\Psi(y, \hat y) +` normal part
Fitzpatrick               :math:`y^\star(y, \theta)`       :math:`\langle y^\star - y,
                                                           \nabla^2\Psi(y^\star)(y^\star - y)
                                                           \rangle +` normal part
========================  ===============================  =====================================

The gradient in θ is the maximiser minus y, the Hessian its Jacobian. A :class:`Solution` holds the
maximiser and computes the rest on demand.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass

from .._array import (
    Array,
    class_indices,
    inner,
    is_torch,
    namespace,
    quiet,
    row_max,
    row_sum,
)
from .._root import newton_steps, shift_to_root
from .._validation import as_points, as_scores
from ..sets import ConvexSet, ProductSet, Simplex


class Solution(ABC):
    """The maximiser of one loss at (y, θ), with the loss's value and curvature there."""

    @property
    @abstractmethod
    def y_star(self) -> Array:
        """The maximiser, shape (…, k)."""

    @abstractmethod
    def value(self) -> Array:
        """The loss, a sum of non-negative terms, shape (…)."""

    @abstractmethod
    def hessian_product(self, v: Array) -> Array:
        """Jacobian of the maximiser in θ, applied to v."""


class LabelSolution(Solution):
    """A solution at a hard label j: y = e_j, which is never written out."""

    @abstractmethod
    def gradient(self) -> Array:
        """Gradient of the loss in θ, y_star − e_j, shape (…, k)."""


@dataclass(frozen=True, eq=False)
class MarkedSolution(LabelSolution):
    """Any solution at y = e_j, with the mask that marks the entry j of each row."""

    solution: Solution
    is_label: Array

    @property
    def y_star(self) -> Array:
        return self.solution.y_star

    def value(self) -> Array:
        return self.solution.value()

    def gradient(self) -> Array:
        p = self.y_star
        return namespace(p).where(self.is_label, p - 1, p)

    def hessian_product(self, v: Array) -> Array:
        return self.solution.hessian_product(v)


def mark_labels(labels: Array, theta: Array) -> Array:
    """The mask of shape (…, k) that is true at the label of each row."""
    return class_indices(theta) == labels[..., None]


def at_labels(x: Array, labels: Array) -> Array:
    """The entry of each row at its label, shape (…, 1)."""
    xp = namespace(x)
    if is_torch(labels):  # PyTorch takes indices of one dtype
        labels = xp.astype(labels, xp.int64, copy=False)
    return xp.take_along_axis(x, labels[..., None], axis=-1)


class Regularizer(ABC):
    r"""A convex regulariser :math:`\Omega = \Psi + \iota_C`.

    ``value``, ``conjugate`` and ``link`` are for users: they check their argument. The methods
    named ``solve_*`` and ``potential_*`` are what a regulariser of your own has to write; they
    trust their arguments, which are floating-point arrays of one library and one shape (…, k).
    """

    @property
    @abstractmethod
    def domain(self) -> ConvexSet:
        """The set C."""

    @abstractmethod
    def potential(self, y: Array) -> Array:
        """Ψ(y), shape (…)."""

    @abstractmethod
    def potential_gradient(self, z: Array) -> Array:
        """∇Ψ(z); infinite entries where Ψ is infinitely steep."""

    @abstractmethod
    def potential_curvature(self, z: Array, v: Array) -> Array:
        """⟨v, ∇²Ψ(z) v⟩, shape (…)."""

    @abstractmethod
    def potential_divergence(self, y: Array, z: Array) -> Array:
        """Bregman divergence D_Ψ(y, z) ≥ 0, shape (…)."""

    @abstractmethod
    def solve_fenchel_young(self, y: Array, theta: Array) -> Solution:
        """Maximise ⟨y', θ⟩ − Ω(y') over y'."""

    @abstractmethod
    def solve_fitzpatrick(self, y: Array, theta: Array) -> Solution:
        """Maximise ⟨y − y', θ'⟩ + ⟨y', θ⟩ over θ' ∈ ∂Ω(y')."""

    def solve_fenchel_young_labels(self, labels: Array, theta: Array) -> LabelSolution:
        """The same as ``solve_fenchel_young`` at y = e_label, for labels of shape (…).

        By default through that y; a regulariser that can do without it should.
        """
        is_label = mark_labels(labels, theta)
        y = namespace(theta).astype(is_label, theta.dtype)
        return MarkedSolution(self.solve_fenchel_young(y, theta), is_label)

    def solve_fitzpatrick_labels(self, labels: Array, theta: Array) -> LabelSolution:
        """The same as ``solve_fitzpatrick`` at y = e_label, for labels of shape (…)."""
        is_label = mark_labels(labels, theta)
        y = namespace(theta).astype(is_label, theta.dtype)
        return MarkedSolution(self.solve_fitzpatrick(y, theta), is_label)

    def solve_link(self, theta: Array) -> Array:
        """∇Ω*(θ), trusting θ."""
        return self.solve_fenchel_young(namespace(theta).zeros_like(theta), theta).y_star

    def solve_conjugate(self, theta: Array) -> Array:
        """Ω*(θ), trusting θ."""
        p = self.solve_link(theta)
        return inner(p, theta) - self.potential(p)

    @quiet
    def value(self, y: Array) -> Array:
        """Ω(y); raises where y is not in the domain."""
        y, restore = as_points(y, self.domain, "y")
        return restore(self.potential(y))

    @quiet
    def conjugate(self, theta: Array) -> Array:
        """Ω*(θ) = max over y of ⟨y, θ⟩ − Ω(y)."""
        theta, restore = as_scores(theta)
        return restore(self.solve_conjugate(theta))

    @quiet
    def link(self, theta: Array) -> Array:
        """ŷ(θ) = ∇Ω*(θ), the prediction that belongs to the scores θ."""
        theta, restore = as_scores(theta)
        return restore(self.solve_link(theta))


class Elementwise(ABC):
    """One loss of a separable potential, entry by entry, bound to its targets y.

    All methods take s = θ − τ. On a product set τ is 0; on the simplex it makes the maximiser
    sum to one.
    """

    @property
    @abstractmethod
    def power(self) -> float:
        """β such that (Σ p)^β is convex in τ; 0 stands for log Σ p."""

    @abstractmethod
    def start(self, theta: Array) -> Array:
        """A τ not above the root, shape (…, 1), for scores whose row maximum is 0."""

    def steps(self, theta: Array) -> int:
        """How many Newton steps lead from the start to τ."""
        return newton_steps(theta)

    @abstractmethod
    def point(self, s: Array) -> tuple[Array, Array]:
        """The maximiser p and its derivative d = ∂p/∂s ≥ 0."""

    @abstractmethod
    def terms(self, s: Array) -> Array:
        """The entries' non-negative contributions to the loss."""


@dataclass(frozen=True, eq=False)
class SeparableSolution(Solution):
    """The maximiser of a separable potential on a product set or on the simplex."""

    kernel: Elementwise
    s: Array
    coupled: bool

    @property
    def y_star(self) -> Array:
        return self.kernel.point(self.s)[0]

    def value(self) -> Array:
        return namespace(self.s).sum(self.kernel.terms(self.s), axis=-1)

    def hessian_product(self, v: Array) -> Array:
        d = self.kernel.point(self.s)[1]
        if not self.coupled:
            return d * v
        return d * (v - row_sum(d * v) / row_sum(d))


def solve_separable(kernel: Elementwise, theta: Array, domain: ConvexSet) -> SeparableSolution:
    """Solve for τ where the domain couples the entries of a row."""
    if isinstance(domain, ProductSet):
        return SeparableSolution(kernel, theta, coupled=False)
    theta = theta - row_max(theta)
    start, steps = kernel.start(theta), kernel.steps(theta)
    s = shift_to_root(kernel.point, theta, start, kernel.power, steps)
    return SeparableSolution(kernel, s, coupled=True)


@dataclass(frozen=True, eq=False)
class LabelKernel(Elementwise):
    """The formulas at y = e_j: those for y = 1 at the label, those for y = 0 elsewhere."""

    labels: Array
    is_label: Array
    one: Elementwise
    zero: Elementwise

    @property
    def power(self) -> float:
        return self.zero.power

    def start(self, theta: Array) -> Array:
        # p increases with y, so that a lower bound for y = 0 is one for y = e_j
        return self.zero.start(theta)

    def steps(self, theta: Array) -> int:
        return self.zero.steps(theta)

    def point(self, s: Array) -> tuple[Array, Array]:
        xp = namespace(s)
        p_one, d_one = self.one.point(at_labels(s, self.labels))
        p, d = self.zero.point(s)
        return xp.where(self.is_label, p_one, p), xp.where(self.is_label, d_one, d)

    def terms(self, s: Array) -> Array:
        at_label = self.one.terms(at_labels(s, self.labels))
        return namespace(s).where(self.is_label, at_label, self.zero.terms(s))


def solve_separable_labels(
    kernel: Callable[[Array], Elementwise], labels: Array, theta: Array
) -> LabelSolution:
    """Solve on the simplex at y = e_label, for the kernel of given targets."""
    is_label = mark_labels(labels, theta)
    zero = namespace(theta).zeros_like(theta[..., :1])
    both = LabelKernel(labels, is_label, kernel(zero + 1), kernel(zero))
    return MarkedSolution(solve_separable(both, theta, Simplex()), is_label)


class SeparableRegularizer(Regularizer):
    """Ψ(y) = Σ ψ(y_i) on a product set or the simplex: two kernels and ψ' say it all."""

    @abstractmethod
    def fenchel_young_kernel(self, y: Array) -> Elementwise:
        """Formulas of the Fenchel-Young loss at targets y."""

    @abstractmethod
    def fitzpatrick_kernel(self, y: Array) -> Elementwise:
        """Formulas of the Fitzpatrick loss at targets y."""

    def potential_divergence(self, y: Array, z: Array) -> Array:
        # at s = ψ'(z) the link is z itself, and the Fenchel-Young terms are D_ψ(y, z)
        terms = self.fenchel_young_kernel(y).terms(self.potential_gradient(z))
        return namespace(y).sum(terms, axis=-1)

    def solve_fenchel_young(self, y: Array, theta: Array) -> Solution:
        return solve_separable(self.fenchel_young_kernel(y), theta, self.domain)

    def solve_fitzpatrick(self, y: Array, theta: Array) -> Solution:
        return solve_separable(self.fitzpatrick_kernel(y), theta, self.domain)

    def solve_fenchel_young_labels(self, labels: Array, theta: Array) -> LabelSolution:
        return solve_separable_labels(self.fenchel_young_kernel, labels, theta)

    def solve_fitzpatrick_labels(self, labels: Array, theta: Array) -> LabelSolution:
        return solve_separable_labels(self.fitzpatrick_kernel, labels, theta)


def check_domain(owner: str, domain: ConvexSet, allowed: tuple[type[ConvexSet], ...]) -> None:
    """Raise unless ``domain`` is one of the sets that a regulariser is defined on."""
    if not isinstance(domain, allowed):
        names = " or ".join(f"{kind.__name__}()" for kind in allowed)
        raise TypeError(f"{owner} is defined on {names}, got domain={domain!r}")


__all__ = [
    "Elementwise",
    "LabelSolution",
    "Regularizer",
    "SeparableRegularizer",
    "Simplex",
    "Solution",
    "at_labels",
    "check_domain",
    "mark_labels",
]
