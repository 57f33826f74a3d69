"""How letters of an exchange become one: the mean, a secure sum, or another rule."""

from tacita.aggregation.adaptively_clipped import AdaptivelyClipped
from tacita.aggregation.bulyan import Bulyan
from tacita.aggregation.clipped_mean import ClippedMean
from tacita.aggregation.fl_trust import FLTrust
from tacita.aggregation.geometric_median import GeometricMedian
from tacita.aggregation.krum import Krum, MultiKrum
from tacita.aggregation.mean import Mean
from tacita.aggregation.median import Median
from tacita.aggregation.mixing import Buckets, NearestNeighbourMixing
from tacita.aggregation.neighbours import (
    ON_GRAPHS,
    Bridge,
    ClippedGossip,
    NearestToOwn,
)
from tacita.aggregation.norm_clipping import CenteredClipping, NormBound
from tacita.aggregation.rfa import RFA
from tacita.aggregation.rule import Aggregation, Heard
from tacita.aggregation.secure import SecureSum, Summed
from tacita.aggregation.trimmed_mean import TrimmedMean

#: What may be asked for; "secure" is a `SecureSum` over everybody.
Choice = Aggregation | SecureSum | str | None
#: Rules that ask another one, their field `rule`.
ASKING = (NearestNeighbourMixing, Buckets, AdaptivelyClipped)
#: Every rule, known to run files by its name.
RULES = (
    *(Mean, ClippedMean, TrimmedMean, Median, GeometricMedian, RFA, Krum, MultiKrum),
    *(Bulyan, CenteredClipping, NormBound, FLTrust, NearestNeighbourMixing, Buckets),
    *(AdaptivelyClipped, *ON_GRAPHS),
)

__all__ = [
    "ASKING",
    "ON_GRAPHS",
    "RFA",
    "RULES",
    "AdaptivelyClipped",
    "Aggregation",
    "Bridge",
    "Buckets",
    "Bulyan",
    "Choice",
    "CenteredClipping",
    "ClippedGossip",
    "ClippedMean",
    "FLTrust",
    "GeometricMedian",
    "Heard",
    "Krum",
    "Mean",
    "Median",
    "MultiKrum",
    "NearestNeighbourMixing",
    "NearestToOwn",
    "NormBound",
    "SecureSum",
    "Summed",
    "TrimmedMean",
]
