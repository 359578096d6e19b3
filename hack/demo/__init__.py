"""`make demo`: a cluster on this machine, the operator on it, and two jobs that share one GPU.

As root on Linux containers run for real, on a node with pretend A100s; otherwise everything
runs on fake nodes, and the output says so. A second run reuses what the first one made.
"""
