"""The registry starts, stops, keeps its content and leaves nothing behind. Only the pinned archive is unpacked."""

from __future__ import annotations

import hashlib
import io
import signal
import tarfile
import urllib.request
from collections.abc import Sequence
from pathlib import Path

import pytest

import dev.servers.registry
from dev.jars import JarsError
from dev.servers.broker import LOOPBACK
from dev.servers.registry import RegistryError, RegistryServer, home
from tests.dev.running import alive, command, taken_port

SUBJECT = b'{"schema": "\\"string\\""}'


def ask(url: str, body: bytes | None = None) -> bytes:
    request = urllib.request.Request(url, body, {"Content-Type": "application/vnd.schemaregistry.v1+json"})
    with urllib.request.urlopen(request, timeout=30) as answer:
        content: bytes = answer.read()
        return content


@pytest.mark.integration
class TestServer:
    def test_its_life(self) -> None:
        """It answers on loopback. A restart keeps its address and content, and closing it removes everything."""
        with RegistryServer() as registry:
            url, pid = registry.url, registry.pid
            assert url.startswith(f"http://{LOOPBACK}:")
            ask(f"{url}/subjects/kept/versions", SUBJECT)
            with pytest.raises(RegistryError, match=f"is already running as process {pid}; call stop"):
                registry.start()
            registry.stop()
            assert not alive(pid)
            with pytest.raises(RegistryError, match="is not running; call start"):
                _ = registry.pid
            registry.start()
            assert url == registry.url
            assert b'["kept"]' == ask(f"{url}/subjects")
            pid, directory = registry.pid, registry.directory
        assert not alive(pid)
        assert not directory.exists()

    def test_port_taken(self, tmp_path: Path) -> None:
        """The error of a failed start contains the end of the log."""
        with (
            taken_port() as port,
            pytest.raises(RegistryError, match=rf"(?s)exited with code \d+; its log, .*{port}"),
        ):
            RegistryServer(port, tmp_path).start()

    def test_command(self, tmp_path: Path) -> None:
        """`python -m dev.servers.registry` prints its address. SIGTERM ends its process and keeps a given directory."""
        with command("registry", "--directory", tmp_path) as running:
            assert running.stdout is not None
            url = running.stdout.readline().strip()
            assert b"[]" == ask(f"{url}/subjects")
            running.send_signal(signal.SIGTERM)
            assert 0 == running.wait(120)
        with pytest.raises(OSError, match="refused"):
            ask(f"{url}/subjects")
        assert (tmp_path / "registry.log").is_file()


def test_no_address_before_the_start(tmp_path: Path) -> None:
    """The port is unknown before the start."""
    with pytest.raises(RegistryError, match="has no address yet"):
        _ = RegistryServer(directory=tmp_path).url


class TestFetching:
    @pytest.fixture
    def fetches(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[Path]:
        """Replace fetching with packing a listed toy archive, and return a list that grows with each fetch."""
        done: list[Path] = []

        def fetch(
            wanted: Path, configurations: Sequence[str], types: Sequence[str], temporary: Path, what: str
        ) -> None:
            done.append(temporary)
            archive = temporary / "jars" / "registry" / "toy.tar.gz"
            archive.parent.mkdir(parents=True)
            archive.write_bytes(toy)

        packed = io.BytesIO()
        with tarfile.open(fileobj=packed, mode="w:gz") as archive:
            archive.addfile(tarfile.TarInfo("quarkus-run.jar"))
        toy = packed.getvalue()
        checksums = tmp_path / "registry.sha256"
        checksums.write_text(f"{hashlib.sha256(toy).hexdigest()}  registry/toy.tar.gz\n")
        monkeypatch.setenv("CDC_CACHE", str(tmp_path / "cache"))
        monkeypatch.setattr(dev.servers.registry, "CHECKSUMS", checksums)
        monkeypatch.setattr(dev.servers.registry, "fetch", fetch)
        return done

    def test_once(self, fetches: list[Path]) -> None:
        """The second call finds the fetched and unpacked files. The archive is deleted."""
        assert home() == home()
        assert ["quarkus-run.jar"] == [path.name for path in home().iterdir()]
        assert 1 == len(fetches)

    def test_not_the_listed_one(self, fetches: list[Path], tmp_path: Path) -> None:
        """A download that does not match the list is not unpacked, and nothing of it remains."""
        dev.servers.registry.CHECKSUMS.write_text(f"{64 * '0'}  registry/toy.tar.gz\n")
        with pytest.raises(JarsError, match=r"toy\.tar\.gz has the checksum [0-9a-f]{64}, .*The file was deleted"):
            home()
        assert [] == [path for path in (tmp_path / "cache" / "cdc-translator").iterdir() if path.is_dir()]
        assert 1 == len(fetches)
