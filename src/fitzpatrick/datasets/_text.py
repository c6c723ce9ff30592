"""Lines of a text file that may be compressed, within bounds, whatever the file turns out to be.

Nothing is unpacked to the disk and no more than a line is held at a time. A compressed file is run
through once before its first line is handed out: one that is cut short, or that grows beyond
measure, costs no more than that. Either ends in a :class:`DataError`, as does what is not text.

Lines end in LF, CRLF or CR. Text is UTF-8, UTF-16 or UTF-32 with a byte-order mark, or
Windows-1252, which spreadsheets of Western countries write; the last is a guess, and noted.
"""

import bz2
import gzip
import lzma
import zipfile
import zlib
from codecs import BOM_UTF8
from collections.abc import Iterator
from contextlib import ExitStack
from io import BufferedIOBase, TextIOWrapper
from pathlib import Path, PurePosixPath
from typing import IO, cast

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
    (b"\xff\xfe\x00\x00", "utf-32"),  # begins as UTF-16 does
    (b"\x00\x00\xfe\xff", "utf-32"),
    (b"\xff\xfe", "utf-16"),
    (b"\xfe\xff", "utf-16"),
)
_WINDOWS = "cp1252"
# files of other programs by their first bytes, which nobody should have to read as text
_OTHER_FILES = (
    (b"Rar!", "a RAR archive; unpack it and give the file inside"),
    (b"7z\xbc\xaf\x27\x1c", "a 7z archive; unpack it and give the file inside"),
    (b"\xd0\xcf\x11\xe0\xa1\xb1", "an Excel workbook; save the sheet as CSV"),
    (b"PAR1", "a Parquet file; write it as CSV"),
    (b"\x89HDF", "an HDF5 file; write the table as CSV"),
    (b"%PDF", "a PDF; export the table as CSV"),
)
_MAGIC_BYTES = max(len(magic) for magic, _ in _OTHER_FILES)


def plain_suffix(path: Path) -> str:
    """The suffix below a compression suffix: ``.svm`` for ``a.svm.gz``."""
    suffixes = [suffix.lower() for suffix in path.suffixes]
    while suffixes and suffixes[-1] in COMPRESSED_SUFFIXES:
        suffixes.pop()
    return suffixes[-1] if suffixes else ""


def read_lines(path: Path, notes: list[str] | None = None) -> Iterator[tuple[int, str]]:
    """Number and text of each line, without its end.

    Args:
        path: the file, plain or compressed.
        notes: gets a sentence where the encoding is a guess; without it, such a file is refused.
    """
    number = 0
    total = 0
    with ExitStack() as stack:
        file, is_packed = _open(path, stack)
        if is_packed:
            _measure(path)
        decode = _Decoder(path, notes)
        text = _decoded(file)
        while True:
            try:
                line = text.readline(MAX_LINE_BYTES + 1)
            except UnicodeError:
                name = text.encoding.upper()
                problem = f"the text is damaged: it begins as {name} and is not; save it as UTF-8"
                raise DataError(problem, path, number + 1) from None
            if not line:
                break
            number += 1
            total += len(line)
            if len(line) > MAX_LINE_BYTES:
                raise DataError(f"a line of more than {MAX_LINE_BYTES >> 20} MiB", path, number)
            if total > MAX_BYTES:
                raise DataError(f"more than {MAX_BYTES >> 30} GiB of text", path, number)
            if "\x00" in line:
                raise DataError("not a text file (it contains a zero byte)", path, number)
            line = line.removesuffix("\n")
            yield number, line if line.isascii() else decode(line, number)
    if total == 0:
        raise DataError("the file is empty", path)


def _decoded(file: BufferedIOBase) -> TextIOWrapper:
    """The text; bytes that are not UTF-8 are kept as surrogates, for :class:`_Decoder`."""
    start = cast("IO[bytes]", file).read(4)
    file.seek(len(BOM_UTF8) if start.startswith(BOM_UTF8) else 0)
    for mark, name in _BOMS:
        if start.startswith(mark):
            return TextIOWrapper(cast("IO[bytes]", file), name)
    return TextIOWrapper(cast("IO[bytes]", file), "utf-8", "surrogateescape")


class _Decoder:
    """Lines with other characters than ASCII: all UTF-8, or all Windows-1252."""

    def __init__(self, path: Path, notes: list[str] | None) -> None:
        self._path = path
        self._notes = notes
        self._encoding: str | None = None

    def __call__(self, line: str, number: int) -> str:
        try:
            line.encode()
        except UnicodeEncodeError as error:
            byte = ord(line[error.start]) & 0xFF
        else:
            if self._encoding == _WINDOWS:
                raise DataError(
                    "this line is UTF-8 and a line above is not; save the file as UTF-8",
                    self._path,
                    number,
                )
            self._encoding = "utf-8"
            return line
        problem = f"byte 0x{byte:02x} is not UTF-8"
        if self._encoding == "utf-8":
            problem += ", as a line above is"
        elif self._notes is not None:
            try:
                text = line.encode("utf-8", "surrogateescape").decode(_WINDOWS)
            except UnicodeDecodeError:
                problem += ", and the line is not Windows-1252"
            else:
                if self._encoding is None:
                    self._notes.append(
                        f"byte 0x{byte:02x} in line {number} is not UTF-8: the file is read as "
                        "Windows-1252; if names come out wrong, save it as UTF-8"
                    )
                self._encoding = _WINDOWS
                return text
        raise DataError(f"{problem}; save the file as UTF-8", self._path, number)


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
        magic = plain.read(_MAGIC_BYTES)
        plain.seek(0)
    except FileNotFoundError:
        raise DataError("no such file", path) from None
    except IsADirectoryError:
        raise DataError("is a folder; expected a file", path) from None
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
    for start, problem in _OTHER_FILES:
        if magic.startswith(start):
            raise DataError(problem, path)
    return plain, False


def _only_member(archive: zipfile.ZipFile, path: Path) -> zipfile.ZipInfo:
    """The single file of an archive, by name and size within bounds."""
    members = [member for member in archive.infolist() if not member.is_dir()]
    names = {member.filename for member in members}
    if not names.isdisjoint(("[Content_Types].xml", "content.xml")):
        raise DataError("a spreadsheet; save the sheet as CSV", path)
    if len(members) != 1:
        shown = ", ".join(member.filename for member in members[:5])
        raise DataError(f"the archive must hold one file, it holds {len(members)} ({shown})", path)
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
