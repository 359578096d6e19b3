"""What the planner is given of pods: those that wait, exist or not, and those that run."""
