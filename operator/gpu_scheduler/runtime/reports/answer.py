"""What a program is answered that reports over HTTP."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Answer:
    """Of HTTP: a status, what the body says, and after how long to try again (0: not said)."""

    status: int
    body: dict[str, object]
    retry_after_seconds: int = 0


def refusal(status: int, sentence: str, retry_after_seconds: int = 0) -> Answer:
    """An answer that says why not."""
    return Answer(status, {"error": sentence}, retry_after_seconds)
