import base64
import os
import ssl
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.unit.kube.pem import CERTIFICATE, KEY

from gpu_scheduler.kube import config
from gpu_scheduler.kube.config import ConfigError, Connection, Token
from gpu_scheduler.kube.errors import from_answer
from gpu_scheduler.kube.tls import Tls


def write_kubeconfig(folder: Path, user: dict[str, Any], **cluster: Any) -> Path:
    path = folder / "kubeconfig"
    document = {
        "current-context": "here",
        "contexts": [{"name": "here", "context": {"cluster": "c", "user": "u"}}],
        "clusters": [{"name": "c", "cluster": {"server": "https://10.0.0.1:6443/", **cluster}}],
        "users": [{"name": "u", "user": user}],
    }
    path.write_text(yaml.safe_dump(document))
    return path


def b64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def tls_of(connection: Connection) -> ssl.SSLContext | None:
    return Tls(connection, lambda: 0.0).context()


def load(path: Path) -> Connection:
    return config.load({"KUBECONFIG": str(path)})


def write_service_account(folder: Path) -> None:
    (folder / "token").write_text("first\n")
    (folder / "ca.crt").write_text(CERTIFICATE)
    (folder / "namespace").write_text("gpu-system")


IN_POD = {"KUBERNETES_SERVICE_HOST": "10.96.0.1", "KUBERNETES_SERVICE_PORT": "443"}


def test_in_a_pod_the_service_account_is_used(tmp_path: Path) -> None:
    write_service_account(tmp_path)
    found = config.load(IN_POD, tmp_path)
    assert (found.server, found.namespace) == ("https://10.96.0.1:443", "gpu-system")
    assert found.ca_file == tmp_path / "ca.crt"
    assert Token(found, lambda: 0.0).current() == "first"


def test_an_ipv6_service_host_is_put_in_brackets(tmp_path: Path) -> None:
    write_service_account(tmp_path)
    found = config.load({**IN_POD, "KUBERNETES_SERVICE_HOST": "fd00::1"}, tmp_path)
    assert found.server == "https://[fd00::1]:443"


def test_a_token_file_is_read_again_after_a_minute(tmp_path: Path) -> None:
    write_service_account(tmp_path)
    now = 100.0
    token = Token(config.load(IN_POD, tmp_path), lambda: now)
    assert token.current() == "first"
    (tmp_path / "token").write_text("second")
    now += 59
    assert token.current() == "first"
    now += 1
    assert token.current() == "second"


def test_a_token_file_that_vanishes_leaves_the_last_token(tmp_path: Path) -> None:
    write_service_account(tmp_path)
    token = Token(config.load(IN_POD, tmp_path), lambda: 0.0)
    assert token.current() == "first"
    (tmp_path / "token").unlink()
    assert token.refresh() is False
    assert token.current() == "first"


def test_a_token_file_that_was_never_there_is_an_error(tmp_path: Path) -> None:
    connection = Connection(server="https://x", token_file=tmp_path / "missing")
    with pytest.raises(ConfigError, match="missing"):
        Token(connection, lambda: 0.0).current()


def test_a_kubeconfig_gives_server_token_and_namespace(tmp_path: Path) -> None:
    found = load(write_kubeconfig(tmp_path, {"token": "t"}))
    assert (found.server, found.namespace, found.token, found.verify) == (
        "https://10.0.0.1:6443",
        "default",
        "t",
        True,
    )


def test_without_the_package_that_logs_in_it_is_named_by_who_needs_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "kubernetes.client", None)  # as in the operator's image
    program = {"exec": {"apiVersion": "client.authentication.k8s.io/v1", "command": "true"}}
    path = write_kubeconfig(tmp_path, program)
    with pytest.raises(ConfigError, match=r"needs the package kubernetes: pip install '\.\[cli\]'"):
        config.load({"KUBECONFIG": str(path)}, login=True)
    assert load(write_kubeconfig(tmp_path, {"token": "t"})).token == "t"
    write_service_account(tmp_path)
    assert config.load(IN_POD, tmp_path).server == "https://10.96.0.1:443"


def test_data_that_are_empty_leave_the_file_as_in_kubectl(tmp_path: Path) -> None:
    (tmp_path / "ca.pem").write_text(CERTIFICATE)
    cluster = {"certificate-authority": "ca.pem", "certificate-authority-data": ""}
    assert load(write_kubeconfig(tmp_path, {}, **cluster)).ca_file == tmp_path / "ca.pem"


