"""Files that are either complete or not there: written beside the target, synced, renamed."""

import errno
import glob
import hashlib
import os
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

_MAX_AGE = 24 * 3600.0  # seconds, of a temporary file that may still be written to


@contextmanager
def atomic_path(path: Path) -> Iterator[Path]:
    """A temporary path in the folder of ``path``, which takes its place if the block succeeds.

    A link is followed. What is there and is no regular file, such as a device, is written to as it
    is. Errors of the file system name ``path``. What killed processes left behind is removed a day
    later.
    """
    target = path.resolve()
    temporary = None
    try:
        if target.is_dir():
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        if target.exists() and not target.is_file():
            yield target
            return
        target.parent.mkdir(parents=True, exist_ok=True)
        for file in target.parent.glob(f".{glob.escape(target.name)}.????????.part"):
            with suppress(OSError):  # gone, or another user's
                if time.time() - file.lstat().st_mtime > _MAX_AGE:
                    file.unlink()
        handle, name = tempfile.mkstemp(".part", f".{target.name}.", target.parent)
        os.close(handle)
        temporary = Path(name)
        yield temporary
        _sync(temporary)
        mask = os.umask(0)
        os.umask(mask)
        temporary.chmod(0o666 & ~mask)
        temporary.replace(target)
        if os.name == "posix":  # folders cannot be synced elsewhere
            _sync(target.parent)
    except OSError as error:
        raise OSError(error.errno, error.strerror or str(error), str(path)) from error
    finally:
        if temporary is not None:
            temporary.unlink(missing_ok=True)


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


def _sync(path: Path) -> None:
    """Make a file, or a rename in a folder, survive a power cut."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
