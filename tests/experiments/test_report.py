"""The HTML page: well-formed, self-contained, and safe with odd names."""

import re
from html.parser import HTMLParser

from fitzpatrick.experiments.report import Section, render
from fitzpatrick.experiments.summary import summarize
from tests.experiments.test_summary import make

CHECKSUM = "0123456789abcdef" * 4
VOID = {"meta", "line", "circle", "rect", "polyline", "polygon"}


class Checker(HTMLParser):
    """Raises where tags do not close in order."""

    def __init__(self):
        super().__init__()
        self.open, self.seen = [], []

    def handle_starttag(self, tag, attrs):
        self.seen.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.seen.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def page(title="demo", failures=None):
    records = {**make("logistic", 0.0), **make("fitzpatrick_logistic", -0.01)}
    section = Section(
        title,
        summarize(records),
        {"logistic": 0.2},
        {"α grid": "1"},
        {"file": CHECKSUM},
        ("a note",),
    )
    return render("A title", "A lead", [section], failures or {})


def test_page_is_well_formed_and_whole():
    checker = Checker()
    checker.feed(page())
    assert checker.open == []
    assert sum(tag == "svg" for tag, _ in checker.seen) == 4
    assert all(attrs.get("aria-label") for tag, attrs in checker.seen if tag == "svg")


def test_page_asks_for_nothing_from_outside():
    text = page()
    assert not re.search(r"(src|href)=|url\(|@import|http", text)
    assert "prefers-color-scheme: dark" in text


def test_page_shows_numbers_versions_checksums_and_failures():
    text = page(failures={"birds": "no copy"})
    for content in (
        "fitzpatrick_logistic",
        ".200",
        "numpy",
        CHECKSUM,
        "a note",
        "no copy",
        "Not run",
    ):
        assert content in text
    (better,) = re.findall(r'<tr class="better"><td>(\w+)', text)
    assert better == "fitzpatrick_logistic"


def test_names_cannot_break_out():
    text = page(title="<script>alert(1)</script>")
    assert "<script>" not in text
    assert "&lt;script&gt;" in text
