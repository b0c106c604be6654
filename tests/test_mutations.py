"""The list of mutations: each still breaks something that is there."""

import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
TOOL = runpy.run_path(str(ROOT / "tools" / "mutations.py"))


@pytest.mark.parametrize("mutation", TOOL["MUTATIONS"], ids=lambda m: f"{m.file}: {m.old.strip()}")
def test_a_mutation_changes_one_place_and_leaves_python(mutation):
    text = TOOL["broken"](mutation)
    assert text != TOOL["path_of"](mutation).read_text("utf-8")
    if not TOOL["in_core"](mutation):
        compile(text, mutation.file, "exec")
    for name in mutation.tests.split():
        file, _, test = name.partition("::")
        assert f"def {test}" in (ROOT / "tests" / f"test_{file}.py").read_text("utf-8")
