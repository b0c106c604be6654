"""Methods, losses and data sets of one's own: by name, everywhere, from one file."""

import os
import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import adasdca
from adasdca import AdaSDCAPlus, datasets, methods, plugins, solve
from adasdca.ascent.plans import Visits
from adasdca.ascent.sampling import RULES
from adasdca.backends.cpu import LocalBackend
from adasdca.problem.losses import LOSSES, PiecewiseQuadratic
from adasdca.problem.problem import Problem
from commands import call

EXAMPLES = Path(__file__).resolve().parents[1] / "examples" / "methods"
RESEARCH = EXAMPLES / "research"


@pytest.fixture(scope="module")
def mushrooms():
    return datasets.load_mushrooms()


def fit(data, **options):
    X, y = data
    return solve(
        X, y, **{"loss": "smoothed_hinge", "lam": 1e-3, "tol": 1e-6, "random_state": 0, **options}
    )


def test_a_method_of_ones_own_is_what_it_says(mushrooms):
    """An epoch of it is the steps of the core on these rows, bit for bit."""
    X, y = mushrooms
    n = len(y)
    seen = []

    @adasdca.register_method("in-order")
    def in_order(survey, rng):
        seen.append(survey)
        return np.arange(n)

    solution = fit(mushrooms, method="in-order", max_epochs=1)
    assert solution.n_updates == n
    backend = LocalBackend(Problem.checked(X, y, loss="smoothed_hinge", lam=1e-3))
    backend.ascend(Visits(np.arange(n, dtype=np.int32)))
    np.testing.assert_array_equal(solution.coef, backend.survey(frozenset()).coef)
    for name in ("score", "residue", "share", "adaptive", "curvature", "weight", "beta"):
        assert getattr(seen[0], name).shape == (n,)


def test_the_generator_depends_on_the_seed_and_the_epoch_alone(mushrooms):
    drawn = []

    @adasdca.register_method("random")
    def random(survey, rng):
        drawn.append(rng.integers(2**62))
        return rng.permutation(len(survey.beta))

    first = fit(mushrooms, method="random", max_epochs=3, tol=0)
    again = fit(mushrooms, method="random", max_epochs=3, tol=0)
    other = fit(mushrooms, method="random", max_epochs=3, tol=0, random_state=1)
    assert drawn[:3] == drawn[3:6]
    assert len(set(drawn)) == 6
    np.testing.assert_array_equal(first.coef, again.coef)
    assert (first.coef != other.coef).any()


def test_a_class_remembers_within_a_solve_and_no_longer(mushrooms):
    @adasdca.register_method("counting")
    class Counting:
        made = 0

        def __init__(self):
            Counting.made += 1
            self.calls = 0

        def __call__(self, survey, rng):
            self.calls += 1
            assert self.calls <= 2
            return rng.permutation(len(survey.beta))

    for _ in range(2):
        fit(mushrooms, method="counting", max_epochs=2, tol=0)
    assert Counting.made == 2


def test_a_second_name_for_a_method(mushrooms):
    adasdca.register_method("patient", AdaSDCAPlus(m=10, epoch=2.0))
    named, given = (fit(mushrooms, method=m) for m in ("patient", AdaSDCAPlus(m=10, epoch=2.0)))
    np.testing.assert_array_equal(named.coef, given.coef)


def test_the_name_of_a_rule_is_that_of_a_method(mushrooms):
    adasdca.register_rule("flat-tenth", lambda survey: survey.weight / 10)
    named = fit(mushrooms, method="flat-tenth", max_epochs=3, tol=0)
    given = fit(mushrooms, method=AdaSDCAPlus(option="flat-tenth"), max_epochs=3, tol=0)
    np.testing.assert_array_equal(named.coef, given.coef)
    adasdca.register_method("flat-tenth", AdaSDCAPlus(m=10))  # a method of that name goes first
    assert methods.get_method("flat-tenth") == AdaSDCAPlus(m=10)
    with pytest.raises(ValueError, match=r"'auto'.*'flat-tenth'.*, or pass"):
        fit(mushrooms, method="nobody's")
    for built_in in ("I", "I+III"):  # options are no methods
        with pytest.raises(ValueError, match="is unknown"):
            fit(mushrooms, method=built_in)


