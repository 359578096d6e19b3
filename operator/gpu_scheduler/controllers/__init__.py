"""kopf handlers. They put keys on a queue and do nothing else."""
