"""A stand-in for cluster DNS, which the local cluster has none of.

It answers with what the EndpointSlices of one namespace say when it is asked, which is all that a
cluster's DNS knows of a headless Service. Names are short here, ``HOST.SERVICE``: the node has no
cluster domain, so pods ask for what they are given. Source of the format: RFC 1035.
"""

import socket
import threading
from collections.abc import Callable
from http.client import HTTPException

_ANSWER, _NO_SUCH_NAME = 0x8180, 0x8183
_TYPE_A = 1
_SECONDS_TO_LIVE = 0  # a pod that is placed anew has another address


class NameServer:
    """Answers on UDP port 53 of one address; use as a context manager."""

    def __init__(self, address: str, addresses: Callable[[], dict[str, str]]) -> None:
        """``addresses``: by name, asked for each question."""
        self._addresses = addresses
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.bind((address, 53))
        self._socket.settimeout(0.2)
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self.asked: set[str] = set()

    def __enter__(self) -> "NameServer":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()  # it asks nobody for ever
        self._socket.close()

    def _serve(self) -> None:
        while not self._stop.is_set():
            try:
                question, sender = self._socket.recvfrom(512)
            except TimeoutError:
                continue
            try:
                answer = self._answer(question)
            except (OSError, HTTPException, KeyError):
                continue  # what is known is not to be had just now: who asks asks again
            self._socket.sendto(answer, sender)

    def _answer(self, question: bytes) -> bytes:
        labels, at = [], 12
        while length := question[at]:
            labels.append(question[at + 1 : at + 1 + length].decode())
            at += 1 + length
        name, end = ".".join(labels), at + 5  # the final 0, type and class
        self.asked.add(name)
        address = self._addresses().get(name)
        wanted = int.from_bytes(question[at + 1 : at + 3], "big")
        records = [address] if address and wanted == _TYPE_A else []
        numbers = (_ANSWER if address else _NO_SUCH_NAME, 1, len(records), 0, 0)
        head = question[:2] + b"".join(n.to_bytes(2, "big") for n in numbers)
        return head + question[12:end] + b"".join(map(_record, records))


def _record(address: str) -> bytes:
    """An A record of the name that was asked for."""
    head = b"\xc0\x0c" + (1).to_bytes(2, "big") * 2 + _SECONDS_TO_LIVE.to_bytes(4, "big")
    return head + (4).to_bytes(2, "big") + socket.inet_aton(address)
