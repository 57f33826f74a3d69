"""Features that keep an attribute to themselves (A. Jung, 9.3).

These are no differential privacy: they hide one attribute from linear readers (184), or
bound the information about it (183). A projection that was computed from rows tells of
them; between agents take the sums of `tacita.problem.Moments`, noised or secure.
"""

from tacita.privacy.features.discriminant import private_direction
from tacita.privacy.features.funnel import Funnel, funnel
from tacita.privacy.features.gaussian_funnel import GaussianFunnel, gaussian_funnel
from tacita.privacy.features.projection import (
    Projection,
    linear_leak,
    private_projection,
    projection_of_moments,
)

__all__ = [
    "Funnel",
    "GaussianFunnel",
    "Projection",
    "funnel",
    "gaussian_funnel",
    "linear_leak",
    "private_direction",
    "private_projection",
    "projection_of_moments",
]
