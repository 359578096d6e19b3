"""GPUJobs, their Jobs and projects as last seen, and what is remembered of each."""
