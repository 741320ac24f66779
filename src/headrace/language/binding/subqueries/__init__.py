"""Subqueries in expressions: what they ask, the joins that answer, and what ties them to the rows around."""
