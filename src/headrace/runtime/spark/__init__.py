"""Epochs on Spark; the only folder that imports it."""
