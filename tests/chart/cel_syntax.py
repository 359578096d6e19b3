"""Expressions of CEL as trees: as much of the language as the chart's policies use.

https://github.com/google/cel-spec/blob/master/doc/langdef.md. Operators and indices are calls,
under the names that CEL's own trees have for them.
"""

import re
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Literal:
    """A text, a number, true, false or null."""

    value: str | float | bool | None


@dataclass(frozen=True, slots=True)
class Name:
    """A variable."""

    name: str


@dataclass(frozen=True, slots=True)
class Select:
    """A field of an object."""

    of: "Node"
    field: str


@dataclass(frozen=True, slots=True)
class Call:
    """A function, an operator or a macro; what a method is called of is the first argument."""

    function: str
    arguments: tuple["Node", ...]
    is_method: bool = False


@dataclass(frozen=True, slots=True)
class Made:
    """A list, a map or an object that is written down: its parts, keys among them."""

    kind: str
    parts: tuple["Node", ...]


Node = Literal | Name | Select | Call | Made

_TOKEN = re.compile(
    r"""\s*(?:
    (?P<text>"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')
    |(?P<number>\d+\.\d+|\d+)
    |(?P<name>[A-Za-z_]\w*)
    |(?P<sign>&&|\|\||==|!=|<=|>=|\.\?|\[\?|[-+*/%!<>?:.,()\[\]{}])
    )""",
    re.VERBOSE,
)
_LEVELS = (("||",), ("&&",), ("==", "!=", "<", "<=", ">", ">=", "in"), ("+", "-"), ("*", "/", "%"))
_WORDS = {"true": True, "false": False, "null": None}


def parse(expression: str) -> Node:
    """The tree of an expression; ValueError where it is none."""
    return _Parser(expression).whole()


class _Parser:
    def __init__(self, expression: str) -> None:
        text = expression.rstrip()
        self._tokens: list[tuple[str, str]] = []
        self._next, at = 0, 0
        while at < len(text):
            found = _TOKEN.match(text, at)
            if found is None:
                raise ValueError(f"no CEL at {text[at : at + 40]!r}")
            self._tokens.append((str(found.lastgroup), found[str(found.lastgroup)]))
            at = found.end()

    def whole(self) -> Node:
        made = self._ternary()
        if self._next < len(self._tokens):
            raise ValueError(f"{self._tokens[self._next][1]!r} is not expected")
        return made

    def _takes(self, *signs: str) -> str:
        """The next token, if it is one of these; else empty."""
        if self._next < len(self._tokens):
            kind, token = self._tokens[self._next]
            if kind != "text" and token in signs:
                self._next += 1
                return token
        return ""

    def _needs(self, sign: str) -> None:
        if not self._takes(sign):
            raise ValueError(f"{sign!r} is expected before {self._tokens[self._next :][:3]}")

    def _ternary(self) -> Node:
        condition = self._binary(0)
        if not self._takes("?"):
            return condition
        true = self._ternary()
        self._needs(":")
        return Call("_?_:_", (condition, true, self._ternary()))

    def _binary(self, level: int) -> Node:
        if level == len(_LEVELS):
            return self._unary()
        left = self._binary(level + 1)
        while sign := self._takes(*_LEVELS[level]):
            left = Call(f"_{sign}_", (left, self._binary(level + 1)))
        return left

    def _unary(self) -> Node:
        if sign := self._takes("!", "-"):
            return Call(f"{sign}_", (self._unary(),))
        return self._member()

    def _member(self) -> Node:
        made = self._primary()
        while sign := self._takes(".", ".?", "[", "[?", "{"):
            if sign in {"[", "[?"}:
                made = Call("_[_]", (made, self._ternary()))
                self._needs("]")
            elif sign == "{":
                made = Made("object", self._parts("}"))
            else:
                field = self._tokens[self._next][1]
                self._next += 1
                if self._takes("("):
                    made = Call(field, (made, *self._parts(")")), is_method=True)
                else:
                    made = Select(made, field)
        return made

    def _primary(self) -> Node:
        if self._takes("("):
            made = self._ternary()
            self._needs(")")
            return made
        if self._takes("["):
            return Made("list", self._parts("]"))
        if self._takes("{"):
            return Made("map", self._parts("}"))
        if self._next == len(self._tokens):
            raise ValueError("something is expected at the end")
        kind, token = self._tokens[self._next]
        self._next += 1
        if kind == "text":
            return Literal(re.sub(r"\\(.)", r"\1", token[1:-1]))
        if kind == "number":
            return Literal(float(token))
        if kind == "sign":
            raise ValueError(f"{token!r} is not expected")
        if token in _WORDS:
            return Literal(_WORDS[token])
        return Call(token, self._parts(")")) if self._takes("(") else Name(token)

    def _parts(self, end: str) -> tuple[Node, ...]:
        found: list[Node] = []
        while not self._takes(end):
            found.append(self._ternary())
            if not self._takes(",", ":"):
                self._needs(end)
                break
        return tuple(found)
