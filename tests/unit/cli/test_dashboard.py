"""``dashboard``: where it leads, who logs in, and that no other user gets the token."""

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import closing
from http.client import HTTPConnection
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import yaml
from click.testing import CliRunner, Result
from tests.unit.cli.server import Server, serving

from gpu_scheduler.cli.dashboard.handing_over import HandOver, owner_of
from gpu_scheduler.cli.root import app

LEASE = "/apis/coordination.k8s.io/v1/namespaces/gpu-scheduler/leases/gpu-scheduler-leader"
POD = "/api/v1/namespaces/gpu-scheduler/pods/operator-5f-x"
ACCOUNTS = "/api/v1/namespaces/gpu-scheduler/serviceaccounts"
VIEWER = {"metadata": {"name": "viewer"}}
FORWARDING = "echo 'Forwarding from 127.0.0.1:40123 -> 8082'"


def pod(*ports: dict[str, Any]) -> dict[str, Any]:
    return {"kind": "Pod", "spec": {"containers": [{"name": "operator", "ports": list(ports)}]}}


@pytest.fixture
def server() -> Iterator[Server]:
    with serving({}) as made:
        made.answers[f"GET {LEASE}"] = {"spec": {"holderIdentity": "operator-5f-x_1a2b3c4d"}}
        made.answers[f"GET {POD}"] = pod({"name": "dashboard", "containerPort": 8082})
        made.answers[f"GET {ACCOUNTS}"] = {"items": [VIEWER]}
        made.answers[f"POST {ACCOUNTS}/viewer/token"] = {"status": {"token": "made-token"}}
        yield made


class Browser:
    """Opens what it is told to, as a process of this user does."""

    def __init__(self) -> None:
        self.opened: list[str] = []
        self.answers: list[tuple[int, str | None]] = []
        self._threads: list[threading.Thread] = []

    def open(self, address: str) -> bool:
        self.opened.append(address)
        if urlsplit(address).port != 40123:  # the page that hands over
            self._threads.append(threading.Thread(target=self._visit, args=(address,)))
            self._threads[-1].start()
        return True

    def _visit(self, address: str) -> None:
        url = urlsplit(address)
        with closing(HTTPConnection("127.0.0.1", url.port or 0, timeout=30)) as connection:
            connection.request("GET", url.path)
            answer = connection.getresponse()
            self.answers.append((answer.status, answer.getheader("Location")))

    def join(self) -> None:
        for thread in self._threads:
            thread.join()


@pytest.fixture
def browser(monkeypatch: pytest.MonkeyPatch) -> Browser:
    made = Browser()
    monkeypatch.setattr("webbrowser.open", made.open)
    return made


