"""What programs in pods report over HTTP, and whether they are believed."""
