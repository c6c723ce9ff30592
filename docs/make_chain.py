"""Draw the Markov chain from a label to its maximizer, into ``docs/figures/chain.svg``."""

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import fitzpatrick as fp
from fitzpatrick.experiments.figures import STYLE

SCORES = np.array([1.5, 0.5, 0.0])
CORNERS = np.array([[0.0, 0.0], [1.0, 0.0], [0.5, 0.87]])


def main() -> None:
    """Three classes as a triangle; the width of an arrow is its probability."""
    plt.style.use(STYLE)
    figure, axes = plt.subplots(1, 3, figsize=(10, 3.4))
    for ax, tightness in zip(axes, (0.0, 1.0, 4.0), strict=True):
        loss = fp.get_loss("fitzpatrick_logistic", tightness=tightness)
        chain = loss.y_star(np.arange(3), np.tile(SCORES, (3, 1)))
        q = loss.probabilities(SCORES)
        for j in range(3):
            for i in range(3):
                if i == j:
                    continue
                along = CORNERS[i] - CORNERS[j]
                side = 0.03 * np.array([-along[1], along[0]])
                start, end = CORNERS[j] + 0.2 * along + side, CORNERS[j] + 0.8 * along + side
                ax.annotate(
                    "", end, start,
                    arrowprops={"arrowstyle": "->", "lw": 0.3 + 6 * chain[j, i], "color": "0.4"},
                )  # fmt: skip
            ax.scatter(*CORNERS[j], s=2400 * q[j] + 60, color=f"C{j}", zorder=3)
            text = f"class {j + 1}: {q[j]:.2f}\nstays {chain[j, j]:.2f}"
            below = CORNERS[j][1] == 0
            ax.text(
                *(CORNERS[j] + [0, -0.2 if below else 0.2]), text, ha="center",
                va="top" if below else "bottom", fontsize=8,
            )  # fmt: skip
        ax.set(title=f"tightness {tightness:g}", xlim=(-0.45, 1.45), ylim=(-0.6, 1.4))
        ax.axis("off")
    figure.savefig(Path(__file__).parent / "figures" / "chain.svg", metadata={"Date": None})


if __name__ == "__main__":
    main()
