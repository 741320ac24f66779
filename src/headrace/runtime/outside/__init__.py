"""The one door to the world: what is reached through it, how long that may take, and what its errors mean."""
