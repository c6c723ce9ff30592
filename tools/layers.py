"""The layers of the package, the imports between modules, and a figure of both.

    python tools/layers.py

writes ``docs/figures/layers.svg``; ``tests/test_import.py`` compares it with the imports.
"""

import ast
from collections.abc import Iterator
from html import escape
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "src" / "fitzpatrick"
PICTURE = ROOT / "docs" / "figures" / "layers.svg"

# From the bottom up: a module imports from its own layer or from lower ones.
LAYERS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("array libraries", ("_array",)),
    ("scalar mathematics", ("special", "_root")),
    ("convex sets C", ("sets",)),
    ("checks of input", ("_validation",)),
    ("Ω and its formulas", ("regularizers",)),
    ("who computes (Ω, c)", ("engines",)),
    ("losses L_c", ("losses", "divergences")),
    ("helpers of models", ("_weights", "metrics", "preprocessing")),
    ("front ends", ("linear_model", "torch", "jax", "keras", "conformal")),
    ("clusters", ("dask",)),
    ("files and pages", ("datasets", "_page")),
    ("boosted trees", ("boosting",)),
    ("experiments", ("experiments", "explorer")),
    ("command line", ("cli",)),
    ("python -m", ("__main__",)),
)
LEVEL = {name: level for level, (_, layer) in enumerate(LAYERS) for name in layer}


def sources() -> list[Path]:
    """Every module of the package except its ``__init__``."""
    return sorted(p for p in SOURCE.rglob("*.py") if p != SOURCE / "__init__.py")


def component(path: Path) -> str:
    """The component of a file: a module or a folder directly in the package."""
    return path.relative_to(SOURCE).parts[0].removesuffix(".py")


def imported_components(path: Path) -> Iterator[tuple[int, str]]:
    """Line and component of each import within the package, including deferred imports."""
    package = ["fitzpatrick", *path.relative_to(SOURCE).parent.parts]
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            module = ".".join([*base, *([node.module] if node.module else [])])
            # "from . import x" can name modules, "from .x import y" names their contents
            names = [f"{module}.{alias.name}" for alias in node.names]
        else:
            continue
        for name in names:
            parts = name.split(".")
            if parts[0] == "fitzpatrick" and len(parts) > 1:
                yield node.lineno, parts[1]


def edges() -> set[tuple[str, str]]:
    """(importer, imported), without pairs that follow from others."""
    direct: dict[str, set[str]] = {name: set() for name in LEVEL}
    for path in sources():
        found = {target for _, target in imported_components(path)}
        direct[component(path)] |= found & LEVEL.keys() - {component(path)}

    def reach(name: str) -> set[str]:
        return direct[name].union(*map(reach, direct[name]))

    return {
        (name, target)
        for name, targets in direct.items()
        for target in targets
        if not any(target in reach(other) for other in targets - {target})
    }


def picture() -> str:
    """The layers as boxes, the highest on top, and lines from each module to its imports."""
    width, step, box, height, left = 860, 54, 112, 30, 170
    place = {
        name: (
            left + (width - left) * (i + 0.5) / len(layer),
            20 + (len(LAYERS) - 1 - level) * step,
        )
        for level, (_, layer) in enumerate(LAYERS)
        for i, name in enumerate(layer)
    }
    lines = [
        f'<path d="M{place[a][0]:.0f} {place[a][1] + height} L{place[b][0]:.0f} {place[b][1]}"/>'
        for a, b in sorted(edges())
    ]
    titles = [
        f'<text x="8" y="{40 + (len(LAYERS) - 1 - level) * step}">{escape(title)}</text>'
        for level, (title, _) in enumerate(LAYERS)
    ]
    boxes = [
        f'<rect x="{x - box / 2:.0f}" y="{y}" width="{box}" height="{height}" rx="6"/>'
        f'<text class="name" x="{x:.0f}" y="{y + 20}">{name}</text>'
        for name, (x, y) in place.items()
    ]
    style = (
        "text{font:13px sans-serif;fill:#444}.name{text-anchor:middle;fill:#111;font-weight:600}"
        "rect{fill:#e8f0f8;stroke:#1f4e79}path{stroke:#8a8a8a;fill:none}"
    )
    size = f'viewBox="0 0 {width} {len(LAYERS) * step + 10}"'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" {size}><style>{style}</style>'
    return "\n".join([head, *lines, *titles, *boxes, "</svg>", ""])


if __name__ == "__main__":
    PICTURE.write_text(picture(), encoding="utf-8")
