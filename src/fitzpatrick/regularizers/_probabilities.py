r"""The class probabilities that belong to scores, at every tightness c.

With class labels, scores that minimize the expected loss :math:`\sum_j q_j L_c(e_j, \theta)` solve
:math:`\sum_j q_j\, y^\star_c(e_j, \theta) = q`: the probabilities q are the stationary distribution
of the Markov chain that goes from class j to class i with probability
:math:`y^\star_c(e_j, \theta)_i`. At c = 0 that is the link, whatever j is.

The chain of the negentropy is reversible. With p the soft argmax,
:math:`d_j = \log(1 - p_j) - \log p_j` and :math:`w_j = \omega(d_j + \log c - c)`,

.. math:: q_j \propto p_j\,(1 - p_j)\,(1 + c / w_j).

Two classes are a coin, entry by entry: the odds of heads are the probability of leaving tails over
the probability of leaving heads. Other chains are solved as systems of linear equations, or
iterated where very many classes take part.
"""

import math
from typing import TYPE_CHECKING, Any

from .._array import Array, class_indices, is_concrete, namespace, row_max, row_sum
from ..special import logsumexp, sigmoid, softplus, wright_omega

if TYPE_CHECKING:
    from ._base import Regularizer, SeparableRegularizer

# A system of equations takes the cube of the active classes; beyond this many a chain is iterated.
MAX_ACTIVE = 1024
# Rows are taken together while their chains hold this many numbers at most.
_MAX_CHAIN_SIZE = 1 << 22
# A function whose nearest singularity is a range away is interpolated to 5.8^−N; and the least z of
# an interpolated class over its largest, which high powers would exceed.
_NODES, _MIN_RATIO = 22, 1e-3
_NEWTON_STEPS, _MAX_STEPS = 30, 1000


def negentropy_probabilities(theta: Array, tightness: float) -> Array:
    """The closed form above, in logarithms, so that no score overflows or cancels."""
    xp = namespace(theta)
    theta = theta - row_max(theta)
    # one minus the largest entry is the sum of the others, which a difference would lose
    is_top = class_indices(theta) == xp.argmax(theta, axis=-1, keepdims=True)
    log_others = logsumexp(xp.where(is_top, -xp.inf, theta))
    log_total = logsumexp(theta)
    log_p = theta - log_total
    inside = xp.where(is_top, 0.0, xp.exp(log_p))
    log_rest = xp.where(is_top, log_others - log_total, xp.log1p(-inside))
    omega = wright_omega(log_rest - log_p + (math.log(tightness) - tightness))
    # log(1 − p) + log(1 + c/ω); c/ω is e^(c + ω − d) where ω may underflow
    is_small = omega < 1
    near = log_p + tightness + xp.where(is_small, omega, 0.0)
    near = xp.logaddexp(log_rest, near)
    far = log_rest + xp.log1p(tightness / xp.where(is_small, 1.0, omega))
    log_q = xp.where(log_p == -xp.inf, log_p, log_p + xp.where(is_small, near, far))
    q = xp.exp(log_q - row_max(log_q))
    return q / row_sum(q)


def coin_probabilities(theta: Array, tightness: float) -> Array:
    """The probability of heads for each score, c > 0."""
    return sigmoid(_log_leaving(theta, tightness) - _log_leaving(-theta, tightness))


def _log_leaving(theta: Array, tightness: float) -> Array:
    """log y*_c(0, θ), the probability of leaving tails: −log(1 + 1/r) with r = ω/c."""
    z = theta - tightness + math.log(tightness)
    omega = wright_omega(z)
    # log ω has digits where ω is large, and its equation where ω may underflow
    log_omega = namespace(z).where(omega < 1, z - omega, namespace(z).log(omega + (omega < 1)))
    return -softplus(math.log(tightness) - log_omega)


