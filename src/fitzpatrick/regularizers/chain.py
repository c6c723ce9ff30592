r"""Order n: the Fitzpatrick function of a chain of n points, and the losses between n = 2 and ∞.

With :math:`y_0 = y` and :math:`\theta_i \in \partial\Omega(y_i)`, the function of order n is

.. math:: F_n(y, \theta) = \sup \; \langle y_{n-1}, \theta\rangle
          + \sum_{i=1}^{n-1} \langle y_{i-1} - y_i, \theta_i\rangle,

which is Fitzpatrick's for n = 2. Telescoped, :math:`L_n = F_n - \langle y, \theta\rangle` is the
Fenchel-Young loss of Ω plus the least sum of divergences over chains of n − 1 steps from y. So its
gradient is :math:`y_{n-1} - y`, its link that of Ω, and :math:`L_2 \le L_3 \le \dots \to L_{FY}`.

For a separable potential write :math:`u_i = \psi'(y_i)` and :math:`u_n = \theta`. Each entry solves

.. math:: T_i + u_i + \tau_i = u_{i+1}, \qquad T_i = \psi''(y_i)\,(y_i - y_{i-1}),

with one :math:`\tau_i` a stage on the simplex, and
:math:`L_n = \sum_i \langle y_i - y, T_i\rangle`. The solver begins on the geodesic of the metric
:math:`\psi''` from y to the link, lets each point a few times be the Fitzpatrick maximizer between
its neighbors, and ends with Newton's method: blocks of n − 1 equations for each entry, and as many
for the :math:`\tau_i` of a row.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Any, ClassVar

from .._array import (
    Array,
    class_indices,
    eps,
    is_concrete,
    is_jax,
    may_stop_early,
    namespace,
    positive_part,
    precision_bits,
    row_max,
    row_sum,
)
from ..sets._base import raise_unless
from ..special import logsumexp
from ._base import PointSolution, Regularizer, Solution, at_labels, mark_labels
from ._probabilities import chain_probabilities


class ChainStatus(Enum):
    """How the solver of a chain ended; the value is the sentence for the user."""

    STALLED = (
        "the chain of order {order} did not converge: its equations are still off by "
        "{residual:.3g}. Use double precision, a lower order, or tightness="
    )


class ChainFormulas(ABC):
    """The chain of one separable potential, entry by entry, bound to its targets.

    A point of the chain has a coordinate w that keeps its digits near y: by default
    ψ'(p) − ψ'(y), or ψ'(p) itself where ψ'(y) is infinite. Arrays of points have the stages as
    their first axis.
    """

    y: Array
    has_zeros: ClassVar[bool] = False  # True if points may have entries that are zero
    sweeps: ClassVar[int] = 2  # how often each point becomes a maximizer between its neighbors
    # Newton steps after the sweeps, by bits of precision: two more than any target, order and score
    # scale from 1e-3 to 1e3 needed in a search.
    steps: ClassVar[dict[int, int]] = {53: 10, 24: 8}

    @abstractmethod
    def geodesic(self, p: Array, shares: Array) -> Array:
        """Points at some shares of the way from y to p, which need not sum to one."""

    @abstractmethod
    def coordinate(self, p: Array) -> Array:
        """w of points p."""

    @abstractmethod
    def end(self, theta: Array) -> Array:
        """θ − ψ'(y), or θ where ψ'(y) is infinite."""

    @abstractmethod
    def point(self, w: Array) -> tuple[Array, Array]:
        """p and its derivative in w."""

    @abstractmethod
    def gap(self, w: Array) -> Array:
        """p − y."""

    @abstractmethod
    def pull(self, before: Array | None, w: Array) -> tuple[Array, Array, Array]:
        """T of a stage, its derivative in w, and minus its derivative in w of the stage before.

        ``before`` is None for the first stage, which y itself comes before.
        """

    def score(self, w: Array) -> Array:
        """ψ'(p) − ψ'(y), or ψ'(p) where ψ'(y) is infinite."""
        return w

    def is_seen(self, w: Array) -> Array:
        """True where the stage before meets ψ'(p), False where p = 0."""
        return w == w

    def move(self, w: Array, step: Array) -> Array:
        """w of all stages after a Newton step in their scores."""
        return w + step


