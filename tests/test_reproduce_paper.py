"""What claims and figures refer to, and the pieces the experiments are made of."""

import numpy as np
import pytest

from adasdca import SmoothedHinge, Squared, methods, solve
from adasdca.duality.theory import optimal_probabilities
from adasdca_reproduce import grid, runner
from adasdca_reproduce.claims import First
from adasdca_reproduce.experiments import (
    DATA,
    EXPERIMENTS,
    LOSSES,
    METHODS,
    constrained,
    method_of,
    synthetic,
)
from adasdca_reproduce.figures import NAMES, STYLES, THEOREMS
from adasdca_reproduce.paper import CLAIMS, FIGURES
from adasdca_reproduce.problems import problem
from adasdca_reproduce.questions import QUESTIONS
from adasdca_reproduce.tables import PAPER_COSTS, PAPER_SHAPES

ALL = (*CLAIMS, *QUESTIONS)


def test_claims_refer_to_what_there_is():
    assert len({claim.name for claim in ALL}) == len(ALL)
    for claim in ALL:
        methods = EXPERIMENTS[claim.experiment].methods
        others = getattr(claim, "rivals_of", "") or getattr(claim, "other_of", "")
        elsewhere = EXPERIMENTS[others or claim.experiment].methods
        assert set(getattr(claim, "claimants", ())) <= set(methods), claim.name
        assert set(getattr(claim, "rivals", ())) <= set(elsewhere), claim.name
        assert set(getattr(claim, "pair", ())) <= {*methods, *elsewhere}, claim.name
        assert claim.reading.endswith(".")
        for why in claim.explanations:
            assert why.data is None or why.data in (*DATA, *methods)
            assert why.loss is None or why.loss in LOSSES
    assert all(claim.quote for claim in CLAIMS)
    assert not any(claim.quote for claim in QUESTIONS)
    assert {c.experiment for c in ALL} == set(EXPERIMENTS)


FIXED = {"sdca", "iprox-sdca"}
ALL_M = {"": "", "-m-10": "10", "-m-50": "50", "-m-best": "best"}


def runs_of(option, m):
    """Return the labels of an option with an m, or with the best of the paper's."""
    if not m:
        return {f"option {option}"}
    return {f"option {option}, m = {k}" for k in ((2, 10, 50) if m == "best" else (m,))}


RIVALS = {
    "adasdca-least": FIXED | {"option I", "option II"},
    **{
        f"option-{o}-{x}{m}": FIXED
        for o in ("I", "II")
        for x in ("epochs", "seconds", "own-seconds")
        for m in ALL_M
    },
    **{
        f"option-II-before-iprox-{x}{m}": {"iprox-sdca"}
        for x in ("epochs", "own-seconds")
        for m in ALL_M
    },
    **{
        f"option-I-before-II-{x}{end}": runs_of("II", m)
        for x in ("epochs", "seconds", "own-seconds")
        for end, m in ALL_M.items()
    },
    "corollary-1": {"iprox-sdca"},
}


def test_every_claim_has_the_rivals_of_its_sentence():
    found = {c.name: set(c.rivals) for c in CLAIMS if isinstance(c, First)}
    assert found == RIVALS
    for claim in CLAIMS:
        kind, option, *rest = claim.name.split("-")
        if kind == "option":
            m = rest[-1] if "m" in rest else ""
            assert set(claim.claimants) == runs_of(option, m)
    for claim in CLAIMS:
        if "outperforms SDCA and IProx-SDCA" in claim.quote:
            assert set(claim.rivals) == FIXED


def test_the_tables_of_the_paper():
    """Tables 1 and 2, copied once more from the paper."""
    assert PAPER_SHAPES == {
        "w8a": (300, 49749, 3.9, 1),
        "dorothea": (100000, 800, 0.9, 1),
        "mushrooms": (112, 8124, 18.8, 1),
        "cov1": (54, 581012, 22.0, 0),
        "ijcnn1": (22, 49990, 41.0, 0),
    }
    assert PAPER_COSTS == {
        "sdca": "O(nnz)",
        "quartz": "O(nnz)",
        "iprox-sdca": "O(nnz + n log n)",
        "option I": "O(nnz + n log n)",
        "adasdca": "O(n · nnz)",
    }


