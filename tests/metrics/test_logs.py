"""The log: an entry stays one entry whatever is in it, and tells no password."""

import json
import logging

import pytest
import structlog

from tests.metrics.scrape import asking
from truerank.cli.app import run
from truerank.errors import DatabaseUnavailable
from truerank.serve.app import create_app
from truerank.settings import Settings
from truerank.telemetry.logs import configure_logging
from truerank.telemetry.metrics import Metrics
from truerank.telemetry.safe import escaped, without_passwords

FORGED = "ann\x1b[2J\x1b[31m\r\n2026-01-01 00:00:00 [info     ] paid out\u2028to=mallory\u202e"


@pytest.fixture(params=["text", "json"])
def style(request: pytest.FixtureRequest) -> str:
    """How the log is written."""
    return str(request.param)


def logger(style: str) -> structlog.stdlib.BoundLogger:
    """A log on what is standard error in the test itself."""
    configure_logging(json=style == "json")
    log: structlog.stdlib.BoundLogger = structlog.get_logger("truerank")
    return log


def crash(message: str) -> None:
    raise DatabaseUnavailable(message)


def lines(capfd: pytest.CaptureFixture[str]) -> list[str]:
    """What was logged, split as a terminal or a collector splits it."""
    said = capfd.readouterr().err
    assert not [part for part in ("\x1b[2J", "\x1b[31m", "\r", "\u2028", "\u202e") if part in said]
    return said.splitlines()


@pytest.mark.parametrize(
    "value", [FORGED, FORGED.encode(), [FORGED], {FORGED: FORGED}, ValueError(FORGED), (FORGED,)]
)
def test_an_entry_with_a_forged_line_in_it_stays_one_line(
    style: str, value: object, capfd: pytest.CaptureFixture[str]
) -> None:
    logger(style).warning("write_failed", member=value)

    (line,) = lines(capfd)
    assert "write_failed" in line
    assert "paid out" in line, "it is shown, as what it is"
    if style == "json":
        assert json.loads(line)["event"] == "write_failed"


def test_what_a_library_logs_is_an_entry_like_any_other(
    style: str, capfd: pytest.CaptureFixture[str]
) -> None:
    logger(style)

    logging.getLogger("psycopg.pool").warning("error connecting: %s", FORGED)
    logging.getLogger("psycopg.pool").info("not asked for")

    (line,) = lines(capfd)
    assert "library_said" in line
    assert "psycopg.pool" in line
    if style == "json":
        assert json.loads(line)["level"] == "warning"


def test_what_a_command_raises_itself_is_not_logged_too_but_by_the_next_service(
    capfd: pytest.CaptureFixture[str],
) -> None:
    pool = logging.getLogger("psycopg.pool")
    configure_logging(raised=["psycopg.pool"])

    pool.warning("error connecting: %s", FORGED)
    assert lines(capfd) == []
    pool.error("broken")
    assert len(lines(capfd)) == 1

    configure_logging()
    pool.warning("error connecting: %s", FORGED)
    assert len(lines(capfd)) == 1


def test_a_name_or_key_can_forge_nothing_either(
    style: str, capfd: pytest.CaptureFixture[str]
) -> None:
    logger(style).info(FORGED, **{FORGED: 1})

    assert len(lines(capfd)) == 1


def test_no_line_of_a_traceback_looks_like_an_entry(
    style: str, capfd: pytest.CaptureFixture[str]
) -> None:
    try:
        crash(FORGED)
    except DatabaseUnavailable:
        logger(style).exception("request_crashed")

    first, *rest = lines(capfd)
    assert "request_crashed" in first
    assert (style == "text") == bool(rest)
    assert all(line.startswith("    ") for line in rest)


