"""The page about PyTorch says what is true: its examples run, its table is that of the last run."""

import doctest
import json
import re
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from fitzpatrick.torch import functional as F  # noqa: N812  # PyTorch's habit

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "torch.md"
HEAD_PAGE = ROOT / "docs" / "head.md"


def table() -> str:
    """The table of the benchmark's file, in Markdown."""
    record = json.loads((ROOT / "benchmarks" / "results" / "torch_cpu.json").read_text())
    names = dict.fromkeys(
        line["loss"] for line in record["lines"] if line["loss"] != "cross_entropy"
    )
    columns: dict[str, dict[str, float]] = {}
    for line in record["lines"]:
        targets = {"labels": "class indices"}.get(line["targets"], line["targets"])
        column = columns.setdefault(f"{line['rows']} × {line['classes']}, {targets}", {})
        column[line["loss"]] = line["ratio"]
    lines = [f"| loss | {' | '.join(columns)} |", "|---" * (1 + len(columns)) + "|"]
    for name in names:
        ratios = [f"{column[name]:.2f}" for column in columns.values()]
        lines += [f"| `{name}` | {' | '.join(ratios)} |"]
    return "\n".join(lines)


@pytest.mark.parametrize("page", [PAGE, HEAD_PAGE], ids=lambda page: page.stem)
def test_examples_run(page):
    options = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
    failed, tried = doctest.testfile(str(page), module_relative=False, optionflags=options)
    assert tried > 10
    assert failed == 0


@pytest.fixture
def head_page(monkeypatch):
    """What the page about the head defines, with stand-ins for the libraries that it is for."""
    monkeypatch.setitem(sys.modules, "transformers", SimpleNamespace(Trainer=object))
    lightning = SimpleNamespace(LightningModule=torch.nn.Module)
    monkeypatch.setitem(sys.modules, "lightning", lightning)
    found = {}
    for block in re.findall(r"```python\n((?:from|import) .*?)```", HEAD_PAGE.read_text(), re.S):
        exec(block, found)
    return found


def test_the_trainer_of_the_page(head_page):
    torch.manual_seed(0)
    hidden = torch.randn(2, 6, 4)
    labels = torch.randint(0, 9, (2, 6))
    labels[0, :3] = -100
    head = torch.nn.Linear(4, 9, bias=False)
    outputs = SimpleNamespace(last_hidden_state=hidden)
    model = SimpleNamespace(model=lambda **_: outputs, lm_head=head)
    trainer = head_page["HeadTrainer"]()
    expected = F.fitzpatrick_logistic_loss(head(hidden[:, :-1]), labels[:, 1:], dim=-1)
    inputs = {"input_ids": labels, "labels": labels}
    # eight losses of size one in float32
    torch.testing.assert_close(trainer.compute_loss(model, dict(inputs)), expected)
    loss, seen = trainer.compute_loss(model, dict(inputs), True, num_items_in_batch=16)
    torch.testing.assert_close(loss, expected / 2)
    assert seen is outputs


def test_the_lightning_module_of_the_page(head_page):
    torch.manual_seed(0)
    batch = torch.randint(0, 9, (2, 6))
    model = head_page["LanguageModel"](torch.nn.Embedding(9, 4), 4, 9)
    optimizer = model.configure_optimizers()
    losses = []
    for i in range(20):
        optimizer.zero_grad()
        losses.append(model.training_step(batch, i))
        losses[-1].backward()
        optimizer.step()
    assert losses[-1] < losses[0]


def test_the_table_is_that_of_the_benchmark():
    text = PAGE.read_text()
    begin, end = "<!-- torch_cpu: begin -->\n\n", "\n\n<!-- torch_cpu: end -->"
    assert text[text.index(begin) + len(begin) : text.index(end)] == table()
