"""Verdicts on hand-made results, both ways, and what claims and figures refer to."""

import math

import numpy as np
import pytest

from adasdca_reproduce import tables, words
from adasdca_reproduce.claims import GAPS, Depends, Explanation, First, Greatest, Within
from adasdca_reproduce.experiments import synthetic, with_m
from adasdca_reproduce.paper import CLAIMS
from adasdca_reproduce.results import Need, Results, Run, need
from adasdca_reproduce.store import standing
from adasdca_reproduce.verdicts import (
    Case,
    Verdict,
    alike,
    first,
    overlapping,
    ratio,
    shown,
    summary,
)


def record(method, epochs, *, data="mushrooms", loss="squared", seed=0, **more):
    """Return a stored run that falls by 10 at each of `epochs` (numbers of epochs), from 1."""
    gaps = [10.0**-k for k in range(len(epochs) + 1)]
    x = [0, *epochs]
    return {
        "experiment": "methods",
        "data": data,
        "loss": loss,
        "method": method,
        "seed": seed,
        "protocol": {"budget": 1.0},
        "n": 10,
        "status": "stalled",
        "history": {
            "updates": [10 * k for k in x],
            "seconds": [0.1 * k for k in x],
            "primal": [1.0] * len(x),
            "gap": gaps,
            "active": [10 - k // 2 for k in range(len(x))],
        },
    } | more


def exact(x):
    return Need(x, x, x, x)


def steady(epochs):
    """Return 14 falls, so that every gap is reached after 3, 6, 10 and 13 times so many epochs."""
    return [epochs * k for k in range(1, 15)]


CUT = {"status": "time limit"}


@pytest.mark.parametrize(
    ("epochs", "more", "gap", "measure", "needs"),
    [
        ([2, 5, 9], {}, 0.1, "epochs", (2, 2)),
        ([2, 5, 9], {}, 0.09, "epochs", (5, 5)),
        ([2, 5, 9], {}, 1e-3, "seconds", (0.9, 0.9)),
        # Cut off by its budget it needs at least what it had; stalled, it never arrives.
        ([2, 5, 9], CUT, 1e-4, "epochs", (9, math.inf)),
        ([2, 5, 9], {}, 1e-4, "epochs", (math.inf, math.inf)),
        # A last survey inside an epoch counts as made at its end.
        ([2, 4.5], CUT, 0.01, "epochs", (5, 5)),
        ([2, 4.5], CUT, 0.01, "seconds", (0.45, 0.45)),
    ],
)
def test_what_a_run_needs_to_a_gap(epochs, more, gap, measure, needs):
    run = Run.of(record("sdca", epochs, **more))
    assert run.reach(gap, measure) == pytest.approx(needs)


def test_a_gap_that_rises_again_was_reached_all_the_same():
    history = {"updates": [0, 10, 20], "seconds": [0, 1, 2], "primal": [1, 1, 1]}
    run = Run.of(record("sdca", [], history=history | {"gap": [1.0, 0.01, 0.5]}))
    assert run.reach(0.1, "epochs") == (1, 1)
    assert run.gap.tolist() == [1.0, 0.01, 0.01]


def test_curves_are_straight_in_the_logarithm_between_surveys():
    run = Run.of(record("sdca", [2, 5]))
    x = run.crossing(np.array([1.0, 10**-0.5, 0.1, 10**-1.5, 0.01, 1e-3]), "epochs")
    assert x == pytest.approx([0, 1, 2, 3.5, 5, math.inf])


def test_medians_are_bounded_by_what_is_known():
    runs = [Run.of(record("sdca", [k], status="time limit")) for k in (3, 4, 8)]
    assert need(runs, 0.1, "epochs") == Need(4, 4, 3, 8)
    assert need(runs, 0.01, "epochs") == Need(4, math.inf, 3, math.inf)
    two = [Run.of(record("sdca", [3])), *runs[1:]]
    assert need(two, 0.1, "epochs").reached


@pytest.mark.parametrize(
    ("mine", "other", "strict", "verdict"),
    [
        (exact(3), exact(4), True, Verdict.HOLDS),
        (exact(4), exact(3), True, Verdict.FAILS),
        (exact(3), exact(3), True, Verdict.FAILS),
        (exact(3), exact(3), False, Verdict.HOLDS),
        (exact(3), Need(5, math.inf, 5, math.inf), True, Verdict.HOLDS),
        (exact(6), Need(5, math.inf, 5, math.inf), True, Verdict.OPEN),
        (Need(5, math.inf, 5, math.inf), exact(4), True, Verdict.FAILS),
        (Need(5, math.inf, 5, math.inf), exact(6), True, Verdict.OPEN),
        (Need(5, math.inf, 5, math.inf), exact(5), True, Verdict.FAILS),
        (Need(5, math.inf, 5, math.inf), exact(5), False, Verdict.OPEN),
        (exact(math.inf), exact(6), False, Verdict.FAILS),
        (exact(6), exact(math.inf), True, Verdict.HOLDS),
        (exact(math.inf), exact(math.inf), False, Verdict.OPEN),
        (exact(math.inf), exact(math.inf), True, Verdict.OPEN),
    ],
)
def test_who_is_first(mine, other, strict, verdict):
    assert first(mine, {"other": other}, strict=strict) is verdict


def test_the_best_of_the_others_decides():
    others = {"slow": exact(9), "fast": exact(2)}
    assert first(exact(3), others, strict=True) is Verdict.FAILS
    assert not overlapping(exact(3), others)
    assert overlapping(Need(3, 3, 1, 4), others)


def test_alike_up_to_what_seeds_do():
    assert alike(exact(30), exact(32)) is Verdict.HOLDS
    assert alike(exact(30), exact(40)) is Verdict.FAILS
    assert alike(Need(30, 30, 20, 41), exact(40)) is Verdict.HOLDS
    assert alike(exact(30), Need(40, math.inf, 40, math.inf)) is Verdict.OPEN


def test_a_ratio_is_told_as_far_as_it_is_known():
    never = exact(math.inf)
    assert ratio(exact(6), exact(3)) == 2
    assert ratio(exact(6), never) == 0
    assert ratio(never, exact(3)) == math.inf
    assert ratio(never, never) is None
    assert ratio(exact(6), exact(0)) is None


def test_numbers_are_shown_as_far_as_they_are_known():
    assert shown(exact(12), "epochs") == "12"
    assert shown(exact(1234), "epochs") == "1234"
    assert shown(exact(0.01234), "seconds") == "0.0123"
    assert shown(Need(5, math.inf, 5, math.inf), "epochs") == "> 5"
    assert shown(exact(math.inf), "epochs") == "never"


FASTER = First("name", "methods", "reading", "option I", ("sdca", "iprox-sdca"), "epochs")


@pytest.mark.parametrize(("mine", "verdict"), [(1, Verdict.HOLDS), (3, Verdict.FAILS)])
def test_a_claim_of_being_first_is_judged_both_ways(mine, verdict):
    results = Results(
        [record(m, steady(k)) for m, k in (("option I", mine), ("sdca", 2), ("iprox-sdca", 4))]
    )
    cases = FASTER.cases(results)
    assert [case.gap for case in cases] == list(GAPS)
    assert {case.verdict for case in cases} == {verdict}
    assert cases[0].note == f"option I {3 * mine}, sdca 6, iprox-sdca 12"
    assert not cases[0].close


def test_a_claim_is_not_judged_without_its_rivals():
    results = Results([record("option I", steady(1)), record("sdca", steady(2))])
    assert {case.verdict for case in FASTER.cases(results)} == {Verdict.MISSING}
    assert FASTER.cases(Results([])) == []


def test_a_verdict_that_seeds_could_turn_is_marked():
    rows = [("option I", [2, 3, 6]), ("sdca", [4, 5, 7]), ("iprox-sdca", [9, 9, 9])]
    records = [record(m, steady(k), seed=s) for m, ks in rows for s, k in enumerate(ks)]
    assert all(case.close for case in FASTER.cases(Results(records)))


@pytest.mark.parametrize(("limit", "verdict"), [(5.0, Verdict.HOLDS), (0.5, Verdict.FAILS)])
def test_within_so_many_seconds(limit, verdict):
    claim = Within("name", "methods", "reading", "option I", ("cov1", "squared"), limit)
    results = Results([record("option I", steady(1), data="cov1")])
    assert [case.verdict for case in claim.cases(results)] == [verdict]
    assert [case.verdict for case in claim.cases(Results([]))] == [Verdict.MISSING]


def test_within_is_open_while_the_budget_was_shorter():
    claim = Within("name", "methods", "reading", "option I", ("cov1", "squared"), 5.0)
    results = Results([record("option I", [1, 2], data="cov1", status="time limit")])
    assert [case.verdict for case in claim.cases(results)] == [Verdict.OPEN]


@pytest.mark.parametrize(("where", "verdict"), [("cov1", Verdict.HOLDS), ("w8a", Verdict.FAILS)])
def test_where_a_difference_is_greatest(where, verdict):
    claim = Greatest(
        *("name", "methods", "reading", ("option I", "option II"), (where, "squared"), "seconds"),
        kind="ratio",
    )
    records = [record("option I", steady(1), data=data) for data in ("cov1", "w8a")]
    records += [record("option II", steady(k), data=d) for d, k in (("cov1", 9), ("w8a", 2))]
    cases = claim.cases(Results(records))
    assert {case.verdict for case in cases} == {verdict}
    assert "greatest 9 on cov1" in cases[0].note


def test_a_difference_is_not_a_ratio():
    """0.1 against 0.9 is the greater ratio, 10 against 15 the greater difference."""
    rows = [("option I", "cov1", 100), ("option II", "cov1", 150)]
    rows += [("option I", "w8a", 1), ("option II", "w8a", 9)]
    results = Results([record(m, steady(k), data=d) for m, d, k in rows])
    for kind, where in (("difference", "cov1"), ("ratio", "w8a")):
        pair, problem = ("option I", "option II"), (where, "squared")
        claim = Greatest("name", "methods", "reading", pair, problem, "seconds", kind=kind)
        assert {case.verdict for case in claim.cases(results)} == {Verdict.HOLDS}
    assert {c.kind for c in CLAIMS if isinstance(c, Greatest)} == {"difference", "ratio"}


def test_a_pass_is_charged_to_those_who_need_it():
    """15 surveys of 0.01 s, four of them by the end of the third epoch, at 0.3 s."""
    timings = {"timings": {"survey": 0.15}}
    for method, rest in (("sdca", 0.26), ("option I", 0.3), ("option II, m = 2", 0.26)):
        run = Run.of(record(method, steady(1), **timings))
        assert run.reach(1e-3, "seconds")[0] == pytest.approx(0.3)
        assert run.reach(1e-3, "own seconds")[0] == pytest.approx(rest)
    assert Run.of(record("sdca", steady(1))).own == pytest.approx(
        Run.of(record("sdca", steady(1))).seconds
    )


def test_the_best_m_stands_for_all():
    claim = First(
        "name", "m", "reading", (with_m("I", "2"), with_m("I", "10")), ("sdca",), "epochs",
        rivals_of="methods",
    )  # fmt: skip
    runs = [record(with_m("I", m), steady(k), experiment="m") for m, k in (("2", 3), ("10", 1))]
    cases = claim.cases(Results([*runs, record("sdca", steady(2))]))
    assert {case.verdict for case in cases} == {Verdict.HOLDS}
    assert cases[0].note == "the best m 3, sdca 6"
    assert {case.verdict for case in claim.cases(Results(runs))} == {Verdict.MISSING}


def test_a_large_m_is_compared_with_permutations():
    (claim,) = [c for c in CLAIMS if c.name == "large-m-permutation"]
    runs = [record("option II, m = 50", steady(10), experiment="m")]
    for k, verdict in ((10, Verdict.HOLDS), (30, Verdict.FAILS)):
        cases = claim.cases(Results([*runs, record("sdca-perm", steady(k))]))
        assert cases[-1].verdict is verdict
    assert {c.verdict for c in claim.cases(Results(runs))} == {Verdict.MISSING}


@pytest.mark.parametrize(("best", "verdict"), [("2", Verdict.FAILS), ("50", Verdict.HOLDS)])
def test_whether_the_best_m_depends_on_the_problem(best, verdict):
    claim = Depends("name", "m", "reading", "I", ("2", "10", "50"))
    records = [
        record(with_m("I", m), steady(1 if m == wins else 2), data=data, experiment="m")
        for data, wins in (("cov1", "2"), ("w8a", best))
        for m in ("2", "10", "50")
    ]
    assert {case.verdict for case in claim.cases(Results(records))} == {verdict}


def test_how_much_worse_each_m_is_than_the_best():
    records = [
        record(with_m("I", m), steady(k), experiment="m")
        for m, k in zip(("1.5", "2", "4", "10", "50", "auto"), (4, 2, 3, 6, 8, 2), strict=True)
    ]
    ratios = tables.m_ratios(Results(records), 1e-6)
    assert ratios[with_m("I", "4")] == [1.5]
    assert ratios[with_m("I", "auto")] == [1.0]
    assert with_m("II", "2") not in ratios


def test_the_share_of_rows_that_stay_of_interest():
    records = [record("option I", [1] * k, seed=k) for k in (2, 4, 8)] + [record("sdca", [1])]
    assert tables.live_shares(Results(records)) == {("mushrooms", "squared"): 80.0}


@pytest.mark.parametrize(
    ("n_power", "nnz_power", "verdicts"),
    [(0, 1, "hh"), (1, 1, "fh"), (0.5, 0.5, "fh"), (0, 1.3, "hf"), (0.19, 1.19, "hh")],
)
def test_epoch_costs_are_fitted_and_judged(n_power, nnz_power, verdicts):
    records = [
        {
            "experiment": "table1",
            "data": synthetic(n, nnz // n, 100),
            "loss": "squared",
            "method": "sdca",
            "seed": 0,
            "protocol": {"budget": 1.0},
            "status": "epoch limit",
            "n": n,
            "nnz": nnz,
            "epochs": 2,
            "updates": 2 * n,
            "timings": {
                "plan": 1e-9 * n**n_power * nnz**nnz_power,
                "ascent": 1e-9 * n**n_power * nnz**nnz_power,
                "survey": 5.0,
            },
        }
        for n, nnz in ((100, 1000), (100, 2000), (100, 4000), (200, 2000), (400, 2000))
    ]
    results = Results(records)
    (fit,) = tables.epoch_costs(results)
    assert (fit.n, fit.nnz) == pytest.approx((n_power, nnz_power), abs=1e-9)
    assert (fit.paper_n, fit.paper_nnz) == pytest.approx((0, 1), abs=1e-9)
    (claim,) = [c for c in CLAIMS if c.name == "epoch-costs"]
    cases = claim.cases(results)
    assert [case.problem[1] for case in cases] == ["n", "nnz"]
    known = {"h": Verdict.HOLDS, "f": Verdict.FAILS}
    assert [case.verdict for case in cases] == [known[letter] for letter in verdicts]


def test_shapes_are_compared_to_the_digits_of_the_paper():
    assert tables.Shape("mushrooms", 112, 8124, 18.75).agrees
    assert not tables.Shape("mushrooms", 112, 8123, 18.75).agrees
    assert not tables.Shape("mushrooms", 112, 8124, 18.7).agrees


def test_explanations_are_shown_only_where_they_apply():
    why = Explanation("words", Verdict.FAILS, data="dorothea", loss="squared")
    lost = Case(("dorothea", "squared"), 1e-6, Verdict.FAILS)
    assert why.applies([lost])
    assert not why.applies([Case(("dorothea", "squared"), 1e-6, Verdict.HOLDS)])
    assert not why.applies([Case(("dorothea", "smoothed_hinge"), 1e-6, Verdict.FAILS)])
    assert not why.applies([Case(("w8a", "squared"), 1e-6, Verdict.FAILS)])


def test_verdicts_in_a_sentence():
    case = {v: Case(("w8a", "squared"), 1e-6, v) for v in Verdict}
    assert words.verdict([case[Verdict.MISSING]]) == "It was not run."
    assert words.verdict([case[Verdict.HOLDS]]) == "*It holds.*"
    mixed = [case[Verdict.HOLDS], case[Verdict.FAILS], case[Verdict.OPEN]]
    assert words.verdict(mixed) == "*Of 3 cases: holds 1, does not 1, open 1.*"
    assert [words.sentence([case[v]]) for v in Verdict] == [
        "✓ holds", "✗ does not hold", "open", "not run",
    ]  # fmt: skip
    assert words.sentence(mixed) == "~ mixed"
    many = [case[Verdict.HOLDS]] * 3 + [case[Verdict.FAILS]]
    assert words.sentence(many) == "✓ mostly"


def test_close_and_tied_cases_are_counted_apart():
    def case(verdict, **marks):
        return Case(("w8a", "squared"), 1e-6, verdict, **marks)

    cases = [
        case(Verdict.HOLDS), case(Verdict.HOLDS, close=True), case(Verdict.HOLDS, tied=True),
        case(Verdict.FAILS), case(Verdict.FAILS, tied=True), case(Verdict.OPEN),
        case(Verdict.MISSING),
    ]  # fmt: skip
    counts = summary(cases)
    assert (counts.holds, counts.fails, counts.close, counts.tied, counts.open) == (1, 1, 1, 2, 1)
    assert counts.total == 6
    assert str(counts) == "holds 1, does not 1, close 1, tied 2, open 1"


@pytest.mark.parametrize("strict", [True, False])
def test_equal_medians_are_a_tie(strict):
    claim = First("name", "methods", "reading", "option I", ("sdca",), "epochs", strict=strict)
    results = Results([record("option I", steady(2)), record("sdca", steady(2))])
    assert all(case.tied and not case.close for case in claim.cases(results))
    for other in (1, 3):
        apart = Results([record("option I", steady(2)), record("sdca", steady(other))])
        assert not any(case.tied for case in claim.cases(apart))


def test_of_several_runs_of_a_key_the_longest_budget_then_the_latest_stands():
    short, long = ({"protocol": {"budget": b}} for b in (1.0, 2.0))
    runs = [record("sdca", [1]) | long, record("sdca", [2]) | short, record("sdca", [3]) | long]
    (kept,) = standing(runs)
    assert kept["history"]["updates"] == [0, 30]
