"""Regularised linear models by adaptive dual coordinate ascent, with a certificate for every answer."""

from adasdca import datasets, losses, methods, theory
from adasdca.certificate import Certificate, certify
from adasdca.losses import (
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
from adasdca.methods import SDCA, AdaSDCA, AdaSDCAPlus, Auto, IProxSDCA, Quartz, SDCAPerm
from adasdca.sampling import register_rule
from adasdca.solution import History, Phase, Record, Solution, State, Status
from adasdca.solver import solve
from adasdca.survey import CertificateError, Survey

__version__ = "0.1.0"

__all__ = [
    "SDCA",
    "Absolute",
    "AdaSDCA",
    "AdaSDCAPlus",
    "Auto",
    "Certificate",
    "CertificateError",
    "EpsilonInsensitive",
    "Hinge",
    "History",
    "Huber",
    "IProxSDCA",
    "Logistic",
    "ModifiedHuber",
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
    "losses",
    "methods",
    "register_rule",
    "solve",
    "theory",
]
