"""What an expression of CEL walks, and what that costs the API server at most.

A list is known by its path in the request, ``object.spec.containers[].env``, whatever names,
variables and lists made of it lie between; so is what a number counts, and where a text comes from.
Each macro that goes through a list is a walk; its cost is that of an entry as often as the list's
bound says. A list of lists is bounded as a whole, all inner entries together. A walk inside the
walk of another list counts as often as both bounds together.

Costs are those of cel-go (interpreter/runtimecost.go) and of the API server
(pkg/cel/library/cost.go), rounded up.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import ceil, prod

from tests.chart.cel_syntax import Call, Literal, Made, Name, Node, Select
from tests.chart.cel_values import NOTHING, Cost, Value, at

REQUEST_BYTES = 3 * 1024 * 1024  # what the API server takes; no text without a bound is longer
MAPS = {
    "annotations",
    "labels",
    "limits",
    "requests",
    "data",
    "selector",
    "extra",
    "parameters",
    "trials[0]",
}
# Objects of a schema: who goes through their fields goes through no more than the kind has.
FIELDS = {"metadata": 20, "spec": 60, "status": 40, "containers[]": 40}
_MACROS = {"filter": 14, "map": 13, "exists": 6, "all": 5, "exists_one": 7}  # for an entry
_PER_CHARACTER = {
    **dict.fromkeys(
        ("startsWith", "substring", "trim", "upperAscii", "quantity", "isQuantity"), 0.1
    ),
    **dict.fromkeys(("replace", "split", "join"), 0.2),
}
_PER_ENTRY = {"sum", "indexOf", "lastIndexOf", "sort", "distinct", "flatten", "slice", "join"}
_TEXTS = {"substring", "trim", "upperAscii", "replace", "string", "dyn", "orValue", "quantity"}


# The lists that are being walked, and how long they are.
Loops = tuple[tuple[frozenset[str], int], ...]
Names = Mapping[str, Value]


@dataclass(slots=True)
class Walker:
    """Goes through the expressions of one policy.

    Attributes:
        bounds: the longest that lists are, all of one path together; those that the expressions
            themselves refuse are added.
        variables: of the policy, by name.
        facts: what is known of a request, by path.
        least: the shortest that the expressions refuse, of some objects.
        walked: paths of lists that were gone through.
    """

    bounds: dict[str, int]
    variables: dict[str, Node]
    facts: Mapping[str, str] = field(default_factory=dict)
    least: dict[str, int] = field(default_factory=dict)
    walked: set[str] = field(default_factory=set)
    cost: Cost = field(default_factory=Cost)
    _caps: dict[str, int] = field(default_factory=dict)  # of one list or text, where it is known
    _largest: dict[str, int] = field(default_factory=dict)  # that they refuse
    _totals: dict[str, int] = field(default_factory=dict)
    _known: dict[str, Value] = field(default_factory=dict)
    _together: dict[str, frozenset[str]] = field(
        default_factory=dict
    )  # lists with one bound for all of them

    def cost_of(self, node: Node) -> float:
        """What the expression costs at most; what the variables cost that it names is not in it."""
        self.cost, self._caps = Cost(), {}
        self.value(node, {}, ())
        lengths = self.bounds | self._totals
        unknown = (factor for path, factor in self.cost.texts.items() if path not in lengths)
        return self.counted() + REQUEST_BYTES * max(unknown, default=0.0)

    def counted(self) -> float:
        """What it costs where texts of which nobody knows the length are as short as can be."""
        lengths = self.bounds | self._totals
        each = [(path, factor * self._bound(path)) for path, factor in self.cost.entries.items()]
        texts = self.cost.texts.items()
        each += [(f"{path}/", lengths[path] * factor) for path, factor in texts if path in lengths]
        dearest: dict[frozenset[str], float] = {}
        for path, cost in each:
            whole, slash, pieces = path.partition("/")
            group = self._together.get(whole, {whole})
            together = frozenset(f"{of}{slash}{pieces}" for of in group)
            dearest[together] = max(dearest.get(together, 0.0), cost)
        return self.cost.units + sum(dearest.values())

    def value(self, node: Node, names: Names, loops: Loops) -> Value:
        """What it may be; its cost is added."""
        match node:
            case Literal(value=found):
                return Value(length=len(found)) if isinstance(found, str) else NOTHING
            case Name(name=name):
                self._pay(1, loops)
                return names[name] if name in names else at(name)
            case Select(of=Name(name="variables"), field=variable):
                self._pay(2, loops)
                return self._variable(variable)
            case Select(of=of, field=chosen):
                self._pay(1, loops)
                parent = self.value(of, names, loops)
                return at(*(f"{path}.{chosen}" for path in parent.paths))
            case Made():
                return self._made(node, names, loops)
            case Call():
                return self._call(node, names, loops)

    def _variable(self, name: str) -> Value:
        """Evaluated apart, and once."""
        if name not in self._known:
            cost, caps = self.cost, self._caps
            self.cost, self._caps = Cost(), {}
            self._known[name] = self.value(self.variables[name], {}, ())
            self.cost, self._caps = cost, caps
        return self._known[name]

    def _made(self, node: Made, names: Names, loops: Loops) -> Value:
        self._pay({"list": 10, "map": 30}.get(node.kind, 40), loops)
        parts = [
            self.value(part, names, loops) for part in node.parts if not isinstance(part, Name)
        ]
        parts += [
            names[part.name] for part in node.parts if isinstance(part, Name) and part.name in names
        ]
        if node.kind != "list":
            return NOTHING
        items = NOTHING
        for part in parts:
            items |= part
        return Value(items=items if parts else None, written=len(parts))

    def _call(self, node: Call, names: Names, loops: Loops) -> Value:
        name, arguments = node.function, node.arguments
        if name in _MACROS and node.is_method and len(arguments) == 3:
            return self._walk(node, names, loops)
        if name == "_?_:_":
            return self._choice(arguments, names, loops)
        if name in {"_&&_", "_||_"}:
            return self._both(node, names, loops)
        values = [self.value(each, names, loops) for each in arguments]
        self._pay_call(name, values, arguments, loops)
        if name == "!_":
            return Value(known=None if values[0].known is None else not values[0].known)
        if name in {"_==_", "_!=_"} and isinstance(arguments[1], Literal):
            for path in values[0].paths & self.facts.keys():
                return Value(known=(self.facts[path] == arguments[1].value) is (name == "_==_"))
        return self._result(name, values, arguments)

    def _both(self, node: Call, names: Names, loops: Loops) -> Value:
        decides = (
            node.function == "_||_"
        )  # what the left side is where the right one is not looked at
        left = self.value(node.arguments[0], names, loops).known
        if left is decides:
            return Value(known=decides)
        before = dict(self._caps)
        self._guard(node.arguments[0], names, not decides)
        right = self.value(node.arguments[1], names, loops).known
        self._caps = before
        known = right if left is (not decides) else decides if right is decides else None
        return Value(known=known)

    def _choice(self, arguments: tuple[Node, ...], names: Names, loops: Loops) -> Value:
        condition, *branches = arguments
        known = self.value(condition, names, loops).known
        self._refused(condition, names)
        total, before, costs, found = self.cost, dict(self._caps), [], NOTHING
        for branch, holds in zip(branches, (True, False), strict=True):
            self.cost = Cost()
            if known is (not holds):
                costs.append(self.cost)
                continue
            self._guard(condition, names, holds)
            found |= self.value(branch, names, loops)
            costs.append(self.cost)
            self._caps = dict(before)
        self.cost = total
        self.cost.either(costs[0], costs[1])
        return found

    def _walk(self, node: Call, names: Names, loops: Loops) -> Value:
        over, variable, body = node.arguments
        assert isinstance(variable, Name)
        through, made = self.value(over, names, loops), NOTHING
        if node.function == "filter":
            self._refused(body, {**names, variable.name: through.entry})
        known = self._caps.keys() | self._totals.keys()
        self.walked |= {path for path in through.over if not {path, path.split("/")[0]} & known}
        every = [
            (frozenset({path}), self._bound(path), at(f"{path}[]"))
            for path in sorted(through.over & through.paths)
        ]
        if made_of := through.over - through.paths:
            bound = self._all_of(made_of) + through.written
            every.append((made_of, bound, through.items or NOTHING))
        elif through.written:
            every.append((frozenset(), through.written, through.items or NOTHING))
        for paths, bound, entry in every:
            inner = (*_outside(paths, loops), (paths, bound))
            self._pay(_MACROS[node.function], inner)
            made |= self.value(body, {**names, variable.name: entry}, inner)
        if node.function == "filter":
            return Value(frozenset(), through.over, through.entry, through.written)
        if node.function == "map":
            return Value(frozenset(), through.over, made, through.written)
        return NOTHING

    def _all_of(self, paths: frozenset[str]) -> int:
        """Entries of several lists: pieces of one text, and lists with one bound, share it."""
        texts = {path.split("/")[0]: path for path in paths}
        shared = {self._together.get(path, frozenset({path})): path for path in texts.values()}
        return sum(map(self._bound, shared.values()))

    def _bound(self, path: str) -> int:
        for known in (self._caps, self._totals):
            if (capped := known.get(path, known.get(path.split("/")[0]))) is not None:
                return capped
        if (fields := FIELDS.get(path.rpartition(".")[2])) and not path.endswith("template.spec"):
            return fields
        whole = path.split("/")[0]  # pieces of a text are no more than its characters
        return self.bounds.get(path, self.bounds.get(whole, 1) if whole != path else 1)

    def is_bound(self, path: str) -> bool:
        """Whether something says how long a list is."""
        return path.rpartition(".")[2] in FIELDS or bool(
            {path, path.split("/")[0]} & self.bounds.keys()
        )

    def _refused(self, condition: Node, names: Names) -> None:
        """A number that refuses, where it is exceeded, bounds what was counted."""
        for counted, sign, number in self._compared(condition, names):
            if sign == "_>_" and number:
                for path in counted.over:
                    self.least[path] = min(number, self.least.get(path, number))
                    self._largest[path] = max(number, self._largest.get(path, 0))
                    self.bounds[path] = self._largest[path]
                    if len(counted.over) > 1:
                        self._together[path] = counted.over

    def _guard(self, condition: Node, names: Names, holds: bool) -> None:
        """What is evaluated only if this holds, or does not, finds what was counted so long."""
        limits = {"_<=_": 0, "_<_": -1, "_==_": 0} if holds else {"_>_": 0, "_>=_": -1}
        for counted, sign, number in self._compared(condition, names):
            if sign in limits:
                for path in counted.over:
                    (self._caps if counted.counts == "one" else self._totals)[path] = (
                        number + limits[sign]
                    )
                    if len(counted.over) > 1:
                        self._together[path] = counted.over

    def _compared(self, condition: Node, names: Names) -> list[tuple[Value, str, int]]:
        if isinstance(condition, Call) and condition.function in {"_&&_", "_||_"}:
            parts = condition.arguments
            return [each for part in parts for each in self._compared(part, names)]
        if isinstance(condition, Call) and len(condition.arguments) == 2:
            left, right = condition.arguments
            if isinstance(right, Literal) and isinstance(right.value, float):
                kept, self.cost = self.cost, Cost()
                counted = self.value(left, names, ())
                self.cost = kept
                return (
                    [] if not counted.counts else [(counted, condition.function, int(right.value))]
                )
        return []

    def _result(self, name: str, values: list[Value], nodes: tuple[Node, ...]) -> Value:
        first = values[0] if values else NOTHING
        match name:
            case "_+_":
                return values[0] | values[1]
            case "_[_]" if nodes[1] == Literal(0.0) and first.paths and not first.items:
                return at(*(f"{path}[0]" for path in first.paths))
            case "_[_]":
                return first.entry
            case "size" | "sum":
                inside = first.items.over if name == "sum" and first.items else first.over
                return Value(over=inside, counts="all" if name == "sum" else "one")
            case "range":
                return Value(over=values[1].over, items=NOTHING)
            case "split" | "findAll":
                pieces = at(*(f"{path}/{name}" for path in first.paths))
                return pieces
            case "flatten":
                items = first.items or NOTHING
                return Value(
                    frozenset(), first.over | items.over, items.entry, first.written * items.written
                )
            case "join":
                return first.items or NOTHING
            case "slice" | "sort" | "distinct":
                return Value(first.paths, first.over, first.items, first.written)
            case _ if name in _TEXTS:
                return first
            case _:
                return NOTHING

    def _pay(self, units: float, loops: Loops) -> None:
        if loops and len(loops[-1][0]) == 1:
            (path,) = loops[-1][0]
            if self._caps.get(path) is None:
                times = prod(count for _, count in loops[:-1])
                self.cost.entries[path] = self.cost.entries.get(path, 0.0) + units * times
                return
        self.cost.units += units * prod(count for _, count in loops)

    def _pay_call(
        self, name: str, values: list[Value], nodes: tuple[Node, ...], loops: Loops
    ) -> None:
        self._pay(1, loops)
        if name in {"matches", "findAll"}:
            pattern = ceil(values[1].length / 4)
            self._pay(pattern, loops)
            self._pay_text(values[0], 0.1 * pattern, loops)
        elif name == "contains":
            self._pay_text(values[0], 0.1 * ceil(values[1].length / 10), loops)
        elif name in {"_==_", "_!=_", "_<_", "_>_"}:
            shorter = [value for value in values if not value.paths]
            if shorter or any(isinstance(node, Literal) for node in nodes):
                self._pay(ceil(max((v.length for v in shorter), default=0) / 10), loops)
            else:  # the shorter of both counts
                nearest = min(values, key=lambda value: _foreign(value, loops))
                self._pay_text(nearest, 0.1, loops)
        elif name == "_in_":
            within = values[1]
            lists = [path for path in within.over if path.rpartition(".")[2] not in MAPS]
            known = [path for path in lists if not path.endswith(("metadata", "spec", "status"))]
            self._pay(within.written + sum(map(self._bound, known)), loops)
            self.walked.update(known)
        elif name in _PER_CHARACTER:
            self._pay_text(values[0], _PER_CHARACTER[name], loops)
        elif name == "_+_" and not any(value.over - value.paths or value.items for value in values):
            self._pay_text(values[0] | values[1], 0.1, loops)
        if name in _PER_ENTRY:
            self._pay(values[0].written, loops)
            if over := values[0].over:
                self._pay(self._all_of(over), _outside(over, loops))

    def _pay_text(self, text: Value, factor: float, loops: Loops) -> None:
        for path in text.paths or text.items and text.items.paths or ():
            outside = prod(count for _, count in _outside(frozenset({path}), loops))
            if path in self._caps:
                self._pay(ceil(self._caps[path] * factor), loops)
            else:
                whole = path.split("/")[0]
                self.cost.texts[whole] = self.cost.texts.get(whole, 0.0) + outside * factor


def _outside(paths: frozenset[str], loops: Loops) -> Loops:
    """The walks that these lists are no part of; bounds are of all that are parts of one walk."""
    return tuple(
        loop
        for loop in loops
        if not any(path.startswith(f"{outer}[]") for path in paths for outer in loop[0])
    )


def _foreign(value: Value, loops: Loops) -> int:
    return min(prod(count for _, count in _outside(frozenset({p}), loops)) for p in value.paths)
