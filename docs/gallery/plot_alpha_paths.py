"""
Paths of penalties
==================

``fit_path`` fits one model for each penalty, from strong to weak. Each fit starts from an
extrapolation of the previous solutions. The path shows how the coefficients grow, and how the error
on new data falls and then rises.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_wine
from sklearn.model_selection import train_test_split

from fitzpatrick import metrics
from fitzpatrick.experiments.figures import FENCHEL_YOUNG, FITZPATRICK, STYLE
from fitzpatrick.linear_model import ProportionRegressor, fit_path

plt.style.use(STYLE)

# %%
# Three wines, thirteen features
# ------------------------------
# One call returns the whole path. The coefficients refer to the features as given, so the features
# are standardized first to make the coefficients comparable.

wine = load_wine()
X = (wine.data - wine.data.mean(axis=0)) / wine.data.std(axis=0)
X_train, X_test, y_train, y_test = train_test_split(
    X, wine.target, train_size=0.5, random_state=0, stratify=wine.target
)
alphas = np.geomspace(1e3, 1e-3, 31)
names = (
    "logistic",
    "fitzpatrick_logistic",
    "sparsemax",
    "fitzpatrick_sparsemax",
)
paths = {name: fit_path(X_train, y_train, name, alphas) for name in names}

# %%
# The figure shows the coefficients of the first wine, with three large ones in color. With the
# logistic loss they grow without bound as the penalty decreases, because separable classes drive
# the scores to infinity. The sparsemax losses are zero beyond a finite margin, so their paths level
# off.

shown = np.argsort(-sum(np.abs(path.coefs[-1, 0]) for path in paths.values()))[
    :3
]
figure, axes = plt.subplots(2, 2, figsize=(10, 6), sharex=True)
for ax, (name, path) in zip(axes.flat, paths.items(), strict=True):
    coefficients = path.coefs[:, 0]
    ax.semilogx(alphas, coefficients, color="#9a9a9a", linewidth=0.9)
    for j in shown:
        ax.semilogx(
            alphas, coefficients[:, j], linewidth=2, label=wine.feature_names[j]
        )
    ax.set(title=name)
figure.legend(
    *axes[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=3
)
axes[0, 0].invert_xaxis()
for ax in axes[1]:
    ax.set(xlabel="alpha (strong → weak)")
for ax in axes[:, 0]:
    ax.set(ylabel="coefficient")

# %%
# The error on held-out wines
# ---------------------------
# The same path shows how the penalty affects new data. The error is the squared error of the
# predicted probabilities, summed over the classes and averaged over the wines.

one_hot = np.eye(3)[y_test]
figure, axes = plt.subplots(1, 2, figsize=(10, 3.4), sharey=True)
for ax, pair in zip(axes, (names[:2], names[2:]), strict=True):
    for name, style in zip(pair, (FENCHEL_YOUNG, FITZPATRICK), strict=True):
        models = [
            ProportionRegressor.from_model(model, name)
            for model in paths[name].models
        ]
        errors = [
            metrics.squared_error(one_hot, model.predict(X_test))
            for model in models
        ]
        ax.loglog(alphas, errors, label=name, **style)
        best = int(np.argmin(errors))
        ax.plot(alphas[best], errors[best], "o", color=style["color"])
        print(
            f"{name:24s} smallest error {errors[best]:.4f} at alpha = {alphas[best]:.3g}"
        )
    ax.set(
        title=f"{pair[0]} and its Fitzpatrick loss",
        xlabel="alpha (strong → weak)",
    )
    ax.legend()
    ax.invert_xaxis()
axes[0].set(ylabel="test error")
axes[0].set_yticks([0.03, 0.1, 0.3], ["0.03", "0.1", "0.3"])
axes[0].minorticks_off()
plt.show()
