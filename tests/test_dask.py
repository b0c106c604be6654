"""Rows on the workers of a Dask cluster: the optimum of one machine, whatever happens to them."""

import os
import signal
import threading
import time
from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp

import adasdca
from adasdca.engine.checkpoints import Checkpoint
from adasdca.files import FileError
from adasdca.problem.losses import LOSSES

pytest.importorskip("distributed")
import dask
import dask.array as da
from distributed import Client, LocalCluster
from distributed.security import Security

import adasdca.dask
from adasdca.dask import _team, _worker

OPTIONS = {"processes": False, "threads_per_worker": 1, "dashboard_address": ":0"}


def processes(count=2):
    with (
        LocalCluster(**OPTIONS | {"processes": True}, n_workers=count, silence_logs=50) as made,
        Client(made) as client,
    ):
        yield client


@pytest.fixture(scope="module")
def cluster():
    """Two workers that are processes of their own."""
    yield from processes()


@pytest.fixture(params=[1, 4])
def other_cluster(request):
    """One worker, and four."""
    yield from processes(request.param)


@pytest.fixture
def mortal():
    """Two workers of which one is to be killed: whether it comes back is not waited for."""
    yield from processes()


def data(kind="classification", n=300, d=6):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, d)) + 1.0
    y = X @ rng.normal(size=d) + rng.normal(size=n)
    return X, np.where(y > np.median(y), 1.0, -1.0) if kind == "classification" else y


def blocks(*arrays, rows=70):
    return [da.from_array(a, chunks=(rows, *a.shape[1:])) for a in arrays]


def reaches_the_optimum_of_one_machine(loss, l1_ratio):
    X, y = data(LOSSES[loss].kind)
    weight = np.random.default_rng(1).uniform(0.5, 2.0, len(y))
    options = {"loss": loss, "lam": 1e-2, "fit_intercept": True, "tol": 1e-6, "l1_ratio": l1_ratio}
    local = adasdca.solve(X, y, sample_weight=weight, **options)
    dX, dy, dw = blocks(X, y, weight)
    far = adasdca.dask.solve(dX, dy, sample_weight=dw, **options)
    assert far.converged
    assert abs(far.primal - local.primal) <= far.gap + local.gap + 1e-14 * local.primal
    assert len(far.dual_coef) == 0


PROBLEMS = [*((loss, 0.0) for loss in LOSSES), ("logistic", 0.4), ("hinge", 0.4)]


@pytest.mark.parametrize(("loss", "l1_ratio"), PROBLEMS)
def test_workers_reach_the_optimum_of_one_machine(cluster, loss, l1_ratio):
    reaches_the_optimum_of_one_machine(loss, l1_ratio)


def test_so_do_one_worker_and_four(other_cluster):
    for loss, l1_ratio in PROBLEMS:
        reaches_the_optimum_of_one_machine(loss, l1_ratio)
    X, y = data()
    y += 2 * (X[:, 0] > 1)
    options = {"loss": "logistic", "multi_class": "multinomial", "tol": 1e-8}
    local = adasdca.AdaSDCAClassifier(**options).fit(X, y)
    far = adasdca.dask.AdaSDCAClassifier(**options).fit(*blocks(X, y))
    assert np.abs(far.coef_ - local.coef_).max() <= 1e-3
    assert far.status_ is local.status_ is adasdca.Status.CONVERGED


def test_the_duals_come_if_they_are_asked_for(cluster):
    X, y = data()
    far = adasdca.dask.solve(*blocks(X, y), loss="logistic", lam=1e-2, tol=1e-8, duals=True)
    again = adasdca.certify(X, y, far.coef, loss="logistic", lam=1e-2, dual_coef=far.dual_coef)
    assert again.gap <= 1.01 * far.gap + 1e-13 * far.primal


