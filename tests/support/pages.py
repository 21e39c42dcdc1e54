"""Parse pages like a browser: what they load, their ids, their tables and text."""

import re
from html.parser import HTMLParser
from pathlib import Path

VOID = {"meta", "br", "hr", "img", "link", "input"}
LIMIT = 1_000_000  # bytes of a page


class Page(HTMLParser):
    """Collect the parts that the tests need; `faults` lists the errors of the page."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        content = path.read_bytes()
        self.faults: list[str] = []
        self.tables: list[list[list[str]]] = []
        self.text = ""
        self._open: list[str] = []
        ids: list[str] = []
        references: list[str] = []
        self._ids, self._references = ids, references
        self.n_figures = 0
        if len(content) >= LIMIT:
            self.faults.append(f"{len(content)} bytes")
        self.feed(content.decode("utf-8"))
        self.close()
        if self._open:
            self.faults.append(f"not closed: {self._open}")
        self.faults += [f"id {i} twice" for i in set(ids) if ids.count(i) > 1]
        self.faults += [f"no id {r}" for r in references if r not in ids]

    def handle_starttag(self, tag, attrs):
        self._look(tag, attrs)
        if tag not in VOID:
            self._open.append(tag)
        if tag == "table":
            self.tables.append([])
        elif tag == "tr":
            self.tables[-1].append([])
        elif tag in ("td", "th"):
            self.tables[-1][-1].append("")
        self.n_figures += tag == "figure"

    def handle_startendtag(self, tag, attrs):
        self._look(tag, attrs)

    def handle_endtag(self, tag):
        if not self._open or self._open.pop() != tag:
            self.faults.append(f"</{tag}> closes nothing")

    def handle_data(self, data):
        if self._open and self._open[-1] == "style":
            if "url(" in data or "@import" in data:
                self.faults.append("a style loads something")
            return
        self.text += data
        if self._open and self._open[-1] in ("td", "th"):
            self.tables[-1][-1][-1] += data

    def _look(self, tag, attrs):
        if tag in ("script", "link", "iframe", "base"):
            self.faults.append(f"<{tag}>")
        for name, value in attrs:
            value = value or ""
            if name == "id":
                self._ids.append(value)
            if name in ("src", "srcset", "href", "xlink:href", "data", "poster"):
                if value.startswith("#"):
                    self._references.append(value[1:])
                elif not value.startswith("data:"):
                    self.faults.append(f"{tag} loads {value[:60]}")
            self._references += re.findall(r"url\(#([^)]+)\)", value)
