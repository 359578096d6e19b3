"""GPUs of the cluster and its projects over time, kept over a change of leader."""
