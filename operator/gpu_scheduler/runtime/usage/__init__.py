"""What work does with its GPUs, as the agents tell the leader: asked for, summed up, shown."""