def test_estimators_and_commands_know_the_name_of_a_rule(tmp_path, capsys):
    plugin = tmp_path / "my_rule.py"
    plugin.write_text(
        "import adasdca\n\nadasdca.register_rule('by-weight', lambda survey: survey.weight)\n"
    )
    done = call(
        capsys, "fit", "mushrooms", "--plugin", plugin, "--method", "by-weight", "--tol", "0.01"
    )
    assert done.returncode == 0, done.stderr
    model = adasdca.AdaSDCAClassifier(method="by-weight", tol=0.01)
    assert model.fit(*adasdca.datasets.load_mushrooms()).converged_
    with pytest.raises(ValueError, match="method = 'I' is unknown"):
        model.set_params(method="I").fit(*adasdca.datasets.load_mushrooms())


def test_no_rows_end_a_solve(mushrooms):
    adasdca.register_method("idle", lambda survey, rng: [])
    rule = AdaSDCAPlus(option=lambda survey: np.zeros(len(survey.beta)))
    for method in ("idle", rule):
        found = fit(mushrooms, method=method)
        assert found.status is adasdca.Status.INTERRUPTED
        assert "double precision" not in str(found)  # which has nothing to do with it
        assert "chose no rows" in found.message


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ([-1], r"rows -1 to -1; rows are 0 to 8123"),
        ([8124], r"rows are 0 to 8123"),
        ([2**40], r"rows are 0 to 8123"),
        ([0.5], "integers"),
        ([[1, 2]], r"shape \(1, 2\)"),
        ([True], "integers"),
        (["a"], "integers"),
        (None, "integers|one dimension"),
    ],
)
def test_rows_that_do_not_exist(mushrooms, rows, words):
    """The core trusts its picks: what is not a row must never reach it."""
    adasdca.register_method("wrong", lambda survey, rng: rows)
    with pytest.raises(ValueError, match=rf"method 'wrong' returned.*({words})"):
        fit(mushrooms, method="wrong")


@pytest.mark.parametrize("name", ["sdca", "auto", "", 3])
def test_names_that_methods_cannot_have(name):
    with pytest.raises(ValueError, match=r"name = .* (not allowed|belongs to the package)"):
        adasdca.register_method(name, lambda survey, rng: [0])


def test_what_is_no_method():
    with pytest.raises(TypeError, match="neither callable nor a method"):
        adasdca.register_method("number", 3)
    with pytest.raises(ValueError, match="'unheard' is not registered"):
        methods.Custom("unheard")
    adasdca.register_method("known", lambda survey, rng: [0])
    with pytest.raises(ValueError, match=r"'sdca', .*'known'"):
        methods.get_method("unheard")


def test_a_rule_by_decorator(mushrooms):
    @adasdca.register_rule("square")
    def square(survey):
        return survey.adaptive**2

    assert RULES["square"] is square
    assert fit(mushrooms, method=AdaSDCAPlus(option="square")).converged


def register_steep():
    @adasdca.register_loss
    class Steep(PiecewiseQuadratic):
        slope_limit: float = 3.0
        name = "steep"
        kind = "classification"
        domain = property(lambda self: (0.0, self.slope_limit))

    return Steep


def test_a_loss_of_ones_own(mushrooms):
    """Three times the hinge, with a third of the regularisation: the same model."""
    steep = register_steep()
    assert steep(2.0) == steep(slope_limit=2.0)
    named = fit(mushrooms, loss="steep", lam=3e-3, tol=1e-9)
    hinge = fit(mushrooms, loss="hinge", lam=1e-3, tol=1e-9)
    assert named.primal == pytest.approx(3 * hinge.primal, rel=1e-8)
    assert adasdca.losses.get_loss("steep", slope_limit=1.0).domain == (0.0, 1.0)