def test_the_scheduler_is_told_how_far_a_solve_is(cluster):
    """Its dashboard shows what is logged for all."""
    X, y = data()
    begun = len(cluster.get_events("adasdca"))
    far = adasdca.dask.solve(*blocks(X, y), loss="logistic", lam=1e-2, tol=1e-8)
    told = [event for _, event in cluster.get_events("adasdca")][begun:]
    assert [event["gap"] for event in told] == far.history.gap.tolist()
    assert told == [event for _, event in cluster.get_events("all") if event in told]
    adasdca.dask.AdaSDCAClassifier(loss="logistic", multi_class="multinomial").fit(
        *blocks(X, y + 2 * (X[:, 0] > 1))
    )
    assert len(cluster.get_events("adasdca")) > begun + len(told)


def test_bits_depend_on_the_parts_alone(cluster):
    X, y = data()
    options = {"loss": "hinge", "lam": 1e-2, "fit_intercept": True, "tol": 1e-7, "n_parts": 3}
    first = adasdca.dask.solve(*blocks(X, y), client=cluster, **options)
    with LocalCluster(**OPTIONS, n_workers=1) as other, Client(other) as client:
        second = adasdca.dask.solve(*blocks(X, y), client=client, **options)
    assert np.array_equal(first.coef, second.coef)
    assert first.certificate == second.certificate


def test_collections(cluster):
    X, y = data()
    local = adasdca.solve(X, y, loss="logistic", lam=1e-2, tol=1e-9)
    dX, dy = blocks(X, y)
    delayed = [dask.delayed(sp.csr_matrix)(part) for part in dX.to_delayed().ravel()]
    csr = dX.map_blocks(sp.csr_matrix)
    forms = {
        "columns in blocks": (da.from_array(X, chunks=(70, 4)), dy),
        "CSR blocks": (csr, dy),
        "delayed blocks": (delayed, list(dy.to_delayed())),
    }
    for name, (rows, targets) in forms.items():
        far = adasdca.dask.solve(rows, targets, loss="logistic", lam=1e-2, tol=1e-9)
        assert abs(far.primal - local.primal) <= far.gap + local.gap + 1e-14 * local.primal, name


def test_data_frames(cluster):
    frames = pytest.importorskip("dask.dataframe")
    pandas = pytest.importorskip("pandas")
    X, y = data("regression")
    table = pandas.DataFrame(X, columns=list("abcdef")).assign(y=y)
    frame = frames.from_pandas(table, npartitions=3)
    model = adasdca.dask.AdaSDCARegressor(C=10.0, tol=1e-9).fit(frame[list("abcdef")], frame["y"])
    local = adasdca.AdaSDCARegressor(C=10.0, tol=1e-9).fit(table[list("abcdef")], y)
    assert np.allclose(model.coef_, local.coef_)
    assert list(model.feature_names_in_) == list("abcdef")
    expected = local.predict(table[list("abcdef")])
    assert np.allclose(model.predict(table[list("abcdef")]), expected)
    assert np.allclose(model.predict(frame[list("abcdef")]).compute(), expected)


def ragged(*sizes, width=None):
    """Delayed blocks of such sizes; the last of another width if that is given."""
    X, y = data()
    ends = np.cumsum([0, *sizes])
    rows = [X[a:b] for a, b in pairwise(ends)]
    if width is not None:
        rows[-1] = rows[-1][:, :width]
    labels = [y[a:b] for a, b in pairwise(ends)]
    return rows, labels, [[dask.delayed(b) for b in blocks] for blocks in (rows, labels)]


MADE = []


def made(k):
    """A block, noted where a worker of this process makes it."""
    MADE.append(k)
    some = slice(100 * k, 100 * (k + 1))
    return tuple(array[some] for array in data())


def test_blocks_are_made_once_and_futures_are_taken():
    MADE.clear()
    options = {"loss": "logistic", "lam": 1e-2, "tol": 1e-8, "n_parts": 2}
    with LocalCluster(**OPTIONS, n_workers=2) as workers, Client(workers) as client:
        parts = [dask.delayed(made, nout=2)(k) for k in range(3)]
        rows, targets = zip(*parts, strict=True)
        first = adasdca.dask.solve(rows, targets, client=client, **options)
        assert sorted(MADE) == [0, 1, 2]
        given = client.compute([*rows, targets[0]])
        again = adasdca.dask.solve(given[:3], [given[3], *targets[1:]], client=client, **options)
    assert np.array_equal(first.coef, again.coef)


