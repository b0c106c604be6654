"""The benchmarks: every peer minimises our objective, and the figures are what they say."""

import json

import numpy as np
import pytest
import scipy.sparse as sp
from benchmarks import epochs, everyday, multinomial, options, output, pairs, paths, scaling
from benchmarks.peers import picture, report
from benchmarks.peers.objective import Objective
from benchmarks.peers.ours import Ours
from benchmarks.peers.race import Entry, Rules, Run, race, stop_reason, worth_repeating
from benchmarks.peers.solver import LOSSES, enlist, quiet
from benchmarks.peers.summary import geometric_mean, summarise, time_to

from bundled import cancer

SOLVERS = [Ours(), *enlist()[0]]
PAIRS = [pytest.param(s, loss, id=f"{s.name}-{loss}") for s in SOLVERS for loss in sorted(s.losses)]


def problem(density, d, n=400):
    rng = np.random.default_rng(0)
    values = rng.standard_normal((n, d)) * (rng.random((n, d)) < density)
    score = values @ rng.standard_normal(d)
    return sp.csr_matrix(values), np.where(score + 0.5 * rng.standard_normal(n) > 0, 1.0, -1.0)


# Sparse and nearly dense: some peers get another form of the data there. Two strengths: a wrong
# scaling that happens to fit one of them does not fit the other. Strong ones: every peer converges.
@pytest.mark.parametrize("strength", [20.0, 60.0])
@pytest.mark.parametrize(("density", "d"), [(0.05, 60), (0.5, 8)])
@pytest.mark.parametrize(("solver", "loss"), PAIRS)
def test_solver_minimises_our_objective(solver, loss, density, d, strength):
    X, y = problem(density, d)
    objective = Objective(X, y, loss, strength / len(y))
    bound = objective.reference(60.0)["dual"]
    with quiet(1):
        data = solver.prepare(X, y)
        coef = solver.fit(data, loss, objective.lam, solver.settings(loss)[-1], 1)
    assert objective.primal(coef) - bound <= 1e-6 * bound


@pytest.mark.parametrize("solver", [s for s in SOLVERS if s.parallel], ids=lambda s: s.name)
def test_two_threads_reach_the_same_value(solver):
    X, y = problem(0.05, 60)
    loss = sorted(solver.losses)[-1]
    objective = Objective(X, y, loss, 20.0 / len(y))
    bound = objective.reference(60.0)["dual"]
    with quiet(2):
        data = solver.prepare(X, y)
        coef = solver.fit(data, loss, objective.lam, solver.settings(loss)[-1], 2)
    assert objective.primal(coef) - bound <= 1e-6 * bound


@pytest.mark.parametrize("solver", SOLVERS, ids=lambda s: s.name)
def test_ladder_goes_one_way(solver):
    for loss in solver.losses:
        ladder = np.asarray(solver.settings(loss))
        steps = np.diff(ladder)
        assert (steps < 0).all() or (steps > 0).all()


def test_primal_of_an_unusable_answer_is_infinite():
    X, y = problem(0.5, 8)
    objective = Objective(X, y, "logistic", 0.1)
    assert objective.primal(np.full(8, np.nan)) == np.inf
    assert objective.primal(np.zeros(7)) == np.inf
    assert objective.primal(np.zeros(8)) == pytest.approx(np.log(2))


class Zeros:
    """The floor: answers at once, with nothing."""

    name, version, parallel = "zeros", "1", False
    losses = frozenset(LOSSES)

    def unsuited(self, n, d, nnz):
        return None

    def prepare(self, X, y):
        return X.shape[1]

    def settings(self, loss):
        return [1.0, 0.1]

    def fit(self, prepared, loss, lam, setting, threads):
        return np.zeros(prepared)


class Broken(Zeros):
    name = "broken"

    def fit(self, prepared, loss, lam, setting, threads):
        raise RuntimeError("out of order")


class TooLarge(Zeros):
    name = "too large"

    def unsuited(self, n, d, nnz):
        return f"{d} features"


