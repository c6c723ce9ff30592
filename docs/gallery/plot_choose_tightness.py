"""
Choosing the tightness by cross-validation
==========================================

The best tightness depends on the data. With the argument ``tightnesses=``, the ``…CV`` estimators
search it together with the penalty.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.model_selection import KFold

from fitzpatrick import metrics
from fitzpatrick.datasets import load_dataset
from fitzpatrick.experiments.figures import STYLE
from fitzpatrick.linear_model import ProportionRegressorCV
from fitzpatrick.preprocessing import label_proportions

plt.style.use(STYLE)

# %%
# The search
# ----------
# The targets are the label proportions of yeast genes, and the links are the soft argmax and
# sparsemax. Every pair of penalty and tightness is evaluated on three shuffled folds, here of a
# part of the training genes.

yeast = load_dataset("yeast")
X, Y = yeast.train.X[:600], label_proportions(yeast.train.Y[:600])
X_test, Y_test = yeast.test.X, label_proportions(yeast.test.Y)
alphas, tightnesses = np.geomspace(10, 1000, 5), [0.0, 0.5, 1.0, 2.0, 3.0]
models = {
    name: ProportionRegressorCV(
        f"fitzpatrick_{name}",
        alphas=alphas,
        tightnesses=tightnesses,
        standardize=True,
        refine=0,  # a surface needs a grid
        cv=KFold(3, shuffle=True, random_state=0),
        tol=1e-3,
    ).fit(X, Y)
    for name in ("logistic", "sparsemax")
}

# %%
# The surface of the errors
# -------------------------
# Dark cells have small errors, and the star marks the choice. The valley is diagonal: a tight loss
# is smaller, so its best penalty is weaker. Tune the two together. Otherwise a good tightness can
# look bad at a penalty that was tuned for another tightness.

least = min(-model.best_score_ for model in models.values())
figure, axes = plt.subplots(1, 2, figsize=(10, 4), sharey=True)
for ax, (name, model) in zip(axes, models.items(), strict=True):
    error = -model.scores_.mean(axis=0)
    image = ax.pcolormesh(error.T, cmap="cividis", vmin=least, vmax=1.1 * least)
    i, j = np.unravel_index(error.argmin(), error.shape)
    ax.plot(
        i + 0.5,
        j + 0.5,
        "*",
        color="white",
        markersize=16,
        markeredgecolor="black",
    )
    ax.set_xticks(
        np.arange(alphas.size) + 0.5, [f"{alpha:.0f}" for alpha in alphas]
    )
    ax.set_yticks(
        np.arange(len(tightnesses)) + 0.5, [f"{c:g}" for c in tightnesses]
    )
    ax.grid(visible=False)
    ax.set(title=f"{name} family", xlabel="penalty alpha")
    test_error = metrics.squared_error(Y_test, model.predict(X_test))
    print(
        f"{name:10s} alpha {model.alpha_:.0f}, tightness {model.tightness_:g}: "
        f"error {-model.best_score_:.4f} in the folds, {test_error:.4f} on the test genes"
    )
axes[0].set(ylabel="tightness c")
figure.colorbar(
    image, ax=axes, label="cross-validated squared error", extend="max"
)
plt.show()

# %%
# Is the difference real?
# -----------------------
# The figure shows the error of each tightness at its best penalty, as the difference to tightness
# 0, with its standard error over the folds. Where the bars reach zero, three folds cannot
# distinguish the tightnesses.

figure, ax = plt.subplots(figsize=(7.5, 3.8))
for place, (name, model) in zip((-0.02, 0.02), models.items(), strict=True):
    best = model.scores_.mean(axis=0).argmax(axis=0)
    errors = -model.scores_[:, best, np.arange(len(tightnesses))]
    change = 100 * (errors / errors[:, :1] - 1)
    bars = change.std(axis=0, ddof=1) / np.sqrt(len(change))
    ax.errorbar(
        np.add(tightnesses, place),
        change.mean(axis=0),
        bars,
        marker="o",
        capsize=3,
        label=name,
    )
ax.axhline(0, color="black", linewidth=0.8)
ax.set(
    title="Best penalty for each tightness",
    xlabel="tightness c",
    ylabel="error, change from c = 0, %",
)
ax.legend(title="family")
plt.show()
