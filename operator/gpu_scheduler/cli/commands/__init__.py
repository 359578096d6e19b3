"""A module for each command: its options, and how it ends. Imported when it runs."""
