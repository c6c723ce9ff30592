"""The page on kinds of targets: its commands run, and print what it shows up to the numbers."""

import os
from pathlib import Path

import pytest

from ..markdown import DOCS, blocks, commands, run_command, run_python

PAGE = DOCS / "files.md"


@pytest.fixture
def data(tmp_path, monkeypatch):
    folder = os.environ.get("FITZPATRICK_DATA")
    if not folder or not (Path(folder) / "mulan").is_dir():
        pytest.skip("FITZPATRICK_DATA names no folder with the files of the page")
    monkeypatch.setenv("DATA", str(Path(folder).absolute()))
    monkeypatch.chdir(tmp_path)
    return folder


def test_the_page_runs_as_it_is_written(run, data):
    names, count = {}, 0
    for block in blocks(PAGE):
        if block.language == "python":
            run_python(block.text, PAGE, names)
        for command in commands(block):
            run_command(command, run)
            count += 1
    assert count == 8
    assert len(names["path"].models) < 7
    assert names["model"].target_names == tuple("01234567")
