"""Plays the attacks until its input ends: ``python -m tests.attack.play``, of `make attack`.

A process of its own, so that who measures does not wait for who attacks. Reads what to do as JSON
from the first line of its input; prints what came of the requests, as JSON, now and then and in
the end.
"""

import json
import os
import sys
import threading
from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

from tests.api.caller import Caller
from tests.attack.attacker import Attacker, Scene
from tests.attack.attacks import ATTACKS, Attack

_NICE = 10  # who attacks has machines of its own, and not the operator's processors
_MESSAGES = 3  # of each attack
_TELL_SECONDS = 10.0


def main() -> None:
    """See the module."""
    os.nice(_NICE)
    told = json.loads(sys.stdin.readline())
    enough = threading.Event()
    attackers = [
        (attack, attacker)
        for number, attack in enumerate(ATTACKS)
        if not told["only"] or attack.name in told["only"]
        for attacker in _attackers(attack, number, told)
    ]
    threads = [
        threading.Thread(target=_play, args=(attack, attacker, enough), daemon=True)
        for attack, attacker in attackers
    ]
    for thread in threads:
        thread.start()
    threading.Thread(target=_tell, args=(attackers, enough), daemon=True).start()
    sys.stdin.read()
    enough.set()
    for thread in threads:
        thread.join(timeout=60)
    _print(attackers)


def _attackers(attack: Attack, number: int, told: dict[str, Any]) -> list[Attacker]:
    found = []
    for each in range(attack.at_once):
        token = told["tokens"][(number + each) % len(told["tokens"])]
        caller = Caller(told["server"], Path(told["ca_file"]), token)
        name = f"{attack.name}-{each}" if each else attack.name
        dice = Random(f"{told['seed']}-{name}")
        found.append(Attacker(name, caller, Scene(**told["scene"]), dice))
    return found


def _play(attack: Attack, attacker: Attacker, enough: threading.Event) -> None:
    while not enough.is_set():
        try:
            attack.step(attacker)
        except Exception as error:  # the attack itself is wrong, and says so
            attacker.answers[f"broken: {error!r}"] += 1
            enough.wait(1.0)


def _tell(attackers: list[tuple[Attack, Attacker]], enough: threading.Event) -> None:
    while not enough.wait(_TELL_SECONDS):
        _print(attackers)


def _print(attackers: list[tuple[Attack, Attacker]]) -> None:
    answers: dict[str, Counter[str]] = {}
    messages: dict[str, Counter[str]] = {}
    for attack, attacker in attackers:
        answers.setdefault(attack.name, Counter()).update(dict(attacker.answers))
        messages.setdefault(attack.name, Counter()).update(dict(attacker.messages))
    most = {name: found.most_common(_MESSAGES) for name, found in messages.items()}
    print(json.dumps({"answers": answers, "messages": most}), flush=True)  # noqa: T201


if __name__ == "__main__":
    main()
