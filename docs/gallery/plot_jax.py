"""
Many fits at once, in JAX
=========================

The losses are plain JAX functions, so ``jit``, ``grad`` and ``vmap`` can be applied to them. In
this example, one compiled call fits a linear classifier for each of 24 penalties.
"""

import jax
import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.colors import LogNorm
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

import fitzpatrick.jax as fj
from fitzpatrick.experiments.figures import FENCHEL_YOUNG, FITZPATRICK, STYLE

plt.style.use(STYLE)

digits = load_digits()
X, X_test, y, y_test = map(
    jnp.asarray,
    train_test_split(
        digits.data / 16, digits.target, train_size=300, random_state=0
    ),
)

# %%
# One fit
# -------
# A fit is Nesterov's accelerated gradient method in a ``lax.scan``. Every loss on the simplex has a
# version for integer labels. For both losses of this example, the Hessian is at most half the
# Hessian of the squared loss, which determines the step.

STEPS = 400
curvature = 0.5 * float(jnp.linalg.norm(X.T @ X / len(X), 2))


def fit(loss: fj.LossFunction, alpha: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Weights, and the norm of the gradient at each step."""

    def objective(weights: jax.Array) -> jax.Array:
        return loss(X @ weights, y).mean() + alpha / 2 * (weights**2).sum()

    def step(
        state: tuple[jax.Array, jax.Array], count: jax.Array
    ) -> tuple[tuple[jax.Array, jax.Array], jax.Array]:
        weights, ahead = state
        gradient = jax.grad(objective)(ahead)
        moved = ahead - gradient / (curvature + alpha)
        return (
            moved,
            moved + count / (count + 3) * (moved - weights),
        ), jnp.linalg.norm(gradient)

    zero = jnp.zeros((X.shape[1], 10))
    (weights, _), norms = jax.lax.scan(step, (zero, zero), jnp.arange(STEPS))
    return weights, norms


# %%
# All penalties
# -------------
# ``vmap`` runs the fit for all penalties, and ``jit`` compiles it. The gradient decreases in every
# fit, and fastest with a strong penalty, where it ends at the rounding error of float32, JAX's
# default.

alphas = jnp.geomspace(1e-5, 1.0, 24)
losses = {
    "logistic": fj.logistic_loss_with_integer_labels,
    "fitzpatrick_logistic": fj.fitzpatrick_logistic_loss_with_integer_labels,
}
results = {
    name: jax.jit(jax.vmap(lambda alpha, loss=loss: fit(loss, alpha)))(alphas)
    for name, loss in losses.items()
}

figure, axes = plt.subplots(
    1, 2, figsize=(10, 3.8), sharey=True, layout="constrained"
)
colors = plt.get_cmap("cividis")
for ax, (name, (_, norms)) in zip(axes, results.items(), strict=True):
    for i, one in enumerate(np.asarray(norms)):
        ax.semilogy(one, color=colors(i / len(alphas)), linewidth=1)
    ax.set(title=name, xlabel="step")
axes[0].set(ylabel="norm of the gradient")
scale = LogNorm(float(alphas[0]), float(alphas[-1]))
figure.colorbar(
    plt.cm.ScalarMappable(scale, colors), ax=axes, label="penalty alpha"
)
plt.show()

# %%
# The error on test digits
# ------------------------
# The same batch of weights gives the test error for all penalties.

figure, ax = plt.subplots(figsize=(7.5, 3.8))
for (name, (weights, _)), style in zip(
    results.items(), (FENCHEL_YOUNG, FITZPATRICK), strict=True
):
    predicted = (X_test @ weights).argmax(axis=-1)
    errors = 100 * np.asarray((predicted != y_test).mean(axis=-1))
    ax.loglog(alphas, errors, label=name, **style)
    print(f"{name:22s} smallest test error {errors.min():.1f} %")
ax.set(
    title="24 fits with each loss",
    xlabel="penalty alpha",
    ylabel="test error, %",
)
ax.set_yticks([5, 10, 20, 50], ["5", "10", "20", "50"])
ax.minorticks_off()
ax.legend()
plt.show()
