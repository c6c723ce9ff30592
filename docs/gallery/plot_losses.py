"""
The losses and their gaps
=========================

A Fenchel-Young loss and its Fitzpatrick loss have the same link, and both are zero exactly where
the prediction equals the target. The Fitzpatrick loss is never larger. This example plots both
losses and the gap between them.
"""

import matplotlib.pyplot as plt
import numpy as np

import fitzpatrick as fp
from fitzpatrick.experiments.figures import FENCHEL_YOUNG, FITZPATRICK, STYLE

plt.style.use(STYLE)

# %%
# Two classes
# -----------
# The correct class has score s, the other class has score 0. Both losses decrease as s grows. The
# logistic pair never reaches zero. The entmax and sparsemax pairs are zero once the margin is large
# enough.

s = np.linspace(-6, 6, 401)
theta = np.stack([s, np.zeros_like(s)], axis=1)
label = np.zeros(s.size, dtype=int)

figure, axes = plt.subplots(2, 3, figsize=(10, 5.6), sharex=True, sharey="row")
for name, (above, below) in zip(
    ("logistic", "entmax15", "sparsemax"), axes.T, strict=True
):
    loss = fp.get_loss(name).value(label, theta)
    smaller = fp.get_loss(f"fitzpatrick_{name}").value(label, theta)
    above.plot(s, loss, label=name, **FENCHEL_YOUNG)
    above.plot(s, smaller, label=f"fitzpatrick_{name}", **FITZPATRICK)
    above.set(title=f"{name} and its Fitzpatrick loss")
    above.legend()
    below.fill_between(
        s, loss - smaller, color=FITZPATRICK["color"], alpha=0.25
    )
    below.plot(s, loss - smaller, color=FITZPATRICK["color"])
    below.set(xlabel="score of the right class, s", xticks=range(-6, 7, 3))
    print(
        f"{name:10s} gap at s = 0: {loss[200] - smaller[200]:.3f}, "
        f"at s = -6: {loss[0] - smaller[0]:.3f}"
    )
axes[0, 0].set(ylabel="loss")
axes[1, 0].set(ylabel="gap")
plt.show()

# %%
# The sparse losses are piecewise smooth, and so is their gap. For large mistakes, the gap of the
# sparsemax pair is constant, because both losses grow at the same rate. The gap of the logistic
# pair grows like the logarithm of the margin.
#
# Targets entry by entry
# ----------------------
# Other regularizers are not defined on the simplex. Here one score is compared with one target: a
# number, a probability or a count. The losses are zero at the score whose link is the target.

cases = {"squared": 0.5, "sigmoid": 0.8, "poisson": 3.0}
score = np.linspace(-3, 3, 401)[:, None]
figure, axes = plt.subplots(1, 3, figsize=(10, 3.2))
for ax, (name, target) in zip(axes, cases.items(), strict=True):
    y = np.full_like(score, target)
    loss, smaller = fp.get_loss(name), fp.get_loss(f"fitzpatrick_{name}")
    ax.plot(score, loss.value(y, score), label=name, **FENCHEL_YOUNG)
    ax.plot(
        score,
        smaller.value(y, score),
        label=f"fitzpatrick_{name}",
        **FITZPATRICK,
    )
    ax.set(title=f"{name}, target {target:g}", xlabel="score θ")
    ax.legend(loc="upper center")
axes[0].set(ylabel="loss")
plt.show()
