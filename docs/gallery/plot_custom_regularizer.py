r"""
A regularizer of your own
=========================

A regularizer defines a link, a Fenchel-Young loss and a whole family of Fitzpatrick losses. The
regularizer of this example couples its entries, which are counts that compete for one budget:

.. math:: \Omega(y) = \sum_i (y_i \log y_i - y_i) + \frac{1}{2} \left( \sum_i y_i \right)^2,
          \qquad y \ge 0.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.special import logsumexp

import fitzpatrick as fp
from fitzpatrick.experiments.figures import FAMILY, STYLE
from fitzpatrick.linear_model import ProportionRegressor

plt.style.use(STYLE)

# %%
# Three functions
# ---------------
# ``TwiceDifferentiable`` takes the value, the gradient and the Hessian. It computes links and
# losses by Newton's method, row by row.

omega = fp.regularizers.TwiceDifferentiable(
    function=lambda y: (y * np.log(y) - y).sum(-1) + y.sum(-1) ** 2 / 2,
    gradient=lambda y: np.log(y) + y.sum(-1, keepdims=True),
    hessian=lambda y: np.eye(y.shape[-1]) / y[..., None] + 1.0,
    domain=fp.sets.Orthant(),
    start=1.0,
)

# %%
# Its link
# --------
# Setting the gradient of Ω to θ gives the link in closed form: the total is the Wright omega
# function of log Σ exp θ, and the soft argmax divides it among the entries. The total therefore
# grows first like exp θ and later linearly, as the counts compete. Newton's method finds the same
# numbers.

t = np.linspace(-4, 6, 201)
theta = np.stack([t, np.zeros_like(t), np.full_like(t, 1.0)], axis=1)
link = omega.link(theta)
total = fp.special.wright_omega(logsumexp(theta, axis=1))
print(
    f"largest difference to the closed form: {np.abs(link.sum(axis=1) - total).max():.1e}"
)

figure, axes = plt.subplots(1, 2, figsize=(10, 3.8))
axes[0].stackplot(
    t, link.T, alpha=0.85, labels=["entry 1", "entry 2", "entry 3"]
)
axes[0].plot(
    t, total, color="black", linestyle=":", label="closed form of the total"
)
axes[0].set(
    title="The link: counts that compete",
    xlabel="first score",
    ylabel="ŷ(θ)",
)
axes[0].legend(loc="upper left")

y = np.broadcast_to([1.0, 0.5, 0.5], theta.shape)
for tightness, style in FAMILY.items():
    value = fp.FitzpatrickLoss(omega, tightness=tightness).value(y, theta)
    axes[1].plot(t, value, label=f"c = {tightness:g}", **style)
axes[1].set(
    title="Its family of losses, y = (1, 0.5, 0.5)",
    xlabel="first score",
    ylabel="loss",
)
axes[1].legend(title="tightness")
plt.show()

# %%
# Check it, then fit with it
# --------------------------
# The gradient of the loss is the maximizer y* minus y. Compare it with finite differences of the
# loss, which reveals most mistakes in the three functions.

rng = np.random.default_rng(0)
X = rng.normal(size=(300, 4))
weights = rng.normal(size=(4, 3)) + np.array([[0.0], [0.0], [1.0], [0.0]])
Y = rng.gamma(25, omega.link(X @ weights + 1) / 25)
loss, h, v = fp.FitzpatrickLoss(omega), 1e-5, rng.normal(size=(300, 3))
scores = X @ weights
slope = (loss.value(Y, scores + h * v) - loss.value(Y, scores - h * v)) / (
    2 * h
)
difference = slope - (loss.gradient(Y, scores) * v).sum(axis=1)
print(f"finite differences agree to {np.abs(difference).max():.1e}")

# %%
# Estimators take the loss object. The data were drawn around the link with 20 % noise. For
# comparison, ``poisson`` has entries that do not compete.

figure, axes = plt.subplots(1, 2, figsize=(10, 4), sharex=True, sharey=True)
for ax, (title, one) in zip(
    axes,
    {"with the budget": loss, "poisson": fp.get_loss("poisson")}.items(),
    strict=True,
):
    predicted = (
        ProportionRegressor(one, alpha=0.1)
        .fit(X[:200], Y[:200])
        .predict(X[200:])
    )
    error = np.abs(predicted - Y[200:]).mean()
    for j in range(3):
        ax.loglog(
            Y[200:, j],
            predicted[:, j],
            "o",
            markersize=4,
            alpha=0.7,
            label=f"entry {j + 1}",
        )
    ax.axline((0.1, 0.1), (1, 1), color="black", linewidth=0.8)
    ax.set(title=f"{title}: mean absolute error {error:.3f}", xlabel="observed")
axes[0].set(ylabel="predicted")
axes[0].legend()
plt.show()

# %%
# On the simplex, a regularizer is defined for one entry, with a formula for its maximizer. It then
# supports labels, sparse targets, PyTorch and JAX: see :doc:`/add_a_regularizer`.
