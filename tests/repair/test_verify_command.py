"""`truerank verify`, as people and scripts use it."""

from pathlib import Path

import psycopg

from tests.cli.commands import Command
from truerank.embedded import start_engines


def test_the_command_says_what_it_found_and_ends_accordingly(tmp_path: Path) -> None:
    truerank = Command(tmp_path / "data")
    with (
        start_engines(truerank.data, durable=False) as engines,  # each command attaches to them
        psycopg.connect(engines.database_url, autocommit=True) as conn,
    ):
        assert truerank("board", "create", "b", "--seasons", "all").status == 0
        assert truerank("submit", "b", "ann", "5").status == 0

        sound = truerank("verify", "b", "--json")
        assert sound.status == 0, sound.err
        assert (sound.json["verdict"], sound.json["members"]) == ("same", 1)
        assert {path["digest"] for path in sound.json["paths"]} == {sound.json["digest"], None}
        assert all(path["same"] for path in sound.json["paths"])

        conn.execute("UPDATE truerank.standing SET score = 6")
        found = truerank("verify", "b")
        assert found.status == 1, found.err
        assert "events: ann: 6 at version 1; the source has 5 by its events\n" in found.out
        assert "different: 1 member of b, season all (open)\n" in found.out
        assert f"sha256:{sound.json['digest']}\n" in found.out

        unknown = truerank("verify", "elsewhere")
        assert (unknown.status, unknown.out) == (1, "")
        assert "error[board_unknown]" in unknown.err