def test_empty_blocks_and_blocks_of_one_class(cluster):
    X, y = data()
    order = np.argsort(y, kind="stable")
    X, y = X[order], y[order]
    sizes = [0, 100, 60, 0, 140, 0, 0, 0]
    ends = np.cumsum([0, *sizes])
    parts = [[dask.delayed(a[i:j]) for i, j in pairwise(ends)] for a in (X, y)]
    far = adasdca.dask.solve(*parts, loss="logistic", lam=1e-2, tol=1e-8, n_parts=4)
    local = adasdca.solve(X, y, loss="logistic", lam=1e-2, tol=1e-8)
    assert far.converged
    assert abs(far.primal - local.primal) <= far.gap + local.gap + 1e-14 * local.primal


def test_bad_blocks_are_told_by_number(cluster):
    options = {"loss": "logistic", "lam": 1e-2}
    *_, parts = ragged(50, 60, 70, 40, width=4)
    with pytest.raises(ValueError, match="block 3 of X has 4 columns where block"):
        adasdca.dask.solve(*parts, **options)
    rows, labels, (_, targets) = ragged(50, 60, 70)
    rows[1] = rows[1].copy()
    rows[1][3, 2] = np.nan
    with pytest.raises(ValueError, match="block 1: Input X contains NaN"):
        adasdca.dask.solve([dask.delayed(b) for b in rows], targets, **options)
    rows, labels, (given, _) = ragged(50, 60, 70)
    short = [dask.delayed(b) for b in (labels[0], labels[1], labels[2][:-1])]
    with pytest.raises(ValueError, match="block 2: y has shape"):
        adasdca.dask.solve(given, short, **options)
    with pytest.raises(ValueError, match="y has 2 blocks of rows where X has 3"):
        adasdca.dask.solve(given, short[:2], **options)
    with pytest.raises(ValueError, match="y holds no label -1"):
        adasdca.dask.solve(given, [dask.delayed(np.ones(m)) for m in (50, 60, 70)], **options)
    with pytest.raises(ValueError, match="needs the labels -1 and"):
        adasdca.dask.solve(given, [dask.delayed(np.arange(m)) for m in (50, 60, 70)], **options)
    with pytest.raises(TypeError, match="no collection of Dask"):
        adasdca.dask.solve(np.ones((3, 2)), np.ones(3), **options)
    with pytest.raises(ValueError, match="lam = -1"):
        adasdca.dask.solve(given, targets, loss="logistic", lam=-1)
    with pytest.raises(ValueError, match="beyond double precision"):
        adasdca.dask.solve(given, targets, loss="logistic", lam=1e-300)
    with pytest.raises(ValueError, match="choose True or False"):
        adasdca.dask.solve(given, targets, loss="logistic", lam=1e-2, fit_intercept="no")


@pytest.mark.parametrize("copied", [False, True], ids=["from the start", "from the last copies"])
def test_a_worker_is_killed(mortal, monkeypatch, copied):
    """What it kept is made anew, and the solve ends in the bits of one that was not disturbed."""
    X, y = data()
    options = {"loss": "hinge", "lam": 1e-2, "fit_intercept": True, "tol": 1e-7, "n_parts": 2}
    if copied:
        monkeypatch.setattr(_team, "COPY", 0.0)
    calm = adasdca.dask.solve(*blocks(X, y), **options)
    rounds, kept, remember = [], [], _team.DaskTeam._remember

    def watch(team, command, *rest):
        remember(team, command, *rest)
        rounds.append(command)
        if len(rounds) == 120:
            changes = sum(each in _team.CHANGES for each in rounds)
            kept.append((len(team._copies), len(team._journal), changes))
            pids = mortal.run(os.getpid)
            os.kill(pids[team._places[0]], signal.SIGKILL)

    monkeypatch.setattr(_team.DaskTeam, "_remember", watch)
    disturbed = adasdca.dask.solve(*blocks(X, y), **options)
    assert len(rounds) > 130
    ((copies, journal, changes),) = kept
    assert copies == (2 if copied else 0)
    assert journal < changes if copied else journal >= changes
    assert disturbed.converged
    assert np.array_equal(calm.coef, disturbed.coef)
    assert calm.certificate == disturbed.certificate


