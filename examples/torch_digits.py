"""A small network on scikit-learn's digits, trained with each loss of the package.

Only the criterion differs between losses. Losses on the simplex take class indices, entry-wise
losses take one-hot rows. The curves show the error on held-out digits.

    python examples/torch_digits.py --figure digits.png
"""

import argparse
import functools
from pathlib import Path

import torch
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

import fitzpatrick as fp
from fitzpatrick.losses import ends
from fitzpatrick.torch import LossModule


def takes_labels(name: str) -> bool:
    """True if the targets of a loss are class indices."""
    return fp.get_loss(name).regularizer.domain.has_labels


@functools.cache
def digits() -> tuple[torch.Tensor, ...]:
    """Training and test inputs in [0, 1], training and test labels."""
    data = load_digits()
    parts = train_test_split(data.data / 16, data.target, test_size=0.25, random_state=0)
    inputs = [torch.tensor(part, dtype=torch.float32) for part in parts[:2]]
    labels = [torch.tensor(part) for part in parts[2:]]
    return (*inputs, *labels)


def train(name: str, epochs: int, seed: int, batch: int = 64) -> torch.Tensor:
    """Test error after each epoch."""
    inputs, test_inputs, labels, test_labels = digits()
    targets = labels if takes_labels(name) else torch.eye(10)[labels]
    torch.manual_seed(seed)
    network = torch.nn.Sequential(torch.nn.Linear(64, 32), torch.nn.ReLU(), torch.nn.Linear(32, 10))
    criterion = LossModule(name)
    optimizer = torch.optim.Adam(network.parameters(), lr=3e-3)
    errors = torch.empty(epochs)
    for epoch in range(epochs):
        for rows in torch.randperm(len(labels)).split(batch):
            optimizer.zero_grad()
            criterion(network(inputs[rows]), targets[rows]).backward()
            optimizer.step()
        with torch.no_grad():
            wrong = network(test_inputs).argmax(-1) != test_labels
        errors[epoch] = wrong.float().mean()
    return errors


def plot(curves: dict[str, torch.Tensor], path: Path) -> None:
    """Test errors by epoch: a color for each regularizer, solid for its Fitzpatrick loss."""
    from matplotlib import pyplot, ticker

    figure, axes = pyplot.subplots(1, 2, figsize=(11, 4.5), sharey=True, layout="constrained")
    links = sorted({ends(name)[0] for name in curves})
    for name, errors in curves.items():
        axis = axes[0 if takes_labels(name) else 1]
        style = "-" if isinstance(fp.get_loss(name), fp.FitzpatrickLoss) else "--"
        epochs = range(1, len(errors) + 1)
        axis.plot(epochs, errors, style, color=f"C{links.index(ends(name)[0])}", label=name)
    axes[0].set(ylabel="test error", title="class indices", yscale="log")
    axes[1].set(title="one-hot targets, entry by entry")
    axes[0].yaxis.set_major_locator(ticker.LogLocator(subs=(1, 2, 3, 5)))
    axes[0].yaxis.set_major_formatter(ticker.PercentFormatter(1, decimals=0))
    axes[0].yaxis.set_minor_formatter(ticker.NullFormatter())
    for axis in axes:
        axis.set(xlabel="epoch")
        axis.legend()
        axis.grid(alpha=0.3)
    figure.savefig(path, dpi=120)
    pyplot.close(figure)


def main(arguments: list[str] | None = None) -> dict[str, float]:
    """Train, print and return the final test errors, as means over several random starts."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--losses", nargs="+", default=fp.loss_names(), choices=fp.loss_names())
    parser.add_argument("--epochs", type=int, default=30)
    parser.add_argument("--seeds", type=int, default=3, help="number of random starts")
    parser.add_argument("--figure", type=Path, help="write the curves to this image")
    options = parser.parse_args(arguments)
    torch.set_num_threads(1)  # one thread is enough for a small network
    curves = {}
    for name in options.losses:
        runs = [train(name, options.epochs, seed) for seed in range(options.seeds)]
        curves[name] = torch.stack(runs).mean(0)
        print(f"{name:27s} test error {100 * curves[name][-1].item():4.1f} %")
    if options.figure is not None:
        plot(curves, options.figure)
        print(options.figure)
    return {name: errors[-1].item() for name, errors in curves.items()}


if __name__ == "__main__":
    main()
