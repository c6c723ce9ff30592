"""The page on kinds of targets: its commands run, and print what it shows up to the numbers."""

import os
import re
import shlex
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "files.md"
BLOCK = re.compile(r"^```(console|python)\n(.*?)^```$", re.DOTALL | re.MULTILINE)


def masked(line):
    """Without numbers, stars and the width of columns: fits on other machines differ a little."""
    return " ".join(re.sub(r"[-+]?\d*\.?\d+(e[-+]\d+)?%?|\*|n/a|–|,", " ", line).split())


@pytest.fixture
def data(tmp_path, monkeypatch):
    folder = os.environ.get("FITZPATRICK_DATA")
    if not folder or not (Path(folder) / "mulan").is_dir():
        pytest.skip("FITZPATRICK_DATA names no folder with the files of the page")
    monkeypatch.setenv("DATA", str(Path(folder).absolute()))
    monkeypatch.chdir(tmp_path)
    return folder


def test_the_page_runs_as_it_is_written(run, data, capsys):
    names, commands = {}, 0
    for language, text in BLOCK.findall(PAGE.read_text()):
        if language == "python":
            exec(compile(text, PAGE.name, "exec"), names)
            continue
        first, *others = re.split(r"^\$ ", text, flags=re.MULTILINE)
        assert first == ""
        for block in others:
            command, *shown = block.splitlines()
            words = shlex.split(os.path.expandvars(command))
            assert words[0] == "fitzpatrick"
            jobs = ("-j", "1") if words[1] == "compare" else ()
            code, out, err = run(*words[1:], *jobs)
            assert code == 0, err
            printed = {masked(line) for line in out.splitlines()}
            assert {masked(line) for line in shown} <= printed
            commands += 1
    assert commands == 8
    assert len(names["path"].models) < 7
    assert names["model"].target_names == tuple("01234567")
