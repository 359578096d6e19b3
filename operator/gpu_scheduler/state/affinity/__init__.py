"""Pods as others' inter-pod affinity and topology spread see them."""
