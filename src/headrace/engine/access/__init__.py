"""What a piece of SQL may reach, and which of its options are secret."""
