"""The page about PyTorch says what is true: its examples run, its table is that of the last run."""

import doctest
import json
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "torch.md"


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


# PyTorch scripts its own decompositions the first time that forward mode runs
@pytest.mark.filterwarnings("ignore:.*torch.jit.script:DeprecationWarning")
def test_examples_run():
    options = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
    failed, tried = doctest.testfile(str(PAGE), module_relative=False, optionflags=options)
    assert tried > 10
    assert failed == 0


def test_the_table_is_that_of_the_benchmark():
    text = PAGE.read_text()
    begin, end = "<!-- torch_cpu: begin -->\n\n", "\n\n<!-- torch_cpu: end -->"
    assert text[text.index(begin) + len(begin) : text.index(end)] == table()
