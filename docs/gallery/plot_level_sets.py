"""
Level sets on the simplex
=========================

With three classes, targets and predictions are points of a triangle. The level sets of a loss show
which mistakes it penalizes most.
"""

import matplotlib.pyplot as plt
import numpy as np

import fitzpatrick as fp
from fitzpatrick.experiments.figures import (
    STYLE,
    draw_levels,
    draw_simplex,
    simplex_grid,
    to_plane,
)

plt.style.use(STYLE)

# %%
# Fixed scores, moving target
# ---------------------------
# The scores are fixed and the target y varies. Every loss is convex in y, and zero where y is the
# prediction ŷ(θ), the white dot. In the lower row the level sets are wider, because the Fitzpatrick
# loss of the same target is smaller.

theta = np.array([1.0, 0.5, -0.6])
y = simplex_grid(90)
figure, axes = plt.subplots(2, 3, figsize=(10, 6.8))
for name, column in zip(
    ("logistic", "entmax15", "sparsemax"), axes.T, strict=True
):
    for ax, loss_name in zip(
        column, (name, f"fitzpatrick_{name}"), strict=True
    ):
        loss = fp.get_loss(loss_name)
        draw_levels(ax, y, loss, theta)
        ax.plot(
            *to_plane(loss.link(theta)),
            "o",
            color="white",
            mec="black",
            clip_on=False,
        )
        ax.set_title(loss_name, pad=24)
figure.suptitle("Loss of a target y, scores θ = (1, 0.5, −0.6)")
plt.show()

# %%
# Fixed target, moving prediction
# -------------------------------
# The target is fixed at the star, and the prediction varies. A point p has the scores log p, whose
# soft argmax is p. The arrows are the negative gradient y − y*, the direction in which gradient
# descent moves the scores.

target = np.array([0.6, 0.3, 0.1])
p = 0.004 + 0.988 * simplex_grid(90)
coarse = 0.05 + 0.85 * simplex_grid(8)
levels = np.array([0.02, 0.1, 0.25, 0.5, 1.0, 2.0])
shades = [str(gray) for gray in np.linspace(1.0, 0.45, levels.size + 1)]

figure, axes = plt.subplots(1, 3, figsize=(10, 3.9))
for ax, tightness in zip(axes, (0, 1, 3), strict=True):
    loss = fp.FitzpatrickLoss(fp.regularizers.Negentropy(), tightness=tightness)
    value = loss.value(np.broadcast_to(target, p.shape), np.log(p))
    plane = to_plane(p).T
    ax.tricontourf(*plane, value, levels=[0, *levels, 20], colors=shades)
    ax.tricontour(*plane, value, levels=levels, colors="black", linewidths=0.8)
    step = -loss.gradient(np.broadcast_to(target, coarse.shape), np.log(coarse))
    ax.quiver(
        *to_plane(coarse).T,
        *to_plane(step).T,
        color="#d94801",
        scale=6,
        width=0.008,
    )
    ax.plot(*to_plane(target), "*", color="white", mec="black", markersize=13)
    draw_simplex(ax)
    ax.set_title(f"tightness {tightness}", pad=24)
    print(
        f"tightness {tightness}: loss at the center {loss.value(target, np.zeros(3)):.3f}"
    )
figure.suptitle(
    "Loss of a prediction p, target (0.6, 0.3, 0.1); arrows: descent of the scores"
)
plt.show()