def test_estimators_know_what_is_registered(mushrooms):
    X, y = mushrooms
    register_steep()
    adasdca.register_method("shuffle", lambda survey, rng: rng.permutation(len(survey.beta)))
    model = adasdca.AdaSDCAClassifier(loss="steep", method="shuffle", tol=1e-4).fit(X, y)
    assert model.score(X, y) > 0.99
    with pytest.raises(ValueError, match=r"method = 'unheard' is unknown.*'shuffle'"):
        adasdca.AdaSDCAClassifier(method="unheard").fit(X, y)
    with pytest.raises(ValueError, match="loss = 'steep' is for classification"):
        adasdca.AdaSDCARegressor(loss="steep").fit(X, y)


@pytest.mark.parametrize(
    ("members", "words"),
    [
        ({"name": "hinge"}, "belongs to the package"),
        ({"name": "log_loss"}, "belongs to the package"),
        ({"name": ""}, "non-empty string"),
        ({"kind": "ranking"}, "'classification' or 'regression'"),
        ({"domain": (1.0, 2.0)}, "a domain that contains 0"),
        ({"domain": (2.0, -1.0)}, "a domain that contains 0"),
        ({"domain": (0.0, np.nan)}, "a domain that contains 0"),
        ({"domain": (0.0, np.inf)}, "a smoothness above 0"),
        ({"smoothness": -1.0}, "0 or more"),
        ({"dead_zone": np.inf}, "0 or more"),
        ({"domain": 3}, "two numbers"),
        ({"__annotations__": {"free": float}}, "a default"),
    ],
)
def test_what_is_no_loss(members, words):
    base = {"name": "mine", "kind": "classification", "domain": (0.0, 1.0)}
    with pytest.raises(ValueError, match=words):
        adasdca.register_loss(type("Mine", (PiecewiseQuadratic,), base | members))
    with pytest.raises(TypeError, match="not a loss"):
        adasdca.register_loss(type("Mine", (), base))
    assert "mine" not in LOSSES


@pytest.mark.parametrize("file", sorted(RESEARCH.glob("*.py")), ids=lambda p: p.stem)
def test_a_file_of_a_dozen_lines_is_enough(file):
    code = [line for line in file.read_text("utf-8").splitlines() if line.strip()]
    assert len(code) <= 14
    plugin = plugins.load(file)
    assert [*plugin.methods, *plugin.losses, *plugin.datasets]


def test_the_files_work_together():
    for file in RESEARCH.glob("*.py"):
        plugins.load(file)
    X, y = datasets.load("rings")
    done = fit((X, y), loss="huber_insensitive", method="active-shuffle")
    assert done.converged
    best = fit((X, y), loss="huber_insensitive", method="auto", tol=1e-10)
    assert done.primal == pytest.approx(best.primal, rel=1e-6)


def test_what_a_file_defines_can_be_pickled():
    plugin = plugins.load(RESEARCH / "huber_insensitive.py")
    loss = plugin.module.HuberInsensitive(epsilon=0.5)
    assert pickle.loads(pickle.dumps(loss)) == loss


def test_a_file_may_be_loaded_again():
    first, again = (plugins.load(RESEARCH / "active_shuffle.py") for _ in range(2))
    assert first.methods == again.methods == ("active-shuffle",)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (None, "is not a Python file that exists"),
        ("x = 1\n", "registered nothing"),
        ("import adasdca\n\nx = (\n", "line 3: SyntaxError"),
        ("import nowhere\n", "line 1: ModuleNotFoundError"),
        (
            "import adasdca\n\nadasdca.register_rule('r', len)\nadasdca.register_rule('I', len)\n",
            "line 4: ValueError: name = 'I' belongs to the package",
        ),
    ],
)
def test_a_bad_file_is_told_and_leaves_nothing_behind(tmp_path, text, words):
    path = tmp_path / "plugin.py"
    if text is not None:
        path.write_text(text)
    modules = set(sys.modules)
    with pytest.raises(plugins.PluginError, match=words) as caught:
        plugins.load(path)
    assert "plugin.py" in str(caught.value)
    assert "r" not in RULES
    assert not [name for name in set(sys.modules) - modules if "adasdca_plugin" in name]


def test_the_gallery_example_runs():
    done = subprocess.run(
        [sys.executable, "research_plugin.py"],
        cwd=EXAMPLES,
        env={**os.environ, "MPLBACKEND": "Agg"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("converged") == 3
