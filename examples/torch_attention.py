"""Sparse attention with an α of its own for every head, learned on a small task.

A sequence holds key tokens, each followed by its value; the last token repeats one of the keys, and
the model has to answer with the value that followed it. That takes two steps of attention: to the
token before, and to the token that is alike. The heads learn how sparse they want to be: α goes
from the soft argmax (1) to sparsemax (2).

    python examples/torch_attention.py --figure attention.png
"""

import argparse
from collections.abc import Sequence
from pathlib import Path

import torch
from torch import Tensor, nn

from fitzpatrick.torch import Entmax, FitzpatrickLogisticLoss

KEYS, VALUES, PAIRS = 8, 8, 4
LENGTH = 2 * PAIRS + 1


def draw(n: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Sequences of tokens, and the value that each asks for."""
    keys = torch.stack([torch.randperm(KEYS, generator=generator)[:PAIRS] for _ in range(n)])
    values = torch.randint(0, VALUES, (n, PAIRS), generator=generator)
    asked = torch.randint(0, PAIRS, (n, 1), generator=generator)
    pairs = torch.stack((keys, values + KEYS), -1).flatten(1)
    return torch.cat((pairs, keys.gather(1, asked)), 1), values.gather(1, asked)[:, 0]


class Attention(nn.Module):
    """Causal multi-head attention whose weights are an α-entmax."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.project = nn.Linear(width, 3 * width)
        self.merge = nn.Linear(width, width)
        self.entmax = Entmax(torch.full((heads, 1, 1), 1.5), learnable=True)
        self.weights = torch.empty(0)

    def forward(self, x: Tensor) -> Tensor:
        """What the tokens gather from those before them."""
        n, length, width = x.shape
        parts = self.project(x).reshape(n, length, 3, self.heads, width // self.heads)
        query, key, value = parts.permute(2, 0, 3, 1, 4)
        scores = query @ key.transpose(-1, -2) / query.shape[-1] ** 0.5
        mask = torch.ones(length, length, dtype=torch.bool, device=x.device).tril()
        self.weights = self.entmax(scores, mask=mask)
        return self.merge((self.weights @ value).transpose(1, 2).reshape(n, length, width))


class Model(nn.Module):
    """Two layers of attention between an embedding and a head."""

    def __init__(self, width: int = 64, heads: int = 2) -> None:
        super().__init__()
        self.tokens = nn.Embedding(KEYS + VALUES, width)
        self.places = nn.Parameter(0.1 * torch.randn(LENGTH, width))
        self.layers = nn.ModuleList(Attention(width, heads) for _ in range(2))
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(2))
        self.head = nn.Linear(width, VALUES)

    def forward(self, tokens: Tensor) -> Tensor:
        """Scores of the values."""
        x = self.tokens(tokens) + self.places
        for norm, layer in zip(self.norms, self.layers, strict=True):
            x = x + layer(norm(x))
        return self.head(x[:, -1])


def plot(model: Model, tokens: Tensor, path: Path) -> None:
    """The attention of every head to one sequence."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    model(tokens[:1])
    names = [f"k{t}" if t < KEYS else f"v{t - KEYS}" for t in tokens[0].tolist()]
    heads = [(i, j) for i, layer in enumerate(model.layers) for j in range(layer.heads)]
    figure, panels = pyplot.subplots(1, len(heads), figsize=(3.2 * len(heads), 3.6))
    for axes, (i, j) in zip(panels, heads, strict=True):
        layer = model.layers[i]
        weights = layer.weights[0, j].detach().numpy()
        axes.imshow(weights, vmin=0, vmax=1, cmap="Blues")
        alpha = layer.entmax.alpha[j].item()
        axes.set_title(f"layer {i + 1}, head {j + 1}: α = {alpha:.2f}", fontsize=10)
        axes.set_xticks(range(LENGTH), names, fontsize=8)
        axes.set_yticks(range(LENGTH), names, fontsize=8)
    panels[0].set_ylabel("query")
    figure.supxlabel("key")
    figure.tight_layout()
    figure.savefig(path, dpi=120)
    print(path)


def main(arguments: Sequence[str] | None = None) -> float:
    """Train, and return the share of right answers to new sequences."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=600)
    parser.add_argument("--batch", type=int, default=128)
    parser.add_argument("--figure", type=Path, help="where to draw the attention")
    options = parser.parse_args(arguments)
    torch.manual_seed(0)
    generator = torch.Generator().manual_seed(0)
    model = Model()
    criterion = FitzpatrickLogisticLoss()
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    for step in range(options.steps):
        tokens, answers = draw(options.batch, generator)
        optimizer.zero_grad()
        loss = criterion(model(tokens), answers)
        loss.backward()
        optimizer.step()
        if step % 250 == 0:
            print(f"step {step:5d}: loss {loss.item():.4f}")
    tokens, answers = draw(1000, generator)
    with torch.no_grad():
        right = (model(tokens).argmax(-1) == answers).float().mean().item()
    alphas = torch.cat([layer.entmax.alpha.flatten() for layer in model.layers])
    print(f"right answers: {right:.3f}; α of the heads: {[round(a, 2) for a in alphas.tolist()]}")
    if options.figure is not None:
        plot(model, tokens, options.figure)
    return right


if __name__ == "__main__":
    main()
