"""Which nodes a pod may use, by labels, taints and topology domains."""
