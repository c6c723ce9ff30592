"""
Counts with the Poisson loss
============================

The regularizer Σ y log y − y on the non-negative numbers has the link exp(θ) and the Poisson loss.
Its Fitzpatrick losses penalize predictions less where the count is zero. This helps if some zeros
are false, as when a counter is switched off.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.optimize import brentq
from scipy.stats import poisson
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import SplineTransformer

import fitzpatrick as fp
from fitzpatrick.experiments.figures import FAMILY, STYLE
from fitzpatrick.linear_model import ProportionRegressor

plt.style.use(STYLE)
OUTAGES = 0.15

# %%
# Cars by the hour
# ----------------
# A road has two rush hours. Its counter is sometimes off and then reports zero cars. The models are
# linear in periodic splines of the time.

rng = np.random.default_rng(0)
hour = np.sort(rng.uniform(0, 24, 1000))


def rate(t: np.ndarray) -> np.ndarray:
    """Cars in an interval at time t."""
    rush = np.exp(-(((t - 8) / 1.5) ** 2)) + 0.8 * np.exp(
        -(((t - 17.5) / 2) ** 2)
    )
    return 10 + 50 * rush


is_off = rng.permutation(hour.size) < OUTAGES * hour.size
counts = np.where(is_off, 0.0, rng.poisson(rate(hour)))
grid = np.linspace(0, 24, 300)
figure, ax = plt.subplots(figsize=(10, 4.2))
ax.plot(hour, counts, ".", color="#9a9a9a", markersize=3)
ax.plot(
    grid, rate(grid), color="#9a9a9a", linewidth=5, alpha=0.5, label="true rate"
)
for tightness, style in FAMILY.items():
    model = make_pipeline(
        SplineTransformer(
            n_knots=13, extrapolation="periodic", include_bias=False
        ),
        ProportionRegressor(
            "fitzpatrick_poisson", alpha=1e-3, tightness=tightness
        ),
    )
    fitted = model.fit(hour[:, None], counts).predict(grid[:, None])
    ax.plot(grid, fitted, label=f"c = {tightness:g}", **style)
    print(
        f"c = {tightness:g}: mean of fitted / true rate {(fitted / rate(grid)).mean():.3f}"
    )
ax.set(
    xlabel="hour",
    ylabel="cars",
    title=f"Counts of which {OUTAGES:.0%} are false zeros",
)
ax.set(xlim=(0, 24), xticks=range(0, 25, 4))
ax.legend(ncols=2)
plt.show()

# %%
# What each loss estimates
# ------------------------
# The Poisson loss estimates the mean, which includes false zeros. A tighter loss estimates the rate
# at which its expected gradient is zero, computed here from the Poisson distribution. For rates of
# ten and more, tight losses are almost unbiased on clean counts (left) and less biased by false
# zeros (right). For small rates, where most counts are zero, they overestimate: use tightness 0.


def estimate(tightness: float, true_rate: float, outages: float) -> float:
    """The rate that minimizes the expected loss of Poisson counts with false zeros."""
    loss = fp.get_loss("fitzpatrick_poisson", tightness=tightness)
    y = np.arange(poisson.isf(1e-12, true_rate) + 1)[:, None]
    weights = (1 - outages) * poisson.pmf(y, true_rate) + outages * (y == 0)
    score = brentq(
        lambda t: (weights * loss.gradient(y, np.full_like(y, t))).sum(), -9, 9
    )
    return float(np.exp(score))


rates = np.geomspace(0.5, 60, 15)
figure, axes = plt.subplots(1, 2, figsize=(10, 3.6), sharey=True)
for ax, outages in zip(axes, (0.0, OUTAGES), strict=True):
    for tightness, style in FAMILY.items():
        ratios = [estimate(tightness, one, outages) / one for one in rates]
        ax.semilogx(rates, ratios, label=f"c = {tightness:g}", **style)
    ax.axhline(1, color="black", linewidth=0.8)
    ax.set(
        title=f"{outages:.0%} false zeros", xlabel="true rate", ylim=(0.75, 1.5)
    )
    ax.set_xticks([1, 3, 10, 30], ["1", "3", "10", "30"])
axes[0].set(ylabel="estimate / true rate")
axes[0].legend(title="tightness")
plt.show()
