"""No kernel keeps the interpreter: other threads of a program go on while one of it computes."""

import sys
import threading
import time
from contextlib import contextmanager

import numpy as np
import pytest
import scipy.sparse as sp

from adasdca import _core
from adasdca.backends.saving import NUMBERS

N, D = 20_000, 4
#: Calls in which another thread has never once got in. Hardly any kernel needs a tenth of these.
TRIES = 20_000
FOREVER = 1e18

#: What takes no time that depends on the rows: single numbers, d of them, memory handed over.
SHORT = {
    "Loss.logistic",
    "Loss.piecewise_quadratic",
    "Rows.csr",
    "Rows.dense",
    "SvmlightReader.take",
    "Workspace.certify_by",
    "minimise",
    "root_of_balance",
    "step_length",
    "Wish.make",
    "Workspace.coef",
    "Workspace.place_primal",
    "Workspace.show_average",
    "check",
    "gram_pairs",
    "heed",
    "set_thread_work",
    "subkey",
    "supported_level",
    "vector",
}


@contextmanager
def ticking():
    """Let another thread count whenever it gets the interpreter, which it never asks for."""
    ticks, going = [0], [True]

    def tick():
        while going[0]:
            ticks[0] += 1
            time.sleep(0)  # gives the interpreter away

    interval = sys.getswitchinterval()
    thread = threading.Thread(target=tick)
    sys.setswitchinterval(1e3)  # from its first wait on, nobody is made to give it away
    thread.start()
    try:
        yield ticks
    finally:
        sys.setswitchinterval(interval)
        going[0] = False
        thread.join()


def lets_others_in(call, prepare=None):
    with ticking() as ticks:
        for _ in range(TRIES):
            given = () if prepare is None else (prepare(),)
            before = ticks[0]
            call(*given)
            if ticks[0] != before:
                return True
    return False


