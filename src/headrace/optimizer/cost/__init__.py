"""What a plan is expected to cost, from how its streams flow (thesis, chapter 22)."""
