"""Which node and which GPUs, for a pod or for all pods of a group at once."""
