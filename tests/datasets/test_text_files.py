"""Whatever a file holds, reading it ends in lines or in one sentence."""

import bz2
import contextlib
import gzip
import io
import lzma
import os
import zipfile
from pathlib import Path

import numpy as np
import pytest

from fitzpatrick.datasets import DataError, _text
from fitzpatrick.datasets._text import read_lines
from tests.helpers import seeded

from .files import check_refusal, write

TEXT = "erste Zeile äöü\nzweite\r\ndritte".encode()
LINES = [(1, "erste Zeile äöü"), (2, "zweite"), (3, "dritte")]


def zipped(members):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for member, content in members.items():
            archive.writestr(member, content)
    return buffer.getvalue()


def zip_compress(content):
    return zipped({"folder/": b"", "folder/a.svm": content})


@pytest.mark.parametrize("pack", [bytes, gzip.compress, bz2.compress, lzma.compress, zip_compress])
def test_lines_of_every_compression(tmp_path, pack):
    assert list(read_lines(write(tmp_path, pack(b"\xef\xbb\xbf" + TEXT)))) == LINES


@pytest.mark.skipif(not Path("/dev/fd").exists(), reason="pipes have no path")
@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_pipes(pack):
    read, write_end = os.pipe()
    try:
        os.write(write_end, pack(TEXT))
        os.close(write_end)
        assert list(read_lines(Path(f"/dev/fd/{read}"))) == LINES
    finally:
        os.close(read)


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"], ids=["LF", "CRLF", "CR"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-32", "cp1252"])
def test_encodings_and_line_ends(tmp_path, encoding, end):
    notes = []
    path = write(tmp_path, end.join(["Höhe", "", "5 €"]).encode(encoding))
    assert list(read_lines(path, notes)) == [(1, "Höhe"), (2, ""), (3, "5 €")]
    guess = "byte 0xf6 in line 1 is not UTF-8: the file is read as Windows-1252; if names come out"
    assert [note[: len(guess)] for note in notes] == [guess] * (encoding == "cp1252")


@pytest.mark.parametrize(
    ("content", "line", "problem"),
    [
        (b"", None, "the file is empty"),
        (b"0 1:1\n\x00\x01\x02\xff", 2, "not a text file"),
        (b"0 1:1\n0 \xe4:1\n", 2, "byte 0xe4 is not UTF-8"),
        ("0 1:1\n".encode("utf-16")[:-1], 1, "it begins as UTF-16 and is not; save it as UTF-8"),
        ("0 1:1\n".encode("utf-16-le"), 1, "not a text file"),
        ("ä\n".encode() + b"\xe4\n", 2, "byte 0xe4 is not UTF-8, as a line above is"),
        (b"7z\xbc\xaf\x27\x1c junk", None, "a 7z archive; unpack it"),
        (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", None, "an Excel workbook; save the sheet as CSV"),
        (b"PAR1 junk", None, "a Parquet file; call it .parquet"),
        (b"PK\x03\x04 broken", None, "the ZIP archive cannot be read"),
        (b"Rar!\x1a\x07\x00junk", None, "a RAR archive; unpack it"),
        (b"\xe4\n\x81\n", 2, "the line is neither UTF-8 nor Windows-1252; save the file as UTF-8"),
        (b"\xe4\n\xc3\xa4\n", 2, "this line is UTF-8 and a line above is not; save the file as"),
        (zipped({"../a.svm": b"0 1:1"}), None, "leaves its folder"),
        (zipped({"/etc/a.svm": b"0 1:1"}), None, "leaves its folder"),
        (zipped({"a": b"1", "b": b"2"}), None, "must hold one file, it holds 2"),
        (zipped({}), None, "must hold one file, it holds 0"),
        (zipped({"[Content_Types].xml": b""}), None, "a spreadsheet; call it .xlsx, or save"),
        (zipped({"mimetype": b"", "content.xml": b""}), None, "a spreadsheet; call it .xlsx, or"),
    ],
)
def test_unreadable_content(tmp_path, content, line, problem):
    path = write(tmp_path, content)
    notes = [] if content.startswith(b"\xe4") else None
    check_refusal(lambda: read_lines(path, notes), path, line, problem)


@pytest.mark.parametrize("pack", [gzip.compress, bz2.compress], ids=["gz", "bz2"])
def test_damage_is_said_where_the_text_ends(tmp_path, pack):
    text = seeded(0).bytes(300_000).hex("\n", 40).encode()
    packed = pack(text, 1)
    with pytest.raises(DataError, match="damaged or cut short") as caught:
        next(read_lines(write(tmp_path, packed[: len(packed) // 2])))
    assert 0.4 < caught.value.line / text.count(b"\n") < 0.6


BOMB, EXPLODES = b"1 1:1\n" * 1_000_000, r"bytes decompress to more than \d MiB: .* it is not read"


@pytest.mark.parametrize(
    ("bound", "value", "content", "line", "problem"),
    [
        ("RATIO_FROM", 1 << 16, gzip.compress(BOMB), None, EXPLODES),
        ("RATIO_FROM", 1 << 16, lzma.compress(BOMB), None, EXPLODES),
        ("RATIO_FROM", 1 << 16, zip_compress(BOMB), None, EXPLODES),
        ("MAX_LINE_BYTES", 1 << 16, gzip.compress(b"0\n" + b"1" * (1 << 20)), 2, "a line of more"),
        ("MAX_BYTES", 1000, b"0 1:1\n" * 1000, None, "of text"),
    ],
)
def test_bounds(tmp_path, monkeypatch, bound, value, content, line, problem):
    """Refused before a line is handed out."""
    monkeypatch.setattr(_text, bound, value)
    monkeypatch.setattr(_text, "_CHUNK", 1 << 12)
    path = write(tmp_path, content)
    check_refusal(lambda: read_lines(path), path, line, problem)


def test_wide_tables_of_zeros_and_ones_are_no_bombs(tmp_path, monkeypatch):
    """A dense CSV of 1500 columns, 1% of them 1, shrinks nearly eighty times."""
    monkeypatch.setattr(_text, "RATIO_FROM", 1 << 16)
    cells = np.full((200, 3000), ord(","), dtype=np.uint8)
    cells[:, ::2] = ord("0") + (seeded(0).random((200, 1500)) < 0.01)
    cells[:, -1] = ord("\n")
    packed = gzip.compress(cells.tobytes(), 6)
    assert cells.size > 60 * len(packed)
    assert sum(1 for _ in read_lines(write(tmp_path, packed))) == 200


@pytest.mark.parametrize("seed", range(15))
def test_damaged_archives_are_one_sentence(tmp_path, seed):
    """Whatever the fields of an archive lead to: OSError, UnicodeDecodeError, IndexError …"""
    generator = seeded(seed)
    content = bytearray(zipped({"ä.csv": b"x,y\n1,u\n2,v\n" * 20}))
    directory = content.rindex(b"PK\x01\x02")
    for at in generator.integers(directory, len(content), 1 + seed % 3):
        content[at] = generator.integers(256)
    with contextlib.suppress(DataError):
        read_lines(write(tmp_path, bytes(content)))
