"""Model files made by hand: a valid one, and all that must be refused, with the reason.

Each is wrong in one way only. The skops archives are attacks on what earlier versions read.
"""

import io
import json
import pickle
import re
import struct
import warnings
import zipfile
from pathlib import Path

import numpy as np
import skops

ENTRIES = ["model.json", "coef.npy", "intercept.npy"]
COEF, INTERCEPT = np.asarray([[1.5, -2.0, 0.0], [0.25, 1e-300, -1e300]]), np.asarray([0.5, -0.5])
NUMBER = {
    "kind": "number",
    "name": "x",
    "fill": 2.5,
    "marks_missing": False,
    "unit": "",
    "decimal": ".",
    "thousands": "",
}
CATEGORY = {
    "kind": "category",
    "name": "z",
    "values": ["red", "blue"],
    "marks_missing": False,
    "allows_missing": True,
}
COLUMNS = {"n_numbered": 0, "missing_values": ["k. A."], "columns": [NUMBER, CATEGORY]}
DESCRIPTION = {
    "format": "fitzpatrick-model",
    "version": 1,
    "library": "0.1.0",
    "loss": "fitzpatrick_logistic",
    "alpha": 0.5,
    "fit_intercept": True,
    "standardize": False,
    "kind": "labels",
    "columns": COLUMNS,
    "target_names": ["a", "b"],
    "cv_score": None,
    "objective": 1.25,
    "gradient_norm": 1e-9,
    "n_iter": 7,
    "status": "CONVERGED",
}


def columns(*items, **changes):
    """A recipe, of which some parts are other ones."""
    return {**COLUMNS, "columns": list(items or (NUMBER, CATEGORY)), **changes}


def npy(array, **options):
    stream = io.BytesIO()
    np.lib.format.write_array(stream, array, **options)
    return stream.getvalue()


def npy_of(header, payload=b""):
    """An array in NumPy's format with a header written by hand."""
    text = header.encode() + b"\n"
    return np.lib.format.magic(1, 0) + struct.pack("<H", len(text)) + text + payload


def parts(**changes):
    """The content of the three entries; changes are to the description."""
    text = json.dumps({**DESCRIPTION, **changes}).encode()
    return dict(zip(ENTRIES, (text, npy(COEF), npy(INTERCEPT)), strict=True))


def entry(name, **attributes):
    """An entry as the library writes it, but for some attributes."""
    info = zipfile.ZipInfo(name)
    info.create_system, info.external_attr = 3, 0o100644 << 16
    for key, value in attributes.items():
        setattr(info, key, value)
    return info


def archive(content):
    """Name or entry → bytes as an archive, of which nothing else is wrong."""
    stream = io.BytesIO()
    pairs = content.items() if isinstance(content, dict) else content
    with zipfile.ZipFile(stream, "w") as file:
        for key, value in pairs:
            info = entry(key) if isinstance(key, str) else key
            file.writestr(info, value)
    return stream.getvalue()


def archive_with(name, content):
    return archive({**parts(), name: content})


def value_node(value):
    return {
        "__class__": "str",
        "__module__": "builtins",
        "__loader__": "JsonNode",
        "content": json.dumps(value),
        "is_json": True,
    }


def tuple_node(*items):
    node = {"__class__": "tuple", "__module__": "builtins", "__loader__": "TupleNode"}
    return {**node, "content": list(items)}


def call_node(module, name, *arguments):
    """What skops makes a call of: any name of any module, with any arguments."""
    node = {"__class__": name, "__module__": module, "__loader__": "ConstructorFromReduceNode"}
    return {**node, "content": tuple_node(*arguments)}


def partial_node(module, name, *arguments):
    """The same in two steps, the first of which makes a function."""
    function = {"__class__": name, "__module__": module, "__loader__": "TypeNode"}
    empty = {"__class__": "dict", "__module__": "builtins", "__loader__": "DictNode"}
    empty |= {"content": {}, "key_types": {**tuple_node(), "__class__": "list"}}
    empty["key_types"]["__loader__"] = "ListNode"
    content = {
        "func": function,
        "args": tuple_node(*arguments),
        "kwds": empty,
        "namespace": value_node(None),
    }
    node = {"__class__": "partial", "__module__": "functools", "__loader__": "PartialNode"}
    return {**node, "content": content}


