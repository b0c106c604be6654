"""What is refused, and how: the error names the argument and says what to do instead."""

import numpy as np
import pytest
import scipy.sparse as sp

import adasdca
from adasdca import AdaSDCA, AdaSDCAPlus, Quartz, SmoothedHinge, State, certify, losses, solve
from adasdca.ascent.sampling import RULES
from adasdca.methods import METHODS

RNG = np.random.default_rng(0)
N, D = 20, 3
X = RNG.normal(size=(N, D)).round(1)
Y = np.where(np.arange(N) % 3 > 0, 1.0, -1.0)
SPARSE = sp.csr_matrix(X * (RNG.random((N, D)) < 0.6))
BASE = {"X": X, "y": Y, "loss": "smoothed_hinge", "lam": 0.1}
ONES = np.ones(N)


def spoiled(array, value):
    array = array.copy()
    array[3] = value
    return array


def broken(matrix, **parts):
    """A sparse matrix with some entries of its arrays overwritten, which SciPy would refuse."""
    matrix = matrix.copy()
    for name, (place, value) in parts.items():
        getattr(matrix, name)[place] = value
    return matrix


def with_parts(matrix, **parts):
    matrix = matrix.copy()
    for name, array in parts.items():
        setattr(matrix, name, array)
    return matrix


REAL, SHAPE, FILL, ANEW = "pass|encode", r"shape \(20,\)", "drop such rows or fill", "anew"
REFUSED = [
    *(("X", spoiled(X, bad), FILL) for bad in (np.nan, np.inf, -np.inf)),
    *(("X", sp.csr_matrix(spoiled(X, bad)), FILL) for bad in (np.nan, np.inf)),
    ("X", spoiled(X, np.nan).astype(np.float32), FILL),
    ("X", np.full((N, D), np.longdouble("1e400")), FILL),
    ("X", np.full((N, D), None), FILL),
    *(("X", bad, "reshape") for bad in (X[:, 0], X[None], None, "text", {})),
    ("X", sp.coo_array(X[:, 0]), "reshape|X has 1 rows"),  # before SciPy 1.13 it is a row
    ("X", [[1.0, 2.0], [3.0]], "same length"),
    *(("X", bad, REAL) for bad in (X + 0j, sp.csr_matrix(X + 0j), X.astype(str))),
    *(("X", np.full((N, D), "a", kind), REAL) for kind in (str, object)),
    *(("X", np.full((N, D), 1, kind), REAL) for kind in ("M8[s]", "m8[s]", [("field", float)])),
    *(("X", bad, "minimum of 1 is required") for bad in (X[:0], X[:, :0], sp.csr_matrix((0, D)))),
    ("X", X * 1e160, "scale the features"),
    *(("X", broken(SPARSE, indices=(4, j)), ANEW) for j in (-1, D, 2**31 - 1)),
    *(("X", broken(SPARSE, indptr=(i, k)), ANEW) for i, k in ((0, 1), (2, -1), (5, 99), (-1, 99))),
    ("X", with_parts(SPARSE, data=SPARSE.data[:-5]), ANEW),
    ("X", with_parts(SPARSE, indices=SPARSE.indices[:-5]), ANEW),
    ("X", with_parts(SPARSE, indptr=SPARSE.indptr[:-5]), ANEW),
    ("X", broken(SPARSE.tocsc(), indices=(4, N)), ANEW),
    ("X", broken(SPARSE.tocsc(), indptr=(1, 99)), ANEW),
    ("X", broken(SPARSE.tocoo(), col=(4, D)), ANEW),
    ("X", broken(SPARSE.tocoo(), row=(4, -1)), ANEW),
    ("X", broken(sp.bsr_matrix(X, blocksize=(2, 3)), indices=(4, D)), ANEW),
    *(("y", bad, SHAPE) for bad in (Y[:-1], Y[:, None], 1.0, np.append(Y, 1.0))),
    *(("y", spoiled(Y, bad), FILL) for bad in (np.nan, np.inf)),
    ("y", None, "pass one label"),
    *(("y", bad, "-1 and") for bad in (Y > 0, (Y > 0) * 1.0, np.arange(N), ONES, -ONES)),
    *(("y", bad, "-1 and") for bad in (Y.astype(str), Y.astype(object), sp.csr_matrix(Y))),
    ("y", Y + 0j, REAL),
    ("y", [[1], [1, 2]] + [1] * 18, "same length"),
    *(("lam", bad, "choose") for bad in (0, -1, np.nan, np.inf, "x", None, True, 1j, [0.1])),
    *(("lam", bad, "choose") for bad in (1e-320, 1e308, np.complex128(1))),
    *(("l1_ratio", bad, "0 <= l1_ratio <= 1") for bad in (1.5, -0.1, np.nan, "x", None, True)),
    *(("bounds", bad, "pass") for bad in (3, "abc", (0,), (0, 1, 2), ("a", "b"), (1j, 2))),
    *(("bounds", bad, "must") for bad in ((1, 0), (np.nan, 1), (0, [1, 2]), (np.inf, None))),
    *(("sample_weight", bad, SHAPE) for bad in (np.ones(3), ONES[:, None], 2.0)),
    *(("sample_weight", spoiled(ONES, bad), FILL) for bad in (np.nan, np.inf)),
    *(("sample_weight", bad, "must be") for bad in (spoiled(ONES, -1.0), 0 * ONES)),
    ("sample_weight", (Y > 0) * 1.0, "needs both classes"),
    ("sample_weight", 1e308 * ONES, "scale"),
    # Some libraries, once loaded, make the processor take such numbers for 0.
    ("sample_weight", 1e-320 * ONES, "scale|above 0"),
    *(("sample_weight", bad, REAL) for bad in ("x", ONES + 0j, ONES.astype(str))),
    *(("fit_intercept", bad, "choose") for bad in ("no", 2, None)),
    *(("loss", bad, "choose") for bad in ("x", None, 3, adasdca.Hinge, {}, ["hinge"])),
]
COUNT = "choose an integer"
REFUSED_BY_SOLVE = [
    *(("method", bad, "choose one of") for bad in ("x", None, 3, adasdca.SDCA, {}, ["sdca"])),
    *(("tol", bad, "choose") for bad in (-1, np.nan, np.inf, "x", None, True, 1j)),
    *(("max_epochs", bad, COUNT) for bad in (-1, 1.5, True, None, "3", np.float64(3))),
    *(("max_time", bad, "or None") for bad in (-1, np.nan, np.inf, "x", True)),
    *(("n_threads", bad, COUNT) for bad in (0, -2, 1.5, "x", None, True)),
    *(("random_state", bad, "pass None, an integer") for bad in ("x", 1.5, [1], np.random)),
    *(("warm_start", bad, "at most 20 numbers") for bad in (np.ones(N + 1), ONES[:, None], 3.0)),
    *(("warm_start", bad, "pass a Solution") for bad in ("x", {}, ONES + 0j, ONES.astype(str))),
    ("warm_start", spoiled(ONES, np.nan), "pass finite"),
    ("warm_start", State(ONES, np.nan, 0, 0), "pass finite"),
    ("warm_start", State(np.ones(N + 1), 0.0, 0, 0), "at most 20 numbers"),
    ("warm_start", State("x", 0.0, 0, 0), "pass a Solution"),
    *(("callback", bad, "pass a function") for bad in (3, "x")),
    *(("pack", bad, "choose True, False") for bad in ("yes", None, 1)),
]
REFUSED_BY_CERTIFY = [
    *(("coef", bad, r"shape \(3,\)") for bad in (np.ones(4), np.ones((3, 1)), 1.0, None)),
    *(("coef", bad, REAL) for bad in ("x", np.ones(3) + 0j, {}, [np.nan, 1, 2])),
    *(("intercept", bad, "pass") for bad in (np.nan, np.inf, "x", None, [0.5, 1.0])),
    ("intercept", 1.0, "Pass fit_intercept=True"),
    *(("dual_coef", bad, SHAPE) for bad in (np.ones(3), ONES[:, None])),
    *(("dual_coef", bad, "pass") for bad in ("x", ONES + 0j, spoiled(ONES, np.nan))),
    *(("epochs", bad, COUNT) for bad in (-1, 1.5, True, None)),
]


