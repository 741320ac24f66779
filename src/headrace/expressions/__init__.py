"""Scalar expressions and aggregate functions: trees, types, evaluation over Arrow."""
