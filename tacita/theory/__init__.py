"""The theorems as functions of numbers: contraction rates, step sizes, bounds."""
