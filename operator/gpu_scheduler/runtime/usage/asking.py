"""Asks each agent every ten seconds what its node's GPUs do.

One request an agent at a time, a few seconds and megabytes at most, some agents at once. Who does
not answer is asked ever more seldom, up to once a minute. Nothing waits for an answer.
"""

import asyncio
import logging
from collections.abc import Callable
from typing import NoReturn

import aiohttp

from gpu_scheduler.kube.backoff import Backoff
from gpu_scheduler.kube.unexpected import unexpected
from gpu_scheduler.runtime.usage.agent_addresses import AgentAddress, AgentAddresses
from gpu_scheduler.runtime.usage.seen import SeenUse
from gpu_scheduler.usage.answer import AgentUsage, BadAnswerError, parse
from gpu_scheduler.usage.key import UsageKeys

log = logging.getLogger(__name__)

PERIOD_SECONDS = 10.0
_TICK_SECONDS = 0.25
_AT_ONCE = 32
_ANSWER_SECONDS = 3.0
_MOST_SECONDS = 60.0  # between two tries with who does not answer
_MOST_BYTES = 4 << 20
_MOST_SAID = 300  # bytes of why there is no answer
_SAID_AFTER = 6  # failures in a row: a node that restarts is none


class AgentAsker:
    """Asks for ever; what is answered goes to ``SeenUse``."""

    def __init__(
        self,
        addresses: AgentAddresses,
        keys: UsageKeys,
        port: int,
        seen: SeenUse,
        clock: Callable[[], float],
    ) -> None:
        """``port``: of agents; ``clock``: monotonic seconds."""
        self._addresses = addresses
        self._keys = keys
        self._port = port
        self._seen = seen
        self._clock = clock
        self._due: dict[str, float] = {}  # by node
        self._failed: dict[str, int] = {}  # in a row
        self._backoff = Backoff(PERIOD_SECONDS, _MOST_SECONDS)
        self._busy: set[str] = set()

    async def run(self) -> NoReturn:
        """Ask for ever."""
        timeout = aiohttp.ClientTimeout(total=_ANSWER_SECONDS)
        connector = aiohttp.TCPConnector(limit=_AT_ONCE, keepalive_timeout=2 * PERIOD_SECONDS)
        async with (
            aiohttp.ClientSession(connector=connector, timeout=timeout, trust_env=False) as session,
            asyncio.TaskGroup() as group,
        ):
            while True:
                for agent in self._next():
                    self._busy.add(agent.node)
                    group.create_task(self._once(session, agent))
                await asyncio.sleep(_TICK_SECONDS)
        raise AssertionError("the loop does not end")

    def _next(self) -> list[AgentAddress]:
        """Those whose turn it is; new ones are spread over the period."""
        known, now = self._addresses.by_node, self._clock()
        for node in self._due.keys() - known.keys():
            del self._due[node]
            self._failed.pop(node, None)
            self._seen.forget(node)
        new = [node for node in known if node not in self._due]
        for number, node in enumerate(new):
            self._due[node] = now + PERIOD_SECONDS * number / len(new)
        room = _AT_ONCE - len(self._busy)
        due = [node for node, at in self._due.items() if at <= now and node not in self._busy]
        return [known[node] for node in due[:room]]

    async def _once(self, session: aiohttp.ClientSession, agent: AgentAddress) -> None:
        node = agent.node
        self._due[node] = self._clock() + PERIOD_SECONDS
        try:
            self._seen.take(node, await self._ask(session, agent), self._clock())
            self._failed.pop(node, None)
        except (aiohttp.ClientError, TimeoutError, OSError, BadAnswerError) as error:
            times = self._failed[node] = self._failed.get(node, 0) + 1
            self._due[node] = self._clock() + self._backoff.delay_seconds(times - 1)
            self._seen.silent(node)
            if times == _SAID_AFTER:
                log.warning("the agent of %s does not say what its GPUs do: %r", node, error)
        except Exception:
            unexpected("usage", node)
        finally:
            self._busy.discard(node)

    async def _ask(self, session: aiohttp.ClientSession, agent: AgentAddress) -> AgentUsage:
        host = f"[{agent.ip}]" if ":" in agent.ip else agent.ip
        since = self._seen.look(agent.node)
        address = f"http://{host}:{self._port}/usage?since={since}"
        headers = {"Authorization": self._keys.header(agent.uid)}
        # An agent is no one to send us elsewhere.
        async with session.get(address, headers=headers, allow_redirects=False) as answer:
            if answer.status != 200:
                said = await answer.content.read(_MOST_SAID)
                raise BadAnswerError(f"status {answer.status}, {said!r}")
            body = await answer.content.read(_MOST_BYTES + 1)
            while len(body) <= _MOST_BYTES and (more := await answer.content.read(_MOST_BYTES)):
                body += more
        if len(body) > _MOST_BYTES:
            raise BadAnswerError(f"more than {_MOST_BYTES} bytes")
        return parse(body)
