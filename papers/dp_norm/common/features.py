"""Features of images that are fixed before any data is seen.

Histograms of oriented gradients (N. Dalal, B. Triggs, CVPR 2005) without learned parts:
differences of pixels, their direction shared between neighbouring bins, summed over
square cells, square root. The mean over features is then taken off, because all images
have it in common and it only makes the problem stiff, and every image is scaled to
length 1, which bounds its gradient.
"""

from __future__ import annotations

import numpy as np

SIDE = 28


def oriented_gradients(images: np.ndarray, bins: int = 8, cell: int = 4) -> np.ndarray:
    """From flat images to unit vectors of (28/cell)^2 bins features, image by image."""
    pixels = np.asarray(images, np.float32).reshape(-1, SIDE, SIDE)
    across, down = np.zeros_like(pixels), np.zeros_like(pixels)
    across[:, :, 1:-1] = pixels[:, :, 2:] - pixels[:, :, :-2]
    down[:, 1:-1] = pixels[:, 2:] - pixels[:, :-2]
    size = np.hypot(across, down)
    turn = np.mod(np.arctan2(down, across) / (2 * np.pi), 1.0) * bins
    lower = np.floor(turn)
    upper_share = turn - lower
    lower = lower.astype(np.int32) % bins
    cells = SIDE // cell
    shape = (len(pixels), cells, cell, cells, cell)
    made = np.empty((len(pixels), cells, cells, bins), np.float32)
    for one in range(bins):
        share = np.where(lower == one, 1 - upper_share, 0)
        share += np.where((lower + 1) % bins == one, upper_share, 0)
        made[..., one] = (size * share).reshape(shape).sum(axis=(2, 4))
    flat = np.sqrt(made).reshape(len(pixels), -1)
    flat -= flat.mean(axis=1, keepdims=True)
    length = np.linalg.norm(flat, axis=1, keepdims=True)
    return flat / np.maximum(length, 1e-12)
