"""One problem has several doors; what they share has one name, order and default."""

import inspect

import pytest

import adasdca
from adasdca.certification import certify
from adasdca.problem.problem import Problem

dask = pytest.importorskip("adasdca.dask")

DOORS = {
    "path": adasdca.path,
    "certify": certify,
    "dask.solve": dask.solve,
    "Problem.checked": Problem.checked,
}


@pytest.mark.parametrize("door", DOORS)
def test_parameters_that_solve_has_are_those_of_solve(door):
    solve = inspect.signature(adasdca.solve).parameters
    shared = {k: p for k, p in inspect.signature(DOORS[door]).parameters.items() if k in solve}
    assert len(shared) >= 6
    for name, parameter in shared.items():
        assert parameter.kind == solve[name].kind, name
        assert parameter.default == solve[name].default, name
    order = [name for name in solve if name in shared]
    assert list(shared) == order


def test_what_is_shared_is_documented_once():
    """The other doors say "As in `solve`"."""
    for name in ("path", "dask.solve"):
        text = inspect.getdoc(DOORS[name])
        assert "As in `solve`" in text or "As in `adasdca.solve`" in text
        assert "Share of the L1 term" not in text
