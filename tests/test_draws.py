"""Draws from fixed distributions have them: uniform ones, permutations, an alias table."""

import numpy as np
import pytest

from adasdca import _core
from chance import RARE, WEIGHTS, luck


@pytest.mark.parametrize("n", [1, 2, 7, 1000])
def test_uniform_draws(n):
    count = 400_000
    picks = _core.draw_uniform(n, count, 3)
    assert picks.shape == (count,)
    assert luck(np.bincount(picks, minlength=n), np.full(n, count / n)) > RARE
    pairs = picks[::2].astype(np.int64) * n + picks[1::2]
    if n < 100:
        assert luck(np.bincount(pairs, minlength=n * n), np.full(n * n, count / 2 / n**2)) > RARE
    np.testing.assert_array_equal(picks, _core.draw_uniform(n, count, 3))
    assert n == 1 or (picks != _core.draw_uniform(n, count, 4)).any()


@pytest.mark.parametrize("n", [1, 2, 4, 50])
def test_permutations(n):
    runs = 10_000
    orders = np.stack([_core.draw_permutation(n, key) for key in range(runs)]).astype(np.int64)
    assert (np.sort(orders, axis=1) == np.arange(n)).all()
    for place in {0, n // 2, n - 1}:
        assert luck(np.bincount(orders[:, place], minlength=n), np.full(n, runs / n)) > RARE
    if n == 4:
        code = np.bincount(orders @ [64, 16, 4, 1], minlength=256)
        assert luck(code[code > 0], np.full(24, runs / 24)) > RARE
    np.testing.assert_array_equal(orders[5], _core.draw_permutation(n, 5))


@pytest.mark.parametrize("name", [*WEIGHTS, "many"])
def test_alias_table(name):
    rng = np.random.default_rng(2)
    many = np.exp(2 * rng.normal(size=3000)) * (rng.random(3000) > 0.5)
    weight, count = {**WEIGHTS, "many": many}[name], 1_000_000
    table = _core.AliasTable(weight)
    picks = table.draw(count, 1)
    assert (weight[picks] > 0).all()
    assert luck(np.bincount(picks, minlength=len(weight)), count * weight / weight.sum()) > RARE
    np.testing.assert_array_equal(picks, table.draw(count, 1))
    assert (weight > 0).sum() == 1 or (picks != table.draw(count, 2)).any()
