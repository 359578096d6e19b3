"""What work does with the GPUs it holds: figures that agents keep, and what to change about it."""