async def test_a_failing_write_with_a_forged_name_is_logged_as_one_line(
    style: str, capfd: pytest.CaptureFixture[str]
) -> None:
    logger(style)
    nowhere = Settings(
        database_url="postgresql://ada:s3cret@127.0.0.1:1/none",
        redis_url="redis://127.0.0.1:1",
        database_timeout_ms=200,
    )
    event = {"event_id": FORGED, "member": FORGED, "value": 1}
    async with asking(create_app(nowhere, Metrics())) as http:
        answer = await http.post("/v1/boards/b/scores", json=event)

    logged = [line for line in lines(capfd) if "request_failed" in line]
    assert (answer.status_code, len(logged)) == (503, 1)
    assert "s3cret" not in "".join(logged) + answer.text
    assert (style == "json") == logged[0].startswith("{")


@pytest.mark.parametrize(
    ("text", "safe"),
    [
        ("postgresql://ada:s3cret@host:5432/db", "postgresql://ada:***@host:5432/db"),
        ("redis://:s3cret@host/0 refused", "redis://:***@host/0 refused"),
        ("postgers://ada:s3:c@r/et@host/db", "postgers://ada:***@host/db"),
        ('missing "=" after "x://a:s3cret@h/d" in', 'missing "=" after "x://a:***@h/d" in'),
        ("host=h password=s3cret user=ada", "host=h password=*** user=ada"),
        ("host=h password = 's3 cr\\et' user=ada", "host=h password = *** user=ada"),
        (
            "unix:///run/valkey.sock?password=s3cret&db=1",
            "unix:///run/valkey.sock?password=***&db=1",
        ),
        ("postgresql://ada@host/db at 12:30@noon", "postgresql://ada@host/db at 12:30@noon"),
    ],
)
def test_passwords_of_addresses_are_hidden_and_nothing_else(text: str, safe: str) -> None:
    assert without_passwords(text) == safe


def test_passwords_are_hidden_in_entries_and_their_tracebacks(
    style: str, capfd: pytest.CaptureFixture[str]
) -> None:
    url = "postgresql://ada:s3cret@host/db"
    try:
        crash(url)
    except DatabaseUnavailable as exc:
        logger(style).exception("interrupted", url=url, error=exc, every=[url])

    said = "".join(lines(capfd))
    assert "s3cret" not in said
    assert said.count("ada:***@host/db") >= 4


@pytest.mark.parametrize(
    "database", ["postgers://ada:s3cret@host/db", "postgresql://ada:s3cret@127.0.0.1:port/db"]
)
@pytest.mark.parametrize("command", [("top", "b"), ("status",), ("doctor",), ("migrate",)])
def test_an_address_that_cannot_be_read_is_told_without_its_password(
    command: tuple[str, ...],
    database: str,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("TRUERANK_DATABASE_URL", database)
    monkeypatch.setenv("TRUERANK_REDIS_URL", "redis://:s3cret@127.0.0.1:1/0")
    monkeypatch.setenv("TRUERANK_DATABASE_TIMEOUT_MS", "200")

    assert run(command) != 0

    said = capfd.readouterr()
    assert "s3cret" not in said.out + said.err
    assert "Traceback" not in said.err


@pytest.mark.parametrize("given", ["option", "variable"])
def test_the_format_of_the_log_is_an_option_and_a_variable(
    given: str, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TRUERANK_DATABASE_URL", "postgresql://127.0.0.1:1/none")
    monkeypatch.setenv("TRUERANK_REDIS_URL", "redis://127.0.0.1:1")
    if given == "variable":
        monkeypatch.setenv("TRUERANK_LOG_FORMAT", "json")
    option = ["--log-format", "json"] if given == "option" else []

    run([*option, "board", "list"])
    structlog.get_logger("truerank").warning("something")

    *_, line = capfd.readouterr().err.splitlines()
    assert json.loads(line)["event"] == "something"


def test_text_that_needs_no_escape_stays_as_it_is() -> None:
    name = "\u0645\u0631\u064a\u0645 \U0001f468\u200d\U0001f469\u200d\U0001f467 <b>&"

    assert escaped(name) == name
    assert escaped("two\nlines", lines=True) == "two\nlines"
