"""Integers, limbs of exact sums, and correct rounding."""