def test_a_label_is_the_method_that_it_names():
    plain = {
        "sdca": methods.SDCA(),
        "sdca-perm": methods.SDCAPerm(),
        "iprox-sdca": methods.IProxSDCA(),
        "quartz": methods.Quartz("uniform"),
        "option I": methods.AdaSDCAPlus("I", m=2.0),
        "option II": methods.AdaSDCAPlus("II", m=2.0),
        "auto": methods.Auto(),
        "adasdca": methods.AdaSDCA("relaxed"),
        "adasdca, optimal": methods.AdaSDCA("optimal"),
        "adasdca+, optimal": methods.AdaSDCAPlus(constrained, m=2.0),
        "tree": methods.AdaSDCAPlus("I", m=2.0, sampler="tree"),
    }
    for option in ("I", "II"):
        for m in (1.5, 2.0, 4.0, 10.0, 50.0, "auto"):
            plain[f"option {option}, m = {m if m == 'auto' else format(m, 'g')}"] = (
                methods.AdaSDCAPlus(option, m=m)
            )
    assert plain == METHODS
    assert all(method_of(label) == method for label, method in plain.items())


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("label", ["option I", "iprox-sdca"])
@pytest.mark.parametrize("experiment", ["methods", "theory"])
def test_a_run_is_of_the_problem_that_the_paper_states(experiment, label, loss):
    """λ = 1/n and γ = 1: the value that a run arrives at is the optimum of that problem."""
    rows = 60
    task = grid.Task(experiment, "mushrooms", loss, label, 0, grid.Protocol(3600.0, 300, rows))
    record = runner.execute(task)
    X, y = problem("mushrooms", rows)
    own = {"squared": Squared(1.0), "smoothed_hinge": SmoothedHinge(1.0)}[loss]
    best = solve(X, y, loss=own, lam=1 / rows, tol=1e-10)
    assert record["history"]["primal"][-1] == pytest.approx(best.primal, rel=1e-4)
    assert record["history"]["gap"][-1] < 1e-4 * best.primal
    for other in (0.1, 10.0):
        assert abs(solve(X, y, loss=own, lam=other / rows).primal / best.primal - 1) > 0.01
    assert record["protocol"]["lambda"] == "1/n"
    assert record["protocol"]["gamma"] == 1.0
    assert {"commit", "machine", "versions"} <= record.keys()


def test_figures_are_numbered_as_in_the_paper():
    assert len(FIGURES) == 33
    assert FIGURES["full", "squared", "w8a"] == 1
    assert FIGURES["time", "smoothed_hinge", "cov1"] == 13
    assert FIGURES["iterations", "squared", "w8a"] == 15
    assert FIGURES["m", "smoothed_hinge", "ijcnn1"] == 33


def test_curves_of_a_picture_differ_in_more_than_colour():
    for experiment in EXPERIMENTS.values():
        for group in ("", "option I,", "option II,"):
            known = THEOREMS if experiment.watched else experiment.methods
            drawn = [m for m in known if m.startswith(group) and m in STYLES]
            if group == "" and experiment.name == "m":
                continue
            looks = [(STYLES[m]["linestyle"], STYLES[m]["marker"]) for m in drawn]
            assert len(set(looks)) == len(looks), experiment.name
    assert NAMES.keys() <= STYLES.keys()
    assert set(THEOREMS) <= set(EXPERIMENTS["theory"].methods)


def test_the_constrained_distribution_is_that_of_the_theory():
    class Survey:
        residue = np.array([1.0, -9.0, 0.0, 0.25])
        weight = np.ones(4)
        gamma = 1.0
        curvature = np.array([1.0, 2.0, 3.0, 0.5])
        adaptive = np.abs(residue) * np.sqrt(curvature + gamma)

    # q_i = v_i / (λn): with λn = 1 the curvature is v.
    wanted = optimal_probabilities(Survey.residue, v=Survey.curvature, lam=0.25, gamma=1.0)
    assert constrained(Survey) == pytest.approx(wanted)
    Survey.adaptive = Survey.residue = np.zeros(4)
    assert not constrained(Survey).any()


def test_synthetic_data_are_as_their_name_says():
    X, y = problem(synthetic(50, 4, 40))
    assert X.shape == (50, 40)
    assert np.diff(X.indptr).tolist() == [4] * 50
    assert X.has_canonical_format
    assert set(y.tolist()) == {-1.0, 1.0}
