"""Talking to a Kubernetes API server: configuration, client, reflector, lease.

Knows nothing of this product: no name of ours occurs here.
"""