def kernels():
    """Return a call of every kernel, by its name, with what must be made anew for each."""
    rng = np.random.default_rng(0)
    x = rng.standard_normal((N, D))
    y = np.where(x[:, 0] > 0, 1.0, -1.0)
    ones, out, other, w, u = np.ones(N), np.empty(N), np.empty(N), np.ones(D), np.empty(D)
    loss = _core.Loss.logistic()
    plain = (y, ones, loss, 0.1, 1.0, 0.0, None, None)
    dense_rows = _core.Rows.dense(x)
    ws = _core.Workspace.of(dense_rows, *plain, True)
    csr = sp.csr_matrix(x)
    start = csr.indptr.astype(np.int64)
    picks = np.arange(N, dtype=np.int32)
    rows, square = np.arange(200), np.empty((200, 200))
    tall = np.full(200, np.inf)
    gram, side = np.empty((D, D)), np.empty((1, D))
    sparse_rows = _core.Rows.csr(csr.data, csr.indices, start, D)
    sparse = _core.Workspace.of(sparse_rows, *plain, True, False)
    classes, own = _core.ClassRows(dense_rows, None), np.zeros(N, dtype=np.int64)
    v, lanes, p = np.ones((D, 8)), np.empty((D, 8)), np.full((N, 8), 0.125)
    saved = np.zeros(N), np.zeros(4 * D), np.zeros(NUMBERS)
    ws.save(*saved)
    lattice = np.hstack([np.eye(40), 1e6 * rng.standard_normal((40, 4))])
    planner, table = _core.Planner(), _core.AliasTable(ones)
    text = b"1 1:0.5 2:0.25\n" * 5000

    def unfinished():
        reader = _core.SvmlightReader(1)
        reader.feed(b"1 " + b" ".join(b"%d:0.5" % k for k in range(1, 3000)))
        return reader

    def survey():
        ws.survey(None, None, None, None, out, other, u, 0.0, 1, FOREVER)

    return {
        "Loss.value": lambda: loss.value(ones, y, out),
        "Loss.conjugate": lambda: loss.conjugate(ones, y, out),
        "Loss.slope": lambda: loss.slope(ones, y, out),
        "Loss.curvature": lambda: loss.curvature(ones, y, out),
        "Loss.excess": lambda: loss.excess(ones, ones, y, out),
        "Loss.step": lambda: loss.step(ones, ones, y, ones, out),
        "SvmlightReader.feed": lambda: _core.SvmlightReader(1).feed(text),
        "SvmlightReader.finish": (lambda reader: reader.finish(), unfinished),
        "Workspace.of": lambda: _core.Workspace.of(sparse_rows, *plain, True, False),
        "Workspace.curvature": lambda: ws.curvature(out),
        "Workspace.set_beta": lambda: ws.set_beta(ones, 1),
        "Workspace.survey": survey,
        "Workspace.certify": lambda: ws.certify(w, 0.0, ones, 1),
        "Workspace.pack": (
            lambda workspace: workspace.pack(),
            lambda: _core.Workspace.of(sparse_rows, *plain, True, True),
        ),
        "Workspace.ascend": lambda: ws.ascend(picks, FOREVER),
        "Workspace.quartz": lambda: sparse.quartz(picks, ones / N, 1e-6, FOREVER),
        "Workspace.ascend_adaptively": lambda: sparse.ascend_adaptively("relaxed", 1, 0, FOREVER),
        "Workspace.best_intercept": lambda: ws.best_intercept(ones, 0.0, 1),
        "Workspace.scores": lambda: ws.scores(w, out, 1),
        "Workspace.exact_scores": lambda: ws.exact_scores(w, 0.0, out, 1),
        "Workspace.curve": lambda: ws.curve(ones, u, 0.0, np.empty_like(u), 1),
        "Workspace.derive": lambda: ws.derive(ones, 0.0, None, out, other, u, 1),
        "Workspace.slope_along": lambda: ws.slope_along(ones, ones, 1.0, 0.0, None, 1),
        "Workspace.search_along": lambda: ws.search_along(
            ones, ones, 0.0, None, 1.0, 1.0, (0.0, 1.0, 1.0), -1.0, 1
        ),
        "Workspace.newton_steps": lambda: ws.newton_steps(
            (w.copy(), u, other, out, ones.copy()),
            *(0.0, 1.0, 0.0, None, np.ones_like(u), None, 0.0, None),
            *((1.0, 0.0, False, False), (0.0, 0.0, 1), None, 1, FOREVER),
        ),
        "Workspace.combine": lambda: ws.combine(ones, u, 1),
        "ClassRows.curve": lambda: classes.curve(v, v[0], p, own, None, lanes, v[1].copy()),
        "ClassRows.gather": lambda: classes.gather(p, lanes),
        "ClassRows.gather_exactly": lambda: classes.gather_exactly(
            p, own, np.vstack((lanes, lanes)), np.ones(16)
        ),
        "ClassRows.times": lambda: classes.times(v, p),
        "Loss.step_weights": lambda: loss.step_weights(ones, out, 0.0, y, ones, None, other),
        "Workspace.evidence": lambda: ws.evidence(ones, w, 0.0, ones, 1),
        "Workspace.load": lambda: ws.load(*saved),
        "Workspace.save": lambda: ws.save(*saved),
        "Workspace.squares": lambda: ws.squares(ones, u, 1),
        "Workspace.combine_exactly": lambda: ws.combine_exactly(ones, u, 1),
        "Workspace.gram": lambda: sparse.gram(ones, ones[None], None, gram, side, 1, FOREVER),
        "Workspace.products": lambda: ws.products(rows, 0, None, square, 1, FOREVER),
        "Workspace.place": lambda: ws.place(ones, w, 0.0),
        "Planner.plan": lambda: planner.plan(ones, 2.0, N, 0),
        "AliasTable.draw": lambda: table.draw(N, 0),
        "AliasTable": lambda: _core.AliasTable(ones),
        "write_svmlight": lambda: _core.write_svmlight(sparse_rows, y, 1, 10**6, 0),
        "Loss.balance": lambda: loss.balance(ones, y, None, 0.0),
        "Rows.inspect": sparse_rows.inspect,
        "Rows.squares_about": lambda: dense_rows.squares_about(w, out, other),
        "Rows.scores_about": lambda: dense_rows.scores_about(w, w, 0.0, out),
        "Rows.sort": sparse_rows.sort,
        "minimise_separable": lambda: _core.minimise_separable(
            *(np.eye(200) + 1.0, ones[:200], ones[:200], -tall, tall),
            *(np.zeros(200), rng.standard_normal(200) * 10, 0.0, FOREVER),
        ),
        "descend_columns": lambda: _core.descend_columns(
            *(rng.standard_normal(200 * 200), None, None, None),
            *(ones[:200], ones[:200], -tall, tall, np.zeros(200), rng.standard_normal(200) * 10),
            *(0.0, 1e9, FOREVER),
        ),
        "reduce_pairs": lambda: _core.reduce_pairs(lattice.copy(), np.eye(40)),
        "draw_tree": lambda: _core.draw_tree(ones, 2.0, N, 0),
        "draw_uniform": lambda: _core.draw_uniform(N, N, 0),
        "draw_permutation": lambda: _core.draw_permutation(N, 0),
    }


def bound():
    """Return the names of all functions and methods of the core but constructors."""
    found = set()
    for name in _core.__all__:
        value = getattr(_core, name)
        if isinstance(value, type):
            found |= {
                f"{name}.{member}"
                for member in vars(value)
                if not member.startswith("_") and callable(getattr(value, member))
            }
        elif callable(value):
            found.add(name)
    return found


def test_every_binding_is_tested_or_short():
    assert bound() == (set(kernels()) - {"AliasTable"}) | SHORT


@pytest.mark.parametrize("name", kernels())
def test_others_go_on_beside(name):
    found = kernels()[name]
    assert lets_others_in(*found) if isinstance(found, tuple) else lets_others_in(found)


def test_what_keeps_the_interpreter_is_found(monkeypatch):
    monkeypatch.setattr(sys.modules[__name__], "TRIES", 500)
    assert not lets_others_in(lambda: sum(range(1000)))
