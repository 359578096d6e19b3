"""Who may give way, when, and how few."""
