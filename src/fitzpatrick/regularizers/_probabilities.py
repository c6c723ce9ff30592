r"""The class probabilities that belong to scores, at every tightness c.

With class labels, scores that minimize the expected loss :math:`\sum_j q_j L_c(e_j, \theta)` solve
:math:`\sum_j q_j\, y^\star_c(e_j, \theta) = q`: the probabilities q are the stationary distribution
of the Markov chain that goes from class j to class i with probability
:math:`y^\star_c(e_j, \theta)_i`. At c = 0 that is the link, whatever j is.

The chain of the negentropy is reversible. With p the soft argmax,
:math:`d_j = \log(1 - p_j) - \log p_j` and :math:`w_j = \omega(d_j + \log c - c)`,

.. math:: q_j \propto p_j\,(1 - p_j)\,(1 + c / w_j).

Two classes are a coin, entry by entry: the odds of heads are those of leaving tails over those of
leaving heads. Other chains are solved by elimination without a subtraction (Grassmann, Taksar and
Heyman), which keeps the digits of every entry, or iterated where very many classes take part.
"""

import math
from typing import TYPE_CHECKING, Any

from .._array import Array, class_indices, is_concrete, is_jax, namespace, row_max, row_sum
from ..special import sigmoid, softplus, wright_omega
from ._wide_chains import wide_chain_probabilities

if TYPE_CHECKING:
    from ._base import Regularizer, SeparableRegularizer

# Elimination takes the cube of the active classes; beyond this many a chain is iterated.
MAX_ACTIVE = 1024
# Rows are taken together while their chains hold this many numbers at most.
_MAX_CHAIN_SIZE = 1 << 22


def negentropy_probabilities(theta: Array, tightness: float) -> Array:
    """The closed form above, in logarithms, so that no score overflows or cancels."""
    xp = namespace(theta)
    theta = theta - row_max(theta)
    weights = xp.exp(theta)
    # one minus the largest entry is the sum of the others, which a difference would lose
    is_top = class_indices(theta) == xp.argmax(theta, axis=-1, keepdims=True)
    others = xp.where(is_top, xp.full_like(theta, -xp.inf), theta)
    second = row_max(others)
    second = xp.where(second == -xp.inf, xp.zeros_like(second), second)
    log_others = second + xp.log(row_sum(xp.exp(others - second)))
    log_total = xp.log(row_sum(weights))
    log_p = theta - log_total
    inside = xp.where(is_top, xp.zeros_like(theta), xp.exp(log_p))
    log_rest = xp.where(is_top, log_others - log_total, xp.log1p(-inside))
    omega = wright_omega(log_rest - log_p + (math.log(tightness) - tightness))
    # log(1 − p) + log(1 + c/ω); c/ω is e^(c + ω − d) where ω may underflow
    is_small = omega < 1
    near = log_p + tightness + xp.where(is_small, omega, xp.zeros_like(omega))
    larger = xp.maximum(log_rest, near)
    smaller = xp.minimum(log_rest, near)
    gap = xp.where(smaller == -xp.inf, smaller, smaller - larger)
    near = larger + xp.log1p(xp.exp(gap))
    far = log_rest + xp.log1p(tightness / xp.where(is_small, xp.ones_like(omega), omega))
    log_q = xp.where(log_p == -xp.inf, log_p, log_p + xp.where(is_small, near, far))
    q = xp.exp(log_q - row_max(log_q))
    return q / row_sum(q)


def coin_probabilities(theta: Array, tightness: float) -> Array:
    """The probability of heads for each score, c > 0."""
    return sigmoid(_log_leaving(theta, tightness) - _log_leaving(-theta, tightness))


def _log_leaving(theta: Array, tightness: float) -> Array:
    """log y*_c(0, θ), the probability of leaving tails: −log(1 + 1/r) with r = ω/c."""
    xp = namespace(theta)
    z = theta - tightness + math.log(tightness)
    omega = wright_omega(z)
    is_small = omega < 1
    log_omega = xp.where(
        is_small, z - omega, xp.log(xp.where(is_small, xp.ones_like(omega), omega))
    )
    return -softplus(math.log(tightness) - log_omega)