def _stages(first: Array, later: Array) -> Array:
    return namespace(first).concat([first[None, ...], later], axis=0)


@dataclass(frozen=True, eq=False)
class EntropyChain(ChainFormulas):
    """ψ(p) = p log p: T = 1 − y_{i−1}/y_i, in terms of w = log(p/y), or log p where y = 0."""

    y: Array

    @property
    def _anchor(self) -> Array:
        xp = namespace(self.y)
        return xp.log(xp.where(self.y > 0, self.y, 1.0))

    def geodesic(self, p: Array, shares: Array) -> Array:
        xp = namespace(p)
        root = (1 - shares) * xp.sqrt(self.y) + shares * xp.sqrt(p)
        return root * root

    def coordinate(self, p: Array) -> Array:
        return namespace(p).log(p) - self._anchor

    def end(self, theta: Array) -> Array:
        return theta - self._anchor

    def point(self, w: Array) -> tuple[Array, Array]:
        p = namespace(w).exp(w + self._anchor)
        return p, p

    def gap(self, w: Array) -> Array:
        xp = namespace(w)
        return xp.where(self.y > 0, self.y * xp.expm1(w), xp.exp(w))

    def pull(self, before: Array | None, w: Array) -> tuple[Array, Array, Array]:
        xp = namespace(w)
        if before is None:
            ratio = xp.where(self.y > 0, xp.exp(-w), 0.0)
            pull = xp.where(self.y > 0, -xp.expm1(-w), 1.0)
            return pull, ratio, xp.zeros_like(w)
        ratio = xp.exp(before - w)
        return -xp.expm1(before - w), ratio, ratio


