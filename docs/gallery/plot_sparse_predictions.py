"""
How many classes each loss keeps
================================

A sparse link gives most classes probability zero, and the remaining classes are a short list of
candidates. This example measures how short the lists are, and how often they contain the correct
class.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

import fitzpatrick as fp
from fitzpatrick.experiments.figures import FENCHEL_YOUNG, FITZPATRICK, STYLE
from fitzpatrick.linear_model import fit_path

plt.style.use(STYLE)
X, y = load_digits(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(
    X / 16, y, train_size=600, random_state=0
)

# %%
# One path for each loss
# ----------------------
# With a weaker penalty the scores are larger, and fewer classes remain. Each loss therefore has a
# curve, from long lists that contain the correct class to short lists that sometimes miss it.

alphas = np.geomspace(100, 0.01, 9)
links = ("entmax15", "sparsemax")
predictions = {}
for loss in (name for link in links for name in (link, f"fitzpatrick_{link}")):
    path = fit_path(X_train, y_train, loss, alphas, tol=1e-3)
    scores = X_test @ path.coefs.mT + path.intercepts[:, None]
    predictions[loss] = np.stack(
        [fp.get_loss(loss).link(one) for one in scores]
    )

figure, axes = plt.subplots(1, 2, figsize=(10, 4), sharex=True, sharey=True)
for ax, link in zip(axes, links, strict=True):
    for loss, style in (
        (link, FENCHEL_YOUNG),
        (f"fitzpatrick_{link}", FITZPATRICK),
    ):
        size = (predictions[loss] > 0).sum(axis=2).mean(axis=1)
        is_listed = predictions[loss][:, np.arange(y_test.size), y_test] > 0
        ax.plot(
            size,
            100 * is_listed.mean(axis=1),
            marker="o",
            markersize=4,
            label=loss,
            **style,
        )
    ax.set(title=f"{link} link", xlabel="classes on the list, of 10 (mean)")
    ax.legend(loc="lower right")
axes[0].set(ylabel="lists with the right class, %")
figure.suptitle("Each dot is a penalty")
plt.show()

# %%
# The lists at the best penalty
# -----------------------------
# The figure counts the test digits by the length of their list, for the penalty with the best
# accuracy. With the logistic losses, all lists would have ten classes.

figure, axes = plt.subplots(1, 2, figsize=(10, 3.6), sharex=True, sharey=True)
for ax, link in zip(axes, links, strict=True):
    for loss, style, shift in (
        (link, FENCHEL_YOUNG, -0.2),
        (f"fitzpatrick_{link}", FITZPATRICK, 0.2),
    ):
        accuracy = (predictions[loss].argmax(axis=2) == y_test).mean(axis=1)
        best = int(accuracy.argmax())
        lengths = (predictions[loss][best] > 0).sum(axis=1)
        ax.bar(
            np.arange(11) + shift,
            np.bincount(lengths, minlength=11),
            width=0.4,
            color=style["color"],
            label=f"{loss}, alpha = {alphas[best]:.2g}",
        )
        print(
            f"{loss:22s} accuracy {accuracy[best]:.3f}, {lengths.mean():.2f} classes on the list, "
            f"one class for {(lengths == 1).mean():.0%} of the digits"
        )
    ax.set(
        title=f"{link} link",
        xlabel="classes on the list",
        xticks=range(1, 11),
        xlim=(0.4, 10.6),
    )
    ax.legend()
axes[0].set(ylabel="test digits")
plt.show()
