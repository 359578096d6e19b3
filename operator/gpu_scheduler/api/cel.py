"""One CEL rule of a CRD, as a value.

The API server evaluates the rule at apply time and answers with the message; a message names
the field and says what would be right, because it is all that a person sees.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule over ``self`` (and ``oldSelf``) that holds for every accepted object."""

    rule: str
    message: str
    field: str = ""  # path below the place where the rule is attached, such as ".gpu"
    expression: str = ""  # CEL that writes the message with the values found; else ``message``

    def to_json(self) -> dict[str, str]:
        """An entry of ``x-kubernetes-validations``."""
        result = {"rule": self.rule, "message": self.message}
        if self.expression:
            result["messageExpression"] = self.expression
        if self.field:
            result["fieldPath"] = self.field
        return result