def test_copies_go_from_worker_to_worker(cluster, monkeypatch):
    X, y = data()
    options = {"loss": "hinge", "lam": 1e-2, "fit_intercept": True, "tol": 1e-7}
    heard, teams = [], []
    waited, clear = _team.waited, _team.DaskTeam._clear

    def listen(*args):
        heard.append(waited(*args))
        return heard[-1]

    def notice(team):
        teams.append(team)
        clear(team)

    monkeypatch.setattr(_team, "COPY", 0.0)
    monkeypatch.setattr(_team, "waited", listen)
    monkeypatch.setattr(_team.DaskTeam, "_clear", notice)
    assert adasdca.dask.solve(*blocks(X, y), **options).converged
    copies = {k: copy.result() for k, copy in teams[0]._copies.items()}
    lengths = {k: len(next(iter(vectors.values()))) for k, vectors in copies.items()}
    assert lengths == {0: 140, 1: 160}
    assert heard
    assert max(map(_team._size, heard)) < 8 * 140
    # A copy that is lost is not made again: the vectors are others by then.
    with pytest.raises(RuntimeError, match="was made before"):
        waited(teams[0]._actors[0].copy(teams[0]._copies[0].key))


@pytest.mark.parametrize("duals", [False, True])
def test_the_driver_is_killed(cluster, tmp_path, monkeypatch, duals):
    """The next one goes on from the last point that was written."""
    X, y = data()
    options = {"loss": "hinge", "lam": 1e-2, "fit_intercept": True, "tol": 1e-7, "duals": duals}
    calm = adasdca.dask.solve(*blocks(X, y), **options)
    path, writes, write = tmp_path / "checkpoint", [], Checkpoint._write

    def die(self, state):
        write(self, state)
        writes.append(state)
        if len(writes) == 3:
            raise SystemExit

    monkeypatch.setattr(Checkpoint, "_write", die)
    with pytest.raises(SystemExit):
        adasdca.dask.solve(*blocks(X, y), checkpoint=path, checkpoint_every=0.0, **options)
    monkeypatch.undo()
    other = X.copy()
    other[-1, -1] += 1.0
    for rows, targets in ((other, y), (X, -y)):
        with pytest.raises(FileError, match="of another problem"):
            adasdca.dask.solve(*blocks(rows, targets), checkpoint=path, **options)
    # The same blocks in more parts are the same problem.
    resumed = adasdca.dask.solve(*blocks(X, y), checkpoint=path, n_parts=3, **options)
    assert resumed.converged
    assert resumed.history.gap[0] < calm.history.gap[0]
    assert abs(resumed.primal - calm.primal) <= resumed.gap + calm.gap + 1e-14 * calm.primal
    assert not path.exists()


def test_classifiers_are_local_models(cluster):
    X, _ = data(n=400)
    y = np.digitize(X[:, 0] + 0.5 * X[:, 1], [1.0, 2.0])
    dX, dy = blocks(X, y)
    settings = {"C": 2.0, "tol": 1e-8, "class_weight": "balanced", "multi_class": "ovr"}
    settings["random_state"] = 0
    local = adasdca.AdaSDCAClassifier(**settings).fit(X, y)
    model = adasdca.dask.AdaSDCAClassifier(**settings).fit(dX, dy)
    assert np.allclose(model.coef_, local.coef_, atol=1e-5)
    assert np.array_equal(model.classes_, [0, 1, 2])
    assert model.converged_
    assert np.array_equal(model.predict(X), local.predict(X))
    lazy, scores = model.predict(dX), model.decision_function(dX)
    assert isinstance(lazy, da.Array)
    assert scores.shape == (400, 3)
    assert np.array_equal(lazy.compute(), local.predict(X))
    assert np.allclose(scores.compute(), model.decision_function(X))
    with pytest.raises(ValueError, match=r"device = 'cuda'.*leave them out"):
        adasdca.dask.AdaSDCAClassifier(device="cuda").fit(dX, dy)
    near = adasdca.dask.AdaSDCAClassifier(**settings).fit(X, y)
    assert np.array_equal(near.coef_, local.coef_)


