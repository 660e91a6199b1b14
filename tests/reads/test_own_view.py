"""What the command line says of a member whose place is withheld: it is for who looks after it."""

import json

import pytest

from tests.projection.pipeline import Pipeline
from truerank.cli.app import run


def test_the_command_line_says_why_a_member_has_no_place(
    idle: Pipeline, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TRUERANK_DATABASE_URL", str(idle.settings.database_url))
    monkeypatch.setenv("TRUERANK_REDIS_URL", str(idle.settings.redis_url))
    idle.submit("b", {"bob": 5})
    idle.client.ban_member("ann", actor="a", reason="r", timeout_s=0.0)

    def said(*words: str) -> str:
        assert run([*words, "--source", "database"]) == 0
        return capsys.readouterr().out

    lines = said("places", "b", "ann", "bob", "zoe").splitlines()
    shape = json.loads(said("places", "b", "ann", "--percentile", "--json"))
    beside = said("top", "b", "--member", "ann").splitlines()

    assert [line.split()[-1] for line in lines[2:5]] == ["banned", "bob", "zoe"]
    assert lines[2].split() == ["-", "-", "ann,", "banned"]
    assert shape["places"] == [
        {"rank": None, "member": "ann", "score": None, "state": "banned", "percentile": None}
    ]
    assert beside[-3].split() == ["-", "-", "ann,", "banned"]
