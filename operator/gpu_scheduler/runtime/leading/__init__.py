"""What begins and ends with a leader."""
