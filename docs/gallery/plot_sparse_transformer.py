"""
A transformer whose attention has exact zeros
=============================================

Two small transformers learn to continue a sequence that repeats itself, one with softmax attention
and one with :class:`~fitzpatrick.torch.SparseAttention`. Both learn the task. In the sparse
transformer, tokens that are not used have weight zero.
"""

import time
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import torch
from torch import Tensor, nn

from fitzpatrick.experiments.figures import STYLE
from fitzpatrick.torch import SparseAttention

torch.set_num_threads(1)  # one thread is enough for a small model
plt.style.use(STYLE)
# sphinx_gallery_thumbnail_number = 2

# %%
# The task
# --------
# A random list of 8 to 12 tokens is repeated, and the model predicts the repetitions. It has to
# find the previous occurrence of the current token, and copy the token after it. For this, a head
# of the first layer attends to the previous token, and a head of the second layer to the token that
# followed.

TOKENS, LENGTH = 16, 24


def draw(n: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Sequences of tokens, and which of them are repeated."""
    once = torch.rand(n, TOKENS, generator=generator).argsort(-1)
    period = torch.randint(8, 13, (n, 1), generator=generator)
    place = torch.arange(LENGTH)
    return once.gather(1, place % period), place >= period


# %%
# The model
# ---------
# The model consists of PyTorch's encoder layers. One line replaces their attention. With
# ``learnable=True``, each head has its own order α, between 1 (softmax) and 2 (sparsemax).


class Model(nn.Module):
    """Two layers of causal attention between an embedding and a head."""

    layers: Any

    def __init__(self, width: int = 48, heads: int = 2) -> None:
        super().__init__()
        self.tokens = nn.Embedding(TOKENS, width)
        self.places = nn.Parameter(0.3 * torch.randn(LENGTH, width))
        self.layers = nn.ModuleList(
            nn.TransformerEncoderLayer(
                width, heads, 96, 0.0, batch_first=True, norm_first=True
            )
            for _ in range(2)
        )
        self.head = nn.Linear(width, TOKENS)

    def forward(self, tokens: Tensor) -> Tensor:
        """Scores of the token after each token."""
        x = self.tokens(tokens) + self.places
        mask = nn.Transformer.generate_square_subsequent_mask(LENGTH)
        for layer in self.layers:
            x = layer(x, src_mask=mask, is_causal=True)
        scores: Tensor = self.head(x)
        return scores

    def attention(self, tokens: Tensor) -> Tensor:
        """The weights of all heads, (sequences, layers × heads, L, L)."""
        x = self.tokens(tokens) + self.places
        mask = nn.Transformer.generate_square_subsequent_mask(LENGTH)
        maps = []
        for layer in self.layers:
            h = layer.norm1(x)
            maps += [
                layer.self_attn(
                    h, h, h, attn_mask=mask, average_attn_weights=False
                )[1]
            ]
            x = layer(x, src_mask=mask, is_causal=True)
        return torch.cat(maps, 1)


def make(attention: str) -> Model:
    """A model of one kind; both start with the same parameters."""
    torch.manual_seed(0)
    model = Model()
    if attention == "sparse":
        for layer in model.layers:
            before = layer.self_attn.state_dict()
            layer.self_attn = SparseAttention(
                48, 2, batch_first=True, alpha=1.5, learnable=True
            )
            layer.self_attn.load_state_dict(before, strict=False)
    return model


# %%
# Training
# --------
# Both models are trained by Adam on new sequences. Every tenth step, the share of visible tokens
# with weight zero is recorded.

SEEN = np.tri(LENGTH, dtype=bool)
test, repeated = draw(200, torch.Generator().manual_seed(1))
losses: dict[str, list[float]] = {"softmax": [], "sparse": []}
models, sparsity = {}, []
criterion = nn.CrossEntropyLoss()
for attention in losses:
    model = models[attention] = make(attention)
    generator = torch.Generator().manual_seed(0)
    orders = [p for n, p in model.named_parameters() if "alpha" in n]
    others = [p for n, p in model.named_parameters() if "alpha" not in n]
    groups = [{"params": others, "lr": 4e-3}]
    groups += [{"params": orders, "lr": 3e-2}] if orders else []
    optimizer = torch.optim.Adam(groups)
    began = time.process_time()
    for step in range(300):
        tokens, asked = draw(32, generator)
        scores = model(tokens)[:, :-1][asked[:, 1:]]
        loss = criterion(scores, tokens[:, 1:][asked[:, 1:]])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses[attention].append(loss.item())
        if attention == "sparse" and step % 10 == 0:
            with torch.no_grad():
                weights = model.attention(test[:20]).numpy()
            sparsity.append((weights[..., SEEN] == 0).mean(axis=(0, 2)))
    model.eval()
    with torch.no_grad():
        is_right = model(test)[:, :-1].argmax(-1) == test[:, 1:]
    right = is_right[repeated[:, 1:]].float().mean().item()
    took = time.process_time() - began
    print(f"{attention}: {right:.1%} of new tokens right, {took:.0f} s")

names = [f"layer {i + 1}, head {j + 1}" for i in range(2) for j in range(2)]
figure, axes = plt.subplots(1, 2, figsize=(10, 3.4))
for attention, path in losses.items():
    axes[0].semilogy(path, linewidth=1, label=attention)
axes[0].set(
    title="The loss during training", xlabel="step", ylabel="cross-entropy"
)
axes[0].legend()
for head, shares in enumerate(zip(*sparsity, strict=True)):
    axes[1].plot(10 * np.arange(len(shares)), shares, label=names[head])
axes[1].set(
    title="Sparse attention: share of exact zeros", xlabel="step", ylim=(0, 1)
)
axes[1].legend(loc=(0.6, 0.15))
plt.show()

# %%
# What the heads attend to
# ------------------------
# The figure shows the attention for one sequence. Rows are queries, columns are keys, and gray
# cells are later tokens. White cells are exact zeros, which softmax does not have. The diagonal in
# the second layer is the copy: a repeated token attends to the token that followed its first
# occurrence, and to few others. The heads of the first layer collect nearby tokens, and learned an
# α near 1.

figure, axes = plt.subplots(2, 4, figsize=(10, 5.4), sharex=True, sharey=True)
for row, (attention, model) in zip(axes, models.items(), strict=True):
    with torch.no_grad():
        weights = model.attention(test).numpy()
    for head, ax in enumerate(row):
        shown = weights[0, head]
        ax.imshow(np.where(SEEN, np.nan, 0.2), vmin=0, vmax=1, cmap="Greys")
        # raised, so that small weights differ from zeros
        ax.imshow(
            np.where(shown > 0, 0.12 + shown, np.nan),
            vmin=0,
            vmax=1,
            cmap="Blues",
        )
        share = (weights[:, head][:, SEEN] == 0).mean()
        title = f"{names[head]}\n{attention}, {share:.0%} zeros"
        if attention == "sparse":
            alpha = model.layers[head // 2].self_attn.alpha[head % 2].item()
            title += f", α = {alpha:.2f}"
        ax.set_title(title, fontsize=9)
        ax.grid(visible=False)
axes[0, 0].set(ylabel="query")
axes[1, 0].set(ylabel="query")
figure.supxlabel("key")
plt.show()
