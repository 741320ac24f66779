"""Where a run cannot keep up, rows of queries that bear loss are left out (Aurora's load shedding)."""
