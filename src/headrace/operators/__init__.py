"""Physical operators, and the sweep areas that hold their state."""
