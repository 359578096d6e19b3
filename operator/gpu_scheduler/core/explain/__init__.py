"""Why a job waits: a reason, and a sentence with numbers."""
