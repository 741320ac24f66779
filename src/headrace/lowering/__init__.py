"""From optimized plans to the physical graph: what is shared, how it is spread, in how many levels."""