def chain_probabilities(
    omega: "Regularizer", theta: Array, tightness: float, has_equal_classes: bool = False
) -> Array:
    """The stationary distribution of the chain of a regularizer on the simplex, c > 0.

    Where all classes have the same separable formulas, a sparse chain stays among the highest
    scores. They are taken in order, twice as many each time, until no chain leaves them. While a
    compiler traces, all rows and classes are taken at once.
    """
    xp, k = namespace(theta), theta.shape[-1]
    if k > MAX_ACTIVE and not has_equal_classes:
        raise ValueError(
            f"the class probabilities of {omega!r} are found for {MAX_ACTIVE} classes at most, got "
            f"{k}; loss.link(theta) is the prediction"
        )
    active = min(k, 16) if is_concrete(theta) and has_equal_classes else k
    rows, found, at = xp.reshape(theta, (-1, k)), [], 0
    while at < rows.shape[0]:
        size = max(1, _MAX_CHAIN_SIZE // active**2) if is_concrete(theta) else rows.shape[0]
        block = rows[at : at + size]
        q = solve_chains(omega, block, tightness, active)
        if q is None and active < MAX_ACTIVE:
            active = min(k, 2 * active)
            continue
        if q is None:
            q = xp.stack([wide_chain(omega, row, tightness) for row in block])  # type: ignore[arg-type]
        found.append(q)
        at += block.shape[0]
    return xp.reshape(xp.concat(found, axis=0), theta.shape) if found else theta


def solve_chains(omega: "Regularizer", theta: Array, tightness: float, active: int) -> Array | None:
    """Probabilities from the chains on the ``active`` highest scores; None if one leaves these."""
    xp, k = namespace(theta), theta.shape[-1]
    top = theta
    if active < k:
        order = xp.argsort(theta, axis=-1, descending=True, stable=True)
        ordered = xp.take_along_axis(theta, order, axis=-1)
        top = ordered[..., :active]
    scores = xp.broadcast_to(top[..., None, :], (*top.shape, active))
    labels = xp.broadcast_to(class_indices(top), top.shape)
    solution: Any = omega.solve_labels(labels, scores, tightness)
    if active < k:
        # p of the highest class that was left out, as seen from each label
        s = solution.s[..., :1] + (ordered[..., active : active + 1] - top[..., :1])[..., None, :]
        zero: Any = omega.zero_kernel(xp.zeros_like(s), tightness)  # type: ignore[attr-defined]
        if bool((zero.point(s)[0] > 0).any()):
            return None
    # a masked class is never entered; leaving it for the highest keeps the equations regular
    highest = class_indices(top) == xp.argmax(top, axis=-1, keepdims=True)
    way_out = xp.astype(highest, theta.dtype)[..., None, :]
    columns = xp.where((top == -xp.inf)[..., None], way_out, solution.y_star)
    q = stationary_distribution(columns, highest)
    q = xp.where(row_max(top) > -xp.inf, q, xp.nan)  # no class is left
    if active == k:
        return q
    q = xp.concat([q, xp.zeros_like(ordered[..., active:])], axis=-1)
    return xp.take_along_axis(q, xp.argsort(order, axis=-1), axis=-1)


def stationary_distribution(chain: Array, is_goal: Array) -> Array:
    """q with q = q A for stochastic matrices A (…, k, k), of which all states reach a goal (…, k).

    With x_j = q_j (1 − A_jj), how often the chain leaves a state, x = x P, where P goes to another
    state each time. P does not know how long the chain stays, and its equations are regular with
    Σ x = 1. One step with P makes x a sum of non-negative numbers.
    """
    xp = namespace(chain)
    is_own = class_indices(chain) == class_indices(chain)[:, None]
    unit = xp.astype(is_own, chain.dtype)
    away = xp.where(is_own, 0.0, chain)
    leaving = row_sum(away)
    stays = leaving == 0
    leaving = xp.where(stays, 1.0, leaving)
    jump = xp.where(stays, xp.astype(is_goal, chain.dtype)[..., None, :], away / leaving)
    first = xp.sum(xp.where(is_goal[..., None], jump, 0.0), axis=-2)[..., None]
    x = xp.linalg.solve(unit - xp.matrix_transpose(jump) + first, first)
    x = xp.sum(xp.abs(x) * jump, axis=-2)
    least = xp.min(leaving, axis=(-2, -1), keepdims=True)
    q = x * (least / leaving)[..., 0]
    # no number is small enough for what leaves a state other than the goal
    is_lost = xp.any(stays[..., 0] & ~is_goal, axis=-1, keepdims=True)
    return xp.where(is_lost, xp.nan, q / row_sum(q))


def wide_chain(omega: "SeparableRegularizer", theta: Array, tightness: float) -> Array:
    """Probabilities of one row (k,), without its matrix; NaN unless the largest score is finite.

    From label j the chain goes to class i ≠ j with probability z(θ_i − τ_j), where z is the
    maximizer at y = 0. With g_i = Σ_j q_j z(θ_i − τ_j), q_i = g_i/(1 − Δ_i), where Δ_i is the
    probability of staying less z(θ_i − τ_i). The columns of z are nearly parallel, so that this
    forgets where it started in a few steps. The more classes are active, the closer are all τ. For
    a class that lies above them by more than their range, z is interpolated in τ at Chebyshev
    nodes; others, at the edge or with too wide a range of z, are summed one by one.
    """
    xp = namespace(theta)
    top = xp.max(theta)  # NaN if a score is
    if not bool(xp.isfinite(top)):
        return xp.full_like(theta, xp.nan)
    order = xp.argsort(theta, descending=True, stable=True)
    x, spacing = xp.take(theta, order) - top, float(xp.finfo(theta.dtype).eps)
    point = omega.zero_kernel(xp.zeros_like(x[:1, None]), tightness).point
    own = omega.kernel(xp.ones_like(x[:1, None]), tightness).point

    def tau_of(label: int) -> Array:
        labels = xp.full((1,), label, dtype=xp.int64, device=x.device)
        solution: Any = omega.solve_labels(labels, x[None, :], tightness)
        return x[0] - solution.s[0, 0]

    # the lowest class that is reached has the lowest τ, which may reach further
    high, m, reached = tau_of(0), 0, 1
    while reached > m:
        m, low = reached, tau_of(reached - 1)
        reached = max(m, int(xp.count_nonzero(point((x - low)[None, :])[0])))
    x = x[:m]
    span = xp.maximum(high - low, 64 * spacing * (1 + xp.abs(high)))  # not 0 for ties
    degrees = xp.arange(_NODES, dtype=x.dtype, device=x.device)
    angles = (degrees + 0.5) * (math.pi / _NODES)
    to_nodes = xp.cos(degrees[:, None] * angles) * xp.clip(degrees + 1, 1, 2)[:, None] / _NODES
    # classes well above all τ, whose least z has digits beside the largest
    above = point((x - high - span)[None, :])[0] > 0
    most, least = (point((x - end)[None, :])[0] for end in (low, high))
    n_far = int(xp.count_nonzero(above & (least >= _MIN_RATIO * most)))
    z, d = point(x[None, :n_far] - (low + span * (xp.cos(angles) + 1) / 2)[:, None])
    edge = x[n_far:]
    size = max(1, _MAX_CHAIN_SIZE // max(1, m - n_far))
    blocks = [slice(at, at + size) for at in range(0, m, size)]

    def weights(tau: Array) -> Array:
        """The weight of each node at τ, shape (m, N)."""
        angle = xp.acos(xp.clip(2 * (tau - low) / span - 1, -1.0, 1.0))
        return xp.cos(angle[:, None] * degrees) @ to_nodes

    # Newton's method for all τ from below, where the sum of a column is convex. It sums to one, so
    # that 1 − Δ is its sum with z in place of the own entry, which has all of its digits.
    tau, is_close = low + xp.zeros_like(x), False
    for _ in range(_NEWTON_STEPS):
        parts = [point(edge - tau[at, None]) for at in blocks]
        p, slope = (
            weights(tau) @ xp.sum(far, axis=1) + xp.concat([xp.sum(b[i], axis=1) for b in parts])
            for i, far in enumerate((z, d))
        )
        (own_p, own_d), (own_z, own_slope) = (f((x - tau)[None, :]) for f in (own, point))
        move = (p + (own_p - own_z)[0] - 1) / (slope + (own_d - own_slope)[0])
        tau, leave = tau + move, p - move * slope
        if is_close:  # the error of a step is the square of the one before
            break
        is_close = not bool(xp.max(xp.abs(move)) > spacing**0.5 * (1 + xp.max(xp.abs(tau))))
    else:
        raise RuntimeError("the thresholds of the chain's columns did not converge")
    columns, q = weights(tau), least[0] + spacing
    for _ in range(_MAX_STEPS):
        at_edge = sum(q[at] @ point(edge - tau[at, None])[0] for at in blocks)
        reach = xp.concat([(q @ columns) @ z, at_edge]) / leave
        change, q = reach / xp.sum(reach) - q, reach / xp.sum(reach)
        if not bool(xp.max(xp.abs(change)) > 4 * spacing * xp.max(q)):  # NaN ends, too
            q = xp.concat([q, xp.zeros_like(theta[m:])])
            return xp.take(q, xp.argsort(order))
    raise RuntimeError(f"the chain of {omega!r} at tightness {tightness:g} did not converge")
