"""Searches that learn from results, by libraries of others, and the thread that asks them."""
