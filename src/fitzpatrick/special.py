r"""Special functions, elementwise on the arrays of any array-API library.

The Fitzpatrick losses of the entropies need one special function, the Wright omega function
:math:`\omega`, which solves :math:`\omega + \log \omega = z`. It is Lambert's W of an exponential,
:math:`\omega(z) = W(e^z)`, without the overflow.
"""

import math

from ._array import Array, as_real, eps, namespace, precision_bits, quiet

__all__ = ["expm1_minus_x", "logsumexp", "sigmoid", "softplus", "wright_omega"]

# So far below the logarithm of a rounding error ω is e^z to the last bit.
_OMEGA_IS_EXP = -2.0
# Terms of the Taylor series of exp(x) - 1 - x that reach float64 rounding for |x| <= 1/2.
_EXPM1_TERMS = 14
_EXPM1_SWITCH = 0.5


@quiet
def wright_omega(z: Array) -> Array:
    r"""Wright omega function of a real argument: the root of ω + log ω = z.

    .. math:: \omega(z) + \log \omega(z) = z, \qquad \omega(z) = W(e^z).

    Real and increasing, with :math:`\omega(1) = 1`, :math:`\omega(z) \sim e^z` for
    :math:`z \to -\infty` and :math:`\omega(z) \sim z - \log z` for :math:`z \to \infty`.

    Args:
        z: real array, float32 or float64, of any array-API library, or a number.

    Returns:
        ω(z), within 4 ulp, with gradual underflow; 0 at −∞, +∞ at +∞, NaN at NaN.

    Notes:
        A starting point within two percent (the logarithm of Iacono and Boyd's approximation of W)
        is refined by fourth-order steps of Fritsch, Shafer and Crowley: one leads to 3e-9, two to
        the last bits of float64. The residual ``z − log ω − ω`` loses digits for negative z, where
        its other form ``log(e^z / ω) − ω`` does not: each half of the axis uses its own.

    Example:
        >>> import numpy as np
        >>> wright_omega(np.asarray([-np.inf, 1.0, 800.0]))
        array([  0.        ,   1.        , 793.32376858])
    """
    z = as_real(z, "z")
    xp = namespace(z)
    is_negative, is_exp = z < 0, z < math.log(eps(z)) + _OMEGA_IS_EXP
    is_itself, given = z > eps(z) ** -2, z
    z = xp.where(is_itself, 1.0, z)
    exponential = xp.exp(-xp.abs(z))
    tail = xp.where(is_exp, 1.0, exponential)  # e^z for z < 0
    # log(1 + e^z), to the few digits that a start needs
    start = xp.where(z < -4, tail, xp.where(is_negative, 0.0, z) + xp.log(1 + tail))
    omega = start * (1 - xp.log(1 + start) / (2 + start))
    for _ in range(2 if precision_bits(z) > 24 else 1):
        # one logarithm for both halves of the axis
        logarithm = xp.log(xp.where(is_negative, tail / omega, omega))
        residual = xp.where(is_negative, logarithm, z - logarithm) - omega
        shifted = 1 + omega
        twice = 2 * shifted + residual * (4 / 3)
        step = residual / shifted
        omega = omega * (1 + step * (twice - step) / (twice - 2 * step))
    omega = xp.where(is_exp, exponential, omega)
    return xp.where(is_itself, given, omega)


@quiet
def expm1_minus_x(x: Array) -> Array:
    r"""exp(x) − 1 − x, non-negative and accurate near 0, where it is x²/2.

    Example:
        >>> import numpy as np
        >>> expm1_minus_x(np.asarray([1e-9, 0.0, -1.0]))
        array([5.00000000e-19, 0.00000000e+00, 3.67879441e-01])
    """
    x = as_real(x, "x")
    xp = namespace(x)
    small = xp.where(xp.abs(x) < _EXPM1_SWITCH, x, 0.0)
    series = xp.ones_like(x)
    for n in range(_EXPM1_TERMS, 2, -1):
        series = 1 + series * small / n
    return xp.where(xp.abs(x) < _EXPM1_SWITCH, small * small / 2 * series, xp.expm1(x) - x)


@quiet
def softplus(x: Array) -> Array:
    """log(1 + exp(x)) without overflow.

    Example:
        >>> import numpy as np
        >>> softplus(np.asarray([-1000.0, 0.0, 1000.0]))
        array([0.00000000e+00, 6.93147181e-01, 1.00000000e+03])
    """
    x = as_real(x, "x")
    xp = namespace(x)
    # two branches instead of |x|, which has no derivative at 0
    is_positive = x >= 0
    exponential = xp.exp(xp.where(is_positive, -x, x))
    return xp.where(is_positive, x, 0.0) + xp.log1p(exponential)


@quiet
def sigmoid(x: Array) -> Array:
    """1 / (1 + exp(−x)), accurate in both tails.

    Example:
        >>> import numpy as np
        >>> sigmoid(np.asarray([-700.0, 0.0, 700.0]))
        array([9.85967654e-305, 5.00000000e-001, 1.00000000e+000])
    """
    x = as_real(x, "x")
    xp = namespace(x)
    is_positive = x >= 0
    exponential = xp.exp(xp.where(is_positive, -x, x))
    return xp.where(is_positive, 1.0, exponential) / (1 + exponential)


@quiet
def logsumexp(x: Array) -> Array:
    """Logarithm of Σ exp(x) over the last axis, which is kept; −∞ entries count for nothing.

    Example:
        >>> import numpy as np
        >>> logsumexp(np.asarray([1000.0, 1000.0, -np.inf]))
        array([1000.69314718])
    """
    x = as_real(x, "x")
    xp = namespace(x)
    top = xp.max(x, axis=-1, keepdims=True)
    finite = xp.where(xp.abs(top) == xp.inf, 0.0, top)
    return finite + xp.log(xp.sum(xp.exp(x - finite), axis=-1, keepdims=True))
