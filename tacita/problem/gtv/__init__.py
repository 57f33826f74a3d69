"""Personal models coupled along the edges of a graph: GTVMin."""

from tacita.problem.gtv.gtvmin import GTVMin, convex_clustering

__all__ = ["GTVMin", "convex_clustering"]