@dataclass(frozen=True, eq=False)
class TsallisChain(ChainFormulas):
    """ψ'(p) = p^β/β, in terms of w = log(p/y); where y = 0, w = ψ'(p), and p is 0 below 0.

    Where y = 0, w up to a rounding error counts as 0: at targets near the link a point there is
    zero, and one that is not would keep the next from being zero.
    """

    y: Array
    beta: float
    has_zeros: ClassVar[bool] = True
    sweeps: ClassVar[int] = 16
    steps: ClassVar[dict[int, int]] = {53: 24, 24: 16}

    @property
    def _has_target(self) -> Array:
        return self.y > 0

    @property
    def _safe_y(self) -> Array:
        return namespace(self.y).where(self._has_target, self.y, 1.0)

    @property
    def _dust(self) -> float:
        return 16 * eps(self.y) / self.beta

    def _split(self, w: Array) -> tuple[Array, Array]:
        """log(p/y) where y > 0, and ψ'(p) where y = 0; zero elsewhere."""
        xp = namespace(w)
        return xp.where(self._has_target, w, 0.0), xp.where(self._has_target, 0.0, w)

    def geodesic(self, p: Array, shares: Array) -> Array:
        half = (1 + self.beta) / 2
        return ((1 - shares) * self.y**half + shares * p**half) ** (1 / half)

    def coordinate(self, p: Array) -> Array:
        xp = namespace(p)
        ratio = xp.log(xp.where(self._has_target, p, 1.0) / self._safe_y)
        return xp.where(self._has_target, ratio, p**self.beta / self.beta)

    def end(self, theta: Array) -> Array:
        return theta - self.y**self.beta / self.beta

    def score(self, w: Array) -> Array:
        x, u = self._split(w)
        rise = self._safe_y**self.beta * namespace(w).expm1(self.beta * x) / self.beta
        return namespace(w).where(self._has_target, rise, u)

    def is_seen(self, w: Array) -> Array:
        return self._has_target | (w > self._dust)

    def _power(self, w: Array) -> Array:
        """p^β."""
        xp = namespace(w)
        x, u = self._split(w)
        positive = xp.where(u > self._dust, self.beta * u, 0.0)
        return xp.where(self._has_target, self._safe_y**self.beta * xp.exp(self.beta * x), positive)

    def point(self, w: Array) -> tuple[Array, Array]:
        xp, power = namespace(w), self._power(w)
        p = power ** (1 / self.beta)
        p = xp.where(self._has_target, self.y * xp.exp(self._split(w)[0]), p)
        return p, power ** (1 / self.beta - 1)

    def gap(self, w: Array) -> Array:
        xp = namespace(w)
        x = self._split(w)[0]
        return xp.where(self._has_target, self.y * xp.expm1(x), self.point(w)[0])

    def move(self, w: Array, step: Array) -> Array:
        xp = namespace(w)
        power = self._power(w)
        is_positive = power > 0
        share = step / xp.where(is_positive, power, 1.0)
        forward = xp.log1p(self.beta * xp.where(share > 0, share, 0.0))
        in_logarithms = xp.where(share > 0, forward / self.beta, share)
        # p cannot be zero where the point before is not
        is_bound = (_stages(self.y, self.point(w[:-1])[0]) > 0) & is_positive & (step < 0)
        back = power * xp.expm1(self.beta * xp.where(is_bound, share, 0.0))
        plain = w + xp.where(is_bound, back / self.beta, step)
        return xp.where(self._has_target, w + in_logarithms, plain)

    def pull(self, before: Array | None, w: Array) -> tuple[Array, Array, Array]:
        xp = namespace(w)
        if before is None:
            before = xp.zeros_like(w)
        power = self._power(w)
        is_positive = power > 0
        safe = xp.where(is_positive, power, 1.0)
        # log(y_{i−1}/y_i), −∞ where y_{i−1} = 0
        distance = xp.log(xp.where(is_positive, self._power(before) / safe, 1.0)) / self.beta
        eta = xp.where(self._has_target, before - w, distance)
        ratio = xp.exp(eta)
        pull = -safe * xp.expm1(eta)
        own = self.beta + (1 - self.beta) * ratio
        other = xp.exp((1 - self.beta) * eta)
        return (
            xp.where(is_positive, pull, 0.0),
            xp.where(is_positive, own, 0.0),
            xp.where(is_positive, other, 0.0),
        )


@dataclass(frozen=True, eq=False)
class _System:
    """The linearized equations of a chain at its coordinates w, for all stages.

    Attributes:
        d: ∂p/∂w, (m, …, k).
        inverse: of the equations of each entry, (…, k, m, m).
        mass: Σ d of each stage, (…, m), and 1 where that is 0.
        schur: the derivative of the sums of a row's points in its τ, over that mass, (…, m, m);
            None on a product set.
    """

    d: Array
    inverse: Array
    mass: Array
    schur: Array | None

    def solve(self, right: Array, sums: Array) -> tuple[Array, Array]:
        """The steps in w and in τ for right-hand sides (m, …, k) and wanted changes of the sums."""
        xp = namespace(right)
        step = (self.inverse @ xp.moveaxis(right, 0, -1)[..., None])[..., 0]
        if self.schur is None:
            return xp.moveaxis(step, -1, 0), xp.zeros_like(sums)
        d = xp.moveaxis(self.d, 0, -1)
        excess = xp.sum(d * step, axis=-2) - xp.moveaxis(sums, 0, -1)
        shift = xp.linalg.solve(self.schur, (excess / self.mass)[..., None])
        step = step - (self.inverse @ shift[..., None, :, :])[..., 0]
        return xp.moveaxis(step, -1, 0), xp.moveaxis(shift[..., 0], -1, 0)


