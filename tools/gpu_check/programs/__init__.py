"""Programs that are run by path, in processes of their own; they import nothing of this package."""
