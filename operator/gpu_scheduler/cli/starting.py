"""How ``operator`` and ``agent`` start: their settings, the way to the API server, their log."""

import json
import logging
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol, TypeVar

import click

from gpu_scheduler.cli.ending import one_line

if TYPE_CHECKING:
    from gpu_scheduler.kube.connection import Connection

json_logs = click.option("--json-logs", is_flag=True, help="One JSON object per log line.")


class HasLogLevel(Protocol):
    """Settings of a program that logs."""

    @property
    def log_level(self) -> str:
        """The least that is logged."""


S = TypeVar("S", bound=HasLogLevel)


class JsonFormatter(logging.Formatter):
    """A log record as one line of JSON."""

    def format(self, record: logging.LogRecord) -> str:
        """See ``logging.Formatter``."""
        fields = {
            "time": self.formatTime(record),
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
        }
        if record.exc_info:
            fields["error"] = self.formatException(record.exc_info)
        return json.dumps(fields)


def configured(load: Callable[[], S], *, json_lines: bool) -> "tuple[S, Connection]":
    """Settings and the way to the API server; ends the program where one of them is wrong."""
    from gpu_scheduler.kube import config

    with one_line():
        try:
            settings, connection = load(), config.load()
        except config.ConfigError as error:
            raise ValueError(str(error)) from None
    _log_to_stderr(settings.log_level, json_lines=json_lines)
    return settings, connection


def _log_to_stderr(level: str, *, json_lines: bool) -> None:
    handler = logging.StreamHandler(sys.stderr)
    plain = logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s")
    handler.setFormatter(JsonFormatter() if json_lines else plain)
    logging.basicConfig(level=level.upper(), handlers=[handler])
    logging.getLogger("kopf").setLevel(logging.WARNING)
