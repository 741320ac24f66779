"""Physical operators, the sweep area, and lowering from plans to operators."""
