"""Curves, composition, subsampling, calibration: the arithmetic of guarantees."""
