"""The simulator: the operator's own planner, where nothing happens.

On a trace: ``trace`` reads files, ``arrivals`` and ``lifetimes`` make a stream of pods from them,
``run`` plays it, ``result`` says what came out; ``command`` puts them together. On a cluster:
``cluster_read`` lists its objects, ``what_if`` changes them, ``cluster_world`` builds the state of
the operator, ``cluster_cycles`` plans until it rests; ``cluster_command`` puts them together.
``arguments`` is what the command line calls.
"""
