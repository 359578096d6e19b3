"""Times as the API server writes them: RFC 3339, UTC, whole seconds (metav1.Time)."""

from datetime import UTC, datetime


def timestamp(now: datetime) -> str:
    """A time with a zone, as objects carry it."""
    return now.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def utc_now() -> str:
    """The current time."""
    return timestamp(datetime.now(UTC))