def test_without_tls_no_certificate_is_made_use_of(tmp_path: Path) -> None:
    data = {"client-certificate-data": b64(CERTIFICATE), "client-key-data": b64(KEY)}
    path = write_kubeconfig(tmp_path, data, server="http://10.0.0.1")
    found = load(path)
    assert (found.certificate_pem, found.key_pem, found.certificate_file) == ("", "", None)


def test_files_in_a_kubeconfig_are_relative_to_it(tmp_path: Path) -> None:
    (tmp_path / "ca.pem").write_text(CERTIFICATE)
    (tmp_path / "tok").write_text("T")
    path = write_kubeconfig(tmp_path, {"tokenFile": "tok"}, **{"certificate-authority": "ca.pem"})
    found = load(path)
    assert found.ca_file == tmp_path / "ca.pem"
    assert found.token_file == tmp_path / "tok"


def test_data_in_a_kubeconfig_wins_over_files(tmp_path: Path) -> None:
    user = {
        "client-certificate": "not-there",
        "client-certificate-data": b64(CERTIFICATE),
        "client-key-data": b64(KEY),
    }
    path = write_kubeconfig(tmp_path, user, **{"certificate-authority-data": b64(CERTIFICATE)})
    found = load(path)
    assert (found.ca_pem, found.certificate_pem) == (CERTIFICATE, CERTIFICATE)
    assert found.key_pem == KEY


def contexts(folder: Path, name: str, server: str, **more: Any) -> Path:
    """A file of one context, whose cluster and user are called as it is."""
    path = folder / name
    document = {
        "contexts": [
            {"name": name, "context": {"cluster": name, "user": name, "namespace": f"ns-{name}"}}
        ],
        "clusters": [{"name": name, "cluster": {"server": server}}],
        "users": [{"name": name, "user": {"token": f"token-{name}"}}],
        **more,
    }
    path.write_text(yaml.safe_dump(document))
    return path


def test_several_files_are_merged_and_the_first_that_says_something_is_heard(
    tmp_path: Path,
) -> None:
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "tok").write_text("beside its file")
    first = contexts(tmp_path, "a", "https://a")
    second = contexts(tmp_path, "b", "https://b", **{"current-context": "b"})
    late = {"clusters": [{"name": "b", "cluster": {"server": "https://later"}}]}
    user = {"users": [{"name": "c", "user": {"tokenFile": "tok"}}]}
    third = contexts(tmp_path / "other", "c", "x", **late, **user, **{"current-context": "a"})
    missing, empty = tmp_path / "missing", tmp_path / "empty"
    empty.write_text("\n")
    files = {"KUBECONFIG": os.pathsep.join(map(str, (missing, empty, first, second, third)))}
    found = config.load(files)
    assert (found.server, found.token, found.namespace) == ("https://b", "token-b", "ns-b")
    found = config.load(files, context="a")
    assert (found.server, found.token, found.namespace) == ("https://a", "token-a", "ns-a")
    with pytest.raises(ConfigError, match="contexts has no entry named 'z'; there are: a, b, c"):
        config.load(files, context="z")
    with pytest.raises(ConfigError, match="clusters has no entry named 'c'"):
        config.load(files, context="c")
    assert config.load({"KUBECONFIG": str(second)}).token_file is None


