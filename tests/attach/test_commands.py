"""`truerank attach` and what goes with it, as people and scripts use it."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from tests.attach.conftest import Bench
from truerank.cli.app import run

Run = Callable[..., tuple[int, str, str]]
ATTACH = (
    *("attach", "b", "completion", "--event-id", "id", "--member", "who", "--value", "points"),
    *("--at", "at"),
)


@pytest.fixture
def command(
    database_url: str,
    redis_url: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> Run:
    """Runs one command: exit status, standard output, standard error."""
    monkeypatch.setenv("TRUERANK_DATABASE_URL", database_url)
    monkeypatch.setenv("TRUERANK_REDIS_URL", redis_url)

    def command(*arguments: str) -> tuple[int, str, str]:
        status = run([*arguments, "--actor", "kim"] if "list" not in arguments else arguments)
        out, err = capsys.readouterr()
        return status, out, err

    return command


def parsed(answer: tuple[int, str, str]) -> dict[str, Any]:
    status, out, err = answer
    assert (status, err) == (0, "")
    shape: dict[str, Any] = json.loads(out)
    return shape


def test_a_table_is_attached_filled_listed_and_detached(bench: Bench, command: Run) -> None:
    bench.conn.execute("INSERT INTO public.completion (id, who, points) VALUES ('e1', 'A', 5)")

    made = parsed(command(*ATTACH, "--backfill", "--json"))
    again = parsed(command(*ATTACH, "--json"))
    number = str(made["attachment"])
    filled = parsed(command("attachment", "backfill", number, "--restart", "--json"))
    (listed,) = parsed(command("attachment", "list", "--json"))["attachments"]
    ended = command("detach", number)

    counts = {"rows": 1, "applied": 1, "duplicate": 0, "parked": 0}
    assert made == {"attachment": 1, "created": True, "warnings": [], "backfill": counts}
    assert again["created"] is False
    assert filled["backfill"] == counts | {"applied": 0, "duplicate": 1}
    assert (listed["state"], listed["board"], listed["table"]) == (
        "attached",
        "b",
        "public.completion",
    )
    assert ended == (0, "attachment 1 detached\n", "")
    assert bench.scores() == {"A": "5"}
    actions = bench.conn.execute("SELECT action, actor FROM truerank.audit ORDER BY id").fetchall()
    assert actions == [("attach", "kim"), ("detach", "kim")]


def test_what_is_parked_is_retried_until_it_fits_or_dismissed(bench: Bench, command: Run) -> None:
    bench.attach()
    bench.conn.execute(
        "INSERT INTO public.completion (id, who, points) VALUES ('e1', 'A', 5000), ('e2', '', 1)"
    )
    bad, nameless = (str(row.id) for row in bench.parked())

    stays = command("attachment", "retry", bad)
    taken = command("attachment", "retry", bad, "--value", "50", "--reason", "typo")
    closed = command("attachment", "dismiss", nameless, "--reason", "a test")

    assert stays == (1, "stays parked: value_out_of_range\n", "")
    assert taken == (0, f"parked row {bad}: taken\n", "")
    assert closed == (0, f"parked row {nameless}: dismissed\n", "")
    assert bench.scores() == {"A": "50"}


def test_a_refusal_names_its_code_and_warnings_go_beside_the_answer(
    bench: Bench, command: Run
) -> None:
    bench.conn.execute("CREATE TABLE public.loose (id int, who text, local timestamp)")
    columns = ("--event-id", "id", "--member", "who", "--value-fixed", "1")

    refused = command("attach", "b", "loose", *columns, "--at", "local")
    status, out, err = command("attach", "b", "loose", *columns)

    assert refused[0] == 1
    assert refused[2].startswith("error[zone_missing]: column local has no time zone")
    assert (status, out) == (0, "table loose attached to board b: 1\n")
    assert [line.partition("]")[0] for line in err.splitlines()] == [
        "warning[event_id_not_indexed",
        "warning[event_id_not_unique",
        "warning[event_id_nullable",
        "warning[occurred_at_missing",
    ]


def test_a_partition_without_triggers_is_told_beside_the_list(bench: Bench, command: Run) -> None:
    bench.conn.execute(
        "CREATE TABLE public.split (id int PRIMARY KEY, who text, points int)"
        " PARTITION BY RANGE (id)"
    )
    bench.attach(table="split", occurred_at=None)
    bench.conn.execute("CREATE TABLE public.split_1 PARTITION OF public.split DEFAULT")

    status, out, err = command("attachment", "list")

    assert status == 0
    assert out.splitlines()[1].split() == [
        *("1", "incomplete", "not", "begun", "0", "b", "public.split"),
    ]
    assert err == "attachment 1 does not see: public.split_1; attach again to cover them\n"
