"""Programs that take device memory through a framework until it says no.

Each runs in a process of its own, by path, with the interpreter that has the framework. Arguments:
the way, the size of a piece in MiB, and how many pieces at most. It prints one JSON line:
``{"free_mib", "total_mib", "got_mib", "error"}``; error: the class of the exception, or null.
"""
