"""The sessions shown in the README and in the documentation, run as they stand."""

import doctest
import importlib.util
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
SESSION = re.compile(r"^```pycon\n(.*?)^```$", re.MULTILINE | re.DOTALL)
SESSIONS = {page: "".join(SESSION.findall(page.read_text("utf-8"))) for page in PAGES}


def test_there_are_sessions():
    assert SESSIONS[ROOT / "README.md"]
    assert sum(bool(session) for session in SESSIONS.values()) >= 3


@pytest.mark.parametrize(
    "page", [p for p, s in SESSIONS.items() if s], ids=lambda p: str(p.relative_to(ROOT))
)
def test_the_sessions_of_a_page_show_what_happens(page):
    """One page is one session: later blocks see the names of earlier ones."""
    test = doctest.DocTestParser().get_doctest(SESSIONS[page], {}, page.name, str(page), 0)
    report = []
    failed = doctest.DocTestRunner().run(test, out=report.append).failed
    assert failed == 0, "".join(report)


def test_links_that_lead_nowhere_are_found(tmp_path):
    spec = importlib.util.spec_from_file_location("links", ROOT / "tools" / "links.py")
    links = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(links)
    (tmp_path / "a.html").write_text(
        '<h1 id="top"></h1><a href="b.html#here"></a><a href="#top"></a><a href="https://a.b"></a>'
    )
    (tmp_path / "b.html").write_text('<p id="here"></p><a href="a.html"></a>')
    assert links.problems(tmp_path) == []
    (tmp_path / "b.html").write_text(
        '<a href="c.html"></a><a href="a.html#bottom"></a><script src="https://a.b/c.js"></script>'
    )
    assert links.problems(tmp_path) == [
        "a.html: no place for b.html#here",
        "b.html: no place for a.html#bottom",
        "b.html: no file for c.html",
        "b.html loads https://a.b/c.js",
    ]