@dataclass(frozen=True, eq=False)
class ChainSolution(Solution):
    """The last point of a chain."""

    formulas: ChainFormulas
    w: Array
    system: _System
    pulls: Array
    is_masked: Array

    @property
    def y(self) -> Array:
        return self.formulas.y

    @property
    def y_star(self) -> Array:
        return namespace(self.w).where(self.is_masked, 0.0, self.formulas.point(self.w[-1])[0])

    def gradient(self) -> Array:
        gap = self.formulas.gap(self.w[-1])
        return namespace(gap).where(self.is_masked, -self.y, gap)

    def value(self) -> Array:
        xp = namespace(self.w)
        terms = xp.sum(self.formulas.gap(self.w) * self.pulls, axis=0)
        at_mask = xp.where(self.y > 0, xp.full_like(self.y, xp.inf), xp.zeros_like(self.y))
        # a rounding error may be negative
        return positive_part(xp.sum(xp.where(self.is_masked, at_mask, terms), axis=-1))

    def hessian_product(self, v: Array) -> Array:
        xp = namespace(v)
        v = xp.where(self.is_masked, 0.0, v)
        right = xp.concat([xp.zeros_like(self.w[:-1]), v[None, ...]], axis=0)
        step, _ = self.system.solve(right, xp.zeros_like(right[..., 0]))
        return self.system.d[-1] * step[-1]


def _pulls(formulas: ChainFormulas, w: Array) -> list[Array]:
    """T of every stage and its two derivatives."""
    first, later = formulas.pull(None, w[0]), formulas.pull(w[:-1], w[1:])
    return [_stages(head, tail) for head, tail in zip(first, later, strict=True)]


def _linearize(
    formulas: ChainFormulas, w: Array, is_masked: Array, is_coupled: bool
) -> tuple[Array, _System]:
    """T of every stage, and the system of equations."""
    xp = namespace(w)
    pulls, own, other = _pulls(formulas, w)
    own, other = xp.where(is_masked, 0.0, own), xp.where(is_masked, 0.0, other)
    following = xp.where(is_masked, 0.0, xp.astype(formulas.is_seen(w), w.dtype))
    d = xp.where(is_masked, 0.0, formulas.point(w)[1])
    stage = class_indices(xp.moveaxis(w, 0, -1))
    offset = stage[:, None] - stage[None, :]

    def band(values: Array, place: int, shift: int) -> Array:
        """The matrix with the values of each row's own stage, or of the next, on a diagonal."""
        rows = xp.moveaxis(xp.roll(values, shift, axis=0), 0, -1)[..., :, None]
        return xp.where(offset == place, rows, 0.0)

    matrix = band(1 + own, 0, 0) - band(other, 1, 0) - band(following, -1, -1)
    unit = xp.where(offset == 0, xp.ones_like(matrix), 0.0)
    # NumPy refuses a whole batch for one matrix that is not finite
    is_finite = xp.all(xp.isfinite(matrix), axis=(-2, -1), keepdims=True)
    inverse = xp.linalg.inv(xp.where(is_finite, matrix, unit))
    inverse = xp.where(is_finite, inverse, xp.nan)
    mass = xp.sum(xp.moveaxis(d, 0, -1), axis=-2)
    is_empty = ~(mass > 0)
    mass = xp.where(is_empty, 1.0, mass)
    if not is_coupled:
        return pulls, _System(d, inverse, mass, None)
    schur = xp.sum(xp.moveaxis(d, 0, -1)[..., :, None] * inverse, axis=-3) / mass[..., :, None]
    schur = xp.where(is_empty[..., :, None] | ~xp.isfinite(schur), unit[..., 0, :, :], schur)
    return pulls, _System(d, inverse, mass, schur)


def _repeat(
    step: Callable[[Any], Any],
    state: Any,
    times: int,
    is_done: Callable[[Any], bool] = lambda _: False,
) -> Any:
    """The state after some steps. JAX compiles one step and takes all; others may stop early."""
    if is_jax(state[0]):
        from jax import lax

        return lax.fori_loop(0, times, lambda _, state: step(state), state)
    for _ in range(times):
        state = step(state)
        if is_done(state):
            break
    return state


