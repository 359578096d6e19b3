"""What to change about work, by what its GPUs were seen doing; for people: docs/advice.md."""
