"""Gangs: pods that start together or not at all, are evicted together, and share a domain.

Everything is tried on the snapshot and rolled back; a ``Placement`` says where each member would
go. Read ``request`` and ``placing`` first; ``making_room`` finds victims, ``reserving`` keeps room,
``possible`` judges empty nodes and ``reasons`` puts it into words.
"""
