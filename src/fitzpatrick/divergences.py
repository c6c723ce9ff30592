r"""Divergences of a regularizer: Bregman, Fitzpatrick, and what ties them to the losses.

A divergence compares two points, y and z, of the domain; a loss compares y with scores θ. They meet
at the scores θ' ∈ ∂Ω(z) whose link is z:

.. math::
    D_\Omega(y, z) &= \inf_{\theta' \in \partial\Omega(z)} L_{FY}(y, \theta')
                    = \Omega(y) - \Omega(z) - \Omega'(z; y - z) \\
    D_F(y, z) &= \inf_{\theta' \in \partial\Omega(z)} L_F(y, \theta') \le D_\Omega(y, z)

With Ω = Ψ + ι_C, ∂Ω(z) is ∇Ψ(z) plus the normal cone of C at z, and both infima are attained at
∇Ψ(z) alone. On the part of the boundary where Ψ is infinitely steep (an entry z_i = 0 of the
entropies) ∂Ω(z) is empty. There the divergences take their limits: +∞ where y leaves the face of
z, and the divergence within the face otherwise, so that D(z, z) = 0 everywhere in the domain.
"""

from dataclasses import dataclass

from ._array import Array, inner, namespace, quiet
from ._validation import Restore, as_pair, as_points, as_tightness
from .regularizers import Regularizer, Solution
from .regularizers._base import PointSolution, check_vectors

__all__ = ["TargetDependent", "bregman", "fitzpatrick", "fitzpatrick_function", "lower_bound"]


def _as_two_points(omega: Regularizer, y: Array, z: Array) -> tuple[Array, Array, Restore]:
    y, z, restore = as_pair(y, z, omega.domain)
    as_points(z, omega.domain, "z")
    return y, z, restore


@quiet
def fitzpatrick_function(omega: Regularizer, y: Array, theta: Array) -> Array:
    r"""Fitzpatrick function of the subdifferential of Ω.

    .. math:: F[\partial\Omega](y, \theta) = \sup_{\theta' \in \partial\Omega(y')}
              \langle y - y', \theta'\rangle + \langle y', \theta\rangle,

    which lies between :math:`\langle y, \theta\rangle` and :math:`\Omega(y) + \Omega^*(\theta)`.

    Example:
        >>> import numpy as np
        >>> import fitzpatrick as fp
        >>> y, theta = np.asarray([1.0, 0.0]), np.asarray([3.0, 0.0])
        >>> fitzpatrick_function(fp.regularizers.SquaredNorm(), y, theta)  # ‖y + θ‖²/4
        np.float64(4.0)
    """
    y, theta, restore = as_pair(y, theta, omega.domain)
    return restore(omega.solve(y, theta, 1.0).value() + inner(y, theta))


@quiet
def bregman(omega: Regularizer, y: Array, z: Array) -> Array:
    r"""Generalized Bregman divergence :math:`D_\Omega(y, z)`, row by row.

    Args:
        omega: the regularizer Ω.
        y: points of the domain, (n, k) or (k,).
        z: points of the domain, of the same shape.

    Example:
        The negentropy gives the Kullback-Leibler divergence, finite where z = 0 wherever y = 0:

        >>> import numpy as np
        >>> import fitzpatrick as fp
        >>> omega = fp.regularizers.Negentropy()
        >>> y = np.asarray([[0.5, 0.5, 0.0], [0.0, 0.0, 1.0]])
        >>> z = np.asarray([[0.25, 0.75, 0.0], [0.5, 0.5, 0.0]])
        >>> bregman(omega, y, z)
        array([0.14384104,        inf])
    """
    y, z, restore = _as_two_points(omega, y, z)
    return restore(omega.potential_divergence(y, z))


@quiet
def fitzpatrick(
    omega: Regularizer, y: Array, z: Array, *, bound: str = "inf", tightness: float = 1.0
) -> Array:
    r"""Fitzpatrick divergence: the Fitzpatrick loss at the scores whose link is z.

    Args:
        omega: the regularizer Ω.
        y: points of the domain, (n, k) or (k,).
        z: points of the domain, of the same shape.
        tightness: the tightness of the loss; 0 gives the Bregman divergence.
        bound: ``"inf"`` or ``"sup"`` over θ' ∈ ∂Ω(z). The two agree where y lies in the face of z
            (always, in the relative interior); elsewhere the supremum is +∞.

    Example:
        >>> import numpy as np
        >>> import fitzpatrick as fp
        >>> omega = fp.regularizers.SquaredNorm(fp.sets.Simplex())
        >>> y, z = np.asarray([0.5, 0.5]), np.asarray([1.0, 0.0])
        >>> fitzpatrick(omega, y, z), bregman(omega, y, z)  # ‖y − z‖²/4 and /2
        (np.float64(0.125), np.float64(0.25))
        >>> fitzpatrick(omega, y, z, bound="sup")
        np.float64(inf)
    """
    if bound not in ("inf", "sup"):
        raise ValueError(f"bound must be 'inf' or 'sup', got {bound!r}")
    y, z, restore = _as_two_points(omega, y, z)
    tightness = as_tightness(tightness, omega.max_tightness)
    value = omega.solve(y, omega.potential_gradient(z), tightness).value()
    if bound == "sup":
        xp = namespace(y)
        value = xp.where(omega.domain.same_face(y, z), value, xp.inf)
    return restore(value)


