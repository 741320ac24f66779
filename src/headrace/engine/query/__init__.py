"""A continuous query, as its user holds it."""
