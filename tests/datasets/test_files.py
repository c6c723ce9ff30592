"""Files are written whole or not at all, and nothing but a regular file is replaced."""

import os
import pickle
import threading
from pathlib import Path

import pytest

from fitzpatrick.datasets import DataError
from fitzpatrick.datasets._files import atomic_path, write_atomically


def test_replaces_and_leaves_nothing_else(tmp_path):
    path = tmp_path / "new" / "a.txt"
    for content in ("one", b"two"):
        write_atomically(path, content)
    assert path.read_text() == "two"
    mask = os.umask(0)
    os.umask(mask)
    assert path.stat().st_mode & 0o777 == 0o666 & ~mask
    assert list(path.parent.iterdir()) == [path]


def test_what_killed_processes_left_is_removed_a_day_later(tmp_path):
    old, new = (tmp_path / f".a.txt.{name}.part" for name in ("abcdefgh", "ijklmnop"))
    for file in (old, new):
        file.touch()
    os.utime(old, (0, 0))
    write_atomically(tmp_path / "a.txt", "x")
    assert (old.exists(), new.exists()) == (False, True)


def test_failure_keeps_what_was_there(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("before")

    def fail():
        with atomic_path(path) as temporary:
            temporary.write_text("half")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    assert path.read_text() == "before"
    assert list(tmp_path.iterdir()) == [path]


def test_links_are_followed(tmp_path):
    target, link = tmp_path / "target.txt", tmp_path / "link.txt"
    link.symlink_to(target)  # which is not there yet
    for content in ("one", "two"):
        write_atomically(link, content)
        assert link.is_symlink()
        assert target.read_text() == content


def test_pipes_and_devices_are_written_to(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    seen = []
    reader = threading.Thread(target=lambda: seen.append(pipe.read_bytes()), daemon=True)
    reader.start()
    write_atomically(pipe, "through")
    reader.join(timeout=10)
    assert seen == [b"through"]
    assert pipe.is_fifo()


def test_errors_name_the_path_that_was_asked_for(tmp_path):
    folder = tmp_path / "folder"
    folder.mkdir()
    with pytest.raises(OSError, match="directory") as caught:
        write_atomically(folder, "x")
    assert caught.value.filename == str(folder)

    def full_disk():
        with atomic_path(tmp_path / "a.txt"):
            raise OSError(28, "No space left on device")

    with pytest.raises(OSError, match="No space left") as caught:
        full_disk()
    assert caught.value.filename == str(tmp_path / "a.txt")
    (tmp_path / "file").write_text("")
    with pytest.raises(OSError, match=r"directory|exists") as caught:
        write_atomically(tmp_path / "file" / "below", "x")
    assert caught.value.filename == str(tmp_path / "file" / "below")


def test_errors_keep_their_notes_between_processes():
    error = DataError(problem="no value", path=Path("a.csv"), line=3)
    error.add_note("of the second file")
    again = pickle.loads(pickle.dumps(error))
    assert (str(again), again.__notes__) == (str(error), ["of the second file"])