@quiet
def lower_bound(omega: Regularizer, y: Array, theta: Array) -> Array:
    r"""Quadratic lower bound of the Fitzpatrick loss.

    .. math:: \langle y - y^\star, \nabla^2\Psi(y^\star)(y - y^\star)\rangle \le L_F(y, \theta),

    with equality where no constraint but the sum of a row is active at :math:`y^\star` (paper,
    proposition on the lower bound). For the negentropy it is the χ² divergence of y from y*.

    Example:
        >>> import numpy as np
        >>> import fitzpatrick as fp
        >>> y, theta = np.asarray([1.0, 0.0]), np.asarray([0.0, 1.0])
        >>> lower_bound(fp.regularizers.Negentropy(), y, theta)
        np.float64(0.567143290409783...)
    """
    y, theta, restore = as_pair(y, theta, omega.domain)
    y_star = omega.solve(y, theta, 1.0).y_star
    return restore(omega.potential_curvature(y_star, y - y_star))


@dataclass(frozen=True, eq=False)
class TargetDependent(Regularizer):
    r"""The target-dependent regularizer :math:`\Omega_{y,c}(y') = \Omega(y') + c\,D_\Omega(y, y')`.

    Its Fenchel-Young loss at y is the loss of Ω with tightness c, the Fitzpatrick loss for c = 1
    (paper, proposition on Fitzpatrick losses as Fenchel-Young losses), and its link is the
    maximizer :math:`y^\star(y, \cdot)` of that loss.

    Args:
        omega: the regularizer Ω.
        y: the target, of the shape of the arguments to come.
        tightness: c.

    Example:
        >>> import numpy as np
        >>> import fitzpatrick as fp
        >>> y, theta = np.asarray([0.5, 0.5, 0.0]), np.asarray([1.5, 0.5, 0.0])
        >>> omega = fp.regularizers.SquaredNorm(fp.sets.Simplex())
        >>> fp.FenchelYoungLoss(TargetDependent(omega, y)).value(y, theta)
        np.float64(0.125)
    """

    omega: Regularizer
    y: Array
    tightness: float = 1.0

    def __post_init__(self) -> None:
        check_vectors(self.omega.domain)
        y, _ = as_points(self.y, self.omega.domain, "y")
        object.__setattr__(self, "y", y)
        tightness = as_tightness(self.tightness, self.omega.max_tightness)
        object.__setattr__(self, "tightness", tightness)

    domain = property(lambda self: self.omega.domain)
    is_coupled = property(lambda self: self.omega.is_coupled)
    has_kinks = property(lambda self: self.omega.has_kinks)
    has_curvature = property(lambda self: self.omega.has_curvature)

    def potential(self, y: Array) -> Array:
        if self.tightness == 0:
            return self.omega.potential(y)
        divergence = self.omega.potential_divergence(self.y, y)
        return self.omega.potential(y) + self.tightness * divergence

    def potential_gradient(self, z: Array) -> Array:
        raise NotImplementedError(_NO_DERIVATIVES.format("gradient"))

    def potential_curvature(self, z: Array, v: Array) -> Array:
        raise NotImplementedError(_NO_DERIVATIVES.format("Hessian"))

    def potential_divergence(self, y: Array, z: Array) -> Array:
        raise NotImplementedError(_NO_DERIVATIVES.format("Bregman divergence"))

    def solve_link(self, theta: Array) -> Array:
        return self._solve(theta).y_star

    def solve_conjugate(self, theta: Array) -> Array:
        return self._solve(theta).value() + inner(self.y, theta) - self.omega.potential(self.y)

    def solve(self, y: Array, theta: Array, tightness: float) -> Solution:
        if tightness != 0:
            raise NotImplementedError(_NO_DERIVATIVES.format("loss of another tightness"))
        # Ω_y(y') − Ω_y(y) − ⟨y' − y, θ⟩, which is exactly 0 at the target itself
        change = self.potential(y) - self.omega.potential(self.y) - inner(y - self.y, theta)
        own = self._solve(theta)
        product = own.hessian_product
        return PointSolution(y, own.y_star, lambda: own.value() + change, product, own.slope)

    def _solve(self, theta: Array) -> Solution:
        return self.omega.solve(self.y, theta, self.tightness)


_NO_DERIVATIVES = (
    "a target-dependent regularizer serves in FenchelYoungLoss; its own {} is not known"
)
