"""From an accepted GPUJob to its Jobs and Services, and their end."""
