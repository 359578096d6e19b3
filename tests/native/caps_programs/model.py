"""What a real driver would count of a program: by what was made, who holds it, and what ends it.

A figure is a span where a driver is free to keep more than is used (pools, graphs, a library that
was unloaded). Rules are those of NVIDIA's CUDA driver API: memory belongs to a context and goes
with it, physical memory stays until its last handle, map and exported descriptor, in whichever
process, is gone, all of a process goes when it ends and no forked child has its descriptors (as
NVIDIA's Megatron-LM reports it, pull request 3684). ``exports_stay`` False: an exporter's end or
release gives exported memory back though others have it, as the pretended driver did at first.
``context``: what the driver takes for one.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from tests.native.caps_programs.program import Op

MIB = 1 << 20
CONTEXT, MODULE, GRANULE, CHUNK = 16 * MIB, 2 * MIB, 2 * MIB, 32 * MIB
SMALL = GRANULE // 2
NOBODY, INHERITED, STALE = 0, "inherited", "stale"
DESTROYED = -(1 << 20)  # numbers below are those of what was destroyed and still has memory
KEPT = -(1 << 40)  # and these of what is kept of processes
NO_CONTEXT = frozenset(
    ("spawn", "retain", "reopen", "exec", "exit", "kill", "fork", "release", "close", "unmap")
)


def rounded(size: int, to: int) -> int:
    """Up to whole parts."""
    return -(-size // to) * to


@dataclass(slots=True)
class Thing:
    """What an operation made. ``home``: the process whose it is; ``parent``: context or pool."""

    number: int
    kind: str
    home: int
    size: int = 0
    parent: int = 0
    least: int = 0  # of pools and graphs: what is in use
    most: int = 0
    holders: dict[tuple[int, str], int] = field(default_factory=dict)  # of physical memory


@dataclass(slots=True, eq=False)
class Process:
    """A process and the driver that it has loaded; what is kept of one has a number of its own."""

    number: int
    keeps: frozenset["Process"] = frozenset()  # whose descriptors of a driver it has, its own aside
    opened: bool = False  # its driver has some
    cut_off: bool = False  # it ended in a call: nobody knows what that has done
    primary: bool = False
    stale: int = 0  # held by a driver that was unloaded, at most
    stale_uncharged: int = 0  # of it: what may be charged no more


class Model:
    """Processes and what they hold."""

    def __init__(self, *, exports_stay: bool, context: int = CONTEXT) -> None:
        """Nobody is there."""
        self._exports_stay, self._context, self._last_kept = exports_stay, context, KEPT
        self.processes: dict[int, Process] = {}
        self.kept: list[Process] = []  # what others have the descriptors of
        self.things: dict[int, Thing] = {}

    # --- what may be done ---

    def allows(self, op: Op) -> bool:
        """Whether a program may do this now: it uses nothing that is gone."""
        if op.what == "spawn":
            return op.made not in self.processes
        process = self.processes.get(op.actor)
        if process is None or op.made in self.things or op.made in self.processes:
            return False
        if op.what not in NO_CONTEXT and not process.primary:
            return False
        if op.what in ("import", "open"):
            thing = self.things.get(op.of)
            if thing is None or thing.home not in self.processes.keys() - {op.actor}:
                return False
            is_exported = (thing.home, "file") in thing.holders
            return is_exported if op.what == "import" else thing.kind == "alloc"
        if op.what == "retain":
            return not process.primary
        if op.what == "reset":  # it is the last one
            return not any(thing.kind == "context" for thing in self._of(op.actor))
        return not op.of or self._has(op)

    def _has(self, op: Op) -> bool:
        thing = self.things.get(op.of)
        if thing is None:
            return False
        needs = {
            "unmap": "map",
            "release": "handle",
            "export": "handle",
            "map": "handle",
            "keep": "map",
            "close": "file",
        }.get(op.what)
        if needs is not None:
            here = thing.holders.get((op.actor, needs), 0) > 0
            if op.what == "map":
                return here and (op.actor, "map") not in thing.holders
            if op.what == "export":
                return (
                    here and thing.kind == "exportable" and (op.actor, "file") not in thing.holders
                )
            return here
        kinds = {
            "free": ("alloc", "managed", "pitch", "async", "pooled"),
            "destroy_context": ("context",),
            "alloc_in": ("context",),
            "alloc_from": ("pool",),
            "trim": ("pool",),
            "destroy_pool": ("pool",),
            "destroy_array": ("array",),
            "launch": ("graph",),
            "free_graph": ("graph",),
            "destroy_graph": ("graph",),
            "unload": ("module",),
            "close_ipc": ("ipc",),
        }[op.what]
        if thing.kind not in kinds or thing.home != op.actor:
            return False
        if op.what == "launch":
            return thing.least == 0
        if op.what == "free_graph":
            return thing.least > 0
        return True

    # --- what is so afterwards ---

    def did(self, op: Op) -> None:
        """It succeeded."""
        DONE[op.what](self, op)

    def refused(self, op: Op) -> None:
        """There was not enough memory."""
        if op.what == "retain":
            self.processes[op.actor].opened = True

    def cut_off(self, op: Op) -> None:
        """Its process is about to end in it: what it does is done, or not, or in part."""
        process = self.processes[op.actor]
        process.cut_off, process.opened = True, process.opened or op.what == "retain"
        process.stale += rounded(op.kib << 10, CHUNK) + CHUNK + self._context

    def make(self, op: Op, size: int = 0, parent: int = 0) -> Thing:
        """Something new of a process."""
        thing = Thing(op.made, op.what, op.actor, size, parent)
        self.things[op.made] = thing
        return thing

    def drop(self, number: int) -> None:
        """It is gone; of what others have open by an IPC handle nobody knows when it goes back."""
        gone = self.things.pop(number, None)
        if gone is None:
            return
        if gone.kind == "ipc":
            if not self._is_open(gone.parent):
                self.things.pop(DESTROYED - gone.parent, None)
        elif gone.kind == "alloc" and self._exports_stay and self._is_open(number):
            kept = DESTROYED - number
            self.things[kept] = Thing(kept, "graph", NOBODY, most=rounded(gone.size, GRANULE))

    def opened(self, ipc: Thing) -> int:
        """The most that something open by an IPC handle may keep."""
        kept = self.things.get(ipc.parent) or self.things.get(DESTROYED - ipc.parent)
        return rounded(max(kept.size, kept.most), GRANULE) if kept else 0

    def _is_open(self, number: int) -> bool:
        return any(each.kind == "ipc" and each.parent == number for each in self.things.values())

    def let_go(self, number: int, who: int, what: str) -> None:
        """One holder of physical memory less."""
        thing = self.things[number]
        left = thing.holders.get((who, what), 0) - 1
        if left > 0:
            thing.holders[who, what] = left
        else:
            thing.holders.pop((who, what), None)
        if not self._lives(thing):
            self.drop(number)

    def _lives(self, thing: Thing) -> bool:
        if self._exports_stay:
            return bool(thing.holders)
        return any(who == thing.home for who, _ in thing.holders)

    def end(self, number: int) -> None:
        """A process is gone, and with it what only it held; but what children keep."""
        for thing in list(self.things.values()):  # descriptors that it gave out are its own
            if (number, "file") in thing.holders:
                self.let_go(thing.number, number, "file")
        self.keep(self.processes.pop(number))
        having = {each for process in self.processes.values() for each in process.keeps}
        for process in [each for each in self.kept if each not in having]:
            self.kept.remove(process)
            self.forget(process.number)

    def keep(self, process: Process) -> None:
        """It stays as it is, for those who have its descriptors."""
        before, self._last_kept = process.number, self._last_kept - 1
        process.number = self._last_kept
        self.kept.append(process)
        if (pool := self.things.pop(-before, None)) is not None:
            pool.number = process.number
            self.things[pool.number] = pool
        for thing in self.things.values():
            if thing.home == before:
                thing.home = process.number
            for who, how in [key for key in thing.holders if key[0] == before]:
                thing.holders[process.number, how] = thing.holders.pop((who, how))

    def forget(self, number: int, but: tuple[str, ...] = ()) -> None:
        """A process holds nothing any more, but in these ways."""
        for thing in list(self.things.values()):
            if thing.kind in ("vmm", "exportable"):
                for key in [key for key in thing.holders if key[0] == number and key[1] not in but]:
                    del thing.holders[key]
                if not self._lives(thing):
                    self.drop(thing.number)
            elif thing.home == number:
                self.drop(thing.number)

    # --- what it costs ---

    def span(self) -> tuple[int, int]:
        """Bytes of the device that are held: at least, at most."""
        least = most = 0
        known = {process.number for process in self._all() if not process.cut_off}
        for process in self._all():
            small, before = 0, least
            fixed = self._context if process.primary else 0
            for thing in self._of(process.number):
                low, high, little = self.cost(thing)
                least, most, small = least + low, most + high, small + little
            least += fixed + rounded(small, GRANULE)
            most += fixed + rounded(small, GRANULE) + process.stale
            least = before if process.cut_off else least
        for thing in self.things.values():
            if thing.kind in ("vmm", "exportable"):
                sure = any(h not in (INHERITED, STALE) and w in known for w, h in thing.holders)
                least, most = least + thing.size * sure, most + thing.size
            elif thing.home == NOBODY:
                most += thing.most
        return least, most

    def uncharged(self) -> int:
        """What the documents say that nobody is charged for at once.

        Modules; what only forked children have left of exportable memory that was let go of.
        """
        there = sum(MODULE for thing in self.things.values() if thing.kind == "module")
        there += sum(
            thing.size
            for thing in self.things.values()
            if thing.holders and all(how == INHERITED for _, how in thing.holders)
        )
        return there + sum(process.stale_uncharged for process in self._all())

    def _all(self) -> list[Process]:
        return [*self.processes.values(), *self.kept]

    def _of(self, number: int) -> Iterator[Thing]:
        return (thing for thing in self.things.values() if thing.home == number)

    def holdings(self, number: int) -> int:
        """The most that a process holds, but physical memory."""
        costs = [self.cost(thing) for thing in self._of(number)]
        fixed = self._context if self.processes[number].primary else 0
        small = rounded(sum(little for _, _, little in costs), GRANULE)
        return fixed + small + sum(most for _, most, _ in costs)

    def cost(self, thing: Thing) -> tuple[int, int, int]:
        """Of a thing: at least, at most, and what shares pages with other small ones."""
        if thing.kind in ("alloc", "managed", "pitch"):
            if thing.size < SMALL:
                return 0, 0, rounded(thing.size, 512)
            return rounded(thing.size, GRANULE), rounded(thing.size, GRANULE), 0
        if thing.kind == "array":
            return thing.size, rounded(thing.size, GRANULE), 0
        if thing.kind in ("pool", "graph"):
            return thing.least, thing.most, 0
        if thing.kind == "module":  # what it takes beside its static variables is not documented
            return 0, MODULE, 0
        fixed = self._context if thing.kind == "context" else 0
        return fixed, fixed, 0


def _alloc(model: Model, op: Op) -> None:
    model.make(op, op.kib << 10)


def _array(model: Model, op: Op) -> None:
    model.make(op, rounded(op.kib << 10, 65536))


def _alloc_in(model: Model, op: Op) -> None:
    model.make(op, op.kib << 10, op.of).kind = "alloc"


def _default_pool(model: Model, actor: int) -> Thing:
    return model.things.setdefault(-actor, Thing(-actor, "pool", actor))


def _async(model: Model, op: Op) -> None:
    pool = _default_pool(model, op.actor)
    model.make(op, op.kib << 10, pool.number)
    _grow(pool, op.kib << 10)


def _alloc_from(model: Model, op: Op) -> None:
    model.make(op, op.kib << 10, op.of).kind = "pooled"
    _grow(model.things[op.of], op.kib << 10)


def _grow(pool: Thing, size: int) -> None:
    pool.least += rounded(size, 512)
    pool.most = max(pool.most, rounded(pool.least, CHUNK)) + CHUNK


def _free(model: Model, op: Op) -> None:
    thing = model.things[op.of]
    pool = model.things.get(thing.parent)
    if thing.kind in ("async", "pooled") and pool is not None:
        pool.least -= rounded(thing.size, 512)
        if pool.number < DESTROYED // 2 and not pool.least:
            model.drop(pool.number)
    model.drop(op.of)


def _made(model: Model, op: Op) -> None:
    model.make(op)


def _trim(model: Model, op: Op) -> None:
    pool = model.things[op.of]
    pool.most = rounded(pool.least, CHUNK) + CHUNK * bool(pool.least)


def _destroy_pool(model: Model, op: Op) -> None:
    pool = model.things.pop(op.of)
    if pool.least:  # what is allocated stays until it is freed
        pool.number = DESTROYED - op.of
        pool.most = rounded(pool.least, CHUNK) + CHUNK
        model.things[pool.number] = pool
        for thing in model.things.values():
            if thing.parent == op.of and thing.kind == "pooled":
                thing.parent = pool.number


def _graph(model: Model, op: Op) -> None:
    model.make(op, rounded(op.kib << 10, GRANULE))


def _launch(model: Model, op: Op) -> None:
    graph = model.things[op.of]
    graph.least = graph.size
    graph.most = max(graph.most, graph.size)


def _free_graph(model: Model, op: Op) -> None:
    model.things[op.of].least = 0


def _destroy_graph(model: Model, op: Op) -> None:
    """What it launched stays until it is freed, and the pool keeps what was freed."""
    graph = model.things.pop(op.of)
    if graph.most:
        graph.number = DESTROYED - op.of
        model.things[graph.number] = graph


def _trim_graphs(model: Model, op: Op) -> None:
    for thing in [t for t in model.things.values() if t.kind == "graph" and t.home == op.actor]:
        thing.most = thing.least
        if thing.number < 0 and not thing.least:
            model.drop(thing.number)


def _vmm(model: Model, op: Op) -> None:
    model.make(op, rounded(op.kib << 10, GRANULE)).holders[op.actor, "handle"] = 1


def _hold(what: str) -> Callable[[Model, Op], None]:
    def held(model: Model, op: Op) -> None:
        holders = model.things[op.of].holders
        holders[op.actor, what] = holders.get((op.actor, what), 0) + 1

    return held


def _let_go(what: str) -> Callable[[Model, Op], None]:
    return lambda model, op: model.let_go(op.of, op.actor, what)


def _open(model: Model, op: Op) -> None:
    model.make(op, parent=op.of).kind = "ipc"


def _drop(model: Model, op: Op) -> None:
    model.drop(op.of)


def _destroy_context(model: Model, op: Op) -> None:
    for thing in [t for t in model.things.values() if t.parent == op.of and t.kind == "alloc"]:
        model.drop(thing.number)
    model.drop(op.of)


def _retain(model: Model, op: Op) -> None:
    process = model.processes[op.actor]
    process.primary = process.opened = True


def _reset(model: Model, op: Op) -> None:
    """The primary context goes, which is the last one where a program may do so."""
    model.processes[op.actor].primary = False
    for thing in list(model._of(op.actor)):
        if thing.kind not in ("vmm", "exportable"):
            model.drop(thing.number)


def _new_process(model: Model, op: Op) -> None:
    model.processes[op.made] = Process(op.made)


def _fork(model: Model, op: Op) -> None:
    """A child has what its parent has open, so that a driver may keep shared memory for it."""
    parent = model.processes[op.actor]
    keeps = parent.keeps | {parent} if parent.opened else parent.keeps
    model.processes[op.made] = Process(op.made, keeps)
    for thing in model.things.values():
        if thing.kind == "exportable" and any(who == op.actor for who, _ in thing.holders):
            thing.holders[op.made, INHERITED] = 1


def _end(model: Model, op: Op) -> None:
    model.end(op.actor)


def _exec(model: Model, op: Op) -> None:
    model.end(op.actor)
    model.processes[op.actor] = Process(op.actor)


def _reopen(model: Model, op: Op) -> None:
    """The library that knew what is held is gone; the driver may keep it until the process ends."""
    process = model.processes[op.actor]
    held = [t for t in model.things.values() if any(who == op.actor for who, _ in t.holders)]
    own = list(model._of(op.actor))
    process.stale_uncharged += MODULE * sum(thing.kind == "module" for thing in own)
    shared = [thing for thing in held if thing.kind == "exportable"]
    alone = sum(thing.size for thing in held if thing.kind != "exportable")
    process.stale += model.holdings(op.actor) + alone
    process.stale += sum(model.opened(thing) for thing in own if thing.kind == "ipc")
    for thing in shared:  # a child may yet inherit it
        if any(who == op.actor and how != INHERITED for who, how in thing.holders):
            thing.holders[op.actor, STALE] = 1
    model.forget(op.actor, but=(INHERITED, STALE))
    process.primary = False
    model.keep(process)
    model.processes[op.actor] = Process(op.actor, process.keeps | {process})


def _nothing(model: Model, op: Op) -> None:
    pass


DONE: dict[str, Callable[[Model, Op], None]] = {
    "spawn": _new_process,
    "fork": _fork,
    "exec": _exec,
    "exit": _end,
    "kill": _end,
    "reopen": _reopen,
    "retain": _retain,
    "reset": _reset,
    "context": _made,
    "destroy_context": _destroy_context,
    "alloc": _alloc,
    "alloc_in": _alloc_in,
    "managed": _alloc,
    "pitch": _alloc,
    "async": _async,
    "pool": _made,
    "alloc_from": _alloc_from,
    "trim": _trim,
    "destroy_pool": _destroy_pool,
    "free": _free,
    "array": _array,
    "destroy_array": _drop,
    "graph": _graph,
    "launch": _launch,
    "free_graph": _free_graph,
    "destroy_graph": _destroy_graph,
    "trim_graphs": _trim_graphs,
    "module": _made,
    "unload": _drop,
    "vmm": _vmm,
    "exportable": _vmm,
    "map": _hold("map"),
    "unmap": _let_go("map"),
    "keep": _hold("handle"),
    "release": _let_go("handle"),
    "export": _hold("file"),
    "close": _let_go("file"),
    "import": _hold("handle"),
    "open": _open,
    "close_ipc": _drop,
    "sync": _nothing,
    "info": _nothing,
}
