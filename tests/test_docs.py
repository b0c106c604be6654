"""The sessions shown in the README and in the documentation, run as they stand."""

import doctest
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