def skops_archive(node):
    for number, inner in enumerate(nodes(node)):
        inner["__id__"] = number
    schema = {**node, "protocol": 2, "_skops_version": skops.__version__}
    return archive({"schema.json": json.dumps(schema)})


def nodes(value):
    """All nodes of a schema."""
    if isinstance(value, dict):
        if "__loader__" in value:
            yield value
        value = list(value.values())
    if isinstance(value, list):
        for item in value:
            yield from nodes(item)


def writing_attack(folder):
    """Writes a file through the library's own function, whose module also imported Path."""
    files = "fitzpatrick.datasets._files"
    path = call_node(files, "Path", value_node(str(folder / "mark")))
    return call_node(files, "write_atomically", path, value_node("written"))


def importing_attack(folder):
    """Imports a package, which the search for a module inside it does."""
    package = folder / "attacked_package"
    package.mkdir()
    code = f"import pathlib\npathlib.Path({str(folder / 'mark')!r}).write_text('imported')\n"
    (package / "__init__.py").write_text(code)
    return call_node("fitzpatrick.engines._bind", "find_spec", value_node("attacked_package.a"))


def folder_attack(folder):
    """Makes a folder on the way to a temporary file."""
    files = "fitzpatrick.datasets._files"
    path = call_node(files, "Path", value_node(str(folder / "mark" / "file")))
    return call_node(files, "write_atomically", path, value_node(""))


OLD_ATTACKS = [writing_attack, importing_attack, folder_attack]


class Mark:
    """Unpickled, it makes a file."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return Path.touch, (self.path,)


def pickled_text():
    return archive_with("model.json", pickle.dumps(DESCRIPTION))


def flagged(bits):
    """Set bits of the first entry's flags, in both of its headers."""
    content = bytearray(archive(parts()))
    for signature, offset in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        content[content.index(signature) + offset] |= bits
    return bytes(content)


def patched(signature, offset, form, value, which=0):
    """The valid archive with one field of a header changed."""
    content = bytearray(archive(parts()))
    start = [match.start() for match in re.finditer(re.escape(signature), bytes(content))][which]
    struct.pack_into(form, content, start + offset, value)
    return bytes(content)


def renamed(old, new):
    content = parts()
    return archive({new if name == old else name: value for name, value in content.items()})


def with_entry(name, **attributes):
    content = parts()
    return archive(
        [
            (entry(key, **attributes) if key == name else key, value)
            for key, value in content.items()
        ]
    )


def twice(name):
    content = parts()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # zipfile's, of the same name
        return archive([*content.items(), (name, content[name])])


def zip64():
    """The end of the list is a Zip64 locator, which zipfile would follow to another list."""
    content = archive(
        [(entry("intercept.npy", comment=b"-" * 56 + b"PK\x06\x07" + b"\0" * 16), b"")]
    )
    assert content[-42:-38] == b"PK\x06\x07"
    return content


def gap():
    """Bytes that belong to no entry, between the last one and the list."""
    content = archive(parts())
    start = content.index(b"PK\x01\x02")
    moved = content[:start] + b"#!" + content[start:]
    return moved[:-6] + struct.pack("<L", start + 2) + moved[-2:]


def bomb(name):
    zeros = npy(np.zeros((2, 3 * 10**6)))
    return with_content(entry(name, compress_type=zipfile.ZIP_DEFLATED), zeros)


def with_content(info, value):
    content = parts()
    return archive(
        [(info, value) if key == info.filename else (key, old) for key, old in content.items()]
    )


def understated():
    """Deflated, and the list says that it is stored."""
    content = bytearray(bomb("coef.npy"))
    start = [match.start() for match in re.finditer(b"PK\x01\x02", bytes(content))][1]
    struct.pack_into("<H", content, start + 10, 0)
    return bytes(content)