def test_a_users_certificate_is_beside_the_user_and_not_beside_its_cluster(tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    for folder, text in ((tmp_path, "somebody else's"), (tmp_path / "other", "its own")):
        (folder / "crt").write_text(f"# {text}\n{CERTIFICATE}")
        (folder / "key").write_text(KEY)
    user = {"client-certificate": "crt", "client-key": "key"}
    first = contexts(tmp_path, "a", "https://a", users=[])
    here = {"users": [{"name": "a", "user": user}]}
    second = contexts(tmp_path / "other", "c", "https://c", **here)
    found = config.load({"KUBECONFIG": f"{first}{os.pathsep}{second}"}, context="a")
    assert found.certificate_file == tmp_path / "other" / "crt"
    assert found.key_file == tmp_path / "other" / "key"


def test_a_token_file_is_beside_the_file_that_names_it(tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "tok").write_text("beside its file")
    user = {"users": [{"name": "c", "user": {"tokenFile": "tok"}}]}
    first = contexts(tmp_path, "a", "https://a")
    second = contexts(tmp_path / "other", "c", "https://c", **user)
    found = config.load({"KUBECONFIG": f"{first}{os.pathsep}{second}"}, context="c")
    assert Token(found, lambda: 0.0).current() == "beside its file"


@pytest.mark.parametrize(
    ("user", "cluster", "message"),
    [
        ({"token": "t"}, {"proxy-url": "http://p"}, "proxy-url is not supported"),
        ({"client-certificate-data": "Q0VSVA=="}, {}, "come together"),
        ({"client-key-data": "%%"}, {}, "client-key-data is not base64"),
        ({}, {"certificate-authority": "nowhere"}, "certificate-authority: .*nowhere"),
        ({}, {"server": ""}, "server is not set"),
        ({"tokenFile": "gone"}, {}, "tokenFile: there is no file .*gone"),
    ],
)
def test_what_is_wrong_in_a_kubeconfig_is_named(
    tmp_path: Path, user: dict[str, Any], cluster: dict[str, Any], message: str
) -> None:
    with pytest.raises(ConfigError, match=message):
        load(write_kubeconfig(tmp_path, user, **cluster))


@pytest.mark.parametrize("text", ["secret", "s\u00e9cret", CERTIFICATE[:200]])
def test_what_is_no_pem_is_named_by_its_field_and_not_quoted(tmp_path: Path, text: str) -> None:
    pair = {"client-certificate-data": b64(CERTIFICATE), "client-key-data": b64(text)}
    for user, cluster, field in (
        ({}, {"certificate-authority-data": b64(text)}, "certificate-authority"),
        (pair, {}, "client-certificate and client-key"),
    ):
        path = write_kubeconfig(tmp_path, user, **cluster)
        with pytest.raises(ConfigError, match=f"^{path}: {field}") as caught:
            load(path)
        assert text not in str(caught.value)


def test_a_bundle_of_authorities_may_have_comments_in_any_language(tmp_path: Path) -> None:
    bundle = b64(f"# Fő autoridad\n{CERTIFICATE}")
    found = load(write_kubeconfig(tmp_path, {}, **{"certificate-authority-data": bundle}))
    context = tls_of(found)
    assert context is not None
    assert context.cert_store_stats()["x509_ca"] == 1


def test_a_service_account_whose_authority_is_no_pem_is_named(tmp_path: Path) -> None:
    write_service_account(tmp_path)
    (tmp_path / "ca.crt").write_text("not a certificate")
    with pytest.raises(ConfigError, match=f"^{tmp_path}: certificate-authority"):
        config.load(IN_POD, tmp_path)


@pytest.mark.parametrize("text", ["[1, 2]", "a: b: secret", "{}", "current-context: gone"])
def test_a_file_that_is_no_kubeconfig_is_refused_without_quoting_it(
    tmp_path: Path, text: str
) -> None:
    path = tmp_path / "config"
    path.write_text(text)
    with pytest.raises(ConfigError) as caught:
        load(path)
    assert str(path) in str(caught.value)
    assert "secret" not in str(caught.value)


def test_nothing_at_all_says_what_was_looked_for(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="KUBECONFIG is not set and .*does not exist"):
        config.load({"HOME": str(tmp_path)}, tmp_path)


def test_secrets_are_not_in_the_repr() -> None:
    shown = repr(
        Connection(
            server="https://x",
            token="hidden",
            ca_pem="hidden",
            certificate_pem="hidden",
            key_pem="hidden",
        )
    )
    assert "hidden" not in shown
    assert "https://x" in shown


def test_plain_http_has_no_tls_and_skip_verify_checks_nothing() -> None:
    assert tls_of(Connection(server="http://x")) is None
    checked = tls_of(Connection(server="https://x"))
    assert checked is not None
    assert checked.verify_mode is ssl.CERT_REQUIRED
    unchecked = tls_of(Connection(server="https://x", verify=False))
    assert unchecked is not None
    assert unchecked.verify_mode is ssl.CERT_NONE
    assert unchecked.check_hostname is False


def test_a_refusal_keeps_the_fields_that_it_names() -> None:
    body = (
        b'{"code":422,"reason":"Invalid","message":"bad","details":{"name":"p","causes":'
        b'[{"reason":"FieldValueInvalid","message":"must be 1","field":"spec.x"}]}}'
    )
    error = from_answer(422, body)
    assert str(error) == "bad (422 Invalid)"
    assert error.details.causes[0].field == "spec.x"


@pytest.mark.parametrize("body", [b"", b"<html>busy</html>", b"\xff", b"[]", b"null"])
def test_a_refusal_that_is_no_status_is_still_an_error(body: bytes) -> None:
    error = from_answer(503, body, "7")
    assert error.status == 503
    assert error.retry_after_seconds == 7
    assert str(error)
