"""Regularised linear models by adaptive dual coordinate ascent, each answer with a certificate."""

from typing import TYPE_CHECKING, Any

from adasdca import datasets, files, methods
from adasdca.ascent.sampling import register_rule
from adasdca.ascent.survey import Survey
from adasdca.duality import theory
from adasdca.duality.certificate import Certificate, CertificateError
from adasdca.methods import SDCA, AdaSDCA, AdaSDCAPlus, Auto, IProxSDCA, Quartz, SDCAPerm
from adasdca.models._certify import certify
from adasdca.paths import Path, path
from adasdca.problem import losses
from adasdca.problem.losses import (
    Absolute,
    EpsilonInsensitive,
    Hinge,
    Huber,
    Logistic,
    ModifiedHuber,
    Quantile,
    SmoothedHinge,
    Squared,
    SquaredEpsilonInsensitive,
    SquaredHinge,
)
from adasdca.registration import register_loss, register_method
from adasdca.solution import History, Phase, Record, Solution, State, Status
from adasdca.solver import solve

if TYPE_CHECKING:
    from adasdca.estimators import (
        AdaSDCAClassifier,
        AdaSDCAClassifierCV,
        AdaSDCARegressor,
        AdaSDCARegressorCV,
        ConvergenceDisplay,
        PathDisplay,
    )

__version__ = "0.2.0.dev0"

__all__ = [
    "SDCA",
    "Absolute",
    "AdaSDCA",
    "AdaSDCAClassifier",
    "AdaSDCAClassifierCV",
    "AdaSDCAPlus",
    "AdaSDCARegressor",
    "AdaSDCARegressorCV",
    "Auto",
    "Certificate",
    "CertificateError",
    "ConvergenceDisplay",
    "EpsilonInsensitive",
    "Hinge",
    "History",
    "Huber",
    "IProxSDCA",
    "Logistic",
    "ModifiedHuber",
    "Path",
    "PathDisplay",
    "Phase",
    "Quantile",
    "Quartz",
    "Record",
    "SDCAPerm",
    "SmoothedHinge",
    "Solution",
    "Squared",
    "SquaredEpsilonInsensitive",
    "SquaredHinge",
    "State",
    "Status",
    "Survey",
    "certify",
    "datasets",
    "files",
    "losses",
    "methods",
    "path",
    "register_loss",
    "register_method",
    "register_rule",
    "solve",
    "theory",
]


def __getattr__(name: str) -> Any:
    # Imported at first use: scikit-learn takes four times as long to load as all the rest.
    from importlib import import_module

    if name in ("dask", "estimators", "onnx", "plotting", "plugins", "sklearn"):
        return import_module(f"adasdca.{name}")
    if name in __all__:
        return getattr(import_module("adasdca.estimators"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
