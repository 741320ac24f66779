"""The clauses of a query that standard SQL does not have, or has otherwise."""
