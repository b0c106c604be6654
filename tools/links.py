"""Check a built site: its links lead somewhere, and nothing is loaded from outside.

    python tools/links.py docs/_build/html

Links to other sites may be followed by a reader, and are not checked. What a page loads by itself
(scripts, styles, pictures) has to come with it.
"""

import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit


class Page(HTMLParser):
    """The anchors of a page, its links, and what it loads."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.anchors: set[str] = set()
        self.links: set[str] = set()
        self.loads: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note what the tag names and points to."""
        found = {name: value for name, value in attrs if value}
        self.anchors |= {found[name] for name in ("id", "name") if name in found}
        if tag == "a" and "href" in found:
            self.links.add(found["href"])
        elif tag == "link" and found.get("rel") in ("stylesheet", "preload", "icon"):
            self.loads.add(found.get("href", ""))
        elif "src" in found:
            self.loads.add(found["src"])

    def has(self, fragment: str) -> bool:
        """Tell whether there is such a place on the page."""
        return unquote(fragment) in self.anchors


def problems(root: Path) -> list[str]:
    """Return a line for each dead link, and for each thing that is loaded from outside."""
    paths = [path for path in sorted(root.rglob("*.html")) if "_static" not in path.parts]
    pages = {path: Page(path.read_text("utf-8")) for path in paths}
    found = []
    for path, page in pages.items():
        where = path.relative_to(root)
        for link in sorted(page.links | page.loads):
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                if link in page.loads and parts.scheme != "data":
                    found.append(f"{where} loads {link}")
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            if target.is_dir():
                target /= "index.html"
            if not target.is_file():
                found.append(f"{where}: no file for {link}")
            elif parts.fragment and target in pages and not pages[target].has(parts.fragment):
                found.append(f"{where}: no place for {link}")
    return found


def main() -> int:
    """Print what is wrong with the site; the exit code says whether anything is."""
    root = Path(sys.argv[1]).resolve()
    found = problems(root)
    for line in found:
        print(line, file=sys.stderr)
    return bool(found) or not any(root.rglob("*.html"))


if __name__ == "__main__":
    sys.exit(main())
