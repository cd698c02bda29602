"""The page served while a comparison is running."""

import http.client
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from lupi.errors import LupiError
from lupi.report.page.watch import page_server
from made_records import ARMS, drop_results, make_records


@pytest.fixture
def demo(tmp_path: Path) -> Path:
    folder = make_records(tmp_path / "demo", arms=ARMS[:3], sizes=(75,), n_seeds=2, images=False)
    drop_results(folder, keep=5)
    return folder


@pytest.fixture
def port(demo: Path) -> Iterator[int]:
    with page_server(demo, 0) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        assert server.server_address[0] == "127.0.0.1"
        yield server.server_port
        server.shutdown()


def ask(port: int, path: str, method: str = "GET", **headers: str) -> tuple[int, str]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    connection.request(method, path, headers=headers)
    answer = connection.getresponse()
    text = answer.read().decode()
    connection.close()
    return answer.status, text


def test_the_page_follows_the_records(demo: Path, port: int) -> None:
    status, page = ask(port, "/")
    assert status == 200
    assert "Incomplete (5 of 6 runs)" in page
    _, before = ask(port, "/state")
    assert f'now !== "{before}"' in page
    failed = next(demo.glob("*/failure.txt"))
    failed.unlink()
    _, after = ask(port, "/state")
    assert after != before
    assert after in ask(port, "/")[1]
    assert not (demo / "report.html").exists()


@pytest.mark.parametrize(
    "path", ["/comparison.json", "/../../etc/passwd", "/report.html", "/state/", "/?x"]
)
def test_nothing_but_the_page_is_served(port: int, path: str) -> None:
    assert ask(port, path)[0] == 404


def test_other_names_of_this_machine_get_no_answer(port: int) -> None:
    assert ask(port, "/", Host="evil.example:80")[0] == 403
    assert ask(port, "/state", Host=f"localhost:{port}")[0] == 200
    assert ask(port, "/", method="POST")[0] == 501


def test_a_port_in_use_and_a_folder_without_comparison(
    demo: Path, port: int, tmp_path: Path
) -> None:
    with pytest.raises(LupiError, match=f"--port {port} on 127.0.0.1 can't be used"):
        page_server(demo, port)
    with pytest.raises(LupiError, match="holds no comparison"):
        page_server(tmp_path, 0)
