"""Run every check on a deployment; one that can't be run is told as such, and the rest goes on."""

from collections.abc import Iterator

import psycopg
import redis

from truerank.client import Truerank
from truerank.connections import urls
from truerank.doctor import both, permissions, postgres, schema, valkey
from truerank.doctor.findings import Check, Deployment, Finding, Severity, warning
from truerank.settings import Settings

CHECKS: tuple[Check, ...] = (
    postgres.postgresql_version,
    postgres.primary,
    postgres.durability,
    postgres.autovacuum,
    postgres.privileges,
    postgres.statistics,
    postgres.pooler,
    postgres.connections,
    schema.schema_version,
    schema.indexes,
    schema.time_zones,
    schema.held_back,
    schema.outbox,
    schema.large_rankings,
    valkey.redis_version,
    valkey.eviction,
    valkey.memory,
    valkey.persistence,
    valkey.role,
    permissions.redis_permissions,
    both.clocks,
    both.pipeline,
)
_CONNECT_S_MAX = 5
_OF_POSTGRESQL = {postgres.__name__, schema.__name__}


def examine(settings: Settings) -> Iterator[Finding]:
    """Every finding, in the order of the checks.

    A store that is away is one. Without Redis PostgreSQL is examined all the same; without
    PostgreSQL nothing else is, for it says what there should be.

    Args:
        settings: with both URLs.

    Raises:
        SettingsInvalid: an address is missing.
    """
    database_url, redis_url = urls(settings)
    with (
        redis.Redis.from_url(
            redis_url, socket_timeout=_CONNECT_S_MAX, socket_connect_timeout=_CONNECT_S_MAX
        ) as client,
        Truerank(settings) as truerank,
    ):
        info: dict[str, str] = {}
        try:
            info = {str(name): str(value) for name, value in client.info().items()}
        except redis.RedisError as exc:
            yield _away("Redis", exc, "see that it runs, takes connections, and allows INFO")
        try:
            conn = psycopg.connect(
                database_url,
                autocommit=True,
                connect_timeout=_CONNECT_S_MAX,
                prepare_threshold=None,
            )
        except psycopg.Error as exc:
            yield _away("PostgreSQL", exc, "see that it runs and takes connections")
            return
        with conn:
            here = Deployment(
                settings=settings, conn=conn, redis=client, info=info, status=truerank.status()
            )
            for check in CHECKS:
                if info or check.__module__ in _OF_POSTGRESQL:
                    yield from run(check, here)


def run(check: Check, here: Deployment) -> Iterator[Finding]:
    """The findings of one check, or one that tells why it could not be run."""
    try:
        yield from check(here)
    except (psycopg.Error, redis.RedisError) as exc:
        yield warning(check, f"could not be examined: {exc}", "run it as the owner of the schema")


def _away(store: str, exc: Exception, advice: str) -> Finding:
    return Finding(check=store, severity=Severity.ERROR, message=f"{exc}", advice=advice)
