"""docs/reference/command-line.md, from the commands themselves.

A section for each command: what it does, how it is called, its options.
"""

from collections.abc import Iterator
from inspect import cleandoc

import click

from gpu_scheduler.cli.root import COMMANDS, SERVE, app
from reference.markdown import cell

PROGRAM = "kubectl gpu"
_OF_THE_CHART = [name for name, place in COMMANDS.items() if place.section == SERVE]
_HEAD = """# Command line

Generated from the commands (`make reference`). What they are for, exit codes and formats:
[kubectl gpu](../kubectl-gpu.md).
"""


def page() -> str:
    """The page as it should be."""
    return "\n".join([_HEAD, *_sections(app, PROGRAM, None)])


def _sections(group: click.Group, name: str, above: click.Context | None) -> Iterator[str]:
    settings = group.context_settings if above is None else {}
    context = click.Context(group, info_name=name, parent=above, **settings)
    for each in group.list_commands(context):
        command = group.get_command(context, each)
        assert command is not None
        if each in _OF_THE_CHART:
            continue
        if isinstance(command, click.Group):
            yield from _sections(command, each, context)
        else:
            yield _section(command, click.Context(command, info_name=each, parent=context))


def _section(command: click.Command, context: click.Context) -> str:
    usage = " ".join([context.command_path, *command.collect_usage_pieces(context)])
    rows = [
        record
        for param in command.get_params(context)
        if isinstance(param, click.Option)
        and (record := param.get_help_record(context)) is not None
    ]
    options = "\n".join(f"| `{cell(names)}` | {cell(help)} |" for names, help in rows)
    return f"""## {context.command_path}

{_prose(command.help or "")}

```
{usage}
```

| option | |
| --- | --- |
{options}
{_epilog(command, context)}"""


def _epilog(command: click.Command, context: click.Context) -> str:
    """What the help says below the options."""
    formatter = click.HelpFormatter(width=100)
    command.format_epilog(context, formatter)
    text = formatter.getvalue().strip()
    return f"\n```\n{text}\n```\n" if text else ""


def _prose(text: str) -> str:
    """The help, of which lines behind a backspace are examples."""
    parts = cleandoc(text).split("\n\n")
    return "\n\n".join(
        f"```\n{part.removeprefix(chr(8)).strip()}\n```" if part.startswith("\b") else part
        for part in parts
    )
