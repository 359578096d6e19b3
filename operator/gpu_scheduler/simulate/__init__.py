"""The simulator: the operator's own planner on a snapshot of a cluster, where nothing happens.

``cluster_read`` lists a cluster's objects, ``what_if`` changes them, ``simulated_cluster`` builds
the operator's state from them, ``cluster_cycles`` plans until it rests; ``cluster_command`` puts
them together. ``fitting`` answers ``fit``, ``explanation`` says what ``why`` adds to the verdict.
"""
