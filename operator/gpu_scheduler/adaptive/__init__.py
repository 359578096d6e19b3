"""Searches that learn from results, by libraries of others; values in and out, no I/O."""
