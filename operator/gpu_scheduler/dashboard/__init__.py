"""What the pages of the dashboard say: pure functions of one picture of the cluster."""
