"""Something happens at a line of the package: all of them, one after the other."""

import os
import sys
from dataclasses import dataclass
from pathlib import Path

import adasdca

#: What interruption matters to.
ROOMS = ("engine", "solver", "paths", "estimators", f"multinomial{os.sep}solver", "cli")
PACKAGE = str(Path(adasdca.__file__).parent) + os.sep


@dataclass(frozen=True)
class Line:
    """A line as it is come to."""

    file: str
    number: int
    function: str


def follow(call, see, only=None):
    """Call, and see the lines of the package that this thread comes to, before they are run.

    With `only`, no other lines than those of its function.
    """

    def local(frame, event, _):
        if event == "line":
            code = frame.f_code
            see(Line(code.co_filename, frame.f_lineno, code.co_name))
        return local

    def start(frame, event, _):
        code = frame.f_code
        if only is not None:
            wanted = code.co_name == only.function and code.co_filename == only.file
            return local if wanted else None
        return local if code.co_filename.startswith(PACKAGE) else None

    before = sys.gettrace()
    sys.settrace(start)
    try:
        return call()
    finally:
        sys.settrace(before)


def lines_of(call):
    """Return the lines that a call comes to, in their order."""
    lines = []
    follow(call, lines.append)
    return lines


def at_line(call, line, turn, act):
    """Call, and act when a line is come to for the `turn`-th time; it may raise there."""
    count = 0

    def see(seen):
        nonlocal count
        count += seen == line
        if seen == line and count == turn:
            sys.settrace(None)
            act()

    return follow(call, see, line)


def places(lines, rooms=ROOMS, sample=8, both=True):
    """Return where to act, as (when, line, turn).

    Every line of the rooms that interruption matters to, when it is first and, with `both`, last
    come to, and a sample of the others.
    """
    turns, first, last = {}, {}, {}
    for k, line in enumerate(lines):
        turns[line] = turns.get(line, 0) + 1
        first.setdefault(line, (k, line, 1))
        last[line] = k, line, turns[line]
    mine = [line for line in first if line.file.removeprefix(PACKAGE).startswith(rooms)]
    others = [line for line in first if line not in set(mine)]
    found = {first[line] for line in mine} | {last[line] for line in mine if both}
    return sorted(found | {first[line] for line in others[::sample]}, key=lambda place: place[0])


def first_of(lines, function, after=0):
    """Return when a function is first come to."""
    return next(k for k, line in enumerate(lines) if k >= after and line.function == function)


def last_of(lines, function):
    """Return when a function is last come to."""
    return max(k for k, line in enumerate(lines) if line.function == function)
