"""What a fitted classifier says of new rows: scores, probabilities, certified margins."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, softmax
from sklearn.linear_model._base import LinearClassifierMixin, SparseCoefMixin
from sklearn.utils.metaestimators import available_if

from adasdca.duality.error_bounds import Region
from adasdca.problem.losses import Logistic, ModifiedHuber
from adasdca.problem.products import RowProducts

Array = NDArray[np.float64]


def _gives_probabilities(self: Any) -> bool:
    if isinstance(self.loss, (Logistic, ModifiedHuber)) or self.loss in (
        "logistic",
        "log_loss",
        "modified_huber",
    ):
        return True
    raise AttributeError(
        f"loss={self.loss!r} gives no probabilities; wrap the model in "
        "sklearn.calibration.CalibratedClassifierCV, or choose loss='logistic' or 'modified_huber'."
    )


class LinearScores(LinearClassifierMixin, SparseCoefMixin):
    """Predictions of a linear classifier with a certificate."""

    _joint: bool  # whether the classes make one multinomial model
    _region: Region

    def decision_function(self, X: Any) -> Array:
        """Return the scores x·w + b.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        scores : (n_samples,) or (n_samples, n_classes) array
            With two classes, above 0 means ``classes_[1]``.
        """
        X = self._rows_to_predict(X)
        scores = RowProducts(X).times(self._dense_coef()) + self.intercept_
        return np.asarray(scores.ravel() if scores.shape[1] == 1 else scores)

    @available_if(_gives_probabilities)
    @np.errstate(under="ignore")  # a probability too small for doubles is 0
    def predict_proba(self, X: Any) -> Array:
        """Return the probabilities of the classes, for the logistic and the modified Huber loss.

        Logistic: the logistic function of the scores, or their softmax for a multinomial model.
        Modified Huber: (clip(score, −1, 1) + 1)/2. One-versus-rest: normalised to sum 1.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        (n_samples, n_classes) array
        """
        scores = self.decision_function(X)
        logistic = isinstance(self._loss(), Logistic)
        if self._joint:
            return np.asarray(softmax(scores, axis=1))
        p = expit(scores) if logistic else (np.clip(scores, -1.0, 1.0) + 1.0) / 2.0
        if p.ndim == 1:
            return np.column_stack([1.0 - p, p])
        total = p.sum(axis=1, keepdims=True)
        # Where no class has any probability, all have the same.
        return np.asarray(np.where(total > 0, p, 1.0) / np.where(total > 0, total, p.shape[1]))

    @available_if(_gives_probabilities)
    def predict_log_proba(self, X: Any) -> Array:
        """Return the logarithms of the probabilities of the classes.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        (n_samples, n_classes) array
        """
        with np.errstate(divide="ignore"):  # log 0 = −∞ is the answer
            return np.asarray(np.log(self.predict_proba(X)))

    def certified_margin(self, X: Any) -> Array:
        """Return how safe each prediction is: above 0, the exact optimum predicts the same.

        The margin is the lead of the predicted class in score, less what the scores of the exact
        optimum can differ by according to the certificate. Fit with a small `tol` to certify more
        predictions.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        (n_samples,) array
        """
        X = self._rows_to_predict(X)
        coef = self._dense_coef()
        scores = RowProducts(X).times(coef) + self.intercept_
        errors = self._region.errors(X, coef, self.intercept_)
        if scores.shape[1] == 1:
            return np.asarray(np.abs(scores[:, 0]) - errors[:, 0])
        rows, best = np.arange(len(scores)), scores.argmax(axis=1)
        low = scores[rows, best] - errors[rows, best]
        rivals = scores + errors
        rivals[rows, best] = -np.inf
        return np.asarray(low - rivals.max(axis=1))