ARCHIVES = {
    "empty": (lambda: b"", "the file is empty"),
    "junk": (lambda: b"junk", "not a NumPy archive"),
    "text": (lambda: b"x,y\n1,2\n", "not a NumPy archive"),
    "gzip": (lambda: b"\x1f\x8b" + bytes(100), "not a NumPy archive"),
    "npy": (lambda: npy(COEF), "a single NumPy array, not an archive"),
    "magic": (lambda: b"PK\x03\x04", "the archive is cut short, or something follows it"),
    "no entries": (lambda: archive({}), "it holds nothing; expected model.json, coef.npy"),
    "other npz": (lambda: archive({"a.npy": npy(COEF)}), r"it holds 'a\.npy'; expected"),
    "extra entry": (lambda: archive({**parts(), "run.py": b""}), "it holds .*, 'run.py'; expected"),
    "many entries": (
        lambda: archive({f"{i:04}": b"" for i in range(1500)}),
        r"its list of entries takes 75000 bytes",
    ),
    "no intercept": (
        lambda: archive(dict(list(parts().items())[:2])),
        r"it holds 'model\.json', 'coef\.npy'; expected",
    ),
    "other order": (
        lambda: archive(dict(reversed(parts().items()))),
        r"it holds 'intercept\.npy', .*; expected",
    ),
    "duplicate": (lambda: twice("coef.npy"), r"it holds .*, 'coef\.npy'; expected"),
    "duplicate text": (lambda: twice("model.json"), r"it holds .*, 'model\.json'; expected"),
    "parent folder": (lambda: renamed("coef.npy", "../coef.npy"), r"it holds .*'\.\./coef\.npy'"),
    "absolute": (lambda: renamed("coef.npy", "/tmp/coef.npy"), "it holds .*'/tmp/coef.npy'"),
    "backslash": (lambda: renamed("coef.npy", "..\\coef.npy"), "it holds .*coef.npy', "),
    "capitals": (lambda: renamed("coef.npy", "COEF.npy"), "it holds .*'COEF.npy'"),
    "zero byte": (
        lambda: archive(parts()).replace(b"coef.npy", b"coef\0npy"),
        r"it holds .*'coef\\x00npy'",
    ),
    "long name": (lambda: renamed("coef.npy", "c" * 9000), "it holds 'model.json', 'c{40}', "),
    "folder": (lambda: with_entry("coef.npy", external_attr=0o40755 << 16 | 0x10), "is a link, or"),
    "link": (
        lambda: with_entry("coef.npy", external_attr=0o120777 << 16),
        "coef.npy is a link, or not a plain file",
    ),
    "link to a file": (
        lambda: with_content(entry("model.json", external_attr=0o120777 << 16), "/etc/passwd"),
        "model.json is a link, or not a plain file",
    ),
    "encrypted": (lambda: flagged(0x1), "model.json is encrypted"),
    "masked": (lambda: flagged(0x40), "model.json has flags, a comment or extra fields"),
    "sizes after the data": (lambda: flagged(0x8), "model.json has flags"),
    "comment": (lambda: with_entry("coef.npy", comment=b"#"), "coef.npy has flags, a comment or"),
    "extra": (lambda: with_entry("coef.npy", extra=b"\1\2\0\0"), "coef.npy has flags, a comment"),
    "comment of the archive": (
        lambda: archive(parts())[:-2] + b"\x01\x00#",
        "the archive is cut short, or something follows it",
    ),
    "length of a comment": (
        lambda: archive(parts())[:-2] + b"\x01\x00",
        "the archive has a comment or a Zip64 record",
    ),
    "something before": (
        lambda: archive({"a": b""})[:31] + archive(parts()),
        "the archive is cut short, or something stands before it",
    ),
    "something after": (lambda: archive(parts()) + b"#!", "or something follows it"),
    "something before the list": (gap, "there is something between its entries and their list"),
    "something between": (
        lambda: patched(b"PK\x01\x02", 42, "<L", 10**6, which=1),
        "coef.npy begins at byte 1000000, expected",
    ),
    "overlap": (lambda: patched(b"PK\x01\x02", 42, "<L", 0, which=2), "intercept.npy begins at"),
    "another list": (zip64, "the archive has a comment or a Zip64 record"),
    "list too long": (
        lambda: patched(b"PK\x05\x06", 12, "<L", 2**32 - 1),
        "the archive is cut short, or something stands before it",
    ),
    "size too large": (lambda: patched(b"PK\x01\x02", 24, "<L", 2**32 - 1), "is compressed"),
    "version of ZIP": (lambda: patched(b"PK\x01\x02", 6, "<H", 99), "zip file version 9.9"),
    "names differ": (
        lambda: archive(parts()).replace(b"coef.npy", b"coef_npy", 1),
        "File name in directory 'coef.npy' and header b'coef_npy' differ",
    ),
    "local header": (
        lambda: patched(b"PK\x03\x04", 0, "4s", b"PK\x03\x05", which=1),
        "Bad magic number for file header",
    ),
    "compressed": (
        lambda: with_entry("coef.npy", compress_type=zipfile.ZIP_LZMA),
        "coef.npy is compressed",
    ),
    "bomb": (lambda: bomb("coef.npy"), "coef.npy is compressed"),
    "bomb in the text": (
        lambda: with_content(
            entry("model.json", compress_type=zipfile.ZIP_BZIP2), b" " * (64 << 20)
        ),
        "model.json is compressed",
    ),
    "bomb that says it is none": (understated, "coef.npy is compressed"),
    "pickle as text": (pickled_text, "'utf-8' codec can't decode byte 0x80"),
}

