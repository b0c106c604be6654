"""The listeners to surveys: the user's callback, scikit-learn's callbacks, the log, the bars."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from adasdca.duality.certificate import digits_done, relative_gap
from adasdca.solution import Record

try:  # scikit-learn 1.9 and later
    from sklearn.callback import CallbackSupportMixin, with_callbacks
except ImportError:

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """Stands in where scikit-learn has no callbacks."""

    def with_callbacks(method: Any) -> Any:
        """Return the method as it is: there are no callbacks to take down."""
        return method


__all__ = ["CallbackSupportMixin", "Monitor", "monitored", "with_callbacks"]

logger = logging.getLogger("adasdca")

Listener = Callable[[Record], Any]


class Monitor:
    """Passes the records of one fit on to its listeners.

    Attributes
    ----------
    stopped : bool
        Whether a listener has returned True, which ends all solves of the fit.
    """

    def __init__(self, listeners: dict[int, list[Listener]]) -> None:
        self._listeners = listeners
        self.stopped = False

    def of(self, k: int) -> Listener | None:
        """Return the callback of solve number k, None if it has no listeners."""
        listeners = self._listeners[k]
        if not listeners:
            return None

        def tell(record: Record) -> bool:
            # Everybody hears every record, also after somebody asked to stop.
            answers = [bool(listener(record)) for listener in listeners]
            self.stopped = self.stopped or any(answers)
            return self.stopped

        return tell


@contextmanager
def monitored(estimator: Any, names: list[str], X: Any, y: Any) -> Iterator[Monitor]:
    """Yield the monitor of a fit, which makes a solve for each name."""
    listeners: dict[int, list[Listener]] = {k: [] for k in range(len(names))}
    closers: list[Callable[[], None]] = []
    try:
        for k, name in enumerate(names):
            if estimator.callback is not None:
                listeners[k].append(estimator.callback)
            if estimator.verbose == 1:
                listeners[k].append(_Log(f"{type(estimator).__name__}{name}", estimator.tol))
        if estimator.verbose == 1:
            closers.append(_shown())
        if estimator.verbose > 1:
            closers.append(_bars(names, estimator.tol, listeners))
        if getattr(estimator, "_skl_callbacks", None):
            closers.append(_tasks(estimator, names, X, y, listeners))
        yield Monitor(listeners)
    finally:
        for close in closers:
            close()


class _Log:
    """One line a survey, at level INFO of the logger ``adasdca``."""

    def __init__(self, name: str, tol: float) -> None:
        self._name, self._tol = name, tol

    def __call__(self, record: Record) -> None:
        relative = relative_gap(record.gap, record.primal)
        logger.info(
            "%s: epoch %d, objective %.6g, gap %.1e (relative %.1e, asked %.1e), %d rows, %.2f s",
            self._name,
            record.epoch,
            record.primal,
            record.gap,
            relative,
            self._tol,
            record.active,
            record.seconds,
        )


def _shown() -> Callable[[], None]:
    """Show INFO lines, unless the application has configured logging."""
    if logger.hasHandlers() or logger.level != logging.NOTSET:
        return lambda: None
    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter("%(message)s"))
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)

    def close() -> None:
        logger.removeHandler(handler)
        logger.setLevel(logging.NOTSET)

    return close


def _bars(names: list[str], tol: float, listeners: dict[int, list[Listener]]) -> Callable[[], None]:
    """Show a bar for each solve: how much of the way from the first gap to tol, on a log scale."""
    try:
        from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
    except ImportError as error:
        raise ImportError(
            "verbose=2 shows progress bars with rich; install it with `pip install adasdca[cli]`, "
            "or use verbose=1."
        ) from error
    columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[gap]}"))
    progress = Progress(*columns, TimeElapsedColumn())
    progress.start()
    for k, name in enumerate(names):
        task = progress.add_task(f"fit{name}", total=1.0, gap="")
        first: list[float] = []

        def show(record: Record, task: Any = task, first: list[float] = first) -> None:
            relative = relative_gap(record.gap, record.primal)
            first.append(relative)
            done = digits_done(first[0], relative, max(tol, 1e-16))
            progress.update(task, completed=done, gap=f"gap {relative:.1e}, epoch {record.epoch}")

        listeners[k].append(show)
    return progress.stop


def _tasks(
    estimator: Any, names: list[str], X: Any, y: Any, listeners: dict[int, list[Listener]]
) -> Callable[[], None]:
    """Report surveys as tasks to scikit-learn's callbacks: fit → (a task a solve →) surveys."""
    several = len(names) > 1
    # How many surveys there will be is not known beforehand: None.
    root = estimator._init_callback_context(
        max_subtasks=len(names) if several else None, sequential_subtasks=not several
    )
    root.call_on_fit_task_begin(estimator=estimator, X=X, y=y)
    ends: list[Callable[[], None]] = []
    for k in range(len(names)):
        parent = root
        if several:
            parent = root.subcontext(task_name=f"solve{names[k]}", task_id=k, max_subtasks=None)
            parent.call_on_fit_task_begin(estimator=estimator, X=X, y=y)
        survey = _SurveyTasks(estimator, parent, X, y)
        listeners[k].append(survey)
        ends.append(survey.close)
        if several:
            ends.append(_ending(parent, estimator, X, y))

    def close() -> None:
        for end in ends:
            end()
        _ending(root, estimator, X, y, fitted=True)()

    return close


def _ending(
    context: Any, estimator: Any, X: Any, y: Any, *, fitted: bool = False
) -> Callable[[], None]:
    def end() -> None:
        attributes = None
        if fitted and hasattr(estimator, "coef_"):
            attributes = {"coef_": estimator.coef_, "intercept_": estimator.intercept_}
        context.call_on_fit_task_end(
            estimator=estimator, X=X, y=y, reconstruction_attributes=attributes
        )

    return end


class _SurveyTasks:
    """Each survey ends one task and begins the next."""

    def __init__(self, estimator: Any, parent: Any, X: Any, y: Any) -> None:
        self._estimator, self._parent = estimator, parent
        self._data = {"X": X, "y": y}
        self._begin()

    def _begin(self) -> None:
        self._task = self._parent.subcontext(task_name="epoch")
        self._task.call_on_fit_task_begin(estimator=self._estimator, **self._data)

    def _end(self) -> bool:
        return bool(self._task.call_on_fit_task_end(estimator=self._estimator, **self._data))

    def __call__(self, record: Record) -> bool:
        stop = self._end()
        self._begin()
        return stop

    def close(self) -> None:
        """End the task that was begun last."""
        self._end()
