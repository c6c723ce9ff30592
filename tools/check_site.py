"""Check the built site: every link has a target, and no asset comes from a network.

    python tools/check_site.py docs/_build/html

Sphinx resolves its own references. This script checks the built pages: links and assets, and the
names of the reference.
"""

import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

from public_names import described_names, public_modules
from sphinx.util.inventory import InventoryFile

ROOT = Path(__file__).resolve().parent.parent
# what a browser loads without a click, by tag
ASSETS = {"script": "src", "img": "src", "link": "href", "iframe": "src", "source": "src"}


class Page(HTMLParser):
    """Identifiers, links and assets of a page."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.ids: set[str] = set()
        self.links: list[str] = []
        self.assets: list[str] = []
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Record the targets of the tag."""
        given = {name: value for name, value in attrs if value is not None}
        self.ids |= {given[name] for name in ("id", "name") if name in given}
        if tag == "a" and "href" in given:
            self.links.append(given["href"])
        if tag in ASSETS and ASSETS[tag] in given:
            self.assets.append(given[ASSETS[tag]])


def faults_of_links(folder: Path) -> list[str]:
    """Links and assets without a target, and assets from other sites."""
    pages = {path: Page(path) for path in folder.rglob("*.html") if "_static" not in path.parts}
    faults = []
    for path, page in pages.items():
        name = path.relative_to(folder)
        for target in [*page.links, *page.assets]:
            parts = urlsplit(target)
            if parts.scheme == "data" or (parts.scheme and target in page.links):
                continue
            if parts.scheme or parts.netloc:
                faults.append(f"{name}: {target} is fetched from a network")
                continue
            other = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            if not other.exists():
                faults.append(f"{name}: {target} does not exist")
            elif (
                parts.fragment
                and other in pages
                and unquote(parts.fragment) not in pages[other].ids
            ):
                faults.append(f"{name}: {target} has no such place")
    return faults


def faults_of_reference(folder: Path) -> list[str]:
    """Public names that the reference does not describe."""
    inventory = InventoryFile.loads((folder / "objects.inv").read_bytes(), uri="")
    known = {name for names in inventory.data.values() for name in names}
    return [
        f"reference: {module}.{name} is not described"
        for module in public_modules()
        for name in described_names(module)
        if f"{module}.{name}" not in known
    ]


def main() -> int:
    """Print the faults; return 1 if there are any."""
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / "docs" / "_build" / "html").resolve()
    faults = faults_of_links(folder) + faults_of_reference(folder)
    print(*faults[:50], sep="\n", end="\n" if faults else "")
    print(f"{len(list(folder.rglob('*.html')))} pages, {len(faults)} faults")
    return 1 if faults else 0


if __name__ == "__main__":
    raise SystemExit(main())