def solve_chain(
    make_formulas: Callable[[Array], ChainFormulas],
    base: Regularizer,
    y: Array,
    theta: Array,
    order: int,
) -> ChainSolution:
    """The chain of an order from y to θ."""
    xp, formulas, is_coupled = namespace(theta), make_formulas(y), not base.domain.is_product
    given = theta = theta - row_max(theta) if is_coupled else theta
    shares = [xp.full_like(theta, i / order) for i in range(1, order)]
    points = formulas.geodesic(base.solve_link(theta), xp.stack(shares))
    if is_coupled:
        points = points / row_sum(points)

    def sweep(points: Array) -> Array:
        before = _stages(y, points[:-1])
        scores = xp.concat([base.potential_gradient(points[1:]), given[None, ...]], axis=0)
        return base.solve(before, scores, 1.0).y_star

    points = _repeat(sweep, points, formulas.sweeps)
    is_masked = theta == -xp.inf
    if not formulas.has_zeros:  # classes whose mass underflows take no part
        least = float(xp.finfo(theta.dtype).smallest_normal)
        is_masked = is_masked | ((xp.min(points, axis=0) <= least) & (y == 0))
    theta = xp.where(is_masked, 0.0, theta)
    end, w = formulas.end(theta), formulas.coordinate(points)
    w = xp.where(xp.isfinite(w), w, end)
    w = xp.where(is_masked, 0.0, w)
    zero = xp.zeros_like(w)

    def residual(w: Array, tau: Array, pulls: Array) -> tuple[Array, Array]:
        """The residuals of the equations, and of the sums of the points."""
        score = formulas.score(w)
        seen = xp.where(formulas.is_seen(w), score, 0.0)
        rest = xp.concat([seen[1:], end[None, ...]], axis=0) - score - pulls - tau
        lack = 1 - xp.sum(xp.where(is_masked, 0.0, formulas.point(w)[0]), axis=-1)
        return xp.where(is_masked, 0.0, rest), lack

    scale = 1 + row_max(xp.abs(end))[..., 0]

    def size(w: Array, tau: Array) -> Array:
        """The largest residual of each row; ∞ where it is not a number."""
        rest, lack = residual(w, tau, _pulls(formulas, w)[0])
        found = xp.max(xp.max(xp.abs(rest), axis=-1), axis=0) / scale
        if is_coupled:
            found = xp.maximum(found, xp.max(xp.abs(lack), axis=0))
        return xp.where(xp.isfinite(found), found, xp.inf)

    def improve(w: Array, tau: Array, best: tuple[Array, ...]) -> Any:
        """A Newton step in the rows that are not solved yet, and the best point so far."""
        pulls, system = _linearize(formulas, w, is_masked, is_coupled)
        step, shift = system.solve(*residual(w, tau, pulls))
        is_open = best[2] > eps(theta) ** 0.9
        w = xp.where(is_open[..., None], formulas.move(w, step), w)
        tau = xp.where(is_open[..., None], tau + shift[..., None], tau)
        reached = size(w, tau)
        is_better = reached < best[2]
        pairs = zip((w, tau), best[:2], strict=True)
        kept = [xp.where(is_better[..., None], *pair) for pair in pairs]
        return w, tau, (*kept, xp.where(is_better, reached, best[2]))

    pulls, system = _linearize(formulas, w, is_masked, is_coupled)
    tau = row_sum(zero)
    if is_coupled:
        mass = xp.moveaxis(system.mass, -1, 0)[..., None]
        tau = row_sum(system.d * residual(w, tau, pulls)[0]) / mass
    state, steps = (w, tau, (w, tau, size(w, tau))), formulas.steps[precision_bits(theta)]

    def is_done(state: Any) -> bool:
        return may_stop_early(theta) and not bool(xp.any(state[2][2] > eps(theta) ** 0.9))

    w, tau, best = _repeat(lambda state: improve(*state), state, steps, is_done)[2]
    is_lost = ~(best <= eps(theta) ** 0.5)
    if is_concrete(theta):
        has_answer = xp.all(xp.isfinite(theta), axis=-1) & xp.any(~is_masked, axis=-1)
        raise_unless(~is_lost | ~has_answer, best, ChainStatus.STALLED, order=order)
    w = xp.where(is_lost[..., None], xp.nan, w)
    pulls, system = _linearize(formulas, w, is_masked, is_coupled)
    return ChainSolution(formulas, w, system, pulls, is_masked & ~is_lost[..., None])


