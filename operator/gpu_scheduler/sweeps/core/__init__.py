"""Sweeps: which parameters a trial has, what came of it, when to stop, and what to say of it all.

Trials are numbered from 0. Nothing here reads a clock, a file or the cluster: the runtime asks, the
command line asks the same functions, so a preview shows what will run.
"""
