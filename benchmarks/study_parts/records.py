"""Records of measurements: one CSV file for each part, to which finished cells are appended."""

import csv
import math
from pathlib import Path

from .fits import FIELDS, Cell

RESULTS = Path(__file__).parents[1] / "results" / "study"
KEYS = ("data", "split", "loss", "tightness")
Values = dict[str, float]


def read(folder: Path, part: str) -> dict[Cell, Values]:
    """The finished cells; an incomplete line is ignored."""
    path = folder / f"{part}.csv"
    if not path.exists():
        return {}
    with path.open(newline="", encoding="utf-8") as file:
        rows = [row for row in csv.reader(file) if len(row) == len(KEYS) + len(FIELDS) + 1]
    found = {}
    for data, split, loss, tightness, *numbers, end in rows[1:]:
        if end != ".":
            continue
        values = {name: float(text or "nan") for name, text in zip(FIELDS, numbers, strict=True)}
        found[Cell(data, int(split), loss, float(tightness))] = values
    return found


def add(folder: Path, part: str, cell: Cell, values: Values) -> None:
    """Append a cell; the period at the end of its line marks it as complete."""
    path = folder / f"{part}.csv"
    folder.mkdir(parents=True, exist_ok=True)
    numbers = [values.get(name, math.nan) for name in FIELDS]
    texts = ["" if math.isnan(number) else f"{number:.6g}" for number in numbers]
    line = ",".join([cell.data, str(cell.split), cell.loss, f"{cell.tightness:g}", *texts, "."])
    if not path.exists():
        path.write_text(",".join((*KEYS, *FIELDS, "end")) + "\n", encoding="utf-8")
    with path.open("a+b") as file:
        file.seek(-1, 2)
        cut = b"" if file.read() == b"\n" else b"\n"  # ends an incomplete line
        file.write(cut + line.encode() + b"\n")