@dataclass(frozen=True)
class Chain(Regularizer):
    """Ω with its losses of order n at tightness 1; made by :class:`FitzpatrickLoss`.

    Args:
        base: Ω.
        order: n, 3 or more.
    """

    base: Regularizer
    order: int
    max_tightness = 1.0

    def __post_init__(self) -> None:
        _ = self.base.chain  # raises if there is none

    # whatever is no loss of order n is Ω's own
    domain = property(lambda self: self.base.domain)
    is_coupled = property(lambda self: self.base.is_coupled)
    has_kinks = property(lambda self: self.base.has_kinks)
    keeps_order = property(lambda self: self.base.keeps_order)
    entmax_alpha = property(lambda self: self.base.entmax_alpha)
    potential = property(lambda self: self.base.potential)
    potential_gradient = property(lambda self: self.base.potential_gradient)
    potential_curvature = property(lambda self: self.base.potential_curvature)
    potential_divergence = property(lambda self: self.base.potential_divergence)
    solve_link = property(lambda self: self.base.solve_link)
    solve_conjugate = property(lambda self: self.base.solve_conjugate)

    @property
    def has_probabilities(self) -> bool:
        return self.base.domain.has_labels

    def solve_probabilities(self, theta: Array, tightness: float) -> Array:
        if self._is_base(tightness) or not self.has_probabilities:
            return self.base.solve_probabilities(theta, 0.0)
        return chain_probabilities(self, theta, tightness)

    def solve(self, y: Array, theta: Array, tightness: float) -> Solution:
        if self._is_base(tightness):
            return self.base.solve(y, theta, tightness)
        xp = namespace(y)
        # a subnormal target counts as zero, which moves the loss by no digit
        least = float(xp.finfo(y.dtype).smallest_normal)
        y = xp.where(xp.abs(y) < least, 0.0, y)
        return self.base.chain(y, theta, self.order)

    def solve_labels(self, labels: Array, theta: Array, tightness: float) -> Solution:
        if self._is_base(tightness):
            return self.base.solve_labels(labels, theta, tightness)
        if self.base.entmax_alpha != 1:
            return super().solve_labels(labels, theta, tightness)
        # classes with y = 0 keep their ratios, and act as one beside the label
        xp = namespace(theta)
        is_label = mark_labels(labels, theta)
        others = xp.where(is_label, -xp.inf, theta)
        log_rest = logsumexp(others)
        pair = xp.concat([at_labels(theta, labels), log_rest], axis=-1)
        y = xp.concat([xp.ones_like(log_rest), xp.zeros_like(log_rest)], axis=-1)
        shares = xp.exp(others - xp.where(log_rest == -xp.inf, 0.0, log_rest))
        two = self.solve(y, pair, 1.0)
        p = two.y_star

        def spread(x: Array) -> Array:
            return xp.where(is_label, x[..., :1], x[..., 1:] * shares)

        def product(v: Array) -> Array:
            own = row_sum(xp.where(is_label, v, 0.0))
            mean = row_sum(shares * v)
            change = two.hessian_product(xp.concat([own, mean], axis=-1))
            others = p[..., 1:] * shares * (v - mean)
            return spread(change) + xp.where(is_label, 0.0, others)

        rest = two.gradient()[..., 1:]  # which has digits where p of the label is near one
        gradient = spread(xp.concat([-rest, rest], axis=-1))
        return PointSolution(is_label, spread(p), two.value, product, own_gradient=gradient)

    def _is_base(self, tightness: float) -> bool:
        if tightness not in (0.0, 1.0):
            raise ValueError(
                f"a loss of order {self.order} has no tightness of its own, got {tightness:g}; "
                "give order= or tightness="
            )
        return tightness == 0
