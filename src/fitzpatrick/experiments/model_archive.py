"""A ZIP archive of one text and some arrays, as ``np.load(path, allow_pickle=False)`` reads it.

There is nothing in it to call: the text is JSON, the arrays are float64. What is read is checked
before memory is taken for it. The entries must be exactly those expected, one after the other and
not compressed, so that none can claim more than the file holds. Whatever is wrong is an exception
whose message is the reason.
"""

import io
import os
import stat
import struct
import warnings
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, BinaryIO

import numpy as np
from numpy.lib import format as npy

TEXT_ENTRY = "model.json"
# objects parsed from JSON take up to 25 times its bytes: no more than 800 MB
MAX_TEXT_BYTES = 32 << 20
_MAX_DIRECTORY_BYTES = 1 << 16
# NumPy's header of a matrix takes 128 bytes; it is parsed as a Python literal, a short one is safe
_MAX_HEADER_BYTES = 256

_FLOAT64 = np.dtype("<f8")
_NPY_VERSION = (1, 0)
_UNIX = 3
_PLAIN_FILE = (stat.S_IFREG | 0o644) << 16
_ENCRYPTED = 0x1

_SKOPS_ENTRY = "schema.json"
_LOCAL_HEADER_BYTES = 30
_END_RECORD = struct.Struct("<4s4H2LH")
_END_MAGIC, _ZIP64_MAGIC = b"PK\x05\x06", b"PK\x06\x07"
_ZIP64_LOCATOR_BYTES = 20


class OldFormatError(ValueError):
    """An archive of the format that earlier versions wrote."""


def pack(text: str, arrays: Mapping[str, np.ndarray]) -> bytes:
    """The archive: the same content is the same bytes."""
    content = text.encode()
    if len(content) > MAX_TEXT_BYTES:
        raise ValueError(f"its names take more than {MAX_TEXT_BYTES >> 20} MiB")
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr(_entry(TEXT_ENTRY), content)
        for name, array in arrays.items():
            with archive.open(_entry(f"{name}.npy"), "w") as stream:
                values = np.ascontiguousarray(array, dtype=_FLOAT64)
                npy.write_array(stream, values, version=_NPY_VERSION, allow_pickle=False)
    return buffer.getvalue()


def _entry(name: str) -> zipfile.ZipInfo:
    """An entry with nothing of the machine or the time in it."""
    entry = zipfile.ZipInfo(name)
    entry.create_system = _UNIX
    entry.external_attr = _PLAIN_FILE
    return entry


@dataclass(frozen=True, eq=False)
class Archive:
    """An archive whose list of entries is as expected."""

    _zip: zipfile.ZipFile

    def text(self) -> str:
        """The text, which is UTF-8."""
        size = self._zip.getinfo(TEXT_ENTRY).file_size
        if size > MAX_TEXT_BYTES:
            raise ValueError(f"{TEXT_ENTRY} takes {size} bytes, more than {MAX_TEXT_BYTES}")
        return self._zip.read(TEXT_ENTRY).decode()

    def shape(self, name: str) -> tuple[int, ...]:
        """The shape of an array, once its header agrees with the size of its entry."""
        entry = self._zip.getinfo(f"{name}.npy")
        with self._zip.open(entry) as stream:
            shape = _read_header(stream, name)
            size = entry.file_size - stream.tell()
        if prod(shape) * _FLOAT64.itemsize != size:
            raise ValueError(f"{name} claims the shape {shape} and has {size} bytes")
        return shape

    def array(self, name: str) -> np.ndarray:
        """An array whose shape has been looked at; its memory is that of the shape."""
        with self._zip.open(f"{name}.npy") as stream:
            values = npy.read_array(stream, allow_pickle=False, max_header_size=_MAX_HEADER_BYTES)
            stream.read()  # at the end, the checksum is compared
        return np.asarray(values, dtype=np.float64)


