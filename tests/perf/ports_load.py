"""Whoever means ill with the operator's ports: ``python -m tests.perf.ports_load``.

Scrapes in parallel without end, connections that say nothing and are opened again when they are
closed, and reports for a pod that runs with tokens that were never signed, each another one; each
kind from a source address of its own on the loopback network. Prints what became of them as JSON
once its input ends. Started by ``bench_ports``.
"""

import argparse
import asyncio
import json
import sys
from base64 import urlsafe_b64encode
from collections import Counter
from collections.abc import Callable
from itertools import count

import uvloop

SCRAPER, IDLER, FLOODER = "127.0.0.2", "127.0.0.3", "127.0.0.4"
_SECONDS = 10.0
_PAUSE_SECONDS = 0.05  # after a connection was refused
_AUDIENCE = "gpu-scheduler.io/reports"


def main() -> None:
    """Attack until the input ends."""
    parser = argparse.ArgumentParser(prog="python -m tests.perf.ports_load", description=__doc__)
    parser.add_argument("--admin", type=int, required=True, help="port")
    parser.add_argument("--reports", type=int, required=True, help="port")
    parser.add_argument("--scrapes", type=int, default=0, help="at a time")
    parser.add_argument("--idle", type=int, default=0, help="connections")
    parser.add_argument("--flood", type=int, default=0, help="senders of wrong tokens")
    parser.add_argument("--pod", default="", help="uid of the pod for which they say to speak")
    options = parser.parse_args()
    print(json.dumps(uvloop.run(_attack(options))))  # noqa: T201


async def _attack(options: argparse.Namespace) -> dict[str, int]:
    counts: Counter[str] = Counter()
    scrape = "GET /metrics HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"
    numbers = count()
    kinds: tuple[tuple[str, int, str, int, Callable[[], str]], ...] = (
        ("scrapes", options.scrapes, SCRAPER, options.admin, lambda: scrape),
        ("idle", options.idle, IDLER, options.reports, lambda: ""),
        ("wrong", options.flood, FLOODER, options.reports, lambda: _wrong(options.pod, numbers)),
    )
    tasks = [
        asyncio.ensure_future(_ask(counts, kind, source, port, request))
        for kind, count, source, port, request in kinds
        for _ in range(count)
    ]
    await asyncio.to_thread(sys.stdin.read)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    return dict(counts)


def _wrong(pod: str, numbers: "count[int]") -> str:
    """A report with a token that says all that one has to say."""
    claims = {"aud": [_AUDIENCE], "jti": next(numbers), "kubernetes.io": {"pod": {"uid": pod}}}
    payload = urlsafe_b64encode(json.dumps(claims).encode()).decode().rstrip("=")
    head = f"POST /reports/trials/{pod} HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n"
    return f"{head}Authorization: Bearer eyJhbGciOiJFUzI1NiJ9.{payload}.{'A' * 86}\r\n\r\n{{}}"


async def _ask(
    counts: Counter[str], kind: str, source: str, port: int, make: Callable[[], str]
) -> None:
    """Ask again and again; with nothing to ask, hold the connection for as long as it lasts."""
    while True:
        request = make()
        try:
            async with asyncio.timeout(_SECONDS if request else None):
                status = await _once(source, port, request)
        except (OSError, TimeoutError) as error:
            status = type(error).__name__
        counts[f"{kind} {status}"] += 1
        if status in ("closed", "OSError", "ConnectionResetError", "ConnectionRefusedError"):
            await asyncio.sleep(_PAUSE_SECONDS)


async def _once(source: str, port: int, request: str) -> str:
    reader, writer = await asyncio.open_connection("127.0.0.1", port, local_addr=(source, 0))
    try:
        if request:
            writer.write(request.encode())
        head = await reader.read(1 << 20)
        while await reader.read(1 << 20):
            pass
        return head.split()[1].decode() if head else "closed"
    finally:
        writer.close()


if __name__ == "__main__":
    main()
