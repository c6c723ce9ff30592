"""A small transformer that learns a text letter by letter, with a loss that never holds all scores.

The option ``--loss`` selects the loss; the rest of the network stays the same, including its last
layer. The script takes a few seconds on a CPU.

    python examples/torch_text.py
    python examples/torch_text.py --loss logistic           # cross-entropy
    python examples/torch_text.py --loss fitzpatrick_sparsemax --tightness 0.5
"""

import argparse

import torch
from torch import Tensor, nn

import fitzpatrick.torch as ft

TEXT = """\
A loss says how wrong a score is. The logistic loss asks how much probability the right letter got,
and never stops asking for more: a letter that is almost certain still pulls on the weights. Its
Fitzpatrick cousin asks the same question of the same scores and pulls less. Both end at the same
answer, the soft argmax of the scores, for they share a link. A network that has learned these lines
by heart will tell the difference: hand it the first words, and it will go on with the rest.
"""
LOSSES = {
    "fitzpatrick_logistic": ft.LinearFitzpatrickLogisticLoss,
    "logistic": ft.LinearLogisticLoss,
    "fitzpatrick_sparsemax": ft.LinearFitzpatrickSparsemaxLoss,
    "sparsemax": ft.LinearSparsemaxLoss,
    "fitzpatrick_entmax15": ft.LinearFitzpatrickEntmax15Loss,
    "entmax15": ft.LinearEntmax15Loss,
}
ALPHABET = sorted(set(TEXT))
CONTEXT = 32
WIDTH = 64


def encode(text: str) -> Tensor:
    """The numbers of the letters."""
    return torch.tensor([ALPHABET.index(letter) for letter in text])


class Transformer(nn.Module):
    """Hidden states of letters, with causal attention."""

    def __init__(self, width: int = WIDTH, layers: int = 2) -> None:
        super().__init__()
        self.letters = nn.Embedding(len(ALPHABET), width)
        self.places = nn.Embedding(CONTEXT, width)
        layer = nn.TransformerEncoderLayer(width, 4, 2 * width, 0.0, batch_first=True)
        self.body = nn.TransformerEncoder(layer, layers)
        mask = nn.Transformer.generate_square_subsequent_mask(CONTEXT)
        self.register_buffer("mask", mask, persistent=False)

    def forward(self, letters: Tensor) -> Tensor:
        """The hidden states of a batch of letters."""
        n = letters.shape[1]
        hidden = self.letters(letters) + self.places.weight[:n]
        out: Tensor = self.body(hidden, mask=self.get_buffer("mask")[:n, :n])
        return out


def recite(model: Transformer, head: nn.Module, start: str, length: int) -> str:
    """Continue a text, always with the most probable letter."""
    text = start
    for _ in range(length):
        hidden = model(encode(text[-CONTEXT:])[None])
        text += ALPHABET[int(head.link(hidden[0, -1]).argmax())]
    return text


def main(arguments: list[str] | None = None) -> tuple[list[float], str]:
    """Train, print the text that the model recites, and return the losses and the text."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--loss", default="fitzpatrick_logistic", choices=LOSSES)
    parser.add_argument("--tightness", type=float, help="for a Fitzpatrick loss, other than 1")
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--batch", type=int, default=16)
    options = parser.parse_args(arguments)
    torch.manual_seed(0)
    model = Transformer()
    head = LOSSES[options.loss](WIDTH, len(ALPHABET))
    if options.tightness is not None:
        head.tightness = options.tightness
    parameters = [*model.parameters(), *head.parameters()]
    optimizer = torch.optim.AdamW(parameters, lr=3e-3)
    text, losses = encode(TEXT), []
    windows = text.unfold(0, CONTEXT + 1, 1)
    for step in range(options.steps):
        batch = windows[torch.randint(0, len(windows), (options.batch,))]
        optimizer.zero_grad()
        loss = head(model(batch[:, :-1]), batch[:, 1:])
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        if step % 25 == 0 or step == options.steps - 1:
            print(f"step {step:3d}  loss {losses[-1]:.4f}")
    with torch.no_grad():
        recited = recite(model.eval(), head, "A loss says ", 30)
    print(recited)
    return losses, recited


if __name__ == "__main__":
    main()