def names(cases):
    return [f"{argument}-{k}" for k, (argument, *_) in enumerate(cases)]


def refuse(call, argument, remedy):
    with pytest.raises((ValueError, TypeError)) as caught:
        call()
    caught.match(rf"\b{argument}\b")
    caught.match(remedy)


@pytest.mark.parametrize("function", [solve, certify])
@pytest.mark.parametrize(("argument", "value", "remedy"), REFUSED, ids=names(REFUSED))
def test_the_problem(function, argument, value, remedy):
    more = {"coef": np.zeros(D)} if function is certify else {"max_epochs": 2}
    refuse(lambda: function(**{**BASE, **more, argument: value}), argument, remedy)


@pytest.mark.parametrize(
    ("argument", "value", "remedy"), REFUSED_BY_SOLVE, ids=names(REFUSED_BY_SOLVE)
)
def test_solve(argument, value, remedy):
    refuse(lambda: solve(**{**BASE, argument: value}), argument, remedy)


@pytest.mark.parametrize(
    ("argument", "value", "remedy"), REFUSED_BY_CERTIFY, ids=names(REFUSED_BY_CERTIFY)
)
def test_certify(argument, value, remedy):
    refuse(lambda: certify(**{**BASE, "coef": np.zeros(D), argument: value}), argument, remedy)


def test_certify_beyond_the_bounds():
    refuse(lambda: certify(**BASE, coef=-np.ones(D), bounds=(0, None)), "coef", "clip it")


@pytest.mark.parametrize(
    "value", [Y + 0j, np.full(N, "a"), Y.astype(str), np.full(N, "2020", "M8[s]")]
)
def test_regression_targets(value):
    refuse(lambda: solve(X, value, loss="squared", lam=0.1), "y", "pass a numeric array")


