"""How a browser test has the stand do something: a loopback port, and a secret for it."""

import json
import secrets
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from hmac import compare_digest
from typing import Any

from tests.dashboard.served import Answering, served

Action = Callable[..., Any]
"""Its arguments are the fields of what was posted; its value is the answer."""


@dataclass(frozen=True, slots=True)
class Control:
    """Where to ask, and what to show."""

    address: str
    secret: str


@contextmanager
def control_of(actions: Mapping[str, Action]) -> Iterator[Control]:
    """``POST /NAME`` carries an action out; they take turns."""
    secret = secrets.token_urlsafe()
    turn = threading.Lock()

    class Handler(Answering):
        def do_POST(self) -> None:
            shown = self.headers.get("Authorization", "")
            action = actions.get(self.path.lstrip("/"))
            if not compare_digest(shown.encode(), f"Bearer {secret}".encode()):
                return self._answer(401, "who asks?")
            if action is None:
                return self._answer(404, f"there is no {self.path}")
            asked = json.loads(self.rfile.read(int(self.headers.get("Content-Length", "0"))))
            try:
                with turn:
                    return self._answer(200, action(**asked))
            except Exception as error:
                return self._answer(500, repr(error))

        def _answer(self, status: int, said: object) -> None:
            self.answer(status, json.dumps(said).encode())

    with served(Handler) as port:
        yield Control(f"http://127.0.0.1:{port}", secret)
