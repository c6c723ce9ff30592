"""Progress without a terminal is plain lines; on one it is a bar."""

import io
import time

from fitzpatrick.experiments import progress as module
from fitzpatrick.experiments.progress import download_progress, elapsed, progress


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_plain_lines_without_control_codes(monkeypatch):
    clock = iter(float(10 * i) for i in range(100))
    monkeypatch.setattr(module.time, "monotonic", lambda: next(clock))
    stream = io.StringIO()
    with progress("demo", 6, stream) as report:
        for done in range(7):
            report(done)
    lines = stream.getvalue().splitlines()
    assert lines[0] == "demo: 0 of 6 fits"
    assert lines[-1] == "demo: 6 of 6 fits"
    assert lines[1] == "demo: 2 of 6 fits, about 60 s left"  # 30 s for two, four to go
    assert len(lines) < 7
    assert "\x1b" not in stream.getvalue()


def test_bar_on_a_terminal(monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    stream = Terminal()
    with progress("demo", 4, stream) as report:
        report(2)
    assert "demo" in stream.getvalue()
    assert "2/4" in stream.getvalue()


def test_downloads_are_announced_once_or_shown_as_a_bar(monkeypatch):
    plain = io.StringIO()
    with download_progress("demo", plain) as report:
        report(1, 10)
        report(2, 10)
    assert plain.getvalue() == "demo: downloading\n"
    monkeypatch.setenv("TERM", "xterm")
    terminal = Terminal()
    with download_progress("demo", terminal) as report:
        report(500, 1000)
    assert "0.5/1.0 kB" in terminal.getvalue()


def test_long_work_says_how_long_it_has_taken(monkeypatch):
    monkeypatch.setattr(module, "_LINE_SECONDS", 0.01)
    stream = io.StringIO()
    with elapsed("demo: fitting", stream):
        while stream.getvalue().count("\n") < 2:
            time.sleep(0.005)
    assert stream.getvalue().splitlines()[0] == "demo: fitting, 0 s so far"
    said = stream.getvalue()
    time.sleep(0.03)
    assert stream.getvalue() == said


def test_durations():
    assert [module._duration(s) for s in (5, 89, 120, 7200)] == ["5 s", "89 s", "2 min", "2.0 h"]
