r"""What the losses ask of a regularizer, and the skeleton shared by all separable ones.

A regularizer is :math:`\Omega = \Psi + \iota_C`, a potential on a convex set. Its losses are one
family with one number, the tightness c ≥ 0: the loss :math:`L_c` is the Fenchel-Young loss of the
target-dependent regularizer :math:`\Omega + c\,D_\Omega(y, \cdot)`. It is the Fenchel-Young loss
of Ω at c = 0 and the Fitzpatrick loss at c = 1. The maximizer :math:`y^\star` of

.. math:: L_c(y, \theta) = \max_{y'} \; \Omega(y) - \Omega(y') - c\,D_\Omega(y, y')
                           + \langle y' - y, \theta\rangle

gives everything else. With D the divergence :math:`D_\Psi(y, y^\star)`, Q the quadratic form
:math:`\langle y - y^\star, \nabla^2\Psi(y^\star)(y - y^\star)\rangle \ge D` and ν the normal part,

.. math:: L_c = D + c\,(Q - D) + \langle y^\star - y, \nu\rangle,

a sum of non-negative terms. The gradient in θ is the maximizer minus y, the Hessian the maximizer's
Jacobian. A :class:`Solution` holds the maximizer and computes the rest on demand.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace

from .._array import (
    Array,
    Map,
    class_indices,
    coupled_product,
    inner,
    is_jax,
    is_torch,
    namespace,
    quiet,
    row_max,
    row_sum,
)
from .._root import newton_steps, shift_shard_to_root, shift_to_root
from .._validation import Restore, as_points, as_scores
from ..sets import ConvexSet, Flat
from ._probabilities import chain_probabilities


class Solution(ABC):
    """The maximizer of one loss at (y, θ), with the loss's value and derivatives there.

    A solution that has no gradient of its own keeps ``y``: targets, or the mask of a label in each
    row.
    """

    y: Array

    @property
    @abstractmethod
    def y_star(self) -> Array:
        """The maximizer, shape (…, k)."""

    @abstractmethod
    def value(self) -> Array:
        """The loss, a sum of non-negative terms, shape (…)."""

    def gradient(self) -> Array:
        """Gradient of the loss in θ, y_star − y, shape (…, k)."""
        return minus_target(self.y_star, self.y)

    @abstractmethod
    def hessian_product(self, v: Array) -> Array:
        """Jacobian of the maximizer in θ, applied to v."""

    def slope(self) -> Array | None:
        """d such that the Jacobian is diag(d), less ddᵀ/⟨d, 1⟩ where the entries are coupled.

        None where the Jacobian has no such form.
        """
        return None


@dataclass(frozen=True, eq=False)
class PointSolution(Solution):
    """A maximizer p that has been found, with functions for the loss and the Hessian there."""

    y: Array
    p: Array
    loss: Callable[[], Array]
    product: Map
    find_slope: Callable[[], Array | None] | None = None
    own_gradient: Array | None = None  # where that has more digits than p − y

    @property
    def y_star(self) -> Array:
        return self.p

    def value(self) -> Array:
        return self.loss()

    def gradient(self) -> Array:
        return super().gradient() if self.own_gradient is None else self.own_gradient

    def hessian_product(self, v: Array) -> Array:
        return self.product(v)

    def slope(self) -> Array | None:
        return None if self.find_slope is None else self.find_slope()


def family(divergence: Array, quadratic: Array, tightness: float) -> Array:
    """D + c (Q − D), from D and c Q."""
    if tightness <= 1:
        return (1 - tightness) * divergence + quadratic
    excess = quadratic - tightness * divergence
    # both may be infinite, where a class with a target is masked
    return divergence + namespace(excess).where(excess > 0, excess, 0.0)


def minus_target(p: Array, y: Array) -> Array:
    """p − y, for targets y or for the mask of a label in each row."""
    xp = namespace(p, y)
    if xp.isdtype(y.dtype, "bool"):
        return xp.where(y, p - 1, p)
    return p - y


def mark_labels(labels: Array, theta: Array) -> Array:
    """The mask of shape (…, k) that is true at the label of each row."""
    return class_indices(theta) == labels[..., None]


def at_labels(x: Array, labels: Array) -> Array:
    """The entry of each row at its label, shape (…, 1)."""
    xp = namespace(x)
    if is_torch(labels):  # PyTorch takes indices of one dtype
        labels = xp.astype(labels, xp.int64, copy=False)
    return xp.take_along_axis(x, labels[..., None], axis=-1)


class Shard(ABC):
    """Some of the classes of each row, next to one another, where other processes have the rest.

    A loss needs a few numbers about whole rows. Each process computes them for its own classes, and
    the shard combines them. All processes get the same numbers, and decide by these alone, so that
    they stay in step.

    Attributes:
        position: which of the parts this is, from 0, in the order of the classes.
        offset: the first class of this part.
        n_classes: the number of classes of all parts; like ``offset``, an array if it is only known
            on the device.
    """

    position: int
    offset: Array | int
    n_classes: Array | int

    @abstractmethod
    def sum(self, numbers: Array) -> Array:
        """The sums over all parts of numbers (…, m), m for each row."""

    @abstractmethod
    def max(self, numbers: Array) -> Array:
        """The largest of all parts; +∞ where one of them is NaN."""

    def mark_labels(self, labels: Array, theta: Array) -> Array:
        """The mask of shape (…, k) that is true at the label of each row, if it is one of these."""
        return mark_labels(labels - self.offset, theta)


class Regularizer(ABC):
    r"""A convex regularizer :math:`\Omega = \Psi + \iota_C`.

    ``value``, ``conjugate`` and ``link`` are for users: they check their argument. The methods
    named ``solve*`` and ``potential*`` are what a regularizer of your own has to write; they trust
    their arguments, which are floating-point arrays of one library and one shape (…, k). The
    properties named ``is_*`` and ``has_*`` tell engines, front ends and solvers what Ω can do.
    """

    @property
    def is_row_wise(self) -> bool:
        """True if an engine may hand rows over in blocks, several at a time."""
        return False

    @property
    def is_coupled(self) -> bool:
        """True if the entries of a row share a number τ, and the Hessian has a rank-one part."""
        return False

    @property
    def is_entrywise(self) -> bool:
        """True if Ω is a sum over independent entries."""
        return False

    @property
    def has_kinks(self) -> bool:
        """True if the link has kinks, where the Hessian jumps."""
        return True

    @property
    def has_mean_slope(self) -> bool:
        """True if Ω has a :meth:`SeparableRegularizer.mean_slope`."""
        return False

    @property
    def entmax_alpha(self) -> float | None:
        """α if the link is the α-entmax of each row, else None.

        A subclass with formulas of its own has None unless it overrides this property.
        """
        return None

    @property
    def has_curvature(self) -> bool:
        """True if the Hessian is not zero."""
        return True

    @property
    def keeps_order(self) -> bool:
        """True if of two classes the one with the larger score has the larger prediction."""
        return True

    @property
    def order_is_tightness(self) -> bool:
        """True if the loss of order n is the loss of tightness 1/(n − 1)."""
        return not self.has_curvature

    @property
    def chain(self) -> Callable[[Array, Array, int], Solution]:
        """The solution of the loss of order n, from y, θ and n; raises if Ω has none."""
        raise TypeError(f"{self!r} has no losses of order n; leave order out and give tightness=")

    @property
    def max_tightness(self) -> float:
        """The tightness beyond which a loss of Ω may have several maximizers."""
        return math.inf

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
    def solve(self, y: Array, theta: Array, tightness: float) -> Solution:
        """Maximize ⟨y', θ⟩ − Ω(y') − c D_Ω(y, y') over y', with the tightness c."""

    def solve_labels(self, labels: Array, theta: Array, tightness: float) -> Solution:
        """The solution at y = e_label, for labels of shape (…), if the domain has labels.

        By default through that y; a regularizer that can do without it should.
        """
        y = namespace(theta).astype(mark_labels(labels, theta), theta.dtype)
        return self.solve(y, theta, tightness)

    def solve_shard(
        self, y: Array, theta: Array, tightness: float, shard: Shard
    ) -> tuple[Array, Array]:
        """The loss of each row, and its gradient in these scores, a part of all classes."""
        raise TypeError(
            f"the losses of {self!r} need all classes in one process; classes in several are for "
            "the losses of a SeparableRegularizer on the simplex and for the perceptron"
        )

    def solve_shard_labels(
        self, labels: Array, theta: Array, tightness: float, shard: Shard
    ) -> tuple[Array, Array]:
        """Loss and gradient of a shard at y = e_label, for labels that count all classes."""
        y = namespace(theta).astype(shard.mark_labels(labels, theta), theta.dtype)
        return self.solve_shard(y, theta, tightness, shard)

    def solve_link(self, theta: Array) -> Array:
        """∇Ω*(θ), trusting θ."""
        return self.solve(namespace(theta).zeros_like(theta), theta, 0.0).y_star

    @property
    def has_probabilities(self) -> bool:
        """True if scores have class probabilities, or each entry its own, at every tightness."""
        return False

    def solve_probabilities(self, theta: Array, tightness: float) -> Array:
        """The probabilities that belong to θ, where ``has_probabilities``, trusting θ."""
        raise TypeError(
            f"the scores of {self!r} have no class probabilities; loss.link(theta) is the "
            "prediction"
        )

    def solve_conjugate(self, theta: Array) -> Array:
        """Ω*(θ), trusting θ."""
        p = self.solve_link(theta)
        return inner(p, theta) - self.potential(p)

    def on_vectors(self, x: Array, restore: Restore) -> tuple["Regularizer", Array, Restore]:
        """Ω on vectors, the points x as vectors, and a function that restores the shape of x.

        Only a set of matrices changes anything.
        """
        n_axes = self.domain.n_axes
        if n_axes == 1:
            return self, x, restore
        flat = Flat(self.domain, tuple(x.shape[-n_axes:]))
        vectors = flat.fold(x)

        def unfold(out: Array) -> Array:
            return restore(flat.unfold(out) if out.ndim == vectors.ndim else out)

        # every regularizer that has a choice of domains is a dataclass
        omega: Regularizer = replace(self, domain=flat)  # type: ignore[type-var]
        return omega, vectors, unfold

    @quiet
    def value(self, y: Array) -> Array:
        """Ω(y); raises where y is not in the domain."""
        omega, y, restore = self.on_vectors(*as_points(y, self.domain, "y"))
        return restore(omega.potential(y))

    @quiet
    def conjugate(self, theta: Array) -> Array:
        """Ω*(θ) = max over y of ⟨y, θ⟩ − Ω(y)."""
        omega, theta, restore = self.on_vectors(*as_scores(theta))
        return restore(omega.solve_conjugate(theta))

    @quiet
    def link(self, theta: Array) -> Array:
        """ŷ(θ) = ∇Ω*(θ), the prediction that belongs to the scores θ."""
        omega, theta, restore = self.on_vectors(*as_scores(theta))
        return restore(omega.solve_link(theta))


class Elementwise(ABC):
    """The loss of a separable potential, entry by entry, bound to its targets and a tightness.

    All methods take s = θ − τ. On a product set τ is 0; on the simplex it makes the maximizer
    sum to one. The last four are about τ: a potential that is for product sets alone inherits
    them.
    """

    @abstractmethod
    def point(self, s: Array) -> tuple[Array, Array]:
        """The maximizer p and its derivative d = ∂p/∂s ≥ 0."""

    @abstractmethod
    def terms(self, s: Array) -> Array:
        """The entries' non-negative contributions to the loss."""

    @property
    def power(self) -> float:
        """β such that (Σ p)^β is convex in τ; 0 stands for log Σ p."""
        return 0.0

    @property
    def bend(self) -> float:
        """The length in s over which log p has a curvature of one, or less."""
        return 1.0

    def start(self, theta: Array) -> Array:
        """A τ not above the root, shape (…, 1), for scores whose row maximum is 0."""
        raise TypeError(f"{type(self).__name__} does not couple the entries of a row")

    def end(self, theta: Array) -> Array | None:
        """A τ not below the root, for scores whose row maximum is 0; None if unknown.

        It saves reductions where the classes are in several processes.
        """
        return None

    def steps(self, theta: Array) -> int:
        """How many Newton steps lead from the start to τ."""
        return newton_steps(theta)


@dataclass(frozen=True, eq=False)
class SeparableSolution(Solution):
    """The maximizer of a separable potential; ``y`` holds targets, or the mask of labels."""

    kernel: Elementwise
    y: Array
    s: Array
    is_coupled: bool

    @property
    def y_star(self) -> Array:
        return self.kernel.point(self.s)[0]

    def value(self) -> Array:
        return namespace(self.s).sum(self.kernel.terms(self.s), axis=-1)

    def slope(self) -> Array:
        return self.kernel.point(self.s)[1]

    def hessian_product(self, v: Array) -> Array:
        return coupled_product(self.slope(), v) if self.is_coupled else self.slope() * v


def solve_separable(
    kernel: Elementwise, zero_kernel: Elementwise, y: Array, theta: Array, domain: ConvexSet
) -> SeparableSolution:
    """Solve for τ where the domain couples the entries of a row.

    ``zero_kernel`` may have the formulas at y = 0: p increases with y, so that a τ below their root
    is below the root at y as well.
    """
    if domain.is_product:
        return SeparableSolution(kernel, y, theta, is_coupled=False)
    theta = theta - row_max(theta)
    start, steps = zero_kernel.start(theta), zero_kernel.steps(theta)
    s = shift_to_root(kernel.point, theta, start, zero_kernel.power, steps, zero_kernel.bend)
    return SeparableSolution(kernel, y, s, is_coupled=True)


# The number of classes that a step count assumes if the real one is only known on the device.
MAX_CLASSES = 2**24
# All processes wait for one another at each step. Newton's method needs fewer than fifty.
MAX_SHARD_STEPS = 1000


def solve_separable_shard(
    kernel: Elementwise, zero_kernel: Elementwise, y: Array, theta: Array, shard: Shard
) -> tuple[Array, Array]:
    """Loss and gradient of a part of the classes; ``zero_kernel`` has the formulas at y = 0."""
    theta = theta - shard.max(row_max(theta))
    # p increases with y: a lower bound for the largest score alone, at y = 0, is one for all
    xp = namespace(theta)
    largest = xp.zeros_like(theta[..., :1])
    # the same number of steps in all processes, however many classes each of them has
    k = shard.n_classes if isinstance(shard.n_classes, int) else MAX_CLASSES
    zeros = xp.zeros((1,), dtype=theta.dtype, device=theta.device)
    steps, end = zero_kernel.steps(xp.broadcast_to(zeros, (k,))), zero_kernel.end(largest)
    if end is None and steps > MAX_SHARD_STEPS:
        raise TypeError(
            f"{type(zero_kernel).__name__}.steps asks for {steps} Newton steps at {k} classes, and "
            "processes that share the classes wait for one another at each; leave steps out, which "
            "then grow like a logarithm, or write end"
        )
    bracket = zero_kernel.start(largest), end
    s = shift_shard_to_root(kernel.point, theta, bracket, zero_kernel.power, steps, shard.sum)
    value = shard.sum(row_sum(kernel.terms(s)))
    return value[..., 0], minus_target(kernel.point(s)[0], y)


@dataclass(frozen=True, eq=False)
class LabelFormulas(Elementwise):
    """p and its terms at y = e_j: those for y = 1 at the label, those for y = 0 elsewhere."""

    labels: Array
    mark: Map  # the mask of the labels, for scores of their shape
    one: Elementwise
    zero: Elementwise

    def point(self, s: Array) -> tuple[Array, Array]:
        xp = namespace(s)
        p_one, d_one = self.one.point(at_labels(s, self.labels))
        p, d = self.zero.point(s)
        is_label = self.mark(s)
        return xp.where(is_label, p_one, p), xp.where(is_label, d_one, d)

    def terms(self, s: Array) -> Array:
        at_label = self.one.terms(at_labels(s, self.labels))
        return namespace(s).where(self.mark(s), at_label, self.zero.terms(s))


class SeparableRegularizer(Regularizer):
    """Ψ(y) = Σ ψ(y_i) on a product set or on the simplex: ψ, ψ', ψ'' and one kernel say it all.

    A subclass writes ``domain``, ``potential``, ``potential_gradient``, ``potential_curvature``,
    ``kernel`` and ``slope``, and has labels, sparse targets, row blocks and all front ends.
    """

    @property
    def is_row_wise(self) -> bool:
        return self.domain.coordinates is not None

    @property
    def is_coupled(self) -> bool:
        return self.is_row_wise and not self.is_entrywise

    @property
    def is_entrywise(self) -> bool:
        return self.domain.is_product

    @property
    def has_equal_classes(self) -> bool:
        """True if labels have losses, and all classes the same formulas."""
        return self.is_coupled and self.domain.has_labels

    @abstractmethod
    def kernel(self, y: Array, tightness: float) -> Elementwise:
        """Formulas of the loss at targets y, which may be broadcast against the scores."""

    def zero_kernel(self, zero: Array, tightness: float) -> Elementwise:
        """Formulas of the loss at y = 0, for all classes but the label's; they may be simpler.

        ``zero`` holds zeros, of shape (…, 1).
        """
        return self.kernel(zero, tightness)

    @abstractmethod
    def slope(self, p: Array, y: Array, tightness: float) -> Array:
        """d = ∂p/∂s, from the maximizer p and its target: 1/d = ψ''(p)(1 + c) + c ψ'''(p)(p − y).

        Zero where p is at an end of its interval.
        """

    def mean_slope(self, p: Array, y: Array, tightness: float, theta: Array, reach: Array) -> Array:
        """The mean of the slope d over scores around, where ``has_mean_slope`` says so.

        The slopes of a link with kinks jump. Their average, while a score moves by up to ``reach``
        either way and τ stays, tells the estimators what a step across kinks will do.

        Args:
            p: maximizers at ``theta``, shape (n, k).
            y: targets, shape (n, k).
            tightness: c.
            theta: scores, shape (n, k).
            reach: how far the scores of each row may move, shape (n, 1).

        Returns:
            Shape (n, k); the slope itself where the reach is zero or not a finite number.
        """
        raise NotImplementedError(f"{type(self).__name__} has no mean_slope")

    def potential_divergence(self, y: Array, z: Array) -> Array:
        # at s = ψ'(z) the link is z itself, and the Fenchel-Young terms are D_ψ(y, z)
        return namespace(y).sum(self.kernel(y, 0.0).terms(self.potential_gradient(z)), axis=-1)

    def solve(self, y: Array, theta: Array, tightness: float) -> Solution:
        kernel = self.kernel(y, tightness)
        return solve_separable(kernel, kernel, y, theta, self.domain)

    def solve_labels(self, labels: Array, theta: Array, tightness: float) -> Solution:
        if not self.has_equal_classes:
            return super().solve_labels(labels, theta, tightness)
        is_label = mark_labels(labels, theta)

        def mark(s: Array) -> Array:
            # a compiled loop is faster where it makes the mask than where it reads it
            return mark_labels(labels, s) if is_jax(s) else is_label

        kernel = self._label_kernel(labels, mark, theta, tightness)
        return solve_separable(kernel, kernel.zero, is_label, theta, self.domain)

    def _label_kernel(
        self, labels: Array, mark: Map, theta: Array, tightness: float
    ) -> LabelFormulas:
        zero = namespace(theta).zeros_like(theta[..., :1])
        one = self.kernel(zero + 1, tightness)
        return LabelFormulas(labels, mark, one, self.zero_kernel(zero, tightness))

    @property
    def has_probabilities(self) -> bool:
        return self.domain.has_labels

    def solve_probabilities(self, theta: Array, tightness: float) -> Array:
        if not self.has_probabilities:
            return super().solve_probabilities(theta, tightness)
        if tightness == 0:
            return self.solve_link(theta)
        return chain_probabilities(self, theta, tightness, self.has_equal_classes)

    def solve_shard(
        self, y: Array, theta: Array, tightness: float, shard: Shard
    ) -> tuple[Array, Array]:
        if not self.has_equal_classes:
            return super().solve_shard(y, theta, tightness, shard)
        zero_kernel = self.zero_kernel(namespace(theta).zeros_like(theta[..., :1]), tightness)
        return solve_separable_shard(self.kernel(y, tightness), zero_kernel, y, theta, shard)

    def solve_shard_labels(
        self, labels: Array, theta: Array, tightness: float, shard: Shard
    ) -> tuple[Array, Array]:
        if not self.has_equal_classes:
            return super().solve_shard_labels(labels, theta, tightness, shard)
        is_label = shard.mark_labels(labels, theta)
        # a label of another process is looked up at some class of this one, and not used
        places = namespace(theta).clip(labels - shard.offset, 0, theta.shape[-1] - 1)
        kernel = self._label_kernel(places, lambda _: is_label, theta, tightness)
        return solve_separable_shard(kernel, kernel.zero, is_label, theta, shard)


def check_vectors(domain: ConvexSet) -> None:
    """Raise unless the points of a domain are vectors, which formulas take."""
    if domain.n_axes > 1:
        raise TypeError(
            f"points of {domain!r} are matrices, and this takes vectors along one axis; use "
            f"fitzpatrick.sets.Flat({domain!r}, (n, m)), and reshape scores and targets"
        )


def check_domain(owner: str, domain: ConvexSet, allowed: tuple[type[ConvexSet], ...]) -> None:
    """Raise unless ``domain`` is one of the sets that a regularizer is defined on."""
    if not isinstance(domain, allowed):
        names = " or ".join(f"{kind.__name__}()" for kind in allowed)
        raise TypeError(f"{owner} is defined on {names}, got domain={domain!r}")
