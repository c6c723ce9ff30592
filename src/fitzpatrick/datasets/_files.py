"""Files that are either complete or not there: written beside the target, synced, renamed."""

import errno
import glob
import hashlib
import os
import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

try:
    import fcntl
except ModuleNotFoundError:  # on Windows, where a file that is open cannot be removed
    fcntl = None  # type: ignore[assignment]

_TEMPORARY = re.compile(r"\..+\.[a-z0-9_]{8}\.part")


@contextmanager
def atomic_path(path: Path) -> Iterator[Path]:
    """A temporary path in the folder of ``path``, which takes its place if the block succeeds.

    A link is followed. What is there and is no regular file, such as a device, is written to as it
    is. Errors of the file system name ``path``.
    """
    target = path.resolve()
    temporary, lock = None, None
    try:
        if target.is_dir():
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        if target.exists() and not target.is_file():
            yield target
            return
        target.parent.mkdir(parents=True, exist_ok=True)
        _remove_leftovers(target)
        temporary, lock = _new_file(target)
        yield temporary
        with temporary.open("rb") as file:
            os.fsync(file.fileno())
        temporary.chmod(0o666 & ~_umask())
        if fcntl is None:
            lock.close()  # an open file cannot be renamed there
        temporary.replace(target)
        _sync_folder(target.parent)
    except OSError as error:
        raise OSError(error.errno, error.strerror or str(error), str(path)) from error
    finally:
        if temporary is not None:
            temporary.unlink(missing_ok=True)
        if lock is not None:
            lock.close()


def _remove_leftovers(target: Path) -> None:
    """Remove temporary files of processes that were killed while they wrote the target.

    Those of a process that still runs are locked, and stay.
    """
    for file in target.parent.glob(f".{glob.escape(target.name)}.*.part"):
        if not _TEMPORARY.fullmatch(file.name) or file.is_symlink() or not file.is_file():
            continue
        try:
            with file.open("rb") as stream:
                if fcntl is not None:
                    fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    file.unlink()
            if fcntl is None:
                file.unlink()
        except OSError:  # in use, gone, or another user's
            continue


def _new_file(target: Path) -> tuple[Path, BinaryIO]:
    """An empty file beside the target, and the lock that keeps it from being taken for a leftover.

    The lock comes a moment after the file; if that was removed meanwhile, another one is made.
    """
    while True:
        handle, name = tempfile.mkstemp(
            prefix=f".{target.name}.", suffix=".part", dir=target.parent
        )
        stream = os.fdopen(handle, "r+b")
        if fcntl is None:
            return Path(name), stream
        try:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            stream.close()
            continue
        except OSError:  # a file system without locks: nothing there is taken for a leftover
            return Path(name), stream
        if os.fstat(handle).st_nlink:
            return Path(name), stream
        stream.close()


def write_atomically(path: Path, content: str | bytes) -> None:
    """Replace ``path`` by the content, all of it or nothing; text is written as UTF-8.

    What names of files hold beyond UTF-8 becomes a question mark.
    """
    if isinstance(content, str):
        content = content.encode(errors="replace")
    with atomic_path(path) as temporary:
        temporary.write_bytes(content)


def sha256(path: Path) -> str:
    """Checksum of a file, read in pieces."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _sync_folder(folder: Path) -> None:
    """Make a rename in ``folder`` survive a power cut, where folders can be synced."""
    if os.name != "posix":
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
