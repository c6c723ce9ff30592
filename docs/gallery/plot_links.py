"""
Links and their sparsity
========================

The link turns scores into a prediction. A Fenchel-Young loss and all of its Fitzpatrick losses have
the same link, so the regularizer alone determines whether predictions have zeros.
"""

import matplotlib.pyplot as plt
import numpy as np

import fitzpatrick as fp
from fitzpatrick.experiments.figures import STYLE

plt.style.use(STYLE)

# %%
# Three classes, one score moving
# -------------------------------
# The first score increases from left to right; the other two are 0 and −0.5. The soft argmax gives
# every class a positive share. Sparsemax is piecewise linear and sets one share after the other to
# zero. Entmax with α = 1.5 does so, too, but is smooth at zero.

s = np.linspace(-3.5, 3.5, 351)
theta = np.stack([s, np.zeros_like(s), np.full_like(s, -0.5)], axis=1)
links = {
    "soft argmax": fp.regularizers.Negentropy(),
    "entmax, α = 1.5": fp.regularizers.Tsallis(1.5),
    "sparsemax": fp.regularizers.SquaredNorm(fp.sets.Simplex()),
}
figure, axes = plt.subplots(1, 3, figsize=(10, 3.3), sharey=True)
for ax, (title, omega) in zip(axes, links.items(), strict=True):
    shares = omega.link(theta)
    ax.stackplot(
        s, shares.T, labels=["class 1", "class 2", "class 3"], alpha=0.85
    )
    kept = np.count_nonzero(shares, axis=1)
    for place in s[1:][np.diff(kept) != 0]:
        ax.axvline(place, color="black", linewidth=1, linestyle=":")
    ax.set(
        title=title, xlabel="score of class 1", ylim=(0, 1), xlim=(s[0], s[-1])
    )
axes[0].set(ylabel="share of each class")
axes[0].legend(loc="upper left", frameon=True)
plt.show()

# %%
# How many classes are left
# -------------------------
# As the scale of a hundred random scores grows, fewer classes have a positive share. An order α
# between 1 and 2 is a compromise between the soft argmax and sparsemax.

scales = np.geomspace(0.05, 10, 30)
draws = np.random.default_rng(0).normal(size=(200, 100))
figure, ax = plt.subplots(figsize=(7.5, 4))
for alpha, color in zip(
    (1.1, 1.25, 1.5, 1.75, 2.0),
    plt.get_cmap("cividis")(np.linspace(0, 0.9, 5)),
    strict=True,
):
    omega = fp.regularizers.Tsallis(alpha)
    kept = [
        np.count_nonzero(omega.link(scale * draws), axis=1).mean()
        for scale in scales
    ]
    ax.loglog(scales, kept, color=color, label=f"α = {alpha:g}", linewidth=2)
    print(
        f"alpha = {alpha:4g}: {kept[0]:6.1f} classes at scale {scales[0]:g}, "
        f"{kept[-1]:5.1f} at {scales[-1]:g}"
    )
ax.axhline(100, color="black", linestyle=":", label="soft argmax")
ax.set(
    xlabel="scale of the scores",
    ylabel="classes with a share",
    title="Classes left of 100, mean of 200 draws",
)
ax.set_yticks([1, 3, 10, 30, 100], ["1", "3", "10", "30", "100"])
ax.set_xticks([0.1, 1, 10], ["0.1", "1", "10"])
ax.legend()
plt.show()
