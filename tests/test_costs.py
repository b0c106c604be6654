"""The rates of the cost model: measured, saved, put in force; and what they decide."""

import json
import math
from dataclasses import asdict, fields, replace

import numpy as np
import pytest
import scipy.sparse as sp

import adasdca
from adasdca.auto.costs import Costs
from adasdca.auto.rates import Rates, current, use
from adasdca.auto.schedule import AutoSchedule
from adasdca.backends.cpu import LocalBackend
from adasdca.backends.facts import Distance, RowFacts
from adasdca.calibration import calibrate, main
from adasdca.problem.data import DenseRows
from adasdca.problem.losses import LOSSES
from adasdca.problem.problem import Problem
from second_order import FOREVER


def names_of_phases(**options):
    X, y = adasdca.datasets.load_mushrooms()
    sol = adasdca.solve(
        X, y, loss="logistic", lam=100 / len(y), method="auto", tol=1e-3, random_state=0, **options
    )
    assert sol.converged
    return {phase.name for phase in sol.phases}, sol


def test_calibrate():
    for value in asdict(calibrate()).values():
        assert 0 < value < math.inf


def test_save_and_load(tmp_path):
    rates = replace(Rates(), update=7.25, factor=1e-3)
    rates.save(tmp_path / "rates.json")
    assert Rates.load(tmp_path / "rates.json") == rates
    (tmp_path / "some.json").write_text('{"draw": 3}')
    assert Rates.load(tmp_path / "some.json") == replace(Rates(), draw=3)


def test_how_far_away_rows_are_decides_how_equations_are_solved():
    """Matrices are many numbers in one command, iterations many commands of few."""
    X, y = np.random.default_rng(0).normal(size=(3000, 200)), np.ones(3000)
    facts = RowFacts(DenseRows(X))

    def prices(*distance):
        facts.distance = Distance(*distance)
        return Costs(facts, LOSSES["logistic"]()).equations(3.0, len(y), iterations=20.0)

    here = prices()
    assert prices(1e9)["features"] < prices(1e9)["iterations"]
    assert prices(0.0, 1e4)["iterations"] < prices(0.0, 1e4)["features"]
    spread = prices(0.0, 0.0, 0.25)
    for way in ("features", "iterations"):
        assert 0.2 * here[way] < spread[way] < 0.9 * here[way]


def test_a_file_of_rates_changes_a_decision(tmp_path, monkeypatch):
    assert "Newton" not in names_of_phases()[0]
    replace(Rates(), update=1e6).save(tmp_path / "rates.json")
    monkeypatch.setenv("ADASDCA_RATES", str(tmp_path / "rates.json"))
    assert current().update == 1e6
    assert "Newton" in names_of_phases()[0]


def test_use_changes_a_decision_and_ends():
    with use(replace(Rates(), update=1e6)) as rates:
        assert current() is rates
        with use(Rates()):
            assert current() == Rates()
        assert "Newton" in names_of_phases()[0]
    assert current() == Rates()
    with pytest.raises(RuntimeError), use(rates):
        raise RuntimeError
    assert current() == Rates()


def test_use_comes_before_the_environment(tmp_path, monkeypatch):
    monkeypatch.setenv("ADASDCA_RATES", str(tmp_path / "missing.json"))
    with use(Rates()):
        assert current() == Rates()


def test_same_rates_same_bits():
    runs = []
    for _ in range(2):
        with use(replace(Rates(), update=30.0, draw=1.0)):
            runs.append(names_of_phases()[1])
    np.testing.assert_array_equal(runs[0].coef, runs[1].coef)
    np.testing.assert_array_equal(runs[0].history.gap, runs[1].history.gap)


@pytest.mark.parametrize("bad", [0, -1.0, math.nan, math.inf, "3", None, True])
def test_numbers_that_are_no_rates(bad, tmp_path):
    with pytest.raises(ValueError, match=r"update = .* finite number above 0"):
        replace(Rates(), update=bad)
    (tmp_path / "rates.json").write_text(json.dumps({"update": bad}))
    with pytest.raises(ValueError, match=r"rates\.json.*update = .* finite number above 0"):
        Rates.load(tmp_path / "rates.json")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"updates": 3}', "'updates', which is no rate; .* dense_entry, sparse_entry"),
        ("[1]", "holds list, not rates by name"),
        ("{", "cannot be read as rates"),
        (None, "cannot be read as rates"),
    ],
)
def test_files_that_hold_no_rates(text, message, tmp_path, monkeypatch):
    path = tmp_path / "rates.json"
    if text is not None:
        path.write_text(text)
    with pytest.raises(ValueError, match=message):
        Rates.load(path)
    monkeypatch.setenv("ADASDCA_RATES", str(path))
    with pytest.raises(ValueError, match=rf"variable ADASDCA_RATES = '.*rates\.json'.*{message}"):
        adasdca.solve(np.eye(2), [1.0, -1.0], loss="logistic", lam=1.0, method="auto")