HEADER = "{{'descr': {}, 'fortran_order': {}, 'shape': {}, }}".format
DOUBLES = COEF.tobytes()
NO_HEADER = r"coef has no header of NumPy's format 1\.0"
ARRAYS = {
    "huge": (npy_of(HEADER("'<f8'", False, (2, 10**9)), DOUBLES), r"claims the shape \(2, 10{9}\)"),
    "too wide": (npy(np.zeros((2, 4))), r"coefficients \(2, 4\) for 2 targets and 3 features"),
    "transposed": (npy(COEF.T.copy()), r"coefficients \(3, 2\) for 2 targets and 3 features"),
    "flat": (npy(COEF.ravel()), r"coefficients \(6,\) for 2 targets"),
    "three axes": (npy(COEF[None]), r"coefficients \(1, 2, 3\) for 2 targets"),
    "one number": (npy(np.asarray(1.0)), r"coefficients \(\) for 2 targets"),
    "no rows": (npy(np.zeros((0, 3))), r"coef has the shape \(0, 3\)"),
    "negative": (npy_of(HEADER("'<f8'", False, (-2, -3)), DOUBLES), r"has the shape \(-2, -3\)"),
    "truth": (npy_of(HEADER("'<f8'", False, (True, 6)), DOUBLES), r"has the shape \(True, 6\)"),
    "long shape": (npy_of(HEADER("'<f8'", False, "(2, 3L)"), DOUBLES), NO_HEADER),
    "whole shape": (npy_of(HEADER("'<f8'", False, (2.0, 3)), DOUBLES), NO_HEADER),
    "fortran": (npy(np.asfortranarray(COEF)), "coef is in Fortran order, expected C order"),
    "float32": (npy(np.ones((2, 3), "f4")), "coef is of type float32, expected float64"),
    "int64": (npy(np.ones((2, 3), "i8")), "coef is of type int64, expected float64"),
    "complex": (npy(np.ones((2, 3), "c16")), "coef is of type complex128, expected float64"),
    "big-endian": (npy(COEF.astype(">f8")), "coef is of type >f8, expected float64"),
    "strings": (npy(np.full((2, 3), "a")), "coef is of type <U"),
    "dates": (npy(np.zeros((2, 3), "M8[s]")), r"coef is of type datetime64\[s\]"),
    "fields": (npy(np.zeros((2, 3), [("a", "f8")])), r"coef is of type \[\('a', '<f8'\)\]"),
    "subarrays": (npy_of(HEADER("('<f8', (3,))", False, (2,)), DOUBLES), "is of type"),
    "object": (npy_of(HEADER("'|O'", False, (2, 3)), DOUBLES), "is of type object"),
    "no type": (npy_of(HEADER("()", False, (2, 3)), DOUBLES), NO_HEADER),
    "version 2": (npy(COEF, version=(2, 0)), NO_HEADER),
    "not an array": (b"1,2,3", NO_HEADER),
    "nothing": (b"", NO_HEADER),
    "call": (npy_of("__import__('os').system('true')"), NO_HEADER),
    "list": (npy_of("[1, 2]"), NO_HEADER),
    "keys": (npy_of("{1: 2, 'a': 3}"), NO_HEADER),
    "nested": (npy_of("(" * 120 + ")" * 120), NO_HEADER),
    "signs": (npy_of("-" * 9000 + "1"), NO_HEADER),
    "long header": (npy_of(HEADER("'<f8'", False, (2, 3)) + " " * 300, DOUBLES), NO_HEADER),
    "no end": (npy(COEF)[:-1], r"claims the shape \(2, 3\) and has 47 bytes"),
    "more": (npy(COEF) + b"\0", r"claims the shape \(2, 3\) and has 49 bytes"),
    "header cut off": (npy(COEF)[:50], NO_HEADER),
    "nan": (npy(np.where(COEF == 0, np.nan, COEF)), "not all of its coefficients are finite"),
    "inf": (npy(np.where(COEF == 0, -np.inf, COEF)), "not all of its coefficients are finite"),
}


