"""Sweeps at run time: what is remembered of each, and what is done about it.

``record`` is the memory, ``trials`` listens to pods and Jobs, ``start`` gives a pod its parameters,
``results`` stores outcomes, ``segments`` makes Jobs, ``status`` tells. All on one event loop, but
for searches in logs and studies, which have threads of their own. ``sweeping`` puts the parts
together.
"""
