"""Who was erased stands in no log: not in ours, nor, by what we send, in that of PostgreSQL."""

import socket
from collections.abc import Callable, Iterator
from typing import Any, LiteralString

import httpx
import psycopg
import pytest

from tests.faults.pooler import caller_options
from tests.http.conftest import NO_CERTIFICATES, serving
from tests.projection.pipeline import wait_until
from truerank.client import Truerank
from truerank.embedded import Engines
from truerank.local import running_worker
from truerank.settings import Settings
from truerank.telemetry.logs import configure_logging

ENDS_S_MAX = 30.0
WHO: Any = {"actor": "op", "reason": "test"}


@pytest.fixture
def settings(database_url: str, redis_url: str) -> Settings:
    name = database_url.partition("?")[0].rpartition("/")[2]
    return Settings(
        database_url=database_url,
        redis_url=redis_url,
        prefix=f"test-{name}",
        heartbeat_ms=20,
        close_ms=20,
        cache_max_ms=0,
        webhook_ms=5,
        webhook_attempts_max=1,
        webhook_networks="127.0.0.0/8",
        operator=True,
        live_checks_percent=100,
    )


@pytest.fixture
def conn(database_url: str) -> Iterator[psycopg.Connection[Any]]:
    with psycopg.connect(database_url, autocommit=True, **caller_options()) as conn:
        yield conn


@pytest.fixture
def postgresql(engines: Engines) -> Callable[[], str]:
    """What the server has logged since."""
    log = engines.data / "log" / "postgresql.log"
    begins = log.stat().st_size

    def since() -> str:
        with log.open("rb") as file:
            file.seek(begins)
            return file.read().decode(errors="replace")

    return since


@pytest.fixture
def person(settings: Settings) -> str:
    """An id that no other test uses."""
    return f"ada of {settings.prefix}"


def dead_end() -> str:
    """An address of the loopback where nobody listens."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        return f"http://127.0.0.1:{taken.getsockname()[1]}/"


def live_on(http: httpx.Client, person: str) -> None:
    """What a product may ask and say of somebody, right and wrong."""
    for path in ("member", "around", "top"):
        http.get(f"/v1/boards/b/{path}", params={"member": person})
    http.get("/v1/boards/none/member", params={"member": person})
    http.get("/v1/boards/b/members", params={"member": person, "consistency": "settled"})
    http.get("/v1/members/states", params={"member": person})
    event = {"event_id": "e1", "member": person, "value": 9}
    for wrong in ({}, {"value": 1_000_000}, {"value": "x"}, {"member": person * 99}, {"no": 1}):
        http.post("/v1/boards/b/scores", json=event | wrong)
    for word in ("hide", "ban", "unban", "reset"):
        http.post(f"/v1/members/{word}", json={"member": person, **WHO, "wait_s": 0})
    http.post("/v1/members/merge", json={"member": person, "into": person, **WHO})
    profile = {"member": person, "name": person * 99}
    http.post("/v1/profiles", json={"profiles": [profile]})


def test_no_log_names_a_person_that_was_erased(
    settings: Settings,
    conn: psycopg.Connection[Any],
    person: str,
    postgresql: Callable[[], str],
    capfd: pytest.CaptureFixture[str],
) -> None:
    configure_logging(level="debug")
    with Truerank(settings) as tr:
        tr.create_board("b", seasons=["all", "month"], value_max=1000)
        tr.update_board("b", {"auto_close": True}, **WHO)
        conn.execute("UPDATE truerank.board SET auto_close_from = now() - interval '32 days'")
        kinds = ["event.voided", "member.erased"]
        tr.add_webhook("w", dead_end(), kinds, allow_http=True, **WHO)
        for n, member in enumerate([person, "bob", person]):
            tr.submit_score("b", event_id=f"e{n}", member=member, value=7 + n)

        with (
            running_worker(settings),
            serving(settings) as url,
            httpx.Client(base_url=url, timeout=20.0, verify=NO_CERTIFICATES) as http,
        ):
            live_on(http, person)
            tr.void_events("b", ["e2"], **WHO)
            wait_until(lambda: tr.deliveries("w", state="parked"), "a delivery to be given up")
            erasure = tr.erase_member(person, **WHO)
            live_on(http, person)
            done = tr.wait_erased(erasure.id, timeout_s=ENDS_S_MAX)

    said = capfd.readouterr().err
    assert done.complete
    # There is a log: of a season that was closed, and a delivery that was given up.
    assert "season_closed" in said
    assert "delivery_parked" in said
    assert person not in said
    assert person not in postgresql()


MISTAKES: tuple[LiteralString, ...] = (
    "set_member_state(%(who)s, 'fly', 'a', 'r')",
    "set_member_state(%(who)s, 'ban', 'a', 'r', NULL, '2020-01-01')",
    "set_member_state(%(who)s || repeat('x', 200), 'hide', 'a', 'r')",
    "set_profiles(ARRAY[%(who)s], ARRAY[repeat(%(who)s, 30)], '{NULL}')",
    "set_profiles(ARRAY[%(who)s], '{}', '{}')",
    "set_profiles(ARRAY[%(who)s], '{n}', ARRAY[to_jsonb(repeat(%(who)s, 99))])",
    "merge_members(%(who)s, repeat(%(who)s, 99), 'a', 'r')",
    "erase_member(repeat(%(who)s, 99), 'a', 'r')",
    "assign_league_key('b', repeat(%(who)s, 99), 'k')",
    "submit_scores('b', '{e}', ARRAY[%(who)s, %(who)s], '{1}')",
)


def test_no_error_of_a_function_quotes_a_members_id(
    settings: Settings,
    conn: psycopg.Connection[Any],
    person: str,
    postgresql: Callable[[], str],
) -> None:
    with Truerank(settings) as tr:
        tr.create_board("b", seasons=["all"])
        tr.submit_score("b", event_id="e1", member=person, value=9)

    for mistake in MISTAKES:
        with pytest.raises(psycopg.Error) as raised:
            conn.execute("SELECT truerank." + mistake, {"who": person})
        diag = raised.value.diag
        told = [diag.message_primary, diag.message_detail, diag.message_hint, diag.context]
        assert person not in f"{raised.value} {told}", mistake
    assert person not in postgresql()
