"""OVER: its calls, their frames, and the plans that compute them."""
