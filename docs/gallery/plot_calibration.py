"""
Calibration
===========

A classifier is calibrated if, among the samples to which it gives 80 %, about 80 % are positive.
The logistic loss is made for that: its expected value is least at the true probability. Tighter
losses put their minimum elsewhere, at a place that can be computed and undone.
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
# What the optimal score says
# ---------------------------
# A sample is positive with probability η, and its scores are (0, θ). At the best θ the expected
# gradient is zero: η times the pull upward equals 1 − η times the pull downward. Solved for η, that
# gives the true probability for which a score is best, straight from ``loss.gradient``.


def true_probability(loss: fp.losses.Loss, theta: np.ndarray) -> np.ndarray:
    """The η at which the scores (0, θ) minimize the expected loss."""
    scores = np.stack([np.zeros_like(theta), theta], axis=1)
    positive = np.ones(theta.size, dtype=int)
    up = -loss.gradient(positive, scores)[:, 1]
    down = loss.gradient(0 * positive, scores)[:, 1]
    return np.asarray(down / (up + down))


# %%
# A measured reliability curve
# ----------------------------
# The data are drawn from a logistic model, which a linear classifier can match. The dots are
# frequencies among test samples in bins of the predicted probability; the lines are the curves
# that the formula above predicts.

rng = np.random.default_rng(0)
X = rng.normal(size=(40000, 5))
y = (
    rng.random(40000) < expit(X @ np.array([1.5, -1.0, 0.8, 0.5, 0.0]))
).astype(int)
train, test = slice(0, 10000), slice(10000, None)


def reliability(
    probability: np.ndarray, n_bins: int = 12
) -> tuple[np.ndarray, np.ndarray]:
    """Mean probability and frequency of positives in each bin of at least 200 test samples."""
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
figure, axes = plt.subplots(1, 2, figsize=(10, 4.8), sharex=True, sharey=True)
for (tightness, style), size in zip(FAMILY.items(), (10, 8, 6, 4), strict=True):
    loss = fp.get_loss("fitzpatrick_logistic", tightness=tightness)
    model = FitzpatrickClassifier(loss, alpha=1.0).fit(X[train], y[train])
    scores = model.decision_function(X[test])
    raw, corrected = expit(scores), true_probability(loss, scores)
    dots = {
        "marker": "o",
        "linestyle": "",
        "color": style["color"],
        "markersize": size,
    }
    axes[0].plot(expit(theta), true_probability(loss, theta), **style)
    axes[0].plot(*reliability(raw), label=f"c = {tightness:g}", **dots)
    axes[1].plot(*reliability(corrected), **dots)
    print(
        f"c = {tightness:g}: log loss {log_loss(y[test], raw):.4f}, "
        f"{log_loss(y[test], corrected):.4f} corrected"
    )
for ax, title in zip(
    axes, ("Link of the scores", "Corrected probabilities"), strict=True
):
    ax.plot([0, 1], [0, 1], color="black", linewidth=0.8)
    ax.set(title=title, xlabel="predicted probability", aspect="equal")
axes[0].set(ylabel="frequency of positives")
axes[0].legend(title="tightness", loc="upper left")
plt.show()

# %%
# The link of a tight loss is underconfident: where it says 70 %, more than 70 % are positive. The
# order of the samples is hardly touched, and the correction brings the frequencies back to the
# diagonal. If you need probabilities rather than decisions, train at tightness 0 or correct.