def text_with(old, new):
    text = parts()["model.json"]
    assert text.count(old) == 1
    return text.replace(old, new)


TEXTS = {
    "empty": (b"", "Expecting value"),
    "not JSON": (b"{'a': 1}", "Expecting property name"),
    "more": (parts()["model.json"] + b"{}", "Extra data"),
    "list": (b"[]", "its JSON does not describe a model"),
    "null": (b"null", "its JSON does not describe a model"),
    "other object": (b'{"format": "other"}', "its JSON does not describe a model"),
    "latin-1": (text_with(b'"a"', b'"\xe4"'), "codec can't decode byte 0xe4"),
    "UTF-16": (parts()["model.json"].decode().encode("utf-16"), "codec can't decode byte 0xff"),
    "byte-order mark": (b"\xef\xbb\xbf" + parts()["model.json"], "BOM"),
    "key twice": (
        text_with(b'"alpha"', b'"alpha": 1.0, "alpha"'),
        "a key of its JSON occurs twice",
    ),
    "inner key twice": (
        text_with(b'{"kind": "number"', b'{"kind": "number", "kind": "number"'),
        "a key of its JSON occurs twice",
    ),
    "NaN": (text_with(b"1.25", b"NaN"), "its JSON holds NaN, which is not a number"),
    "infinity": (text_with(b"1.25", b"-Infinity"), "its JSON holds -Infinity, which is not a"),
    "overflow": (text_with(b"1.25", b"1e999"), "objective is Infinity, expected a number"),
    "digits": (text_with(b"7", b"7" * 5000), "Exceeds the limit"),
    "deep list": (b"[" * 10**6, "recursion"),
    "deep object": (b'{"a":' * 10**5 + b"1" + b"}" * 10**5, "recursion"),
    "overflow of a column": (
        text_with(b"2.5", b"-1e999"),
        "fill is -inf, expected a finite number or null",
    ),
    "deep column": (
        text_with(b'["red", "blue"]', b"[" * 300 + b"]" * 300),
        "values is .*, expected text",
    ),
}

