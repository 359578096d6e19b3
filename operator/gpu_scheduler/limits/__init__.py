"""What bounds what others ask for: bytes that are remembered, calls by time, turns by party."""
