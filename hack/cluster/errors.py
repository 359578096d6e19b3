"""The one exception that the local cluster shows to people.

Its text says what was wrong, where, and what to do about it; the command line
prints it without a traceback. Everything else is a defect and keeps its traceback.
"""


class ClusterError(Exception):
    """Something that the user of the local cluster can put right."""
