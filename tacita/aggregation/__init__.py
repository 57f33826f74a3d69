"""How the letters of an exchange become one: the mean, or another rule."""

from tacita.aggregation.adaptive_clipping import AdaptiveClipping
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
from tacita.aggregation.trimmed_mean import TrimmedMean

#: Every rule, known to run files by its name.
RULES = (
    *(Mean, ClippedMean, TrimmedMean, Median, GeometricMedian, RFA, Krum, MultiKrum),
    *(Bulyan, CenteredClipping, NormBound, FLTrust, NearestNeighbourMixing, Buckets),
    *(AdaptiveClipping, *ON_GRAPHS),
)

__all__ = [
    *("RULES", "ON_GRAPHS", "Aggregation", "Heard", "Mean", "ClippedMean"),
    *("TrimmedMean", "Median", "GeometricMedian", "RFA", "Krum", "MultiKrum"),
    *("Bulyan", "CenteredClipping", "NormBound", "FLTrust"),
    *("NearestNeighbourMixing", "Buckets", "AdaptiveClipping"),
    *("ClippedGossip", "Bridge", "NearestToOwn"),
]
