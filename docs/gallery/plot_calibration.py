"""
Calibration
===========

A classifier is calibrated if about 80 % of the samples with predicted probability 0.8 are positive.
If a model with a tight loss is fitted to its optimum on many samples, its link is underconfident,
but ``loss.probabilities`` and ``predict_proba`` are calibrated. A network that overfits is
overconfident with every loss, and less so with a tight loss (:doc:`/choose/tightness`).
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.special import expit
from sklearn.metrics import log_loss

import fitzpatrick as fp
from fitzpatrick.experiments.figures import FAMILY, STYLE
from fitzpatrick.linear_model import FitzpatrickClassifier

plt.style.use(STYLE)

# %%
# Two maps from scores to numbers
# -------------------------------
# The data are drawn from a logistic model, which a linear classifier can match. The dots are
# frequencies of positive test samples in bins of the predicted probability. The lines are the
# theory of the link: where the link predicts p, the probability is ``loss.probabilities`` of the
# scores (0, logit p).

rng = np.random.default_rng(0)
X = rng.normal(size=(40000, 5))
y = (
    rng.random(40000) < expit(X @ np.array([1.5, -1.0, 0.8, 0.5, 0.0]))
).astype(int)
train, test = slice(0, 10000), slice(10000, None)


def reliability(
    probability: np.ndarray, n_bins: int = 12
) -> tuple[np.ndarray, np.ndarray]:
    """Mean probability and frequency of positives, in bins of 200 samples or more."""
    bins = np.minimum((n_bins * probability).astype(int), n_bins - 1)
    count = np.bincount(bins, minlength=n_bins)
    kept = count >= 200
    sums = np.stack(
        [
            np.bincount(bins, weights, n_bins)
            for weights in (probability, y[test])
        ]
    )
    mean, frequency = sums[:, kept] / count[kept]
    return mean, frequency


theta = np.linspace(-7, 7, 401)
scores = np.stack([np.zeros_like(theta), theta], axis=1)
figure, axes = plt.subplots(1, 2, figsize=(10, 4.8), sharex=True, sharey=True)
for (tightness, style), size in zip(FAMILY.items(), (10, 8, 6, 4), strict=True):
    loss = fp.get_loss("fitzpatrick_logistic", tightness=tightness)
    model = FitzpatrickClassifier(loss, alpha=1.0).fit(X[train], y[train])
    link = model.predict_link(X[test])[:, 1]
    probability = model.predict_proba(X[test])[:, 1]
    dots = {
        "marker": "o",
        "linestyle": "",
        "color": style["color"],
        "markersize": size,
    }
    axes[0].plot(expit(theta), loss.probabilities(scores)[:, 1], **style)
    axes[0].plot(*reliability(link), label=f"c = {tightness:g}", **dots)
    axes[1].plot(*reliability(probability), **dots)
    print(
        f"c = {tightness:g}: log loss of the link {log_loss(y[test], link):.4f}, "
        f"of the probabilities {log_loss(y[test], probability):.4f}"
    )
for ax, title in zip(axes, ("predict_link", "predict_proba"), strict=True):
    ax.plot([0, 1], [0, 1], color="black", linewidth=0.8)
    ax.set(title=title, xlabel="predicted probability", aspect="equal")
axes[0].set(ylabel="frequency of positives")
axes[0].legend(title="tightness", loc="upper left")
plt.show()

# %%
# Where the link of a tight loss predicts 70 %, more than 70 % of the samples are positive. The
# probabilities are on the diagonal at every tightness, and their log loss is the same as with the
# logistic loss.
#
# This holds if the model can match the data. A network that is trained for many epochs is
# overconfident with every loss, and a tighter loss can then be better calibrated.

# %%
# A table of coefficients
# -----------------------
# ``summary`` has coefficients with standard errors. Coefficients are in units of the scores, which
# differ between tightnesses, but the average effects of a feature on the probability can be
# compared. Bars are 95 % intervals, and black lines are the true values.

truth = np.array([1.5, -1.0, 0.8, 0.5, 0.0])
slope = expit(X @ truth) * expit(-X @ truth)
figure, axes = plt.subplots(1, 2, figsize=(10, 3.6), sharey=True)
for i, (tightness, style) in enumerate(FAMILY.items()):
    loss = fp.get_loss("fitzpatrick_logistic", tightness=tightness)
    model = FitzpatrickClassifier(loss, alpha=0.0).fit(X[train], y[train])
    summary = model.summary(X[train], y[train])
    effects = summary.marginal_effects.loc["1"]
    tables = [(axes[1], effects)]
    if tightness == 0:
        print(summary.coefficients.round(3))
        tables.append((axes[0], summary.coefficients.loc["1"].iloc[:5]))
    for ax, table in tables:
        ax.errorbar(
            table["coef"],
            np.arange(5) + 0.15 * (i - 1.5),
            xerr=table["high"] - table["coef"],
            fmt="o",
            markersize=4,
            color=style["color"],
            label=f"c = {tightness:g}",
        )
for ax, numbers in zip(axes, (truth, truth * slope.mean()), strict=True):
    ax.vlines(numbers, np.arange(5) - 0.4, np.arange(5) + 0.4, color="black")
axes[0].set(title="coefficients, c = 0", yticks=range(5))
axes[0].set_yticklabels([f"x{j}" for j in range(5)])
axes[1].set(title="average marginal effects")
axes[1].legend(title="tightness")
plt.show()
