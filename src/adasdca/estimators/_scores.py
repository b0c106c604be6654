"""What a fitted classifier says of new rows: scores, probabilities, certified margins."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, softmax
from sklearn.linear_model._base import LinearClassifierMixin, SparseCoefMixin
from sklearn.utils.metaestimators import available_if

from adasdca.duality.error_bounds import Region
from adasdca.estimators._device import in_kind_of
from adasdca.problem.device_rows import to_numpy
from adasdca.problem.losses import Logistic, ModifiedHuber

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
    classes_: Any

    def decision_function(self, X: Any) -> Any:
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
        scores = self._scored(X)
        return in_kind_of(scores.ravel() if scores.shape[1] == 1 else scores, X)

    def predict(self, X: Any) -> Any:
        """Return the labels: those of the largest scores.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        (n_samples,) array
        """
        scores = self._scored(X)
        one = scores.shape[1] == 1
        codes = (scores[:, 0] > 0).astype(np.intp) if one else scores.argmax(axis=1)
        return in_kind_of(self.classes_[codes], X)

    @available_if(_gives_probabilities)
    @np.errstate(under="ignore")  # a probability too small for doubles is 0
    def predict_proba(self, X: Any) -> Any:
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
        return in_kind_of(self._chances(X), X)

    def _chances(self, X: Any) -> Array:
        scores = self._scored(X)
        logistic = isinstance(self._loss(), Logistic)
        if self._joint:
            return np.asarray(softmax(scores, axis=1))
        p = expit(scores) if logistic else (np.clip(scores, -1.0, 1.0) + 1.0) / 2.0
        if p.shape[1] == 1:
            return np.column_stack([1.0 - p, p])
        total = p.sum(axis=1, keepdims=True)
        # Where no class has any probability, all have the same.
        return np.asarray(np.where(total > 0, p, 1.0) / np.where(total > 0, total, p.shape[1]))

    @available_if(_gives_probabilities)
    def predict_log_proba(self, X: Any) -> Any:
        """Return the logarithms of the probabilities of the classes.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        (n_samples, n_classes) array
        """
        with np.errstate(divide="ignore", under="ignore"):  # log 0 = −∞ is the answer
            return in_kind_of(np.log(self._chances(X)), X)

    def certified_margin(self, X: Any) -> Any:
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
        products, coef, b = self._rows_to_predict(X), self._dense_coef(), to_numpy(self.intercept_)
        scores = products.times(coef) + b
        errors = self._region.errors(products, coef, b)
        if scores.shape[1] == 1:
            return in_kind_of(np.abs(scores[:, 0]) - errors[:, 0], X)
        rows, best = np.arange(len(scores)), scores.argmax(axis=1)
        low = scores[rows, best] - errors[rows, best]
        rivals = scores + errors
        rivals[rows, best] = -np.inf
        return in_kind_of(low - rivals.max(axis=1), X)