@pytest.fixture
def call(server: Server, browser: Browser, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    pauses = []

    def run(*arguments: str, script: str = FORWARDING, rounds: int = 1, **user: Any) -> Result:
        program = tmp_path / "kubectl"
        program.write_text(f'#!/bin/sh\necho "$@" >> {tmp_path}/said\n{script}\n')
        program.chmod(0o755)
        monkeypatch.setenv("PATH", f"{tmp_path}:/bin:/usr/bin")

        def pause(seconds: float) -> None:
            pauses.append(seconds)
            if len(pauses) >= rounds:
                raise KeyboardInterrupt

        monkeypatch.setattr("time.sleep", pause)
        path = Path(server.kubeconfig(tmp_path))
        if user:
            document = yaml.safe_load(path.read_text())
            document["users"][0]["user"] = user
            path.write_text(yaml.safe_dump(document))
        result = CliRunner().invoke(
            app, ["dashboard", *arguments], prog_name="kubectl gpu", env={"KUBECONFIG": str(path)}
        )
        browser.join()
        return result

    return run


def test_the_leaders_pod_is_forwarded_and_the_browser_is_sent_there_with_the_token(
    call: Any, browser: Browser, tmp_path: Path
) -> None:
    result = call()
    assert result.exit_code == 0, result.output
    assert (tmp_path / "said").read_text().split() == [
        *("port-forward", "--namespace=gpu-scheduler", "--address=127.0.0.1"),
        *("pod/operator-5f-x", ":8082"),
    ]
    assert browser.answers == [(303, "http://127.0.0.1:40123/#token=t")]
    assert "token=" not in browser.opened[0] and "token=" not in result.output


def test_without_a_browser_the_address_is_printed_and_no_token(call: Any, browser: Browser) -> None:
    result = call("--no-browser")
    assert "http://127.0.0.1:40123 leads to" in result.output
    assert browser.opened == [] and "token=" not in result.output


def test_another_leader_is_gone_on_with_at_the_same_port(
    call: Any, browser: Browser, server: Server, tmp_path: Path
) -> None:
    call(rounds=2)
    first, second = (tmp_path / "said").read_text().splitlines()
    assert first.endswith(" :8082") and second.endswith(" 40123:8082")
    assert len(browser.opened) == 1


def test_who_has_no_token_logs_in_as_the_charts_viewer(
    call: Any, browser: Browser, server: Server
) -> None:
    result = call("--print-token", token="")
    assert result.stdout == "made-token\n"
    (made,) = server.sent("POST")
    assert made.path == f"{ACCOUNTS}/viewer/token"


@pytest.mark.parametrize(
    ("answers", "words"),
    [
        ({f"POST {ACCOUNTS}/viewer/token": 403}, "you may not create tokens"),
        ({f"GET {ACCOUNTS}": 403}, "you may not create tokens"),
        ({f"GET {ACCOUNTS}": {"items": []}}, "the chart has made no account"),
    ],
)
def test_who_has_no_token_and_may_make_none_is_told_so_in_one_sentence(
    call: Any, server: Server, answers: dict[str, Any], words: str
) -> None:
    server.answers |= answers
    result = call("--print-token", token="")
    assert result.exit_code == 1
    assert words in result.stderr and len(result.stderr.splitlines()) == 1


@pytest.mark.parametrize(
    ("answers", "words"),
    [
        ({f"GET {LEASE}": {"spec": {}}}, "nobody leads"),
        ({f"GET {POD}": pod({"name": "http", "containerPort": 8080})}, "the dashboard is off"),
    ],
)
def test_where_there_is_no_dashboard_it_says_why(
    call: Any, server: Server, answers: dict[str, Any], words: str
) -> None:
    server.answers |= answers
    result = call()
    assert result.exit_code == 1 and words in result.stderr


def test_whoever_ends_it_ends_its_way_to_the_leader_too(server: Server, tmp_path: Path) -> None:
    kubectl = tmp_path / "kubectl"
    kubectl.write_text(f"#!/bin/sh\n{FORWARDING}\necho $$ > {tmp_path}/pid\nexec sleep 60\n")
    kubectl.chmod(0o755)
    environment = {
        **os.environ,
        "KUBECONFIG": str(server.kubeconfig(tmp_path)),
        "PATH": f"{tmp_path}:/bin:/usr/bin",
        "PYTHONPATH": os.pathsep.join(sys.path),
    }
    line = [sys.executable, "-m", "gpu_scheduler.main", "dashboard", "--no-browser"]
    with subprocess.Popen(line, env=environment, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None and "leads to" in process.stderr.readline()
        while not (tmp_path / "pid").exists():
            pass
        process.terminate()
        assert process.wait(30) == 0
    with pytest.raises(ProcessLookupError):
        os.kill(int((tmp_path / "pid").read_text()), 0)


def test_what_kubectl_says_ends_the_command(call: Any) -> None:
    result = call(script="echo 'error: unable to listen' >&2; exit 1")
    assert result.exit_code == 1 and "unable to listen" in result.stderr


def test_a_system_that_does_not_say_who_asks_hands_nothing_over(
    call: Any, browser: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gpu_scheduler.cli.dashboard.handing_over.can_tell", lambda: False)
    result = call()
    assert browser.opened == ["http://127.0.0.1:40123/"]
    assert "--print-token" in result.stderr


def ask(page: HandOver, path: str) -> int:
    answers: list[int] = []

    def visit() -> None:
        url = urlsplit(page.address)
        with closing(HTTPConnection("127.0.0.1", url.port or 0, timeout=30)) as connection:
            connection.request("GET", path)
            answers.append(connection.getresponse().status)

    thread = threading.Thread(target=visit)
    thread.start()
    page._server.handle_request()
    thread.join()
    return answers[0]


def test_the_page_answers_its_own_user_and_once() -> None:
    with closing(HandOver("http://x/#token=t", os.getuid(), owner_of)) as page:
        path = urlsplit(page.address).path
        assert ask(page, "/") == ask(page, f"{path}x") == 404
        assert ask(page, path) == 303
        assert ask(page, path) == 404


@pytest.mark.parametrize("whose", [os.getuid() + 1, None])
def test_another_user_of_the_machine_gets_nothing(whose: int | None) -> None:
    with closing(HandOver("http://x/#token=t", os.getuid(), lambda *_: whose)) as page:
        assert ask(page, urlsplit(page.address).path) == 404
        assert not page.done


def test_whose_a_connection_is_not_is_not_guessed() -> None:
    assert owner_of(("127.0.0.1", 1), ("127.0.0.1", 2)) is None
