"""A loss: nothing up to ε, then a square, then a line of slope δ."""

import adasdca


@adasdca.register_loss
class HuberInsensitive(adasdca.losses.PiecewiseQuadratic):
    epsilon: float = 0.1
    delta: float = 1.0
    name = "huber_insensitive"
    kind = "regression"
    smoothness = 1.0
    dead_zone = property(lambda self: self.epsilon)
    domain = property(lambda self: (-self.delta, self.delta))
