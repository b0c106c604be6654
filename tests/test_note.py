"""The note: what it takes in is made from data files, and its text is sound as far as that shows
without LaTeX.
"""

import json
import re
import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
TOOL = runpy.run_path(str(ROOT / "tools" / "note.py"))
TEXT = TOOL["NOTE"].read_text("utf-8")


def check_latex(text):
    text = re.sub(r"\\[{}%]", "", text)
    assert text.count("{") == text.count("}")
    assert text.count("$") % 2 == 0
    open_ones = []
    for kind, name in re.findall(r"\\(begin|end)\{(\w+)\}", text):
        if kind == "begin":
            open_ones.append(name)
        else:
            assert open_ones.pop() == name
    assert not open_ones


def test_every_input_is_made_and_every_table_is_taken_in():
    asked = re.findall(r"\\input\{tables/(\w+)\}", TEXT)
    assert sorted(asked) == sorted(TOOL["TABLES"])
    assert len(re.findall(r"\\input", TEXT)) == len(asked)


def test_the_text_is_balanced_and_refers_to_what_there_is():
    check_latex(TEXT)
    tables = "".join(make() for make in TOOL["TABLES"].values())
    assert re.findall(r"\\includegraphics[^{]*\{([\w-]+)\}", TEXT) == [TOOL["PICTURE"]]
    labels = set(re.findall(r"\\label\{(\w+)\}", TEXT + tables))
    assert set(re.findall(r"\\(?:eq)?ref\{(\w+)\}", TEXT)) <= labels


@pytest.mark.parametrize("name", TOOL["TABLES"])
def test_a_table_has_the_numbers_of_its_file(name):
    made = TOOL["TABLES"][name]()
    check_latex(made)
    rows = [line for line in made.splitlines() if " & " in line]
    assert len({row.count("&") for row in rows}) == 1
    if name == "epochs":
        cases = TOOL["reached"](json.loads(TOOL["EPOCHS"].read_text("utf-8")))
        assert len(cases) > 50
        cells = [c for row in rows[1:] for c in row.removesuffix(r" \\").split(" & ")]
        for case in cases:
            head = [case["data"], TOOL["loss_name"](case["loss"])]
            (k,) = [k for k in range(len(cells)) if cells[k : k + 2] == head]
            told = [case["counts"][label] for label in TOOL["COLUMNS"]]
            assert cells[k + 2 : k + 7] == ["$>$200" if n is None else f"{n:g}" for n in told]


def test_without_latex_it_says_so(tmp_path, monkeypatch):
    monkeypatch.setattr("shutil.which", lambda name: None)
    monkeypatch.setattr("sys.argv", ["note.py", str(tmp_path)])
    with pytest.raises(SystemExit, match="neither latexmk nor pdflatex was found"):
        TOOL["main"]()
    assert (tmp_path / "note.tex").is_file()
    assert {p.stem for p in (tmp_path / "tables").iterdir()} == set(TOOL["TABLES"])
    assert (tmp_path / f"{TOOL['PICTURE']}.pdf").stat().st_size > 5000
