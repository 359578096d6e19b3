"""Nodes, their devices and who holds what of them."""
