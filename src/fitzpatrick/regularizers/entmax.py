r"""The link of the Tsallis entropies as a function of α, too, which may differ from row to row.

With β = α − 1 and z = θ − λ the entries are :math:`p = (1 + \beta z)_+^{1/\beta}`, which tends to
:math:`e^z` as α goes to 1, and λ makes them sum to one. In θ the Jacobian is diag(d) − ddᵀ/⟨d, 1⟩
with :math:`d = p^{2 - \alpha}`. In α, with :math:`x = -\beta \log p`,

.. math:: \frac{\partial p}{\partial\alpha}
          = h - d\,\frac{\langle h, 1\rangle}{\langle d, 1\rangle},
          \qquad h = -p\,\frac{e^x - 1 - x}{\beta^2}.
"""

from .._array import Array, eps, may_stop_early, namespace, row_max, row_sum
from .._root import advance, newton_steps
from ..special import expm1_minus_x

# β below this is as good as 0, and can still be divided by
_MIN_BETA = 1e-15


def solve_entmax(theta: Array, alpha: Array) -> Array:
    """α-entmax of each row, for α between 1 and 2 that may be broadcast to (…, 1)."""
    xp = namespace(theta)
    beta = xp.maximum(alpha - 1, xp.full_like(alpha, _MIN_BETA))
    theta = theta - row_max(theta)

    def entries(lam: Array) -> tuple[Array, Array]:
        shift = beta * (theta - lam)
        inside = ~(shift <= -1)  # NaN is inside, and stays
        shift = xp.where(inside, shift, xp.zeros_like(shift))
        p = xp.where(inside, xp.exp(xp.log1p(shift) / beta), xp.zeros_like(shift))
        return p, p / (1 + shift)

    lam = xp.zeros_like(theta[..., :1]) + 0 * beta
    early = may_stop_early(theta)
    for _ in range(newton_steps(theta)):
        p, slope = entries(lam)
        total = row_sum(p)
        # Newton's step on (Σp)^β, which is convex in λ
        step = -total * xp.expm1(-beta * xp.log(total)) / (beta * row_sum(slope))
        lam, is_long = advance(lam, step)
        if early and not is_long.any():
            break
    p, _ = entries(lam)
    total = row_sum(p)
    # λ has no more digits than this: what is left of the sum goes to the entries
    near = xp.abs(total - 1) < 64 * theta.shape[-1] * eps(theta)
    return p / xp.where(near, total, xp.ones_like(total))


def entmax_slopes(p: Array, alpha: Array) -> Array:
    """d = p^(2 − α), 0 where p is, in a form that can be differentiated there."""
    xp = namespace(p)
    safe = xp.where(p == 0, xp.ones_like(p), p)
    return xp.where(p == 0, xp.zeros_like(p), safe ** (2 - alpha))


def entmax_alpha_slopes(p: Array, alpha: Array) -> Array:
    """h: the derivative of the entries in α where λ stays."""
    xp = namespace(p)
    log_p = xp.log(xp.where(p == 0, xp.ones_like(p), p))
    beta = xp.maximum(alpha - 1, xp.full_like(alpha, _MIN_BETA))
    x = -beta * log_p
    # E(x)/β² = (E(x)/x²) log² p, and E(x)/x² is ½ at 0
    far = xp.abs(x) > 1e-5
    safe = xp.where(far, x, xp.ones_like(x))
    ratio = xp.where(far, expm1_minus_x(safe) / (safe * safe), 0.5 + x / 6)
    return -p * log_p * log_p * ratio
