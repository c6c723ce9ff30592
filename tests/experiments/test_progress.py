"""Progress without a terminal is plain lines; on one it is a bar."""

import sys

from fitzpatrick.experiments import runner
from fitzpatrick.experiments.reproduce import _downloads
from fitzpatrick.experiments.runner import progress


def test_plain_lines_without_control_codes(monkeypatch, capsys):
    monkeypatch.setattr(runner, "_LINE_SECONDS", 0.0)
    with progress("demo", 6) as bar:
        bar.update(2)
        bar.update(4)
    text = capsys.readouterr().err
    lines = text.splitlines()
    assert lines[0].startswith("demo: 0 of 6 fits, ")
    assert lines[-1].startswith("demo: 6 of 6 fits, ")
    assert text.isascii()
    assert not {"\r", "\x1b"} & set(text)


def test_no_line_of_what_is_quick_and_has_no_end(monkeypatch, capsys):
    for seconds, expected in ((15.0, ""), (0.0, "demo: fitting: 100 iterations, 00:00 so far")):
        monkeypatch.setattr(runner, "_LINE_SECONDS", seconds)
        with progress("demo: fitting", None, "iterations") as bar:
            for _ in range(100):
                bar.update()
        assert "".join(capsys.readouterr().err.splitlines()[-1:]) == expected


def test_bar_on_a_terminal(capsys, monkeypatch):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    with progress("demo", 4) as bar:
        bar.update(2)
        bar.refresh()
        assert "2/4" in capsys.readouterr().err


def test_downloads_are_announced(capsys, monkeypatch):
    monkeypatch.setattr(runner, "_LINE_SECONDS", 0.0)
    with _downloads("demo"):
        pass
    assert capsys.readouterr().err == ""
    with _downloads("demo") as report:
        report(500, 1000)
        report(1000, 1000)
    lines = capsys.readouterr().err.splitlines()
    assert {line[:18] for line in lines} == {"demo: downloading:"}
