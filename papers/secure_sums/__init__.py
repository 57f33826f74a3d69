"""Secure sums: what they buy in accuracy."""
