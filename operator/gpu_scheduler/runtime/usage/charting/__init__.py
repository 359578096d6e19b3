"""GPUs over time: charts of the cluster and its projects, and who held each GPU before."""
