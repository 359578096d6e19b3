"""A fractional GPU scheduler for Kubernetes.

Imports go one way: main > web | controllers > runtime > state | jobs > kube | api > core.
"""

__version__ = "0.1.0"
