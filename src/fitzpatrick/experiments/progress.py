"""Progress of a run: a bar with the time left on a terminal, plain lines elsewhere."""

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Protocol, TextIO

_LINE_SECONDS = 15.0

Download = Callable[[int, int | None], None]


class Bar(Protocol):
    """What a run reports to."""

    def __call__(self, done: int) -> None: ...


@contextmanager
def progress(title: str, total: int, stream: TextIO | None = None) -> Iterator[Bar]:
    """Report the number of finished fits out of ``total``."""
    stream = stream or sys.stderr
    if stream.isatty():
        with _terminal_bar(title, total, stream) as bar:
            yield bar
    else:
        yield _Lines(title, total, stream)


@contextmanager
def elapsed(what: str, stream: TextIO | None = None) -> Iterator[None]:
    """Say every quarter of a minute that something is being done, and for how long."""
    stream = stream or sys.stderr
    begin, ended = time.monotonic(), threading.Event()

    def tell() -> None:
        while not ended.wait(_LINE_SECONDS):
            print(f"{what}, {_duration(time.monotonic() - begin)} so far", file=stream, flush=True)

    thread = threading.Thread(target=tell, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


@contextmanager
def download_progress(title: str, stream: TextIO | None = None) -> Iterator[Download]:
    """Report the bytes of a download; without a terminal, that there is one."""
    stream = stream or sys.stderr
    if not stream.isatty():
        yield _Announcement(f"{title}: downloading", stream)
        return
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TimeRemainingColumn

    columns = ("{task.description}", BarColumn(), DownloadColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(file=stream), transient=True) as display:
        task = display.add_task(title, total=None, visible=False)
        yield lambda done, total: display.update(task, completed=done, total=total, visible=True)


class _Announcement:
    """One line, the first time it is called."""

    def __init__(self, text: str, stream: TextIO) -> None:
        self.text, self.stream, self.said = text, stream, False

    def __call__(self, done: int, total: int | None) -> None:
        if not self.said:
            print(self.text, file=self.stream, flush=True)
        self.said = True


@contextmanager
def _terminal_bar(title: str, total: int, stream: TextIO) -> Iterator[Bar]:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TimeRemainingColumn

    columns = (
        "{task.description}",
        BarColumn(),
        MofNCompleteColumn(),
        "fits, time left",
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(file=stream), transient=True) as display:
        task = display.add_task(title, total=total)
        yield lambda done: display.update(task, completed=done)


class _Lines:
    """A line at the start, one every quarter of a minute, one at the end."""

    def __init__(self, title: str, total: int, stream: TextIO) -> None:
        self.title, self.total, self.stream = title, total, stream
        self.begin = self.last = time.monotonic()
        self.first: int | None = None
        self.done = -1

    def __call__(self, done: int) -> None:
        now = time.monotonic()
        if self.first is None:
            self.first = done
        ended = done == self.total
        if done == self.done or not (
            done == self.first or ended or now - self.last > _LINE_SECONDS
        ):
            return
        self.last, self.done = now, done
        left = ""
        if done > self.first and not ended:
            seconds = (now - self.begin) / (done - self.first) * (self.total - done)
            left = f", about {_duration(seconds)} left"
        print(f"{self.title}: {done} of {self.total} fits{left}", file=self.stream, flush=True)


def _duration(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
