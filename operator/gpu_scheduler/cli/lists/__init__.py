"""What ``list`` shows: GPUJobs as the API server's table, other workloads in its columns."""
