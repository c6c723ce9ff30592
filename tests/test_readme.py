"""The README's snippets run, each pasted into a fresh interpreter."""

import pytest

from .markdown import ROOT, blocks, run_python, skip_without_packages

README = ROOT / "README.md"
SNIPPETS = [block.text for block in blocks(README) if block.language == "python"]


@pytest.mark.parametrize("snippet", SNIPPETS, ids=lambda text: text.splitlines()[0])
def test_snippet_runs(snippet):
    skip_without_packages(README)
    run_python(snippet, README, {})


def test_snippets_are_found():
    assert len(SNIPPETS) == 3
