"""
Trees for proportions
=====================

This example fits boosted trees to proportions of several labels: yeast genes and their functions.
It compares them with linear models that have the same loss and link.
"""

import matplotlib.pyplot as plt
import numpy as np

from fitzpatrick import metrics
from fitzpatrick.boosting import BoostedProportionRegressor
from fitzpatrick.datasets import load_dataset
from fitzpatrick.experiments.figures import STYLE
from fitzpatrick.linear_model import ProportionRegressor
from fitzpatrick.preprocessing import label_proportions

plt.style.use(STYLE)
yeast = load_dataset("yeast")
X, Y = yeast.train.X, label_proportions(yeast.train.Y)
X_test, Y_test = yeast.test.X, label_proportions(yeast.test.Y)

# %%
# Errors as the trees are added
# -----------------------------
# With a warm start, each call of ``fit`` adds ten rounds.

figure, ax = plt.subplots(figsize=(7, 4.2))
rounds = np.arange(10, 81, 10)
for loss in ("logistic", "fitzpatrick_logistic", "sparsemax"):
    model = BoostedProportionRegressor(
        loss, n_estimators=10, num_leaves=7, warm_start=True, n_jobs=1
    )
    errors = []
    for _ in rounds:
        prediction = model.fit(X, Y).predict(X_test)
        errors.append(metrics.squared_error(Y_test, prediction))
    line = ax.plot(rounds, errors, marker="o", label=f"{loss}, trees")[0]
    linear = ProportionRegressor(loss, alpha=300.0, standardize=True).fit(X, Y)
    error = metrics.squared_error(Y_test, linear.predict(X_test))
    ax.axhline(
        error, color=line.get_color(), linestyle=":", label=f"{loss}, linear"
    )
    print(f"{loss:22s} trees {min(errors):.4f}, linear {error:.4f}")
ax.set(xlabel="rounds", ylabel="squared error on the test genes")
ax.legend(fontsize="small")
plt.show()

# %%
# On these data, trees and linear models have similar errors. ``benchmarks/boosting.py`` compares
# them on eight data sets.
