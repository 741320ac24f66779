"""Statements that define or change something, and the clauses of CREATE STREAM."""
