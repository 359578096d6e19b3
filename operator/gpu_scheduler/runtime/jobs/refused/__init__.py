"""GPUJobs that the API server refuses, and how it is noticed that it no longer does."""
