"""Inter-pod affinity and topology spread: which nodes other pods leave to a pod."""
