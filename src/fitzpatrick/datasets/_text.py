"""The text of a file that may be compressed, within bounds, whatever the file turns out to be.

Nothing is unpacked to the disk. A compressed file that is cut short, or that grows beyond measure,
ends in a :class:`DataError`, as does what is not text.

Lines end in LF, CRLF or CR. Text is UTF-8, UTF-16 or UTF-32 with a byte-order mark, or
Windows-1252, which spreadsheets of Western countries write; the last is a guess, and noted.
"""

import bz2
import gzip
import lzma
import re
import zipfile
from codecs import BOM_UTF8
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from io import BufferedIOBase
from pathlib import Path, PurePath, PurePosixPath
from typing import Any, cast

from ._errors import DataError

MAX_BYTES = 8 << 30
MAX_LINE_BYTES = 64 << 20
# tables of zeros and ones shrink some hundred times, deflate cannot do better than 1032: what grows
# more than this is made to fill memory
MAX_RATIO = 500
RATIO_FROM = 16 << 20
_CHUNK = 1 << 20

COMPRESSED_SUFFIXES = (".gz", ".bz2", ".xz", ".zip")
CHECKSUMS = "SHA256SUMS"
_CHECKSUM = re.compile(r"([0-9A-Fa-f]{64})\s+\*?(\S.*)")
_TOO_LARGE = f"more than {MAX_BYTES >> 30} GiB of text"
_BOMS = (
    (b"\xff\xfe\x00\x00", "utf-32"),  # begins as UTF-16 does
    (b"\x00\x00\xfe\xff", "utf-32"),
    (b"\xff\xfe", "utf-16"),
    (b"\xfe\xff", "utf-16"),
)
_WINDOWS = "cp1252"
_BAD_ARCHIVE = "the ZIP archive cannot be read"
# files of other programs, by their first bytes: reading them as text would end in odd errors
_OTHER_FILES = {
    b"Rar!": "a RAR archive; unpack it and give the file inside",
    b"7z\xbc\xaf\x27\x1c": "a 7z archive; unpack it and give the file inside",
    b"\xd0\xcf\x11\xe0\xa1\xb1": "an Excel workbook; save the sheet as CSV",
    b"PAR1": "a Parquet file; call it .parquet",
    b"\x89HDF": "an HDF5 file; write the table as CSV",
    b"%PDF": "a PDF; export the table as CSV",
}
_PACKED: dict[bytes, Callable[[Any], Any]] = {
    b"\x1f\x8b": gzip.open,
    b"BZh": bz2.open,
    b"\xfd7zXZ": lzma.open,
}
_MAGIC_BYTES = max(map(len, _OTHER_FILES))


def plain_suffix(path: PurePath) -> str:
    """The suffix below a compression suffix: ``.svm`` for ``a.svm.gz``."""
    suffixes = (suffix.lower() for suffix in reversed(path.suffixes))
    return next((suffix for suffix in suffixes if suffix not in COMPRESSED_SUFFIXES), "")


def read_text(path: Path, notes: list[str] | None = None) -> bytes:
    """The text of a file as UTF-8; lines end in LF.

    Args:
        path: the file, plain or compressed.
        notes: gets a sentence where the encoding is a guess; without it, such a file is refused.
    """
    content = read_content(path)
    encoding = next((name for mark, name in _BOMS if content.startswith(mark)), "utf-8")
    content = content.removeprefix(BOM_UTF8)
    if encoding != "utf-8":
        try:
            content = content.decode(encoding).encode()
        except UnicodeError as error:
            line = content[: getattr(error, "start", 0)].decode(encoding, "ignore").count("\n") + 1
            problem = f"it begins as {encoding.upper()} and is not; save it as UTF-8"
            raise DataError(f"the text is damaged: {problem}", path, line) from None
    if b"\r" in content:
        content = content.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    if b"\0" in content:
        line = content.count(b"\n", 0, content.index(b"\0")) + 1
        raise DataError("not a text file (it contains a zero byte)", path, line)
    if len(content) > MAX_LINE_BYTES:
        lines = enumerate(content.split(b"\n"), 1)
        long = next((number for number, line in lines if len(line) > MAX_LINE_BYTES), None)
        if long is not None:
            raise DataError(f"a line of more than {MAX_LINE_BYTES >> 20} MiB", path, long)
    try:
        content.decode()
    except UnicodeDecodeError as error:
        return _from_windows(content, error.start, path, notes)
    return content


def read_lines(path: Path, notes: list[str] | None = None) -> Iterator[tuple[int, str]]:
    """Number and text of each line, without its end; arguments as for :func:`read_text`."""
    lines = read_text(path, notes).decode().split("\n")
    if not lines[-1]:
        lines.pop()
    return enumerate(lines, 1)


def read_checksums(path: Path) -> dict[str, str]:
    """Name → digest, as ``sha256sum`` writes them; none if the file is not there."""
    sums: dict[str, str] = {}
    for number, line in read_lines(path) if path.is_file() else ():
        if not line.strip() or line.startswith("#"):
            continue
        match = _CHECKSUM.fullmatch(line.strip())
        if match is None:
            problem = f"{line[:40]!r} is not 64 hexadecimal digits and a name; write the file with"
            raise DataError(f"{problem} sha256sum, or remove it", path, number)
        digest, name = match[1].lower(), str(PurePosixPath(match[2]))  # ./name is name
        if sums.setdefault(name, digest) != digest:
            raise DataError(f"another SHA-256 of {name!r} than in a line above", path, number)
    return sums