def test_bounds_and_strengths_are_those_of_the_estimator(cluster):
    X, y = data("regression")
    blocked = blocks(X, y)
    options = {"bounds": (0.0, 0.3), "tol": 1e-8}
    local = adasdca.AdaSDCARegressor(**options).fit(X, y)
    far = adasdca.dask.AdaSDCARegressor(**options).fit(*blocked)
    assert (local.coef_ == 0.3).any()
    np.testing.assert_allclose(far.coef_, local.coef_, atol=1e-5)
    with pytest.raises(ValueError, match="C = inf asks for no penalty"):
        adasdca.dask.AdaSDCARegressor(C=np.inf).fit(*blocked)


@pytest.mark.parametrize("classes", [2, 3])
def test_all_that_is_said_of_collections_is_lazy(cluster, classes):
    """Rows that do not fit here are not brought here, whichever method is asked."""
    X, y = data("regression", n=400)
    labels = np.digitize(y, np.quantile(y, np.arange(1, classes) / classes))
    (rows,) = blocks(X)
    collections = {"array": rows, "list": list(rows.to_delayed().ravel())}
    frames = pytest.importorskip("dask.dataframe")
    collections["frame"] = frames.from_dask_array(rows)
    scores = ("decision_function", "predict_proba", "predict_log_proba", "certified_margin")
    classifier = adasdca.dask.AdaSDCAClassifier(loss="logistic", tol=1e-8, fit_intercept=False)
    regressor = adasdca.dask.AdaSDCARegressor(tol=1e-8, fit_intercept=False)
    for model, methods in [
        (classifier.fit(X, labels), ("predict", *scores)),
        (regressor.fit(X, y), ("predict", "certified_error")),
    ]:
        for name in methods:
            say = getattr(model, name)
            for kind, given in collections.items():
                lazy = say(given)
                if kind == "list":
                    found = np.concatenate(dask.compute(*lazy))
                else:
                    assert isinstance(lazy, da.Array), (name, kind)
                    found = lazy.compute()
                assert np.allclose(found, say(X), rtol=1e-12), (name, kind)
    assert not hasattr(adasdca.dask.AdaSDCAClassifier(loss="hinge"), "predict_proba")


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("direct", [False, True])
def test_multinomial_models(cluster, monkeypatch, direct, sparse):
    if not direct:
        monkeypatch.setattr(adasdca.multinomial.equations, "DIRECT", 0)
    X, _ = data(n=400)
    y = np.digitize(X[:, 0] + 0.5 * X[:, 1], [1.0, 2.0])
    weight = np.random.default_rng(1).uniform(0.5, 2.0, len(y))
    settings = {"C": 2.0, "tol": 1e-9, "class_weight": "balanced"}
    local = adasdca.AdaSDCAClassifier(**settings).fit(X, y, weight)
    dX, dy, dw = blocks(X, y, weight)
    rows = dX.map_blocks(sp.csr_matrix) if sparse else dX
    model = adasdca.dask.AdaSDCAClassifier(**settings).fit(rows, dy, dw)
    assert model.converged_
    assert np.linalg.norm(model.coef_ - local.coef_) <= model.radius_ + local.radius_
    assert model.dual_coef_.shape == (3, 0)
    assert np.array_equal(model.predict(X), local.predict(X))
    assert np.allclose(model.predict_proba(X), local.predict_proba(X), atol=1e-3)


def test_a_worker_is_killed_under_a_multinomial_model(mortal, monkeypatch):
    X, _ = data(n=400)
    y = np.digitize(X[:, 0] + 0.5 * X[:, 1], [1.0, 2.0])
    calm = adasdca.dask.AdaSDCAClassifier(tol=1e-9).fit(*blocks(X, y))
    rounds, remember = [], _team.DaskTeam._remember

    def watch(team, command, *rest):
        remember(team, command, *rest)
        rounds.append(command)
        if len(rounds) == 60:
            os.kill(mortal.run(os.getpid)[team._places[0]], signal.SIGKILL)

    monkeypatch.setattr(_team.DaskTeam, "_remember", watch)
    disturbed = adasdca.dask.AdaSDCAClassifier(tol=1e-9).fit(*blocks(X, y))
    assert len(rounds) > 70
    assert np.array_equal(calm.coef_, disturbed.coef_)
    assert calm.certificate_ == disturbed.certificate_


