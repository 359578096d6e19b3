"""The node agent: what NVML and /proc say about this node's GPUs, and what is done about it."""
