"""Which operators the queries of one change have in common."""