def test_a_slow_worker_and_one_that_joins(monkeypatch):
    """Neither changes a bit: parts stay where they are, and are waited for."""
    X, y = data()
    options = {"loss": "logistic", "lam": 1e-2, "fit_intercept": True, "tol": 1e-8, "n_parts": 2}
    with LocalCluster(**OPTIONS, n_workers=2) as made, Client(made) as client:
        calm = adasdca.dask.solve(*blocks(X, y), client=client, **options)
        rounds, remember = [], _team.DaskTeam._remember
        do = _worker.WorkerPart.do

        def slowly(part, command, *args):
            if 0 in part._widths:  # of the first block
                time.sleep(0.002)
            return do(part, command, *args)

        def watch(team, command, *rest):
            remember(team, command, *rest)
            rounds.append(list(team._places))
            if len(rounds) == 20:
                made.scale(3)
                client.wait_for_workers(3)

        monkeypatch.setattr(_worker.WorkerPart, "do", slowly)
        monkeypatch.setattr(_team.DaskTeam, "_remember", watch)
        disturbed = adasdca.dask.solve(*blocks(X, y), client=client, **options)
        assert len(client.scheduler_info(n_workers=-1)["workers"]) == 3
    assert len(rounds) > 25
    assert rounds[0] == rounds[-1]
    assert np.array_equal(calm.coef, disturbed.coef)
    assert calm.certificate == disturbed.certificate


@pytest.mark.parametrize("end", ["ctrl-c", "time"])
def test_a_worker_that_does_not_answer_holds_up_no_end(monkeypatch, end):
    """It answers only once the solve has ended."""
    X, y = data()
    options = {"loss": "logistic", "lam": 1e-2, "fit_intercept": True, "tol": 1e-8}
    options["max_time"] = None if end == "ctrl-c" else 2.0
    ended, count, do = threading.Event(), iter(range(100)), _worker.WorkerPart.do
    released = []

    def stuck(part, command, *args):
        if next(count, 0) == 12:
            if end == "ctrl-c":
                os.kill(os.getpid(), signal.SIGINT)
            released.append(ended.wait(60))
        return do(part, command, *args)

    with LocalCluster(**OPTIONS, n_workers=1) as made, Client(made) as client:
        monkeypatch.setattr(_worker.WorkerPart, "do", stuck)
        found = adasdca.dask.solve(*blocks(X, y), client=client, **options)
        assert released == []
        ended.set()
    assert found.status.name == ("INTERRUPTED" if end == "ctrl-c" else "TIME_LIMIT")
    assert 0 < found.gap == found.history.gap[-1]


def test_without_a_client(monkeypatch):
    def nobody():
        raise ValueError

    monkeypatch.setattr("adasdca.dask._solve.get_client", nobody)
    X, y = data()
    with pytest.raises(ValueError, match="no Dask client is known"):
        adasdca.dask.solve(*blocks(X, y), loss="logistic", lam=1e-2)


def test_over_tls():
    """With certificates made on the spot; who has others is not let in."""
    pytest.importorskip("cryptography")
    X, y = data()
    security = Security.temporary()
    with (
        LocalCluster(**OPTIONS, n_workers=2, security=security, protocol="tls") as made,
        Client(made.scheduler_address, security=security) as client,
    ):
        assert made.scheduler_address.startswith("tls://")
        options = {"loss": "logistic", "lam": 1e-2, "tol": 1e-8}
        far = adasdca.dask.solve(*blocks(X, y), client=client, **options)
        with pytest.raises(OSError, match="certificate does not match"):
            Client(made.scheduler_address, security=Security.temporary())
    assert far.converged
