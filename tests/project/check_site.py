"""Follows every link within a built site, for ``make docs``: files, pictures and anchors.

Sphinx itself checks references between sources; this checks what a browser would find, links
that the theme, the gallery and the reference make included.
"""

import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

LOADED = ("href", "src", "srcset", "data")


class Page(HTMLParser):
    """Collects the anchors of a page and what it links to."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.anchors: set[str] = set()
        self.links: list[str] = []
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note ids and links."""
        for name, value in attrs:
            if name in ("id", "name") and value:
                self.anchors.add(value)
            elif name == "srcset" and value:
                self.links += [part.split()[0] for part in value.split(",")]
            elif name in LOADED and value and not (tag == "link" and "preconnect" in str(attrs)):
                self.links.append(value)


def check(site: Path) -> list[str]:
    """Return what is wrong, a line each."""
    pages = {
        path.resolve(): Page(path) for path in site.rglob("*.html") if "_static" not in path.parts
    }
    faults = []
    n_links = 0
    for path, page in pages.items():
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue  # other sites: make check-links
            n_links += 1
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            where = f"{path.relative_to(site.resolve())}: {link}"
            if target.is_dir():
                target /= "index.html"
            if not target.exists():
                faults.append(f"{where} does not exist")
            elif (
                parts.fragment
                and target in pages
                and unquote(parts.fragment) not in pages[target].anchors
            ):
                faults.append(f"{where} has no such anchor")
    if not faults:
        print(f"{len(pages)} pages, {n_links:,} links within the site: all lead somewhere")
    if n_links < 1000:
        faults.append(f"only {n_links} links in {len(pages)} pages: is this the site?")
    return faults


if __name__ == "__main__":
    sys.exit("\n".join(check(Path(sys.argv[1]))) or 0)
