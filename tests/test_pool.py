"""Memory that solves leave to each other: never lent twice, lent again, no more than a limit."""

import subprocess
import sys

import numpy as np
import pytest

from adasdca import _core

#: Doubles that are few enough to be left to the system, and enough to be kept.
FEW, MANY = 100, 1 << 16


def test_vectors_that_live_never_share():
    rng = np.random.default_rng(0)
    alive = {}
    for step in range(2000):
        size = int(rng.choice([FEW, MANY, MANY + 7, 2 * MANY]))
        alive[step] = _core.vector(size)
        assert len(alive[step]) == size
        alive[step].fill(step)
        if len(alive) > 12:
            del alive[int(rng.choice(list(alive)))]
    for step, vector in alive.items():
        assert (vector == step).all()


def test_views_keep_their_memory():
    view = _core.vector(MANY)[10:20]
    view.fill(1.0)
    _core.vector(MANY).fill(2.0)
    assert (view == 1.0).all()


def test_a_block_is_lent_again_but_not_for_much_less():
    first = _core.vector(MANY)
    place = first.ctypes.data
    assert place % 64 == 0
    del first
    small = _core.vector(MANY // 2)
    assert small.ctypes.data != place
    assert _core.vector(MANY).ctypes.data == place


@pytest.mark.skipif(sys.platform != "linux", reason="no measure of resident memory here")
def test_no_more_than_the_limit_is_kept():
    program = f"""
from adasdca import _core

def resident():
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmRSS")) / 1024

before = resident()
vectors = [_core.vector({1 << 19}) for _ in range(64)]
for vector in vectors:
    vector.fill(1.0)
held = resident() - before
del vectors, vector
print(held, resident() - before)
"""
    command = [sys.executable, "-c", program]
    out = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    held, kept = map(float, out.split())
    assert held > 250  # MB: 64 of 4
    assert 30 < kept < 80  # of which 64 stay
