"""What an epoch takes from each stream: shares of bounded input, and feeds of streams that never end."""