def read_content(path: Path) -> bytes:
    """The bytes of a file, decompressed; refused where they are damaged or grow beyond measure."""
    chunks, total = list[bytes](), 0
    with ExitStack() as stack:
        file, is_packed = _open(path, stack)
        size = path.stat().st_size
        if size > MAX_BYTES:
            raise DataError(_TOO_LARGE, path)
        step, limit = max(_CHUNK, size + 1), MAX_BYTES  # a plain file at once
        if is_packed:
            step, limit = _CHUNK, min(MAX_BYTES, max(RATIO_FROM, MAX_RATIO * size))
        try:
            while total <= limit and (chunk := file.read1(step)):  # what precedes a fault counts
                chunks.append(chunk)
                total += len(chunk)
        except Exception as error:  # a damaged file raises whatever its fields lead to
            problem = f"the compressed data is damaged or cut short ({error})"
            line = sum(chunk.count(b"\n") for chunk in chunks) + 1
            raise DataError(problem, path, line) from None
    if total > MAX_BYTES:
        raise DataError(_TOO_LARGE, path)
    if total > limit:
        problem = f"{size} bytes decompress to more than {total >> 20} MiB: this is no data file"
        raise DataError(f"{problem} in use, it is not read", path)
    if not chunks:
        raise DataError("the file is empty", path)
    return b"".join(chunks)


def _from_windows(content: bytes, at: int, path: Path, notes: list[str] | None) -> bytes:
    """Text with a byte that is not UTF-8: all of its lines are UTF-8, or all Windows-1252."""
    lines = content.split(b"\n")
    first = content.count(b"\n", 0, at)
    problem = f"byte 0x{content[at]:02x} is not UTF-8"
    if not all(map(bytes.isascii, lines[:first])):
        raise DataError(f"{problem}, as a line above is; save the file as UTF-8", path, first + 1)
    if notes is None:
        raise DataError(f"{problem}; save the file as UTF-8", path, first + 1)
    for number, line in enumerate(lines[first:], first + 1):
        if not line.isascii() and _decodes(line, "utf-8"):
            problem = "this line is UTF-8 and a line above is not"
        elif _decodes(line, _WINDOWS):
            continue
        else:
            problem = "the line is neither UTF-8 nor Windows-1252"
        raise DataError(f"{problem}; save the file as UTF-8", path, number)
    notes.append(
        f"byte 0x{content[at]:02x} in line {first + 1} is not UTF-8: the file is read as "
        "Windows-1252; if names come out wrong, save it as UTF-8"
    )
    return content.decode(_WINDOWS).encode()


def _decodes(line: bytes, encoding: str) -> bool:
    try:
        line.decode(encoding)
    except UnicodeDecodeError:
        return False
    return True


def member_name(path: Path) -> PurePosixPath:
    with refused(_BAD_ARCHIVE, path), zipfile.ZipFile(path) as archive:
        return PurePosixPath(_only_member(archive, path).filename)


def _open(path: Path, stack: ExitStack) -> tuple[BufferedIOBase, bool]:
    """The file, and whether it is decompressed."""
    try:
        plain = stack.enter_context(path.open("rb"))
        magic = plain.peek(_MAGIC_BYTES)  # which pipes can do as well
    except FileNotFoundError:
        raise DataError("no such file", path) from None
    except IsADirectoryError:
        raise DataError("is a folder; expected a file", path) from None
    except OSError as error:
        raise DataError(f"cannot be read: {error.strerror or error}", path) from None
    for start, opened in _PACKED.items():
        if magic.startswith(start):
            return stack.enter_context(opened(plain)), True
    if magic.startswith((b"PK\x03\x04", b"PK\x05\x06")):  # the latter: an empty archive
        with refused(_BAD_ARCHIVE, path):
            archive = stack.enter_context(zipfile.ZipFile(plain))
            member = stack.enter_context(archive.open(_only_member(archive, path)))
            return cast("BufferedIOBase", member), True
    for start, problem in _OTHER_FILES.items():
        if magic.startswith(start):
            raise DataError(problem, path)
    return plain, False


@contextmanager
def refused(problem: str, path: Path) -> Iterator[None]:
    """Errors become a :class:`DataError`: damaged files raise whatever their fields lead to."""
    try:
        yield
    except DataError:
        raise
    except FileNotFoundError:
        raise DataError("no such file", path) from None
    except Exception as error:
        raise DataError(f"{problem} ({error})", path) from None


def _only_member(archive: zipfile.ZipFile, path: Path) -> zipfile.ZipInfo:
    members = [member for member in archive.infolist() if not member.is_dir()]
    names = [member.filename for member in members]
    if not {"[Content_Types].xml", "content.xml"}.isdisjoint(names):
        raise DataError("a spreadsheet; call it .xlsx, or save the sheet as CSV", path)
    if len(names) != 1:
        shown = ", ".join(names[:5])
        raise DataError(f"the archive must hold one file, it holds {len(names)} ({shown})", path)
    if names[0].startswith("/") or ".." in names[0].split("/") or "\\" in names[0]:
        raise DataError(f"the archive's member {names[0]!r} leaves its folder", path)
    return members[0]
