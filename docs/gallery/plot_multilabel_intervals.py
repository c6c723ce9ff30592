"""
Multi-label proportions with confidence intervals
=================================================

A gene of the yeast data has several functions. If its labels are divided by their number, they are
proportions, which a linear model can predict. The bootstrap shows how certain the predictions are,
and whether data of this size can distinguish between the losses.
"""

import matplotlib.pyplot as plt
import numpy as np

from fitzpatrick import metrics
from fitzpatrick.datasets import load_dataset
from fitzpatrick.experiments.figures import COLORS, STYLE
from fitzpatrick.linear_model import ProportionRegressor, ProportionRegressorCV
from fitzpatrick.preprocessing import label_proportions

# sphinx_gallery_thumbnail_number = 2
plt.style.use(STYLE)
yeast = load_dataset("yeast")  # comes with the package
X, Y = yeast.train.X, label_proportions(yeast.train.Y)
X_test, Y_test = yeast.test.X, label_proportions(yeast.test.Y)

losses = (
    "logistic",
    "fitzpatrick_logistic",
    "sparsemax",
    "fitzpatrick_sparsemax",
)
rng = np.random.default_rng(0)

# %%
# One model for each loss
# -----------------------
# Cross-validation chooses the penalty for each loss.

models = {}
for loss in losses:
    model = ProportionRegressorCV(
        loss, alphas=[30, 100, 300, 1000], standardize=True, cv=2, tol=1e-3
    )
    models[loss] = model.fit(X, Y)
errors = {
    loss: metrics.squared_errors(Y_test, models[loss].predict(X_test))
    for loss in losses
}
for loss in losses:
    print(
        f"{loss:24s} alpha {models[loss].alpha_:5g}, squared error {errors[loss].mean():.4f}"
    )

# %%
# Intervals of a difference
# -------------------------
# To find out whether one loss is better than another, the difference of their errors on the same
# test genes is resampled. Effects that make a gene hard for all losses cancel. If an interval
# contains zero, these data cannot distinguish the losses.

figure, ax = plt.subplots(figsize=(8, 2.8))
for place, loss in enumerate(losses[1:]):
    difference = errors[loss] - errors["logistic"]
    resampled = difference[
        rng.integers(difference.size, size=(2000, difference.size))
    ].mean(axis=1)
    low, high = np.quantile(resampled, [0.025, 0.975])
    mean = difference.mean()
    ax.errorbar(
        mean,
        place,
        xerr=[[mean - low], [high - mean]],
        fmt="o",
        color=COLORS[0],
        capsize=4,
    )
    print(f"{loss:24s} {mean:+.4f}, 95 % interval [{low:+.4f}, {high:+.4f}]")
ax.axvline(0, color="black", linewidth=0.8)
ax.set_yticks(range(3), losses[1:])
ax.invert_yaxis()
ax.margins(y=0.3)
ax.set(
    title="Squared error minus that of the logistic loss, 95 % intervals",
    xlabel="better  ←  difference  →  worse",
)
plt.show()

# %%
# Intervals of predictions
# ------------------------
# Twenty models, each fitted to training genes drawn with replacement, give an interval for every
# predicted share. The dashed line is the true share of each label of the gene. The intervals show
# how much the fit depends on its training genes, not its error: many narrow intervals are far from
# the line.

n_labels = np.count_nonzero(Y_test, axis=1)
genes = [np.flatnonzero(n_labels == n)[0] for n in (2, 4, 6)]
draws = []
for _ in range(20):
    rows = rng.integers(len(X), size=len(X))
    model = ProportionRegressor(
        "sparsemax",
        alpha=models["sparsemax"].alpha_,
        standardize=True,
        tol=1e-3,
    )
    draws.append(model.fit(X[rows], Y[rows]).predict(X_test[genes]))
low, middle, high = np.quantile(draws, [0.05, 0.5, 0.95], axis=0)

figure, axes = plt.subplots(1, len(genes), figsize=(10, 4.2), sharey=True)
for ax, target, *quantiles in zip(
    axes, Y_test[genes], low, middle, high, strict=True
):
    for has_label, face in ((True, COLORS[0]), (False, "white")):
        j = np.flatnonzero((target > 0) == has_label)
        left, center, right = (quantile[j] for quantile in quantiles)
        ax.errorbar(
            center,
            j + 1,
            xerr=[center - left, right - center],
            fmt="o",
            color=COLORS[0],
            markerfacecolor=face,
            label="its labels" if has_label else "other labels",
        )
    ax.axvline(
        target.max(),
        color=COLORS[1],
        linestyle="--",
        label="share of its labels",
    )
    ax.set(
        title=f"a gene with {np.count_nonzero(target)} labels",
        xlabel="predicted share",
    )
axes[0].set(ylabel="label", yticks=range(1, 15))
figure.legend(
    *axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=3
)
figure.suptitle("Predicted shares, 90 % bootstrap intervals")
plt.show()
