"""The data sets of the paper: sizes, sources, licenses."""

from ..datasets import DATASETS
from .text import wrapped


def datasets_table(available: dict[str, str]) -> str:
    """Table 2 of the paper, and where to get each set."""
    head = f"{'data set':<12}{'train':>7}{'dev':>6}{'test':>7}{'features':>10}{'classes':>9}  copy"
    lines = [head, "-" * 80]
    for info in DATASETS.values():
        said = info.published
        lines.append(
            f"{info.name:<12}{said.train:>7}{said.dev:>6}{said.test:>7}{said.features:>10}"
            f"{said.classes:>9}  {available[info.name].partition(':')[0]}"
        )
    for name, place in available.items():
        if place.startswith("unusable"):
            lines += wrapped(f"{name}: {place}")
    return "\n".join(lines)


def dataset_details() -> str:
    """Source, license and notes of each set."""
    blocks = []
    for info in DATASETS.values():
        block = wrapped(f"{info.name}: {info.source}") + wrapped(f"  license: {info.licence}")
        if info.note:
            block += wrapped(f"  note: {info.note}")
        blocks.append("\n".join(block))
    return "\n".join(blocks)
