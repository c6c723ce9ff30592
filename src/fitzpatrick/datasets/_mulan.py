"""Mulan's XML files, which name the labels of an ARFF file: ``<labels><label name="…"/></labels>``.

The parser sees elements and attributes alone: a document type, which is where entities come from,
ends it, in whatever encoding it is written.
"""

import re
from collections.abc import Sequence
from pathlib import Path
from xml.parsers import expat

from ._errors import DataError
from ._table import MAX_CLASSES
from ._text import COMPRESSED_SUFFIXES

MAX_XML_BYTES = 16 << 20
MAX_DEPTH = 100
_PART = re.compile(r"[-_](?:train|test)(?:[-_]?sparse)?|[-_]sparse", re.IGNORECASE)


def read_label_names(xml: Path) -> list[str]:
    """The labels that Mulan's XML file names, in its order, nested ones included."""
    try:
        if xml.is_dir():
            raise DataError("is a folder; expected an XML file", xml)
        if xml.stat().st_size > MAX_XML_BYTES:
            raise DataError(f"larger than {MAX_XML_BYTES >> 20} MiB", xml)
        content = xml.read_bytes()
    except FileNotFoundError:
        raise DataError("no such file", xml) from None
    except OSError as error:
        raise DataError(f"cannot be read: {error.strerror}", xml) from None
    found: list[str] = []
    depth = [0]
    parser = expat.ParserCreate()

    def refuse(*_: object) -> None:
        raise DataError("declares entities, which no list of labels needs", xml)

    def start(tag: str, attributes: dict[str, str]) -> None:
        depth[0] += 1
        if depth[0] > MAX_DEPTH or len(found) > MAX_CLASSES:
            what = f"{MAX_DEPTH} levels" if depth[0] > MAX_DEPTH else f"{MAX_CLASSES} labels"
            raise DataError(f"more than {what}", xml, parser.CurrentLineNumber)
        if tag.rpartition(":")[2] == "label" and "name" in attributes:
            found.append(attributes["name"])

    def end(_: str) -> None:
        depth[0] -= 1

    parser.StartDoctypeDeclHandler = refuse
    parser.EntityDeclHandler = refuse
    parser.StartElementHandler = start
    parser.EndElementHandler = end
    try:
        parser.Parse(content, True)
    except expat.ExpatError as error:
        raise DataError(f"not well-formed XML ({error})", xml, error.lineno) from None
    except (LookupError, ValueError) as error:
        if isinstance(error, DataError):
            raise
        raise DataError(f"not XML that can be read ({error})", xml) from None
    if not found:
        raise DataError("names no label", xml)
    return found


def labels_beside(path: Path) -> list[str] | None:
    """Labels of the XML file beside a data file: ``Corel5k.xml`` for ``Corel5k-train-sparse.arff``.

    None where there is no such file.
    """
    stem = path.name
    for suffix in COMPRESSED_SUFFIXES:
        stem = stem.removesuffix(suffix)
    stem = re.sub(r"\.arff$", "", stem, flags=re.IGNORECASE)
    whole = re.sub(f"(?:{_PART.pattern})$", "", stem, flags=re.IGNORECASE)
    others = (whole, stem.rpartition("-")[0], stem.rpartition("_")[0])
    for candidate in dict.fromkeys((stem, *others)):
        xml = path.parent / f"{candidate}.xml"
        if candidate and xml.is_file():
            return read_label_names(xml)
    return None


def expand_targets(
    targets: Sequence[str | Path] | str | Path | None, path: Path
) -> tuple[str, ...] | None:
    """Names of targets, where an XML file stands for the labels that it names.

    Args:
        targets: names, and XML files: as given, or beside the data file.
        path: the data file.
    """
    if targets is None:
        return None
    if isinstance(targets, str | Path):
        targets = [targets]
    names: list[str] = []
    for target in targets:
        if isinstance(target, Path) or target.lower().endswith(".xml"):
            beside = path.parent / target
            names += read_label_names(beside if beside.is_file() else Path(target))
        else:
            names.append(target)
    return tuple(names)
