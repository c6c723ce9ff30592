"""
A network on digits, in PyTorch
===============================

This example trains a small network on scikit-learn's digits, once with each loss. Only the
criterion changes.
"""

import matplotlib.pyplot as plt
import numpy as np
import torch
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

import fitzpatrick.torch as ft
from fitzpatrick.experiments.figures import COLORS, STYLE

plt.style.use(STYLE)
torch.set_num_threads(1)  # one thread is enough for a small network

digits = load_digits()
X, X_test, y, y_test = train_test_split(
    torch.tensor(digits.data / 16, dtype=torch.float32),
    torch.tensor(digits.target),
    train_size=0.5,
    random_state=0,
)

# %%
# Training
# --------
# Every loss is trained from the same three random starts on the same batches. Adam does not depend
# on the scale of a loss, so it trains the smaller Fitzpatrick losses as well as the Fenchel-Young
# losses.

EPOCHS, SEEDS = 12, 3
criteria = {
    "CrossEntropyLoss": torch.nn.CrossEntropyLoss(),
    "FitzpatrickLogisticLoss": ft.FitzpatrickLogisticLoss(),
    "SparsemaxLoss": ft.SparsemaxLoss(),
    "FitzpatrickSparsemaxLoss": ft.FitzpatrickSparsemaxLoss(),
}


def train(
    criterion: torch.nn.Module, seed: int
) -> tuple[torch.nn.Module, list[float]]:
    """A network, and its test error after each epoch."""
    torch.manual_seed(seed)
    network = torch.nn.Sequential(
        torch.nn.Linear(64, 32), torch.nn.ReLU(), torch.nn.Linear(32, 10)
    )
    optimizer = torch.optim.Adam(network.parameters(), lr=5e-3)
    errors = []
    for _ in range(EPOCHS):
        for rows in torch.split(torch.randperm(len(y)), 64):
            optimizer.zero_grad()
            criterion(network(X[rows]), y[rows]).backward()
            optimizer.step()
        with torch.no_grad():
            errors.append(
                (network(X_test).argmax(-1) != y_test).float().mean().item()
            )
    return network, errors


networks = {}
figure, ax = plt.subplots(figsize=(8, 4))
for i, (name, criterion) in enumerate(criteria.items()):
    runs = [train(criterion, seed) for seed in range(SEEDS)]
    networks[name] = runs[0][0]
    curves = 100 * np.array([errors for _, errors in runs])
    epochs = np.arange(1, EPOCHS + 1)
    ax.plot(
        epochs, curves.mean(axis=0), label=name, linestyle=["-", "--"][i % 2]
    )
    ax.fill_between(epochs, curves.min(axis=0), curves.max(axis=0), alpha=0.15)
    print(f"{name:26s} test error {curves[:, -1].mean():.1f} %")
ax.set(
    xlabel="epoch",
    ylabel="test error, %",
    yscale="log",
    xticks=range(1, EPOCHS + 1),
)
ax.set_title("Held-out digits: mean and range of three starts")
ax.set_yticks([2, 5, 10, 20, 50], ["2", "5", "10", "20", "50"])
ax.minorticks_off()
ax.legend()
plt.show()

# %%
# Where a sparse network is uncertain
# -----------------------------------
# With a sparse link, many digits have probability one for a single class. The figure shows six
# digits with several possible classes. The true class is orange.

with torch.no_grad():
    probabilities = ft.functional.sparsemax(
        networks["FitzpatrickSparsemaxLoss"](X_test)
    )
kept = (probabilities > 0).sum(-1)
print(
    f"{(kept == 1).float().mean():.0%} of the test digits keep one class; "
    f"the mean is {kept.float().mean():.2f}"
)
doubtful = torch.argsort(probabilities.max(-1).values)[:6].tolist()
figure, axes = plt.subplots(
    2, 6, figsize=(10, 3.6), height_ratios=[2, 1], sharey="row"
)
for i, (above, below) in zip(doubtful, axes.T, strict=True):
    above.imshow(X_test[i].reshape(8, 8).numpy(), cmap="gray_r")
    above.set_axis_off()
    colors = [COLORS[1] if j == y_test[i] else COLORS[0] for j in range(10)]
    below.bar(range(10), probabilities[i].numpy(), color=colors)
    below.set_xticks(range(10), [str(j) for j in range(10)], fontsize=7)
    below.grid(visible=False)
axes[1, 0].set(ylabel="probability")
figure.suptitle("The six most doubtful digits")
plt.show()
