from pathlib import Path

from cluster.images_pip import render, settings


def write(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.write_text(text)
    return path


def test_a_variable_wins_over_a_file(tmp_path: Path) -> None:
    file = write(tmp_path, "pip.conf", "[global]\nindex-url = https://file.example\ntimeout = 9\n")
    found = settings({"PIP_INDEX_URL": "https://variable.example"}, [file])
    assert found == {"index-url": "https://variable.example", "timeout": "9"}


def test_a_later_file_wins(tmp_path: Path) -> None:
    first = write(tmp_path, "a", "[global]\nindex-url = https://a.example\n")
    second = write(tmp_path, "b", "[install]\nindex-url = https://b.example\n")
    assert settings({}, [first, second])["index-url"] == "https://b.example"


def test_what_decides_where_packages_go_stays_out(tmp_path: Path) -> None:
    file = write(tmp_path, "pip.conf", "[global]\ntarget = /elsewhere\n[install]\nuser = true\n")
    assert settings({"PIP_TARGET": "/elsewhere", "PIP_USER": "1"}, [file]) == {}


def test_certificates_come_from_the_usual_variables() -> None:
    assert settings({"SSL_CERT_FILE": "/ca.crt"}, []) == {"cert": "/ca.crt"}
    assert settings({"SSL_CERT_FILE": "/ca.crt", "PIP_CERT": "/own.crt"}, [])["cert"] == "/own.crt"


def test_what_is_rendered_reads_back(tmp_path: Path) -> None:
    wanted = {"index-url": "https://user:a%40b@example/simple", "timeout": "60"}
    assert settings({}, [write(tmp_path, "pip.conf", render(wanted))]) == wanted