NAMES = "expected different names"
FIELDS = [
    ("version", 2, r"its format has the version 2; fitzpatrick \S+ reads 1"),
    ("version", True, "its format has the version true; "),
    ("version", 1.0, "its format has the version 1.0; "),
    ("version", "1", 'its format has the version "1"; '),
    ("library", None, "library is null, expected a version"),
    ("loss", "logistics", 'loss is "logistics", expected the name of a loss'),
    ("loss", ["logistic"], r'loss is \["logistic"\], expected the name of a loss'),
    ("loss", None, "loss is null, "),
    ("alpha", 0.0, "alpha is 0.0, expected a positive number"),
    ("alpha", -1.0, "alpha is -1.0, "),
    ("alpha", 1, "alpha is 1, expected a positive number"),
    ("alpha", True, "alpha is true, "),
    ("alpha", "1.0", 'alpha is "1.0", '),
    ("alpha", None, "alpha is null, "),
    ("fit_intercept", 1, "fit_intercept is 1, expected true or false"),
    ("standardize", None, "standardize is null, expected true or false"),
    ("kind", "none", 'kind is "none", expected indicators or proportions or labels or numbers'),
    ("kind", {}, "kind is {}, "),
    ("columns", None, "columns is null, expected the recipe of the columns"),
    ("columns", [NUMBER], "columns is .*, expected the recipe of the columns"),
    ("columns", {}, "{} is not a recipe of columns with columns, missing_values, n_numbered"),
    ("columns", {**COLUMNS, "call": "os.system"}, "is not a recipe of columns with"),
    ("columns", columns(n_numbered=3), "columns is no list, or not empty beside n_numbered"),
    ("columns", columns(columns=[], n_numbered=3.0), "n_numbered is 3.0, expected 0 to 1000000"),
    ("columns", columns(columns=[], n_numbered=10**7), "n_numbered is 10000000, expected 0 to"),
    ("columns", columns(columns=[], n_numbered=2), "coefficients .* for 2 targets and 2 features"),
    ("columns", columns(columns=[]), "0 features, expected 1 to 1000000"),
    ("columns", columns(missing_values=[1]), "missing_values is 1, expected text"),
    ("columns", columns(NUMBER), r"coefficients \(2, 3\) for 2 targets and 1 feature"),
    ("columns", columns(NUMBER, NUMBER, CATEGORY), "two columns have the same name"),
    ("columns", columns({**NUMBER, "kind": "os.system"}), "is not a column of a kind among number"),
    ("columns", columns({**CATEGORY, "fill": 1.0}), "is not a category column with allows_missing"),
    ("columns", columns({**NUMBER, "fill": 1}), "fill is 1, expected a finite number or null"),
    ("columns", columns({**NUMBER, "fill": 10**400}), "fill is 1000.*, expected a finite number"),
    ("columns", columns({**NUMBER, "fill": True}), "fill is True, expected a finite number"),
    ("columns", columns({**NUMBER, "marks_missing": 0}), "marks_missing is 0, expected true or"),
    ("columns", columns({**NUMBER, "decimal": ";"}), "decimal is ';', expected one of"),
    (
        "columns",
        columns({**NUMBER, "name": "x" * 1001}),
        "expected text of at most 1000 characters",
    ),
    ("columns", columns({**NUMBER, "name": "\x1b[2J", "unit": 1}), "unit is 1, expected text"),
    ("columns", columns({**CATEGORY, "values": ["red", "red"]}), "values has a word twice"),
    ("columns", columns({**CATEGORY, "values": "red"}), "values is 'red', expected at most 10000"),
    ("target_names", None, "target_names is null, " + NAMES),
    ("target_names", ["a", "a"], "target_names is .*, " + NAMES),
    ("target_names", ["a", ["b"]], "target_names is .*, " + NAMES),
    ("target_names", {"a": 1, "b": 2}, "target_names is .*, " + NAMES),
    ("target_names", "a" * 10**5, r'target_names is "a{38}…, ' + NAMES),
    ("target_names", ["a"], r"coefficients \(2, 3\) for 1 target and 3 features"),
    ("codes", {}, '"codes" is not known'),
    ("feature_names", ["x", "y", "z"], '"feature_names" is not known'),
    ("cv_score", False, "cv_score is false, expected null or a number"),
    ("cv_score", 1, "cv_score is 1, expected null or a number"),
    ("objective", None, "objective is null, expected a number"),
    ("gradient_norm", -1e-9, "gradient_norm is -1e-09, expected a number of at least 0"),
    ("n_iter", 7.0, "n_iter is 7.0, expected a whole number of at least 0"),
    ("n_iter", -1, "n_iter is -1, "),
    ("n_iter", False, "n_iter is false, "),
    ("status", "converged", 'status is "converged", expected CONVERGED or ZERO or '),
    ("status", "__class__", 'status is "__class__", expected CONVERGED or ZERO or '),
    ("estimator", "os.system", '"estimator" is not known'),
    ("\x1b[2J" * 20, 1, r'"\\u001b\[2J\S*… is not known'),
]