@pytest.fixture(scope="module")
def result():
    X, y = problem(0.5, 8)
    rules = Rules(repeats=3)
    peers = [Zeros(), Broken(), TooLarge()]
    with pytest.MonkeyPatch.context() as patch:
        # Before each run: dear where all the other tests are in memory, too.
        patch.setattr("benchmarks.peers.race.gc.collect", lambda: 0)
        case = race(Objective(X, y, "logistic", 0.1), [Ours(), Ours("sdca")], peers, 1, rules)
    cases = [{"data": "made up", **case}]
    machine = dict.fromkeys(("processor", "cores", "level", "python", "date"), "?")
    head = {"machine": machine, "repeats": 3, "accuracies": list(rules.accuracies), "missing": {}}
    return {**head, "cases": cases, **summarise(cases, rules.accuracies)}


def test_race_judges_by_the_primal_value(result):
    solvers = {s["name"]: s for s in result["cases"][0]["solvers"]}
    assert set(solvers) == {"adasdca auto", "adasdca sdca", "zeros", "broken"}
    ours, zeros = solvers["adasdca auto"], solvers["zeros"]
    assert time_to(ours, 1e-8) > 0
    assert len(ours["runs"][-1]["seconds"]) == 3
    assert [r["setting"] for r in zeros["runs"]] == [1.0, 0.1]
    assert time_to(zeros, 1e-2) is None
    assert solvers["broken"]["runs"] == []
    assert solvers["broken"]["stopped"] == "RuntimeError: out of order"
    assert result["cases"][0]["left_out"] == {"too large": "8 features"}


def test_race_does_not_hide_our_own_failure():
    X, y = problem(0.5, 8)
    with pytest.raises(RuntimeError, match="out of order"):
        race(Objective(X, y, "logistic", 0.1), [Broken()], [Zeros()], 1, Rules(repeats=1))


def test_report_shows_what_the_file_holds(result, tmp_path):
    path = output.save(result, tmp_path / "deeper" / "race.json", "unused")
    read = report.merge([output.load(path), output.load(path)])
    assert read == json.loads(json.dumps(result))
    assert report.show(read).count("none reached it") == len(result["accuracies"])
    everyone = report.everyone(read)
    assert "RuntimeError: out of order" in everyone
    assert "left out: 8 features" in everyone
    picture.draw(read, tmp_path / "race.png")
    picture.draw_means(read, tmp_path / "means.png")
    for name in ("race.png", "means.png"):
        assert (tmp_path / name).read_bytes().startswith(b"\x89PNG")


def test_the_mean_of_a_package_needs_every_data_set():
    def solver(name, role, seconds, suboptimality):
        runs = [{"median": seconds, "suboptimality": suboptimality}]
        return {"name": name, "role": role, "runs": runs}

    ours = solver("adasdca auto", "ours", 1.0, 0.0)
    runs = ((4.0, 1e-4), (9.0, 1e-2))
    variant = solver("adasdca sdca", "variant", 0.1, 0.0)  # not what a user would get
    cases = [{"solvers": [ours, variant, solver("sklearn Ridge", "peer", *run)]} for run in runs]
    means = picture.mean_times(cases, [1e-1, 1e-3])
    assert means == {"adasdca": [1.0, 1.0], "sklearn": [pytest.approx(6.0), None]}


def entry(role, *runs):
    made = Entry(Zeros(), role, None, 1)
    made.runs = [Run(k, [seconds], [seconds], [primal]) for k, (seconds, primal) in enumerate(runs)]
    return made


def test_ladder_is_left_for_a_reason():
    rules = Rules(accuracies=(1e-2, 1e-8), cap=60.0)
    assert stop_reason(entry("peer", (1.0, 2.0)), 1.0, np.inf, rules) is None
    assert "tightest" in stop_reason(entry("peer", (1.0, 1.0)), 1.0, np.inf, rules)
    assert "60 s" in stop_reason(entry("ours", (61.0, 2.0)), 1.0, np.inf, rules)
    assert "100 times" in stop_reason(entry("peer", (5.0, 2.0)), 1.0, 0.01, rules)
    assert stop_reason(entry("ours", (5.0, 2.0)), 1.0, 0.01, rules) is None
    assert stop_reason(entry("peer", *[(2.0, 2.0)] * 3), 1.0, np.inf, rules) is None
    assert stop_reason(entry("peer", *[(2.0, 2.0)] * 4), 1.0, np.inf, rules) == "no progress"
    assert stop_reason(entry("peer", *[(0.5, 2.0)] * 4), 1.0, np.inf, rules) is None


