"""Programs that open the driver in unusual ways; each runs in a process of its own, by path."""
