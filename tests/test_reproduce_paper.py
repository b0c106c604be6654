"""What claims and figures refer to, and the pieces the experiments are made of."""

import numpy as np
import pytest

from adasdca.duality.theory import optimal_probabilities
from adasdca_reproduce.experiments import DATA, EXPERIMENTS, LOSSES, constrained, synthetic
from adasdca_reproduce.figures import NAMES, STYLES
from adasdca_reproduce.paper import CLAIMS, FIGURES
from adasdca_reproduce.problems import problem
from adasdca_reproduce.questions import QUESTIONS

ALL = (*CLAIMS, *QUESTIONS)


def test_claims_refer_to_what_there_is():
    assert len({claim.name for claim in ALL}) == len(ALL)
    for claim in ALL:
        methods = EXPERIMENTS[claim.experiment].methods
        named = {getattr(claim, "claimant", None), *getattr(claim, "rivals", ())}
        named |= set(getattr(claim, "pair", ()))
        assert named - {None} <= set(methods), claim.name
        assert claim.reading.endswith(".")
        for why in claim.explanations:
            assert why.data is None or why.data in (*DATA, *methods)
            assert why.loss is None or why.loss in LOSSES
    assert all(claim.quote for claim in CLAIMS)
    assert not any(claim.quote for claim in QUESTIONS)
    assert {c.experiment for c in ALL} == set(EXPERIMENTS)


def test_figures_are_numbered_as_in_the_paper():
    assert len(FIGURES) == 33
    assert FIGURES["full", "squared", "w8a"] == 1
    assert FIGURES["time", "smoothed_hinge", "cov1"] == 13
    assert FIGURES["iterations", "squared", "w8a"] == 15
    assert FIGURES["m", "smoothed_hinge", "ijcnn1"] == 33


def test_curves_of_a_picture_differ_in_more_than_colour():
    for experiment in EXPERIMENTS.values():
        for group in ("", "option I,", "option II,"):
            drawn = [m for m in experiment.methods if m.startswith(group) and m in STYLES]
            if group == "" and experiment.name == "m":
                continue
            looks = [(STYLES[m]["linestyle"], STYLES[m]["marker"]) for m in drawn]
            assert len(set(looks)) == len(looks), experiment.name
    assert NAMES.keys() <= STYLES.keys()


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