def test_only_settings_that_may_count_are_repeated():
    ours = entry("ours", (1.0, 2.0), (8.0, 1.001), (9.0, 1.0))
    near = entry("peer", (1.0, 1.0), (3.0, 1.0))
    far = entry("peer", (5.0, 1.0))
    kept = worth_repeating([ours, near, far], 1.0, (1e-2, 1e-8))
    assert [(e, r.setting) for e, r in kept] == [(near, 0), (ours, 1), (ours, 2)]


def test_ratios_and_means():
    def solver(name, role, *runs):
        made = [{"median": m, "suboptimality": s} for m, s in runs]
        return {"name": name, "role": role, "runs": made}

    def case(loss, *solvers):
        return {"data": "made up", "loss": loss, "threads": 1, "solvers": list(solvers)}

    cases = [
        case(
            "hinge",
            solver("us", "ours", (2.0, 1e-3), (1.0, 1e-5), (4.0, 1e-9)),
            solver("us too", "variant", (0.1, 0.0)),
            solver("a", "peer", (8.0, 1e-3)),
            solver("b", "peer", (2.0, 1e-3), (9.0, 1e-6)),
        ),
        case("squared", solver("us", "ours", (1.0, 1e-1)), solver("a", "peer", (1.0, 0.0))),
        case("smoothed_hinge", solver("us", "ours", (1.0, 0.0))),
    ]
    found = summarise(cases, (1e-2, 1e-4, 1e-8))
    rows = [(r["ours"], r["peer"], r["ratio"]) for r in found["rows"]]
    assert rows[:3] == [(1.0, "b", 2.0), (1.0, "b", 9.0), (4.0, None, None)]
    assert rows[3:6] == [(None, "a", None)] * 3
    assert rows[6:] == [(1.0, None, None)] * 3
    means = {m["loss"]: m for m in found["means"]}
    assert means["hinge"]["mean"] == pytest.approx(np.sqrt(18))
    assert means["squared"]["mean"] is None
    whole = means["all"]
    counted = [whole[k] for k in ("compared", "faster", "only_ours", "only_peer", "no_peer")]
    assert counted == [2, 2, 1, 3, 3]
    assert geometric_mean([0.5, 2.0]) == pytest.approx(1.0)


def test_counts_are_updates_over_n():
    X, y = problem(0.5, 8)
    needed = options.count(X, y, "squared", "adasdca+", cap=100, seeds=3)
    assert needed == round(needed)
    assert 1 <= needed < 100
    assert options.count(X, y, "squared", "sdca", cap=1, seeds=1) is None


def test_parts_of_an_epoch():
    X, y = problem(0.5, 8)
    seconds = epochs.parts(X, y, "squared", repeats=1)
    assert all(s > 0 for s in seconds.values())
    assert epochs.ratios(seconds)["plan/ascent"] == seconds["plan"] / seconds["ascent"]


@pytest.mark.parametrize(
    ("pair", "sides"), [("rates", ["published", "measured"]), ("intercept", ["without", "with"])]
)
def test_pairs_side_by_side(pair, sides):
    result = pairs.measure(pair, ["mushrooms"], [1.0], [1e-1], 1)
    assert [case["loss"] for case in result["cases"]] == list(pairs.LOSSES)
    for case in result["cases"]:
        assert list(case["seconds"]) == sides
        case["seconds"] = dict(zip(sides, (2e-3, 3e-3), strict=True))
    text = pairs.show(result)
    assert text.count("1.50") == len(pairs.LOSSES) + 2
    assert text.endswith("geometric mean 1.50, most 1.50")


