"""Reads the picture off the state of the leader."""
