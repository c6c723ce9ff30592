"""
Sparse attention that learns how sparse to be
=============================================

If the weights of an attention head come from an α-entmax, most tokens can have weight zero. With a
learnable α, each head learns its own value between the soft argmax (α = 1) and sparsemax (α = 2).
"""

import matplotlib.pyplot as plt
import numpy as np
import torch
from torch import Tensor, nn

from fitzpatrick.experiments.figures import STYLE
from fitzpatrick.torch import Entmax, FitzpatrickLogisticLoss

torch.manual_seed(0)
torch.set_num_threads(1)  # one thread is enough for a small model
plt.style.use(STYLE)
# sphinx_gallery_thumbnail_number = 2

# %%
# The task
# --------
# A sequence has key tokens, each followed by its value. The last token repeats one of the keys, and
# the model has to answer with the value that followed this key. This takes two steps of attention:
# to the previous token, and to the equal token.

KEYS, VALUES, PAIRS = 8, 8, 4
LENGTH = 2 * PAIRS + 1


def draw(n: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Sequences of tokens, and the correct value for each sequence."""
    keys = torch.rand(n, KEYS, generator=generator).argsort(-1)[:, :PAIRS]
    values = torch.randint(0, VALUES, (n, PAIRS), generator=generator)
    asked = torch.randint(0, PAIRS, (n, 1), generator=generator)
    pairs = torch.stack((keys, values + KEYS), -1).flatten(1)
    return torch.cat((pairs, keys.gather(1, asked)), 1), values.gather(
        1, asked
    )[:, 0]


# %%
# The model
# ---------
# The model has two layers of causal attention. Its only unusual line calls ``Entmax`` instead of
# ``softmax``. ``Entmax`` takes the mask, and its α is a parameter with one entry for each head.


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
        """The attention output for each token."""
        n, length, width = x.shape
        parts = self.project(x).reshape(
            n, length, 3, self.heads, width // self.heads
        )
        query, key, value = parts.permute(2, 0, 3, 1, 4)
        scores = query @ key.transpose(-1, -2) / query.shape[-1] ** 0.5
        mask = torch.ones(length, length, dtype=torch.bool).tril()
        self.weights = self.entmax(scores, mask=mask)
        merged: Tensor = self.merge(
            (self.weights @ value).transpose(1, 2).reshape(n, length, width)
        )
        return merged


class Model(nn.Module):
    """Two layers of attention between an embedding and a head."""

    def __init__(self, width: int = 64, heads: int = 2) -> None:
        super().__init__()
        self.tokens = nn.Embedding(KEYS + VALUES, width)
        self.places = nn.Parameter(0.1 * torch.randn(LENGTH, width))
        self.first, self.second = (
            Attention(width, heads),
            Attention(width, heads),
        )
        self.norm_first, self.norm_second = (
            nn.LayerNorm(width),
            nn.LayerNorm(width),
        )
        self.head = nn.Linear(width, VALUES)

    def forward(self, tokens: Tensor) -> Tensor:
        """Scores of the values."""
        x = self.tokens(tokens) + self.places
        x = x + self.first(self.norm_first(x))
        x = x + self.second(self.norm_second(x))
        scores: Tensor = self.head(x[:, -1])
        return scores


# %%
# Training
# --------
# The model is trained by Adam on new sequences, with the Fitzpatrick logistic loss instead of
# cross-entropy. The orders α have a larger learning rate than the weights, so that they change
# enough in a short training.

generator = torch.Generator().manual_seed(0)
model, criterion = Model(), FitzpatrickLogisticLoss()
layers = (model.first, model.second)
orders = [p for layer in layers for p in layer.entmax.parameters()]
others = [
    p for p in model.parameters() if all(p is not order for order in orders)
]
optimizer = torch.optim.Adam(
    [{"params": others, "lr": 5e-3}, {"params": orders, "lr": 3e-2}]
)
losses, alphas = [], []
for _ in range(150):
    tokens, answers = draw(64, generator)
    optimizer.zero_grad()
    loss = criterion(model(tokens), answers)
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
    alphas.append(
        [
            a
            for layer in layers
            for a in torch.as_tensor(layer.entmax.alpha).flatten().tolist()
        ]
    )

tokens, answers = draw(1000, generator)
with torch.no_grad():
    accuracy = (model(tokens).argmax(-1) == answers).float().mean().item()
print(f"correct answers to new sequences: {accuracy:.1%}")

figure, axes = plt.subplots(1, 2, figsize=(10, 3.4))
axes[0].semilogy(losses, linewidth=1)
axes[0].set(
    title="The loss during training",
    xlabel="step",
    ylabel="Fitzpatrick logistic loss",
)
for head, path in enumerate(zip(*alphas, strict=True)):
    axes[1].plot(path, label=f"layer {head // 2 + 1}, head {head % 2 + 1}")
axes[1].set(title="Every head learns its own α", xlabel="step", ylabel="α")
axes[1].set_ylim(top=1.65)
axes[1].legend(ncols=2, loc="upper right")
plt.show()

# %%
# What the heads attend to
# ------------------------
# The figure shows the attention of all heads for one sequence. Rows are queries, columns are keys,
# and gray cells are masked. White cells are exact zeros.

names = [f"k{t}" if t < KEYS else f"v{t - KEYS}" for t in tokens[0].tolist()]
figure, axes = plt.subplots(1, 4, figsize=(10, 3.1), sharey=True)
seen = np.tri(LENGTH, dtype=bool)
for head, ax in enumerate(axes):
    weights = layers[head // 2].weights[:, head % 2].numpy()
    ax.imshow(np.where(seen, np.nan, 0.2), vmin=0, vmax=1, cmap="Greys")
    # raised, so that small weights differ from zeros
    ax.imshow(
        np.where(weights[0] > 0, 0.15 + weights[0], np.nan),
        vmin=0,
        vmax=1,
        cmap="Blues",
    )
    ax.set_title(
        f"layer {head // 2 + 1}, head {head % 2 + 1}: α = {alphas[-1][head]:.2f}"
    )
    ax.set_xticks(range(LENGTH), names, fontsize=8)
    ax.set_yticks(range(LENGTH), names, fontsize=8)
    ax.grid(visible=False)
    share = (weights[:, seen] == 0).mean()
    print(
        f"{ax.get_title()}, {share:.0%} of the visible tokens have weight zero"
    )
axes[0].set(ylabel="query")
figure.supxlabel("key")
plt.show()
