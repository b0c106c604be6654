"""Pictures in the manner of scikit-learn's displays: `ConvergenceDisplay` and `PathDisplay`."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from adasdca.estimators._cv import own_score
from adasdca.paths import Path
from adasdca.plotting import draw_coefficients, drawing, finish_path, series
from adasdca.solution import History

Array = NDArray[np.float64]


def _axes(ax: Any) -> Any:
    """Return the axes to draw on, new ones if none are given."""
    return drawing("pyplot").subplots()[1] if ax is None else ax


def _choice(name: str, value: Any, choices: tuple[str, ...]) -> None:
    if value not in choices:
        raise ValueError(
            f"{name} = {value!r} is unknown; choose one of {', '.join(map(repr, choices))}."
        )


class ConvergenceDisplay:
    """The relative duality gap of one or more solves against epochs, seconds or updates.

    Parameters
    ----------
    histories : list of History
        The surveys of each solve.
    names : list of str
        Their names in the legend.
    tol : float, optional
        The tolerance, drawn as a line.

    Attributes
    ----------
    ax_, figure_, lines_
        What was drawn, after `plot`.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from adasdca import AdaSDCAClassifier, ConvergenceDisplay
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = AdaSDCAClassifier(random_state=0).fit(X / X.max(axis=0), y)
    >>> display = ConvergenceDisplay.from_estimator(model, x="updates")
    >>> display.ax_.get_ylabel()
    'relative duality gap'
    """

    def __init__(
        self, histories: list[History], names: list[str], tol: float | None = None
    ) -> None:
        self.histories = histories
        self.names = names
        self.tol = tol

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        *,
        x: str = "epochs",
        name: str | None = None,
        ax: Any = None,
        **kwargs: Any,
    ) -> ConvergenceDisplay:
        """Draw how a fitted estimator converged.

        Parameters
        ----------
        estimator : estimator
            A fitted estimator of this package.
        x : {"epochs", "seconds", "updates"}, default="epochs"
            What the gap is drawn against.
        name : str, optional
            Name in the legend; the class of the estimator by default.
        ax : matplotlib axes, optional
            Where to draw; new axes by default.
        **kwargs
            Passed on to ``ax.plot``.

        Returns
        -------
        ConvergenceDisplay
        """
        check_is_fitted(estimator, "history_")
        name = type(estimator).__name__ if name is None else name
        history = estimator.history_
        if isinstance(history, History):
            histories, names = [history], [name]
        else:
            labels = getattr(estimator, "classes_", range(len(history)))
            histories, names = list(history), [f"{name}, {label}" for label in labels]
        return cls(histories, names, estimator.tol).plot(ax, x=x, **kwargs)

    def plot(self, ax: Any = None, *, x: str = "epochs", **kwargs: Any) -> ConvergenceDisplay:
        """Draw the gaps.

        Parameters
        ----------
        ax : matplotlib axes, optional
            Where to draw; new axes by default.
        x : {"epochs", "seconds", "updates"}, default="epochs"
            What they are drawn against.
        **kwargs
            Passed on to ``ax.plot``.

        Returns
        -------
        ConvergenceDisplay
        """
        _choice("x", x, ("epochs", "seconds", "updates"))
        kwargs = drawing("cbook").normalize_kwargs(kwargs, drawing("lines").Line2D)
        self.ax_ = _axes(ax)
        self.figure_ = self.ax_.figure
        self.lines_ = []
        looks = series(len(self.histories), start=len(self.ax_.lines))
        for history, name, look in zip(self.histories, self.names, looks, strict=True):
            gap = history.relative_gap
            # A gap of exactly 0 has no place on a logarithmic scale.
            shown = np.where(gap > 0, gap, np.nan)
            across = getattr(history, {"epochs": "epoch"}.get(x, x))
            style = {**look, "markersize": 4.5, **kwargs, "label": name}
            self.lines_ += self.ax_.plot(across, shown, **style)
        if self.tol:
            self.ax_.axhline(self.tol, color="0.5", linestyle=":", linewidth=1.0, label="tol")
        self.ax_.set(xlabel=x, ylabel="relative duality gap", yscale="log")
        self.ax_.legend()
        return self


class PathDisplay:
    """Coefficients or scores along C.

    Parameters
    ----------
    Cs : (k,) array
        The values of C.
    coefs : (k, d) array, optional
        Coefficients at each.
    scores : (n_folds, k) array, optional
        Scores at each, a row a fold.
    best : float, optional
        The C chosen, drawn as a line.
    feature_names : list of str, optional
        Names for the legend, drawn for the largest coefficients.
    score_name : str, optional
        What the scores are.

    Attributes
    ----------
    ax_, figure_, lines_
        What was drawn, after `plot`.
    """

    def __init__(
        self,
        Cs: Array,
        *,
        coefs: Array | None = None,
        scores: Array | None = None,
        best: float | None = None,
        feature_names: Any = None,
        score_name: str | None = None,
    ) -> None:
        self.Cs = Cs
        self.coefs = coefs
        self.scores = scores
        self.best = best
        self.feature_names = feature_names
        self.score_name = score_name

    @classmethod
    def from_path(
        cls, path: Path, *, feature_names: Any = None, ax: Any = None, **kwargs: Any
    ) -> PathDisplay:
        """Draw the coefficients of a path.

        Parameters
        ----------
        path : Path
            What `adasdca.path` returned.
        feature_names : list of str, optional
            Names for the legend.
        ax : matplotlib axes, optional
            Where to draw; new axes by default.
        **kwargs
            Passed on to ``ax.plot``.

        Returns
        -------
        PathDisplay
        """
        return cls(path.Cs, coefs=path.coefs, feature_names=feature_names).plot(ax, **kwargs)

    @classmethod
    def from_estimator(
        cls, estimator: Any, *, kind: str = "scores", ax: Any = None, **kwargs: Any
    ) -> PathDisplay:
        """Draw what a fitted estimator with cross-validation saw along C, at its l1_ratio.

        Parameters
        ----------
        estimator : AdaSDCAClassifierCV or AdaSDCARegressorCV
            Fitted.
        kind : {"scores", "coefs"}, default="scores"
            The scores of the folds and their mean, or the mean coefficients of the first class or
            target.
        ax : matplotlib axes, optional
            Where to draw; new axes by default.
        **kwargs
            Passed on to ``ax.plot``.

        Returns
        -------
        PathDisplay
        """
        _choice("kind", kind, ("scores", "coefs"))
        check_is_fitted(estimator, "scores_")
        ratio = int(np.flatnonzero(estimator.l1_ratios_ == estimator.l1_ratio_)[0])
        display = cls(
            estimator.Cs_,
            best=estimator.C_,
            feature_names=getattr(estimator, "feature_names_in_", None),
        )
        if kind == "scores":
            display.scores = estimator.scores_[:, ratio]
            given = estimator.scoring
            if given is None:
                given = own_score(estimator)
            display.score_name = given if isinstance(given, str) else None
        else:
            display.coefs = estimator.coefs_paths_[:, ratio, :, 0].mean(axis=0)
        return display.plot(ax, **kwargs)

    def plot(self, ax: Any = None, *, n_names: int = 8, **kwargs: Any) -> PathDisplay:
        """Draw the path.

        Parameters
        ----------
        ax : matplotlib axes, optional
            Where to draw; new axes by default.
        n_names : int, default=8
            How many features are named in the legend: those with the largest coefficients.
        **kwargs
            Passed on to ``ax.plot``.

        Returns
        -------
        PathDisplay
        """
        self.ax_ = _axes(ax)
        self.figure_ = self.ax_.figure
        if self.scores is not None:
            self.lines_ = self.ax_.plot(
                self.Cs, self.scores.T, **{"color": "0.7", "linewidth": 0.8, **kwargs}
            )
            mean = self.scores.mean(axis=0)
            look = {**series(1)[0], "markersize": 4.5, "label": "mean of the folds"}
            self.lines_ += self.ax_.plot(self.Cs, mean, **look)
            self.ax_.set_ylabel(self.score_name or "score")
        else:
            assert self.coefs is not None
            names = self.feature_names
            self.lines_ = draw_coefficients(self.ax_, self.Cs, self.coefs, names, n_names, **kwargs)
        if self.best is not None:
            self.ax_.axvline(
                self.best, color="0.3", linestyle=":", linewidth=1.0, label=f"C = {self.best:.3g}"
            )
        finish_path(self.ax_)
        return self