def open_archive(file: BinaryIO, array_names: Sequence[str]) -> Archive:
    """Look at the list of entries, and at nothing else.

    Raises:
        OldFormatError: for a skops archive.
        Exception: of whatever type ``zipfile`` raises, for what is not an archive of these arrays
            and a text.
    """
    _check_beginning(file)
    directory = _check_end(file)
    archive = zipfile.ZipFile(file)
    entries = archive.infolist()
    found = [entry.orig_filename for entry in entries]
    if _SKOPS_ENTRY in found:
        raise OldFormatError
    expected = [TEXT_ENTRY, *(f"{name}.npy" for name in array_names)]
    if found != expected:
        raise ValueError(f"it holds {_listed(found)}; expected {', '.join(expected)}")
    position = 0
    for entry in entries:
        _check_entry(entry, position)
        position += _LOCAL_HEADER_BYTES + len(entry.orig_filename) + entry.file_size
    if position != directory:
        raise ValueError("there is something between its entries and their list")
    return Archive(archive)


def _check_beginning(file: BinaryIO) -> None:
    """Say what a file is that is no archive."""
    magic = file.read(6)
    if not magic:
        raise ValueError("the file is empty")
    if magic[0] == 0x80 and magic[1:2] in (b"\x02", b"\x03", b"\x04", b"\x05"):
        raise ValueError("a pickle, which could run code and is never loaded")
    if magic == npy.MAGIC_PREFIX:
        raise ValueError("a single NumPy array, not an archive")
    if not magic.startswith((b"PK\x03\x04", _END_MAGIC)):
        raise ValueError("not a NumPy archive")


def _check_end(file: BinaryIO) -> int:
    """Where the list of entries begins: it must be short, right before the end of the file.

    ``zipfile`` would follow a Zip64 record to another list, of any length.
    """
    size = file.seek(0, os.SEEK_END)
    file.seek(max(size - _END_RECORD.size - _ZIP64_LOCATOR_BYTES, 0))
    tail = file.read()
    record = tail[-_END_RECORD.size :]
    if len(record) < _END_RECORD.size or not record.startswith(_END_MAGIC):
        raise ValueError("the archive is cut short, or something follows it")
    *_, length, start, comment_length = _END_RECORD.unpack(record)
    if comment_length or tail.startswith(_ZIP64_MAGIC):
        raise ValueError("the archive has a comment or a Zip64 record")
    if start + length + _END_RECORD.size != size:
        raise ValueError("the archive is cut short, or something stands before it")
    if length > _MAX_DIRECTORY_BYTES:
        raise ValueError(f"its list of entries takes {length} bytes")
    return int(start)


def _check_entry(entry: zipfile.ZipInfo, position: int) -> None:
    """An entry must be as :func:`pack` writes it, right after the one before."""
    name = entry.orig_filename
    if entry.flag_bits & _ENCRYPTED:
        raise ValueError(f"{name} is encrypted")
    if entry.compress_type != zipfile.ZIP_STORED or entry.compress_size != entry.file_size:
        raise ValueError(f"{name} is compressed")
    if entry.external_attr != _PLAIN_FILE:
        raise ValueError(f"{name} is a link, or not a plain file")
    if entry.flag_bits or entry.extra or entry.comment:
        raise ValueError(f"{name} has flags, a comment or extra fields")
    if entry.header_offset != position:
        raise ValueError(f"{name} begins at byte {entry.header_offset}, expected {position}")


def _read_header(stream: Any, name: str) -> tuple[int, ...]:
    """The shape of a float64 array in C order; leaves the stream where its numbers begin."""
    try:
        shape, fortran_order, dtype = _parse_header(stream)
    except Exception:  # NumPy parses a Python literal, which can fail in many ways
        raise ValueError(f"{name} has no header of NumPy's format 1.0") from None
    if dtype != _FLOAT64:
        raise ValueError(f"{name} is of type {dtype}, expected float64")
    if fortran_order:
        raise ValueError(f"{name} is in Fortran order, expected C order")
    if not all(type(length) is int and length > 0 for length in shape):
        raise ValueError(f"{name} has the shape {shape}")
    return tuple(shape)


def _parse_header(stream: Any) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    if npy.read_magic(stream) != _NPY_VERSION:
        raise ValueError
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # of what Python 2 wrote
        return npy.read_array_header_1_0(stream, max_header_size=_MAX_HEADER_BYTES)


def _listed(names: Sequence[str]) -> str:
    shown = ", ".join(repr(name[:40]) for name in names[:5]) or "nothing"
    return shown + (", …" if len(names) > 5 else "")
