"""A fit either succeeds as a whole or changes nothing."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

from adasdca.engine.interruption import interruption

Fit = TypeVar("Fit", bound=Callable[..., Any])


def guarded(fit: Fit) -> Fit:
    """Let a fit that raises leave the estimator as it was, and Ctrl-C leave a fitted one.

    Ctrl-C ends the solves with what they have certified, the estimator is fitted with that, and
    KeyboardInterrupt goes on: a grid search around this fit must not go on as if nothing had
    happened. Before the first certificate there is nothing to fit with.
    """

    @wraps(fit)
    def guarded_fit(self: Any, *args: Any, **kwargs: Any) -> Any:
        with interruption() as around:
            before = dict(vars(self))
            try:
                fit(self, *args, **kwargs)
            except BaseException:
                vars(self).clear()
                vars(self).update(before)
                raise
        around.check()
        return self

    return guarded_fit  # type: ignore[return-value]
