"""Install a token provider for a test: a module and an entry point in a folder, which Python finds like any
distribution.
"""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

ISSUED = '''
    """Tokens from dev.servers.identity, for the USER:PASSWORD in ISSUED_LOGIN. While the file `away` exists, the
    provider fails.
    """

    import base64, json, os, ssl, time, urllib.parse, urllib.request
    from pathlib import Path

    class Issued:
        def __init__(self, *, url, ca, scope="none", away=""):
            self.context = ssl.create_default_context(cafile=ca)
            self.away = away
            login = base64.b64encode(os.environ["ISSUED_LOGIN"].encode()).decode()
            form = urllib.parse.urlencode({"grant_type": "client_credentials", "scope": scope}).encode()
            self.request = urllib.request.Request(url, form, {"Authorization": f"Basic {login}"})

        def __call__(self):
            if self.away and Path(self.away).exists():
                raise RuntimeError("the identity service is away")
            with urllib.request.urlopen(self.request, timeout=10, context=self.context) as response:
                answer = json.load(response)
            return answer["access_token"], time.time() + answer["expires_in"]
    '''


def install(folder: Path, name: str, code: str, *, distribution: str = "issued_tokens") -> None:
    """Write a distribution whose module has this code. The entry point refers to the module's `Issued`."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{distribution}.py").write_text(dedent(code))
    info = folder / f"{distribution}-1.2.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {distribution}\nVersion: 1.2\n")
    (info / "entry_points.txt").write_text(f"[cdc.tokens]\n{name} = {distribution}:Issued\n")
