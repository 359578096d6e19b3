"""Work of several projects played through the planner: who waits, who is evicted, what it costs.

``workload`` says what is played, ``workloads`` makes some, ``player`` plays one, ``figures``
counts, ``command`` puts them together.
"""
