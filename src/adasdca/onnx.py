"""Export of fitted estimators to ONNX, through skl2onnx (``pip install adasdca[onnx]``).

`register_converters` teaches skl2onnx the estimators of this package, alone or inside pipelines;
`to_onnx` does that and converts.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from adasdca.estimators import (
    AdaSDCAClassifier,
    AdaSDCAClassifierCV,
    AdaSDCARegressor,
    AdaSDCARegressorCV,
)
from adasdca.problem.losses import Logistic

#: Options that skl2onnx passes on: a map of probabilities instead of an array, or scores instead.
OPTIONS = {"zipmap": [True, False, "columns"], "raw_scores": [True, False], "nocl": [True, False]}


def register_converters() -> None:
    """Make skl2onnx know the estimators of this package."""
    try:
        from skl2onnx import update_registered_converter
        from skl2onnx.common.shape_calculator import (
            calculate_linear_classifier_output_shapes,
            calculate_linear_regressor_output_shapes,
        )
    except ImportError as error:
        raise ImportError(
            "ONNX export needs skl2onnx; install it with `pip install adasdca[onnx]`."
        ) from error
    for model in (AdaSDCAClassifier, AdaSDCAClassifierCV):
        update_registered_converter(
            model,
            model.__name__,
            calculate_linear_classifier_output_shapes,
            _convert_classifier,
            options=OPTIONS,
        )
    for regressor in (AdaSDCARegressor, AdaSDCARegressorCV):
        update_registered_converter(
            regressor,
            regressor.__name__,
            calculate_linear_regressor_output_shapes,
            _convert_regressor,
        )


def to_onnx(model: Any, X: Any, **options: Any) -> Any:
    """Return a fitted estimator, or a pipeline that ends in one, as an ONNX model.

    Parameters
    ----------
    model : estimator
        Fitted. Classifiers have two outputs: labels, and probabilities, or scores for losses that
        give no probabilities (with two classes, −score and score).
    X : array
        Some rows, from which the type of the input is taken.
    **options
        Passed on to ``skl2onnx.to_onnx``. Unless `options` are among them, probabilities are an
        array: their map (``zipmap``) holds single precision only, and ONNX Runtime refuses others.

    Returns
    -------
    onnx.ModelProto
    """
    register_converters()
    from skl2onnx import to_onnx as convert

    last = model[-1] if hasattr(model, "steps") else model
    if isinstance(last, AdaSDCAClassifier):
        options.setdefault("options", {id(last): {"zipmap": False}})
    return convert(model, X, **options)


class _Graph:
    """Adds nodes to the graph of one operator."""

    def __init__(self, scope: Any, operator: Any, container: Any) -> None:
        from skl2onnx.common.data_types import guess_proto_type

        self._scope, self._container = scope, container
        self.model = operator.raw_operator
        self.type = guess_proto_type(operator.inputs[0].type)
        if self.type not in (1, 11):  # neither float nor double: numbers to be read as floats
            self.type = 1
        self.numbers = np.float64 if self.type == 11 else np.float32

    def node(
        self, kind: str, inputs: list[str], output: str | None = None, **attributes: Any
    ) -> str:
        name: str = output or self._scope.get_unique_variable_name(kind.lower())
        self._container.add_node(
            kind,
            inputs,
            name,
            name=self._scope.get_unique_operator_name(kind),
            **attributes,
        )
        return name

    def constant(self, values: Any, kind: int | None = None) -> str:
        name: str = self._scope.get_unique_variable_name("constant")
        array = np.asarray(values)
        self._container.add_initializer(
            name, self.type if kind is None else kind, list(array.shape), array.ravel().tolist()
        )
        return name

    def scores(self, source: str, output: str | None = None) -> str:
        """Add X·coefᵀ + intercept."""
        rows = self.node("Cast", [source], to=self.type)
        coef = self.model._dense_coef().T.astype(self.numbers)
        intercept = np.atleast_1d(self.model.intercept_).astype(self.numbers)
        product = self.node("MatMul", [rows, self.constant(coef)])
        return self.node("Add", [product, self.constant(intercept)], output)


def _convert_regressor(scope: Any, operator: Any, container: Any) -> None:
    graph = _Graph(scope, operator, container)
    graph.scores(operator.inputs[0].full_name, operator.outputs[0].full_name)


def _convert_classifier(scope: Any, operator: Any, container: Any) -> None:
    graph = _Graph(scope, operator, container)
    model = graph.model
    scores = graph.scores(operator.inputs[0].full_name)
    both = scores
    if len(model.classes_) == 2:
        both = graph.node("Concat", [graph.node("Neg", [scores]), scores], axis=1)
    # argmax takes the first of equals: at a score of 0 the first class, like predict.
    index = graph.node("ArgMax", [both], axis=1, keepdims=0)
    strings = model.classes_.dtype.kind in "OUS"
    labels = (
        [str(label) for label in model.classes_] if strings else model.classes_.astype(np.int64)
    )
    table = graph.constant(labels, 8 if strings else 7)
    graph.node("Gather", [table, index], operator.outputs[0].full_name, axis=0)
    raw = container.get_options(model, {"raw_scores": False})["raw_scores"]
    if raw or not hasattr(model, "predict_proba"):
        graph.node("Identity", [both], operator.outputs[1].full_name)
    else:
        _probabilities(graph, scores, operator.outputs[1].full_name)


def _probabilities(graph: _Graph, scores: str, output: str) -> None:
    """Add the formulas of `AdaSDCAClassifier.predict_proba`."""
    model = graph.model
    if model._joint:
        graph.node("Softmax", [scores], output, axis=1)
        return
    one = graph.constant([1.0])
    if isinstance(model._loss(), Logistic):
        p = graph.node("Sigmoid", [scores])
    else:
        low, high = graph.constant(-1.0), graph.constant(1.0)
        clipped = graph.node("Clip", [scores, low, high])
        p = graph.node("Mul", [graph.node("Add", [clipped, one]), graph.constant([0.5])])
    if len(model.classes_) == 2:
        graph.node("Concat", [graph.node("Sub", [one, p]), p], output, axis=1)
        return
    total = graph.node("ReduceSum", [p, graph.constant([1], 7)], keepdims=1)
    some = graph.node("Greater", [total, graph.constant([0.0])])
    count = graph.constant([float(len(model.classes_))])
    graph.node(
        "Div",
        [graph.node("Where", [some, p, one]), graph.node("Where", [some, total, count])],
        output,
    )
