"""The README's snippets run, each pasted into a fresh interpreter."""

import re
from pathlib import Path

import pytest

README = Path(__file__).parents[1] / "README.md"
SNIPPETS = re.findall(r"```python\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL)


@pytest.mark.parametrize("snippet", SNIPPETS, ids=lambda text: text.splitlines()[0])
def test_snippet_runs(snippet):
    for package in ("torch", "jax"):
        if f"import {package}" in snippet:
            pytest.importorskip(package)
    names: dict[str, object] = {}
    exec(compile(snippet, README.name, "exec"), names)
    results = re.findall(r"^(.*)  # (0\.\d+)$", snippet, re.MULTILINE)
    assert [eval(line, names) for line, _ in results] == pytest.approx(
        [float(number) for _, number in results], abs=5e-4
    )


def test_snippets_are_found():
    assert len(SNIPPETS) == 4
