"""A small network on scikit-learn's digits, trained with each loss on the simplex.

Every loss is used in the same way, one line apart. The curves show the error on held-out digits.

    python examples/torch_digits.py --epochs 30 --figure digits.png
"""

import argparse
from pathlib import Path

import torch
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

import fitzpatrick as fp
from fitzpatrick.torch import modules

LOSSES = [
    name
    for name in fp.loss_names()
    if isinstance(fp.get_loss(name).regularizer.domain, fp.sets.Simplex)
]


def digits() -> tuple[torch.Tensor, ...]:
    """Training and test inputs in [0, 1], training and test labels."""
    data = load_digits()
    parts = train_test_split(data.data / 16, data.target, test_size=0.25, random_state=0)
    inputs = [torch.tensor(part, dtype=torch.float32) for part in parts[:2]]
    labels = [torch.tensor(part) for part in parts[2:]]
    return (*inputs, *labels)


def train(name: str, epochs: int, batch: int = 64) -> list[float]:
    """Test error after each epoch."""
    inputs, test_inputs, labels, test_labels = digits()
    torch.manual_seed(0)
    network = torch.nn.Sequential(torch.nn.Linear(64, 32), torch.nn.ReLU(), torch.nn.Linear(32, 10))
    criterion = getattr(modules, modules.module_name(name))()
    optimizer = torch.optim.Adam(network.parameters(), lr=3e-3)
    errors = []
    for _ in range(epochs):
        for rows in torch.randperm(len(labels)).split(batch):
            optimizer.zero_grad()
            criterion(network(inputs[rows]), labels[rows]).backward()
            optimizer.step()
        with torch.no_grad():
            wrong = network(test_inputs).argmax(-1) != test_labels
        errors.append(wrong.float().mean().item())
    return errors


def main() -> None:
    """Train, and print what comes out."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--epochs", type=int, default=30)
    parser.add_argument("--figure", type=Path, help="write the curves to this image")
    arguments = parser.parse_args()
    curves = {name: train(name, arguments.epochs) for name in LOSSES}
    for name, errors in curves.items():
        print(f"{name:22s} test error {errors[-1]:.3f}")
    if arguments.figure is not None:
        from matplotlib import pyplot

        for name, errors in curves.items():
            pyplot.semilogy(range(1, len(errors) + 1), errors, label=name)
        pyplot.xlabel("epoch")
        pyplot.ylabel("test error")
        pyplot.legend()
        pyplot.savefig(arguments.figure, dpi=120)
        print(arguments.figure)


if __name__ == "__main__":
    main()
