"""
Links of structured sets
========================

A set contains the possible predictions: subsets, rankings, levels or assignments. The projection
onto the set is the link of its sparseMAP losses.
"""

import matplotlib.pyplot as plt
import numpy as np

import fitzpatrick as fp
from fitzpatrick.experiments.figures import STYLE

plt.style.use(STYLE)

# %%
# One score moving
# ----------------
# The first of four scores increases from left to right. In ``CappedSimplex(2)``, its entry takes
# its share from the others, and all entries stay between 0 and 1. In ``Permutahedron(4)``, it rises
# from rank 1 to rank 4, and is constant where its rank is clear. In ``OrderSimplex()``, no entry
# can be above the entry to its left, so a low first score also lowers the other entries.

s = np.linspace(-2.5, 3.5, 301)
theta = np.stack(
    [s, np.full_like(s, 0.9), np.full_like(s, 0.3), np.full_like(s, -0.4)],
    axis=1,
)
sets = {
    "CappedSimplex(2)": (fp.sets.CappedSimplex(2), 1.0),
    "Permutahedron(4)": (fp.sets.Permutahedron(4), 2.5),
    "OrderSimplex()": (fp.sets.OrderSimplex(), 1.0),
}
figure, axes = plt.subplots(1, 3, figsize=(10, 3.3))
for ax, (title, (domain, scale)) in zip(axes, sets.items(), strict=True):
    points = fp.regularizers.SquaredNorm(domain).link(scale * theta)
    for j, line in enumerate(points.T):
        ax.plot(s, line, label=f"entry {j + 1}")
    ax.set(title=title, xlabel="first score")
axes[0].legend()
plt.show()

# %%
# Assignments
# -----------
# Doubly stochastic matrices have two links. The link of the squared norm is a projection and has
# exact zeros. The link of the negentropy is Sinkhorn's algorithm and has none. With larger scores,
# both approach a permutation.

scores = np.random.default_rng(0).normal(size=(6, 6))
figure, axes = plt.subplots(2, 3, figsize=(8, 5.4))
for row, omega in zip(
    axes,
    (
        fp.regularizers.SquaredNorm(fp.sets.Birkhoff()),
        fp.regularizers.Negentropy(fp.sets.Birkhoff()),
    ),
    strict=True,
):
    for ax, scale in zip(row, (0.3, 2.0, 20.0), strict=True):
        plan = omega.link(scale * scores)
        ax.imshow(plan, vmin=0, vmax=1, cmap="Greys")
        ax.set(
            title=f"{type(omega).__name__}, × {scale:g}", xticks=[], yticks=[]
        )
plt.show()

# %%
# The loss on a set
# -----------------
# The target is the ranking 4, 3, 2, 1. Both losses are zero as soon as the scores are in this order
# with gaps of at least one.

y = np.asarray([4.0, 3.0, 2.0, 1.0])
spread = np.linspace(-1, 2, 121)
lines = spread[:, None] * (y - y.mean())
figure, ax = plt.subplots(figsize=(5, 3.3))
omega = fp.regularizers.SquaredNorm(fp.sets.Permutahedron(4))
for name, loss in (
    ("sparseMAP", fp.FenchelYoungLoss(omega)),
    ("Fitzpatrick sparseMAP", fp.FitzpatrickLoss(omega)),
):
    ax.plot(spread, loss.value(np.tile(y, (len(spread), 1)), lines), label=name)
ax.set(xlabel="gap between neighboring scores", ylabel="loss")
ax.legend()
plt.show()
