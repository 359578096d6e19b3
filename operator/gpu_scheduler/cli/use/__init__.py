"""What work does with its GPUs, out of GPUUsage: for ``top``, ``report``, ``advise``, ``idle``."""
