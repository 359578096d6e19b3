"""Who holds the GPUs, and what that took: for ``top``, ``idle``, ``report`` and ``project``."""
