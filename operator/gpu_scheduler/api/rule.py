"""One rule of a CRD: in CEL for the API server, and in Python for the operator.

The API server evaluates the rule at apply time and answers with the message; a message names
the field and says what would be right, because it is all that a person sees. The operator asks once
more with ``broken``, as it may run beside an older CRD or an object older than both.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from pydantic import JsonValue

from gpu_scheduler.api.problem import Problem


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule over ``self`` (and ``oldSelf``) that holds for every accepted object.

    Attributes:
        rule: CEL.
        message: what would be right.
        field: path below the place where the rule is attached, such as ".gpu".
        expression: CEL that writes the message with the values found; else ``message``.
        holds: the same as ``rule``, of the value in Python; None where ``instead`` says why.
        end: of a message that ``expression`` writes: what stands behind ``message``.
        at_creation: only of a new object; what is there already may be changed.
        instead: the function that says more in Python, such as which entry it is. Rules about
            ``oldSelf`` have neither: the operator sees one object.
    """

    rule: str
    message: str
    field: str = ""
    expression: str = ""
    holds: Callable[[Any], bool] | None = None
    end: Callable[[Any], str] = lambda value: ""
    instead: str = ""
    at_creation: bool = False

    def to_json(self) -> dict[str, JsonValue]:
        """An entry of ``x-kubernetes-validations``."""
        result: dict[str, JsonValue] = {"rule": self.rule, "message": self.message}
        if self.at_creation:
            result |= {"rule": f"oldSelf.hasValue() || {self.rule}", "optionalOldSelf": True}
        if self.expression:
            result["messageExpression"] = self.expression
        if self.field:
            result["fieldPath"] = self.field
        return result


def broken(rules: Iterable[Rule], value: Any, field: str) -> Iterator[Problem]:
    """The rules that do not hold for the value of a field, in their order; of None all hold."""
    for rule in rules if value is not None else ():
        if rule.holds is not None and not rule.holds(value):
            yield Problem(f"{field}{rule.field}", rule.message + rule.end(value))
