"""`truerank status`: how the pipeline is doing."""

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from truerank.cli.options import Given, Json
from truerank.cli.output import duration_words, escaped, pairs, say, write_json
from truerank.read.shapes import status_json

if TYPE_CHECKING:
    from truerank.read.status import Status

_WAITING_COUNTED_MAX = 100_000


def status(*, json: Json = False, given: Given) -> None:
    """Show how the pipeline is doing: what waits, who works, how far the projection is."""
    from truerank.client import Truerank

    with (
        given.installation(project=False) as installation,
        Truerank(installation.settings) as client,
    ):
        found = client.status()
        redis_version = _redis_version(str(installation.settings.redis_url))
        engines = installation.engines
    age_ms = _age_ms(found)
    if json:
        embedded = None
        if engines is not None:
            embedded = {
                "data": str(engines.data),
                "owner_pid": engines.owner_pid,
                "attached": engines.attached,
            }
        write_json(
            status_json(found)
            | {"last_tick_age_ms": age_ms, "redis_version": redis_version, "embedded": embedded}
        )
        return
    age = "never" if age_ms is None else f"{duration_words(age_ms)} ago"
    many = "or more " if found.outbox_waiting >= _WAITING_COUNTED_MAX else ""
    rows = [
        ("projection", f"{found.projection}, {found.groups_live} of {found.groups} groups"),
        ("last tick", age),
        ("outbox", f"{found.outbox_waiting} {many}waiting, {found.outbox_bytes} bytes"),
        ("workers", f"{found.workers}, with {found.groups_leased} of {found.groups} groups"),
        ("boards", f"{found.boards}, with {found.rankings} rankings"),
        ("PostgreSQL", found.database_version),
        ("Redis", redis_version or "does not answer"),
    ]
    if engines is not None:
        runs = f"run by process {engines.owner_pid}" if engines.attached else "run for this command"
        rows.append(("engines", f"embedded, {runs}, in {engines.data}"))
    for line in pairs((name, escaped(text)) for name, text in rows):
        say(line)


def _age_ms(found: "Status") -> int | None:
    if found.last_tick_at is None:
        return None
    return max(0, int((datetime.now(UTC) - found.last_tick_at).total_seconds() * 1000))


def _redis_version(url: str) -> str | None:
    import redis

    from truerank.embedded.valkey import version_of

    try:
        with redis.Redis.from_url(url, socket_timeout=2, socket_connect_timeout=2) as client:
            return version_of(client)
    except redis.RedisError:
        return None
