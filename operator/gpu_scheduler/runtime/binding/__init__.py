"""From a decision to a pod on its node, and what happens where that fails."""
