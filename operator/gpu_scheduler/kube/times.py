"""Times as the API server writes them: RFC 3339, UTC."""

from datetime import UTC, datetime


def timestamp(now: datetime) -> str:
    """A time with a zone, as objects carry it: in whole seconds (metav1.Time)."""
    return now.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def micro_timestamp(now: datetime) -> str:
    """A time with a zone, as Leases carry it (metav1.MicroTime)."""
    return now.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def utc_now() -> str:
    """The current time."""
    return timestamp(datetime.now(UTC))