def test_flatness_counts_sizes_out_of_the_cache():
    def case(nnz, seconds, packed):
        return {"nnz": nnz, "seconds": {"epoch": seconds}, "bytes": {"packed": packed}}

    small, large, larger = case(10, 1.0, 10), case(100, 50.0, 200), case(1000, 600.0, 2000)
    assert scaling.flatness([small, large, larger], 100) == pytest.approx(1.2)
    assert scaling.flatness([small, large], 100) is None


def test_options_are_judged_by_their_epochs():
    labels = list(options.METHODS)
    pairs = [(option, m) for option in ("I", "III") for m in (2, 10, 50)]
    pairs += [("I+III", 2), ("I+III", 10)]
    assert labels == ["permutations", *(f"{option} {m}" for option, m in pairs), "I 2 again"]
    found = [(options.METHODS[k].option, options.METHODS[k].m) for k in labels[1:]]
    assert found == [*pairs, ("I", 2.0)]
    counts = (
        [50.0, 20.0, 10.0, 10.0, 5.0, 10.0, 12.0, 5.0, 10.0, 23.0],
        [None, 10.0, 10.0, None, 11.0, 13.0, 40.0, 12.0, None, 8.0],
    )
    cases = [
        {
            "data": name,
            "loss": "hinge",
            "commit": "abc",
            "counts": dict(zip(labels, row, strict=True)),
        }
        for name, row in zip(("w8a", "tall"), counts, strict=True)
    ]
    quadratic = {label: 9.0 for label in labels if "III" not in label} | {"I 10": 12.0}
    cases.append({"data": "w8a", "loss": "squared", "commit": "abd", "counts": quadratic})
    text = options.show({"cap": 200, "seeds": 3, "tolerance": 1e-6, "cases": cases})
    assert max(map(len, text.splitlines()[2:])) <= 120
    text, fewer = " ".join(text.split()), "needs fewer epochs than"
    worse = "in 0 of 1 cases, more by more than one in 1: tall hinge +190"
    assert "w8a" in options.CHOSEN_ON
    for words in (
        f"III 2 {fewer} I 2 by more than one in 1 of 2 cases",
        "more by more than one in 1: tall hinge +3",
        f"by chance alone: I 2 again {fewer} I 2 by more than one in 1 of 2",
        f"by chance alone: I 2 again {fewer} I 2 by more than one in 1 of 3",
        f"chosen on: I+III 2 {fewer} I 2 by more than one in 1 of 1",
        f"not chosen on: I+III 10 {fewer} I 10 by more than one {worse}",
        # The options do not differ for the squared loss; m does.
        f"I 10 {fewer} I 2 by more than one in 1 of 3 cases, more by more than",
        "w8a squared +3",
        "median, geometric mean, worst): m = 2: 1.00, 1.000, 1.00; m = 10: 1.59",
        ">200",
        "seeds; commit abc, abd",
    ):
        assert words in text


def test_where_residues_saturate_steps_say_so():
    """On long rows of ones a visit carries a row beyond its margin."""
    rng = np.random.default_rng(0)
    X = sp.csr_matrix((rng.random((120, 2000)) < rng.uniform(0.02, 0.4, (120, 1))).astype(float))
    y = np.where(rng.random(120) < 0.2, 1.0, -1.0)
    for gains, probability, ratio in options.saturation(X, y, "squared", 3):
        assert max(gains, probability) < 1e-12  # rows whose step is done, but for rounding
        assert ratio == pytest.approx(1, rel=1e-9)
    seen = options.saturation(X, y, "smoothed_hinge", 6)
    assert seen[0][:2] == (0, 0)  # no row is beyond its margin
    assert all(gains > 0.5 > probability and ratio > 2 for gains, probability, ratio in seen[3:])