def chain_probabilities(omega: "SeparableRegularizer", theta: Array, tightness: float) -> Array:
    """The stationary distribution of the chain of a separable regularizer on the simplex, c > 0.

    A sparse chain stays among the highest scores. They are taken in order, twice as many each time,
    until no chain leaves them, and beyond ``MAX_ACTIVE`` it is iterated; while a compiler traces,
    all classes are taken at once.
    """
    xp = namespace(theta)
    k = theta.shape[-1]
    if not is_concrete(theta):
        q = _solve_chains(omega, theta, tightness, k)
        assert q is not None  # no class is left out
        return q
    rows = xp.reshape(theta, (-1, k))
    found, at = [], 0
    active = min(k, 16)
    while at < rows.shape[0]:
        active = min(k, active)
        block = rows[at : at + max(1, _MAX_CHAIN_SIZE // active**2)]
        q = _solve_chains(omega, block, tightness, active)
        if q is None and active < MAX_ACTIVE:
            active *= 2
            continue
        if q is None:
            q = xp.stack([wide_chain_probabilities(omega, row, tightness) for row in block])
        found.append(q)
        at += block.shape[0]
    if not found:
        return theta
    return xp.reshape(xp.concat(found, axis=0), theta.shape)


def all_class_probabilities(omega: "Regularizer", theta: Array, tightness: float) -> Array:
    """The stationary distribution with a column of the chain for every class, c > 0.

    For regularizers that tell the classes apart, and those without formulas for single entries.
    """
    xp, k = namespace(theta), theta.shape[-1]
    if k > MAX_ACTIVE:
        raise ValueError(
            f"the class probabilities of {omega!r} are found for {MAX_ACTIVE} classes at most, got "
            f"{k}; loss.link(theta) is the prediction"
        )
    rows, found = xp.reshape(theta, (-1, k)), []
    size = max(1, _MAX_CHAIN_SIZE // k**2)
    for at in range(0, rows.shape[0], size):
        block = rows[at : at + size]
        scores = xp.broadcast_to(block[:, None, :], (*block.shape, k))
        labels = xp.broadcast_to(class_indices(block), block.shape)
        columns = omega.solve_labels(labels, scores, tightness).y_star
        # a masked class is never entered; leaving it for the highest keeps the elimination finite
        highest = xp.astype(
            class_indices(block) == xp.argmax(block, axis=-1, keepdims=True), theta.dtype
        )
        q = stationary_distribution(
            xp.where((block == -xp.inf)[..., None], highest[:, None, :], columns)
        )
        has_answer = row_max(block) > -xp.inf
        found.append(xp.where(has_answer, q, xp.full_like(q, xp.nan)))
    return xp.reshape(xp.concat(found, axis=0), theta.shape) if found else theta


def _solve_chains(
    omega: "SeparableRegularizer", theta: Array, tightness: float, active: int
) -> Array | None:
    """Probabilities from the chains on the ``active`` highest scores; None if one leaves these."""
    xp = namespace(theta)
    k = theta.shape[-1]
    order = xp.argsort(theta, axis=-1, descending=True, stable=True)
    ordered = xp.take_along_axis(theta, order, axis=-1)
    top = ordered[..., :active]
    shape = (*top.shape, active)
    scores = xp.broadcast_to(top[..., None, :], shape)
    labels = xp.broadcast_to(class_indices(top), top.shape)
    solution: Any = omega.solve_labels(labels, scores, tightness)  # a SeparableSolution
    if active < k:
        # p of the highest class that was left out, as seen from each label
        s = solution.s[..., :1] + (ordered[..., active : active + 1] - top[..., :1])[..., None, :]
        zero = xp.zeros_like(s)
        if bool((omega.zero_kernel(zero, tightness).point(s)[0] > 0).any()):
            return None
    # a masked class is never entered; leaving it for the first one keeps the elimination finite
    is_masked = (top == -xp.inf)[..., None]
    first = xp.astype(class_indices(top) == 0, theta.dtype)
    q = stationary_distribution(xp.where(is_masked, first, solution.y_star))
    q = xp.where(top[..., :1] > -xp.inf, q, xp.full_like(q, xp.nan))  # no class is left
    if active < k:
        q = xp.concat([q, xp.zeros_like(ordered[..., active:])], axis=-1)
    return xp.take_along_axis(q, xp.argsort(order, axis=-1), axis=-1)


def stationary_distribution(chain: Array) -> Array:
    """q with q = q A for stochastic matrices A (…, k, k), of which all reach the first state.

    States are left out one by one, from the last: what enters a state leaves it in its proportions.
    Entries are sums of products of non-negative numbers, exact in their own digits.

    Example:
        >>> import numpy as np
        >>> stationary_distribution(np.asarray([[0.5, 0.5, 0.0], [0.25, 0.75, 0.0], [1.0, 0, 0]]))
        array([0.33333333, 0.66666667, 0.        ])
    """
    if is_jax(chain):
        return _stationary_in_jax(chain)
    xp = namespace(chain)
    entering = []
    for n in range(chain.shape[-1] - 1, 0, -1):
        leaving = chain[..., n, :n]
        into = chain[..., :n, n] / row_sum(leaving)
        entering.append(into)
        chain = chain[..., :n, :n] + into[..., :, None] * leaving[..., None, :]
    q = chain[..., 0] * 0 + 1
    for into in reversed(entering):
        q = xp.concat([q, row_sum(q * into)], axis=-1)
    return q / row_sum(q)


def _stationary_in_jax(chain: Array) -> Array:
    """The elimination in loops that are compiled once, on whole rows instead of shorter ones."""
    import jax.numpy as jnp
    from jax import lax

    k = chain.shape[-1]
    places = jnp.arange(k)

    def leave_out(i: Array, state: tuple[Array, Array]) -> tuple[Array, Array]:
        chain, entering = state
        n = k - 1 - i
        leaving = jnp.where(places < n, chain[..., n, :], 0)
        into = jnp.where(places < n, chain[..., :, n], 0) / row_sum(leaving)
        return chain + into[..., :, None] * leaving[..., None, :], entering.at[..., n, :].set(into)

    def enter(n: Array, q: Array) -> Array:
        return jnp.where(places == n, row_sum(q * entering[..., n, :]), q)

    _, entering = lax.fori_loop(0, k - 1, leave_out, (chain, jnp.zeros_like(chain)))
    q = lax.fori_loop(1, k, enter, jnp.where(places == 0, 1.0, 0.0) + 0 * chain[..., 0])
    return q / row_sum(q)
