"""
Label distributions
===================

A target can be a whole distribution, such as the shares of species at a site, of votes, or of
emotions that raters saw in a face. A loss on the simplex takes such targets directly.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import SplineTransformer

from fitzpatrick import metrics
from fitzpatrick.experiments.figures import STYLE
from fitzpatrick.linear_model import ProportionRegressorCV

plt.style.use(STYLE)

# %%
# Plants along a slope
# --------------------
# Five species grow on a slope, each within its own range of elevations. At each of 150 sites, 25
# plants are counted. The true shares, which are known in a simulation, have exact zeros.

rng = np.random.default_rng(0)
centers, widths = (
    np.array([0.0, 0.25, 0.45, 0.7, 1.0]),
    np.array([0.3, 0.22, 0.15, 0.25, 0.3]),
)


def true_shares(elevation: np.ndarray) -> np.ndarray:
    """Shares of the species, zero outside their ranges."""
    amount = np.maximum(1 - ((elevation[:, None] - centers) / widths) ** 2, 0)
    return np.asarray(amount / amount.sum(axis=1, keepdims=True))


elevation = rng.random(150)
shares = rng.multinomial(25, true_shares(elevation)) / 25

# %%
# Four fits
# ---------
# The models are linear in splines of the elevation, and cross-validation chooses the penalty. With
# the logistic link, every species has a positive share everywhere. With the sparse link, ranges
# end.

grid = np.linspace(0, 1, 400)
predictions = {"truth": true_shares(grid)}
for loss in (
    "logistic",
    "fitzpatrick_logistic",
    "sparsemax",
    "fitzpatrick_sparsemax",
):
    model = make_pipeline(
        SplineTransformer(n_knots=8, include_bias=False),
        ProportionRegressorCV(loss, alphas=np.geomspace(1e-3, 1, 7), tol=1e-5),
    )
    predictions[loss] = model.fit(elevation[:, None], shares).predict(
        grid[:, None]
    )

figure, axes = plt.subplots(2, 3, figsize=(10, 5.8), sharex=True, sharey=True)
order = np.argsort(elevation)
panels = [
    ("counted", elevation[order], shares[order]),
    *((k, grid, v) for k, v in predictions.items()),
]
for ax, (title, place, part) in zip(axes.flat, panels, strict=True):
    ax.stackplot(
        place, part.T, alpha=0.85, labels=[f"species {j}" for j in range(1, 6)]
    )
    ax.set(title=title, ylim=(0, 1), xlim=(place[0], place[-1]))
for ax in axes[1]:
    ax.set(xlabel="elevation")
for ax in axes[:, 0]:
    ax.set(ylabel="share")
figure.legend(
    *axes[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=5
)
plt.show()

# %%
# The table has metrics of label distribution learning, compared with the true shares. The
# Kullback-Leibler divergence is left out, because it is infinite wherever a sparse prediction is
# zero and the true share is not.

print(
    f"{'loss':24s}{'squared error':>14s}{'Jensen-Shannon':>16s}{'Chebyshev':>11s}{'zeros':>8s}"
)
for name, prediction in predictions.items():
    print(
        f"{name:24s}{metrics.squared_error(predictions['truth'], prediction):14.4f}"
        f"{metrics.jensen_shannon(predictions['truth'], prediction):16.4f}"
        f"{metrics.chebyshev(predictions['truth'], prediction):11.4f}"
        f"{metrics.sparsity(prediction):8.1%}"
    )