def test_options_read_a_folder(tmp_path):
    X = sp.csr_matrix(np.eye(4))
    parts = {"data": X.data, "indices": X.indices, "indptr": X.indptr, "shape": X.shape}
    np.savez(tmp_path / "classes.npz", y=np.array([0, 1, 2, 2]), **parts)
    big = sp.csr_matrix(np.eye(30))
    parts = {"data": big.data, "indices": big.indices, "indptr": big.indptr, "shape": big.shape}
    np.savez(tmp_path / "targets.npz", y=np.arange(30.0), **parts)
    found = {(name, loss) for name, _, loss in options.problems(tmp_path, None)}
    assert ("classes", "hinge") in found
    assert ("targets", "huber") in found
    assert {("classes", "squared"), ("targets", "squared")} <= found
    assert not {("classes", "huber"), ("targets", "hinge")} & found
    assert options.read(tmp_path / "classes.npz")[1].tolist() == [-1.0, -1.0, 1.0, 1.0]
    case = options.measure(("classes", tmp_path / "classes.npz", "smoothed_hinge"), 20, 1)
    assert set(case["counts"]) == set(options.METHODS)
    case = options.measure(("classes", tmp_path / "classes.npz", "squared"), 20, 1)
    assert set(case["counts"]) == {"permutations", "I 2", "I 10", "I 50", "I 2 again"}
    known = dict.fromkeys(list(options.METHODS)[:-1], 7.0)
    more = options.measure(("classes", tmp_path / "classes.npz", "smoothed_hinge"), 20, 1, known)
    assert more["counts"] == known | {"I 2 again": more["counts"]["I 2 again"]}
    assert all(n is not None for n in case["counts"].values())


def test_the_published_table_of_options_is_that_of_its_file():
    folder = output.RESULTS / "published"
    shown = options.show(output.load(folder / "options.json")) + "\n"
    assert (folder / "options.txt").read_text("utf-8") == shown


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(150, 6))
    return multinomial.Rows(X, multinomial.taught(X, 3, rng, 2.0))


def test_all_sides_of_a_race_reach_the_goals(rows):
    goals = [1e-2, 1e-5]
    with quiet(1):
        found = multinomial.race(rows, 1.0, goals, 60.0, ["lbfgs", "newton-cg", "saga"])
    assert found["gap"] <= multinomial.EXACT
    for times in found["times"].values():
        assert all(time is not None and time >= 0 for time in times)
    shown = multinomial.shown([{"data": "made", **found}], goals, 60.0)
    assert len(shown.splitlines()) == 4
    assert "newton-cg" in shown


def test_a_curve_ends_at_the_goal_with_the_objective_of_the_model(rows):
    with quiet(1):
        curve = multinomial.curve_of(rows, "lbfgs", 1.0, -np.inf, 60.0)
    values = [value for _, value in curve]
    stopped = multinomial.curve_of(rows, "lbfgs", 1.0, values[3], 60.0)
    assert [value for _, value in stopped] == values[: len(stopped)]
    assert stopped[-1][1] <= values[3] < min(values[: len(stopped) - 1])
    model = multinomial.LogisticRegression(tol=1e-12, max_iter=1000).fit(*rows)
    least = multinomial.objective(rows, model.coef_, model.intercept_, 1.0)
    assert least == pytest.approx(min(values), rel=1e-9)


@pytest.mark.parametrize("make", [multinomial.text, multinomial.images, multinomial.factors])
def test_made_up_rows_have_all_classes(make):
    X, codes = make(0.02)
    assert X.shape[0] == len(codes)
    assert len(np.unique(codes)) == codes.max() + 1 >= 10


def test_the_cost_of_a_path():
    X, y = cancer()
    found = paths.measured(X, 2.0 * y - 1.0, "logistic", 0.0, 6)
    assert found["unfinished"] == 0
    line = paths.shown([{"data": "cancer", **found}]).splitlines()[-1].split()
    assert line[-3:-1] == [f"{found['path'] / found[name]:.2f}" for name in ("middle", "last")]


@pytest.mark.parametrize("loss", everyday.LOSSES)
def test_everyday_estimators_are_held_to_the_same_objective(loss):
    cell = everyday.Cell("mushrooms", loss, 0.01, True)
    with quiet(1):
        (found,) = everyday.measure(cell, [1e-3], 1)
    assert found["converged"]
    # The least values of both sides are the same: somebody of scikit-learn reaches ours.
    assert found["peer"] is not None
    assert "mushrooms" in everyday.show([{**found, "ratio": 2.0}])
