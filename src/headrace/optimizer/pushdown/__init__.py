"""Rules that move filters, windows and columns up or down a plan."""
