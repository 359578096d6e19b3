"""What the operator knows: typed records of pods, nodes, jobs and projects, and the snapshot."""