@pytest.mark.parametrize("loss", ["hinge", "absolute", SmoothedHinge(0.0)])
@pytest.mark.parametrize("method", ["quartz", Quartz("importance"), AdaSDCA("optimal")])
def test_methods_for_smooth_losses(method, loss):
    refuse(
        lambda: solve(**{**BASE, "loss": loss, "method": method}), "method", "choose a smooth loss"
    )


PARAMETERS = [
    *(
        (AdaSDCAPlus, "m", bad, "above 1")
        for bad in (1, 0.5, np.nan, np.inf, "x", None, True, [2.0])
    ),
    (AdaSDCAPlus, "m", np.array([2.0, 3.0]), "above 1"),
    (AdaSDCAPlus, "m", np.complex128(2), "above 1"),
    *((AdaSDCAPlus, "epoch", bad, "above 0") for bad in (0, -1, np.nan, np.inf, "x", None)),
    *((AdaSDCAPlus, "sampler", bad, "'plan', 'tree'") for bad in ("x", None, [])),
    *((AdaSDCAPlus, "option", bad, "'I', 'II', 'III'") for bad in ("IV", 1, None, [])),
    *((Quartz, "sampling", bad, "'uniform', 'importance'") for bad in ("x", None)),
    *((Quartz, "step", bad, "'averaged', 'exact'") for bad in ("x", None, True)),
    *((AdaSDCA, "rule", bad, "'relaxed', 'optimal', 'step'") for bad in ("x", None)),
    *((losses.Squared, "gamma", bad, "above 0") for bad in (0, -1, np.nan, "x", None)),
    *((SmoothedHinge, "gamma", bad, "0 or more") for bad in (-1, np.inf, "x", None)),
    *((losses.Huber, "delta", bad, "above 0") for bad in (0, -1, np.nan)),
    *((losses.EpsilonInsensitive, "epsilon", bad, "0 or more") for bad in (-1, np.nan)),
    *((losses.SquaredEpsilonInsensitive, "epsilon", bad, "0 or more") for bad in (-1, "x")),
    *((losses.Quantile, "quantile", bad, "between 0 and 1") for bad in (0, 1, np.nan, "x")),
]


@pytest.mark.parametrize(
    ("cls", "name", "value", "remedy"),
    PARAMETERS,
    ids=[f"{cls.__name__}-{name}-{k}" for k, (cls, name, *_) in enumerate(PARAMETERS)],
)
def test_parameters(cls, name, value, remedy):
    refuse(lambda: cls(**{name: value}), name, remedy)


@pytest.mark.parametrize(
    ("argument", "valid"), [("loss", losses.LOSSES), ("method", METHODS), ("option", RULES)]
)
def test_an_unknown_name_is_answered_with_the_known_ones(argument, valid):
    call = AdaSDCAPlus if argument == "option" else solve
    given = {argument: "magic"} if argument == "option" else {**BASE, argument: "magic"}
    with pytest.raises(ValueError, match=f"{argument} = 'magic'") as caught:
        call(**given)
    assert all(repr(name) in str(caught.value) for name in valid)


def test_loss_parameters_that_do_not_exist():
    refuse(lambda: losses.get_loss("huber", gamma=1.0), "gamma", "it has delta")


@pytest.mark.parametrize(
    ("distribution", "remedy"),
    [
        (-ONES, "0 or more"),
        (np.nan * ONES, "finite"),
        (np.inf * ONES, "finite"),
        (np.ones(3), "must return 20 weights"),
        (ONES[:, None], "must return 20 weights"),
        (ONES + 0j, "numeric"),
        ("text", "numeric"),
    ],
)
def test_rules_that_return_no_distribution(distribution, remedy):
    method = AdaSDCAPlus(option=lambda survey: distribution)
    refuse(lambda: solve(**BASE, method=method), "rule", remedy)


@pytest.mark.parametrize("sampler", ["plan", "tree"])
def test_a_distribution_whose_sum_overflows(sampler):
    methods = [AdaSDCAPlus(option=lambda s, c=c: c * ONES, sampler=sampler) for c in (1.0, 1e308)]
    one, other = (solve(**BASE, method=m, random_state=0, tol=0, max_epochs=3) for m in methods)
    np.testing.assert_array_equal(one.coef, other.coef)


def test_registering_rules():
    refuse(lambda: adasdca.register_rule("", len), "name", "choose")
    for taken in ("I", *METHODS):  # a rule is a method of that name, too
        refuse(lambda taken=taken: adasdca.register_rule(taken, len), "name", "choose another")
    refuse(lambda: adasdca.register_rule("mine", 3), "rule", "pass a function")


def test_numbers_beyond_double_precision_are_no_result():
    with pytest.raises(adasdca.CertificateError, match="scale the features or the targets"):
        solve(X, 1e200 * Y, loss="squared", lam=0.1)


@pytest.mark.parametrize("bad", ["beta", "seed"])
def test_a_file_that_is_no_state(tmp_path, bad):
    arrays = {"beta": ONES, "multiplier": 0.0, "epoch": 1, "seed": 3}
    del arrays[bad]
    np.savez(tmp_path / "file.npz", **arrays)
    refuse(lambda: State.load(tmp_path / "file.npz"), bad, "pass a file written by State.save")
