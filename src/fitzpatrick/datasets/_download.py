"""Downloads into the cache: checked, whole or not there, resumed where they broke off.

What has arrived is kept in ``NAME.part``, and the next attempt asks for the rest alone. The
server's validator (ETag or Last-Modified) lies beside it, so that two versions of a file are never
joined. Where no checksum is known, the first one of a file that could be read, and has the size
that the registry says, is written to ``SHA256SUMS`` and enforced from then on.
"""

import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ._errors import UnavailableError
from ._files import sha256, write_atomically
from ._registry import Remote
from ._text import CHECKSUMS, read_checksums

_CHUNK = 1 << 16

Progress = Callable[[int, int | None], None]


@dataclass(frozen=True)
class Transfer:
    """How downloads behave: time-out of connection and read, attempts, wait, size cap."""

    timeout: float = 30.0
    attempts: int = 3
    wait: float = 1.0
    max_bytes: int = 1 << 30


DEFAULT_TRANSFER = Transfer()


def find_pooch() -> Any:
    try:
        import pooch
    except ModuleNotFoundError:
        raise UnavailableError("downloads need pooch: pip install 'fitzpatrick[cli]'") from None
    return pooch


def fetch(
    remote: Remote,
    name: str,
    folder: Path,
    transfer: Transfer = DEFAULT_TRANSFER,
    progress: Progress | None = None,
) -> Path:
    """The file in the cache, downloaded if it is not there; its checksum is verified either way.

    Raises:
        UnavailableError: with the address and the reason.
    """
    find_pooch()
    path = folder / name
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with _lock(folder):
            expected = remote.sha256 or read_checksums(folder / CHECKSUMS).get(name)
            if not path.is_file():
                _retrieve(remote.url, path, expected, transfer, progress)
            elif expected and (found := sha256(path)) != expected:
                problem = f"{path} has the SHA-256 {found}, expected {expected}; delete the file to"
                raise UnavailableError(f"{problem} have it downloaded again")
    except OSError as error:
        reason = error.strerror or str(error)
        raise UnavailableError(f"the cache {folder} cannot be used: {reason}") from None
    return path


def record(paths: Sequence[Path]) -> None:
    """Write the checksums of downloads to the list beside them, unless they are there."""
    folder = paths[0].parent
    with _lock(folder):
        known = read_checksums(folder / CHECKSUMS)
        found = {path.name: known.get(path.name) or sha256(path) for path in paths} | known
        if found != known:
            lines = (f"{digest}  {name}\n" for name, digest in sorted(found.items()))
            write_atomically(folder / CHECKSUMS, "".join(lines))


def discard(paths: Sequence[Path]) -> None:
    """Remove downloads that cannot be used, unless their checksums are known to be right."""
    known = read_checksums(paths[0].with_name(CHECKSUMS))
    for path in paths:
        if path.name not in known:
            path.unlink(missing_ok=True)


@contextmanager
def _lock(folder: Path) -> Iterator[None]:
    """One process at a time, where the system has such locks; they end with their process."""
    if os.name != "posix":
        yield
        return
    import fcntl

    descriptor = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _retrieve(
    url: str, path: Path, expected: str | None, transfer: Transfer, progress: Progress | None
) -> None:
    import requests

    part, reason = path.with_name(f"{path.name}.part"), ""
    for attempt in range(transfer.attempts):
        if attempt:
            time.sleep(transfer.wait * 2 ** (attempt - 1))
        try:
            reason = _resume(url, part, transfer, progress)
            if not reason and expected not in (None, found := sha256(part)):
                reason = f"its SHA-256 is {found}, expected {expected}"
            if not reason:
                part.replace(path)
            _forget(part)
            break
        except requests.HTTPError as error:
            status = error.response.status_code if error.response is not None else 0
            reason = f"the server answered {status}"
            if status < 500:
                break  # asking again gives the same answer
        except requests.RequestException as error:
            # the last sentence of the chain that requests and urllib3 wrap around a failure
            inner = error.args[0] if error.args else error
            reason = str(getattr(inner, "reason", inner))
            reason = reason.rpartition(": ")[2] if len(reason) > 120 else reason
    if reason:
        raise UnavailableError(f"{url} cannot be downloaded: {reason}")


def _resume(url: str, part: Path, transfer: Transfer, progress: Progress | None) -> str:
    """Bring ``part`` to its full length; what has arrived stays if the connection breaks.

    Returns the reason if the file must not be downloaded, else an empty string.
    """
    import requests

    note, cap = _note(part), transfer.max_bytes
    validator = note.read_text() if note.is_file() and part.is_file() else ""
    have = part.stat().st_size if validator else 0
    headers = {"Range": f"bytes={have}-", "If-Range": validator} if have else {}
    # identity: the length that is announced is then the length of the file
    headers["Accept-Encoding"] = "identity"
    with requests.get(url, stream=True, timeout=transfer.timeout, headers=headers) as response:
        is_part = response.status_code == 206
        starts = response.headers.get("Content-Range", "").startswith(f"bytes {have}-")
        if have and (response.status_code == 416 or (is_part and not starts)):
            _forget(part)
            raise requests.ConnectionError("the partial download does not fit the file")
        response.raise_for_status()
        have = have if is_part else 0
        length = response.headers.get("Content-Length")
        total = have + int(length) if length and length.isdigit() else None
        tag = response.headers.get("ETag") or response.headers.get("Last-Modified") or ""
        # a weak ETag does not promise the same bytes
        note.write_text("" if tag.startswith("W/") else tag)
        with part.open("ab" if have else "wb") as file:
            for chunk in response.iter_content(_CHUNK):
                have += len(chunk)
                if max(have, total or 0) > cap:
                    return f"{max(have, total or 0)} bytes are more than the cap of {cap}"
                file.write(chunk)
                if progress:
                    progress(have, total)
    if have == 0:
        _forget(part)
        raise requests.ConnectionError("the body is empty")
    if total is not None and have != total:
        raise requests.ConnectionError(f"{have} of {total} bytes arrived")
    return ""


def _note(part: Path) -> Path:
    """Where the server's validator of a partial download is kept."""
    return part.with_name(f"{part.name}.tag")


def _forget(part: Path) -> None:
    part.unlink(missing_ok=True)
    _note(part).unlink(missing_ok=True)
