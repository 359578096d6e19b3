"""For all unit tests: hypothesis asserts no time, which depends on what else the machine does.

Without a deadline its health check, too, gives slow generation of examples 30 s instead of one.
"""

from hypothesis import settings

settings.register_profile(
    "untimed", settings.get_profile(settings.get_current_profile_name()), deadline=None
)
settings.load_profile("untimed")