def test_use_takes_rates_only():
    with pytest.raises(ValueError, match=r"rates = \{\} is not allowed; pass Rates"), use({}):
        pass


def large(n, d):
    """More than caches hold, by its shape; the values of a broadcast array take no memory."""
    X, y = np.broadcast_to(1.0, (n, d)), np.ones(n)
    return Problem(DenseRows(X), y, None, adasdca.Logistic(), 1.0, 0.0, None, False)


def test_prices_follow_every_rate():
    """A rate that no price depends on would be measured for nothing."""
    sparse, y = adasdca.datasets.load_mushrooms()
    dense = np.random.default_rng(0).normal(size=(40, 200))
    problems = [
        Problem.checked(sparse, y, loss="logistic", lam=1.0),
        Problem.checked(sparse[:50], y[:50], loss="logistic", lam=1.0),
        Problem.checked(dense, np.where(dense[:, 0] > 0, 1.0, -1.0), loss="squared", lam=1.0),
        large(50_000, 1000),
    ]

    def prices():
        found = []
        for costs in (Costs(RowFacts(p.rows), p.loss) for p in problems):
            found += [costs.epoch(10, True), costs.epoch(10, False), costs.newton(3.0, 40)]
            found += [costs.product, costs.gram_row]
        device = RowFacts(problems[0].rows)
        device.batch = 64
        return np.array([*found, Costs(device, problems[0].loss).epoch(128, False)])

    published = prices()
    for field in fields(Rates):
        with use(replace(Rates(), **{field.name: 10 * getattr(Rates(), field.name)})):
            dearer = prices()
        assert (dearer >= published).all(), field.name
        assert (dearer > published).any(), field.name


def test_command(tmp_path, capsys):
    main(["-o", str(tmp_path / "rates.json")])
    table = capsys.readouterr().out
    measured = Rates.load(tmp_path / "rates.json")
    for name, value in asdict(measured).items():
        assert any(
            line.split()[:3] == [name, f"{value:.4g}", f"{getattr(Rates(), name):.4g}"]
            for line in table.splitlines()
        )
    with pytest.raises(SystemExit):
        main(["-o", str(tmp_path / "no" / "such.json")])
    assert "choose another file" in capsys.readouterr().err


def test_what_long_rows_share_is_told_by_few_of_them():
    """The estimate of 16 rows of many features is that of all pairs, about."""
    X = sp.random(200, 5000, 0.2, format="csr", random_state=np.random.default_rng(0))
    problem = Problem.checked(X, np.ones(200), loss="squared", lam=1.0)
    some = (X[:100] != 0).astype(float) @ (X[100:] != 0).astype(float).T
    assert RowFacts(problem.rows).shared == pytest.approx(some.mean(), rel=0.1)


def phase_of(loss, tol):
    """The second-order phase of a problem, and a survey after an epoch of it."""
    X, y = adasdca.datasets.load_mushrooms()
    problem = Problem.checked(X, y, loss=loss, lam=1 / len(y))
    backend = LocalBackend(problem)
    backend.workspace.ascend(np.arange(len(y), dtype=np.int32), FOREVER)
    schedule = AutoSchedule(problem, backend.facts, tol, 1)
    return schedule._second, backend.survey(schedule.needs)


def test_rounds_of_kinks_cost_much_from_their_beginning():
    """A goal of half the digits saves less than half of their price."""
    prices = [
        second.cost(survey, 1.0, survey.relative_gap)
        for second, survey in map(phase_of, ["hinge"] * 2, [1e-2, 1e-4])
    ]
    assert prices[1] < 2.0 * prices[0] < 3.0 * prices[1]


def test_rounds_of_kinks_cost_less_from_a_smaller_gap():
    second, survey = phase_of("hinge", 1e-6)
    prices = [second.cost(survey, 1.0, gap) for gap in (1e-1, 1e-3, 1e-5)]
    assert prices == sorted(prices, reverse=True)
    assert prices[0] > prices[-1]


@pytest.mark.parametrize(("loss", "flat"), [("smoothed_hinge", True), ("squared_hinge", False)])
def test_first_steps_without_curvature_are_blind(loss, flat):
    second, _ = phase_of(loss, 1e-3)
    assert second.flat is flat
    policy = second.policy
    assert policy.steps(1.0, 3.0, 1.0, True) > policy.steps(1.0, 3.0, 1.0, False)
