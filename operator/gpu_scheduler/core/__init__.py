"""The scheduler's mathematics: values in, decisions out.

Nothing here awaits, does I/O, reads a clock or knows a word of Kubernetes' API.
"""
