"""Whoever means ill with the operator's ports: ``python -m tests.perf.ports_load``.

Scrapes in parallel without end, connections that say nothing and are opened again when they are
closed, and requests with wrong tokens; each kind from a source address of its own on the loopback
network. Prints what became of them as JSON once its input ends. Started by ``bench_ports``.
"""

import argparse
import asyncio
import json
import sys
from collections import Counter

import uvloop

SCRAPER, IDLER, FLOODER = "127.0.0.2", "127.0.0.3", "127.0.0.4"
_SECONDS = 10.0
_PAUSE_SECONDS = 0.05  # after a connection was refused
_WRONG = "/reports/00000000-0000-0000-0000-000000000000/0/" + "0" * 32


def main() -> None:
    """Attack until the input ends."""
    parser = argparse.ArgumentParser(prog="python -m tests.perf.ports_load", description=__doc__)
    parser.add_argument("--admin", type=int, required=True, help="port")
    parser.add_argument("--reports", type=int, required=True, help="port")
    parser.add_argument("--scrapes", type=int, default=0, help="at a time")
    parser.add_argument("--idle", type=int, default=0, help="connections")
    parser.add_argument("--flood", type=int, default=0, help="senders of wrong tokens")
    options = parser.parse_args()
    print(json.dumps(uvloop.run(_attack(options))))  # noqa: T201


async def _attack(options: argparse.Namespace) -> dict[str, int]:
    counts: Counter[str] = Counter()
    scrape = "GET /metrics HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"
    wrong = f"POST {_WRONG} HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\n{{}}"
    kinds = (
        ("scrapes", options.scrapes, SCRAPER, options.admin, scrape),
        ("idle", options.idle, IDLER, options.reports, ""),
        ("wrong", options.flood, FLOODER, options.reports, wrong),
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


async def _ask(counts: Counter[str], kind: str, source: str, port: int, request: str) -> None:
    """Ask again and again; with nothing to ask, hold the connection for as long as it lasts."""
    while True:
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
