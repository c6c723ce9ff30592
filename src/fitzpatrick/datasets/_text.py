"""Lines of a text file that may be compressed, within bounds, whatever the file turns out to be.

Nothing is unpacked to the disk and no more than a line is held at a time. A compressed file is run
through once before its first line is handed out: one that is cut short, or that grows beyond
measure, costs no more than that. Either ends in a :class:`DataError`, as does what is not text.
"""

import bz2
import gzip
import lzma
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import ExitStack
from io import BufferedIOBase
from pathlib import Path, PurePosixPath
from typing import cast

from ._errors import DataError

MAX_BYTES = 8 << 30
MAX_LINE_BYTES = 64 << 20
# tables of zeros and ones shrink some hundred times, deflate cannot do better than 1032: what grows
# more than this is made to fill memory
MAX_RATIO = 500
RATIO_FROM = 16 << 20
_CHUNK = 1 << 20

COMPRESSED_SUFFIXES = (".gz", ".bz2", ".xz", ".zip")
_BROKEN = (EOFError, OSError, zlib.error, lzma.LZMAError, zipfile.BadZipFile)
_BOMS = (
    (b"\xff\xfe\x00\x00", "UTF-32"),  # begins as UTF-16 does
    (b"\x00\x00\xfe\xff", "UTF-32"),
    (b"\xff\xfe", "UTF-16"),
    (b"\xfe\xff", "UTF-16"),
)


def plain_suffix(path: Path) -> str:
    """The suffix below a compression suffix: ``.svm`` for ``a.svm.gz``."""
    suffixes = [suffix.lower() for suffix in path.suffixes]
    while suffixes and suffixes[-1] in COMPRESSED_SUFFIXES:
        suffixes.pop()
    return suffixes[-1] if suffixes else ""


def read_lines(path: Path) -> Iterator[tuple[int, str]]:
    """Number and text of each line, without its end; UTF-8, with or without a byte-order mark."""
    number = 0
    total = 0
    with ExitStack() as stack:
        file, is_packed = _open(path, stack)
        if is_packed:
            _measure(path)
        while True:
            raw = file.readline(MAX_LINE_BYTES + 1)
            if not raw:
                break
            number += 1
            total += len(raw)
            if len(raw) > MAX_LINE_BYTES:
                raise DataError(f"a line of more than {MAX_LINE_BYTES >> 20} MiB", path, number)
            if total > MAX_BYTES:
                raise DataError(f"more than {MAX_BYTES >> 30} GiB of text", path, number)
            yield number, _decode(raw, path, number)
    if total == 0:
        raise DataError("the file is empty", path)


def _measure(path: Path) -> None:
    """Run through a compressed file, and refuse it where it is damaged or grows beyond measure."""
    packed = path.stat().st_size
    total, lines = 0, 0
    with ExitStack() as stack:
        file, _ = _open(path, stack)
        while True:
            try:
                chunk = file.read1(_CHUNK)  # what comes before a fault is counted
            except _BROKEN as error:
                problem = f"the compressed data is damaged or cut short ({error})"
                raise DataError(problem, path, lines + 1) from None
            if not chunk:
                return
            total += len(chunk)
            lines += chunk.count(b"\n")
            if total > max(RATIO_FROM, MAX_RATIO * packed):
                problem = (
                    f"{packed} bytes decompress to more than {total >> 20} MiB: this is no data "
                    "file in use, it is not read"
                )
                raise DataError(problem, path, lines + 1)


def _open(path: Path, stack: ExitStack) -> tuple[BufferedIOBase, bool]:
    """The file, and whether it is decompressed."""
    try:
        plain = stack.enter_context(path.open("rb"))
        magic = plain.read(6)
        plain.seek(0)
    except FileNotFoundError:
        raise DataError("no such file", path) from None
    except OSError as error:
        raise DataError(f"cannot be read: {error.strerror}", path) from None
    if magic.startswith(b"\x1f\x8b"):
        return stack.enter_context(gzip.GzipFile(fileobj=plain)), True
    if magic.startswith(b"BZh"):
        return stack.enter_context(bz2.BZ2File(plain)), True
    if magic.startswith(b"\xfd7zXZ"):
        return stack.enter_context(lzma.LZMAFile(plain)), True
    if magic.startswith((b"PK\x03\x04", b"PK\x05\x06")):  # the latter: an empty archive
        try:
            archive = stack.enter_context(zipfile.ZipFile(plain))
            member = stack.enter_context(archive.open(_only_member(archive, path)))
            return cast("BufferedIOBase", member), True
        except (zipfile.BadZipFile, NotImplementedError, RuntimeError) as error:
            raise DataError(f"the ZIP archive cannot be read: {error}", path) from None
    if magic.startswith(b"Rar!"):
        raise DataError("a RAR archive; unpack it and give the file inside", path)
    return plain, False


def _only_member(archive: zipfile.ZipFile, path: Path) -> zipfile.ZipInfo:
    """The single file of an archive, by name and size within bounds."""
    members = [member for member in archive.infolist() if not member.is_dir()]
    if len(members) != 1:
        names = ", ".join(member.filename for member in members[:5])
        raise DataError(f"the archive must hold one file, it holds {len(members)} ({names})", path)
    member = members[0]
    name = PurePosixPath(member.filename)
    if name.is_absolute() or ".." in name.parts or "\\" in member.filename:
        raise DataError(f"the archive's member {member.filename!r} leaves its folder", path)
    if member.file_size > MAX_BYTES or member.file_size > max(
        RATIO_FROM, MAX_RATIO * max(member.compress_size, 1)
    ):
        raise DataError(
            f"the archive's member {member.filename!r} claims {member.file_size} bytes "
            f"from {member.compress_size}; it is not read",
            path,
        )
    return member


def _decode(raw: bytes, path: Path, number: int) -> str:
    if number == 1:
        for mark, name in _BOMS:
            if raw.startswith(mark):
                raise DataError(f"the text is in {name}; save it as UTF-8", path, 1)
        raw = raw.removeprefix(b"\xef\xbb\xbf")
    if b"\x00" in raw:
        raise DataError("not a text file (it contains a zero byte)", path, number)
    try:
        return raw.decode().rstrip("\r\n")
    except UnicodeDecodeError as error:
        byte = raw[error.start]
        problem = f"byte 0x{byte:02x} is not UTF-8; save the file as UTF-8"
        raise DataError(problem, path, number) from None
