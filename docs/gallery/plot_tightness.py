"""
One family: tightness from 0 to 3
=================================

The tightness c is a parameter that leads from the Fenchel-Young loss (c = 0) to the Fitzpatrick
loss (c = 1) and beyond. All of these losses have the same link, but their optimal scores differ.
With class labels and c > 0 the link is underconfident, see :doc:`/auto_gallery/plot_calibration`.
"""

import matplotlib.pyplot as plt
import numpy as np

import fitzpatrick as fp
from fitzpatrick.experiments.figures import STYLE

plt.style.use(STYLE)

# %%
# Lower and flatter
# -----------------
# The correct class has score s, the other class has score 0. A larger tightness lowers the loss and
# its negative derivative, the pull on the score. For large mistakes the pull tends to one at every
# tightness, but with a tight loss the mistake must be larger.

s = np.linspace(-6, 4, 401)
theta = np.stack([s, np.zeros_like(s)], axis=1)
label = np.zeros(s.size, dtype=int)
tightnesses = np.linspace(0, 3, 13)
colors = plt.get_cmap("cividis")(tightnesses / 3.3)

figure, axes = plt.subplots(2, 2, figsize=(10, 6), sharex=True, sharey="row")
for name, (above, below) in zip(("logistic", "sparsemax"), axes.T, strict=True):
    for tightness, color in zip(tightnesses, colors, strict=True):
        loss = fp.get_loss(f"fitzpatrick_{name}", tightness=tightness)
        value, gradient = loss.value_and_gradient(label, theta)
        is_end = tightness in (0, 1, 3)
        style = {"color": color, "linewidth": 2.4 if is_end else 0.8}
        above.plot(
            s, value, label=f"c = {tightness:g}" if is_end else None, **style
        )
        below.plot(s, -gradient[:, 0], **style)
    above.set(title=f"{name} family")
    above.legend(title="tightness")
    below.set(xlabel="score of the correct class, s")
axes[0, 0].set(ylabel="loss")
axes[1, 0].set(ylabel="pull on the score")
plt.show()

# %%
# Decreasing and convex in c
# --------------------------
# At a fixed score, the loss decreases as c grows, most of all at small c. The derivative with
# respect to c is minus the Bregman divergence of the target from the maximizer y*. The divergence
# shrinks as y* approaches the target.

c = np.linspace(0, 3, 61)
figure, axes = plt.subplots(1, 2, figsize=(10, 3.6))
for s_fixed in (-4.0, -2.0, 0.0, 2.0):
    losses = [fp.get_loss("fitzpatrick_logistic", tightness=one) for one in c]
    point = np.array([s_fixed, 0.0])
    values = np.array([loss.value(0, point) for loss in losses])
    shares = np.array([loss.y_star(0, point)[0] for loss in losses])
    axes[0].plot(c, values, label=f"s = {s_fixed:g}")
    axes[1].plot(c, shares)
    print(
        f"s = {s_fixed:2g}: loss {values[0]:.3f} at c = 0, {values[20]:.3f} at c = 1, "
        f"{values[-1]:.3f} at c = 3"
    )
axes[0].set(xlabel="tightness c", ylabel="loss", title="The loss decreases")
axes[0].legend(title="score")
axes[1].set(
    xlabel="tightness c",
    ylabel="first entry of y*",
    title="y* approaches the target",
)
axes[1].set_ylim(0, 1)
plt.show()
