"""The simulator: the operator's own planner on a trace instead of a cluster.

``trace`` reads files, ``arrivals`` and ``lifetimes`` make a stream of pods from them, ``run`` plays
it, ``result`` says what came out. ``command`` is what the command line calls.
"""
