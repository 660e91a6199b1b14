"""What is examined in Valkey or Redis, from what INFO says."""

from collections.abc import Iterator

from truerank.doctor.findings import Deployment, Finding, error, ok, warning
from truerank.read.status import server_name
from truerank.telemetry.words import bytes_words

_VALKEY_MAJORS = {8, 9}
_REDIS_MAJORS = {7, 8}
_FULL = 0.9


def redis_version(here: Deployment) -> Iterator[Finding]:
    """The major version is one that this release is tested on."""
    name = server_name(dict(here.info))
    product, _, number = name.partition(" ")
    known = _VALKEY_MAJORS if product == "Valkey" else _REDIS_MAJORS
    major = int(number.partition(".")[0])
    if major in known:
        yield ok(redis_version, name)
    elif major < min(known):
        yield error(redis_version, f"{name} is too old", "use Valkey 8 or 9, or Redis 7 or 8")
    else:
        yield warning(
            redis_version,
            f"{name} is newer than what this release was tested on",
            "use Valkey 8 or 9, or Redis 7 or 8, or a newer release of Truerank",
        )


def eviction(here: Deployment) -> Iterator[Finding]:
    """Nothing may be evicted: a board that lost a part would not be one."""
    policy = here.info["maxmemory_policy"]
    evicted = int(here.info["evicted_keys"])
    if policy == "noeviction" and evicted:
        yield warning(
            eviction,
            f"{evicted} keys were evicted since the server's start, before maxmemory-policy was"
            " set to noeviction, or from other tenants",
            "see with `truerank reconcile` that no board lost a part; then CONFIG RESETSTAT",
        )
    elif policy == "noeviction":
        yield ok(eviction, "nothing is evicted")
    else:
        yield error(
            eviction,
            f"maxmemory-policy is {policy}: parts of boards may vanish",
            "set maxmemory-policy to noeviction; workers do not start before",
        )


def memory(here: Deployment) -> Iterator[Finding]:
    """There is room for a second copy of everything: a rebuild needs it."""
    used, limit = int(here.info["used_memory"]), int(here.info["maxmemory"])
    words = f"{bytes_words(used)} of {bytes_words(limit)} used"
    if limit == 0:
        yield ok(memory, f"{bytes_words(used)} used, no limit set")
    elif used > _FULL * limit:
        yield error(
            memory,
            f"{words}: writes will be refused",
            "raise maxmemory, or give Truerank a server of its own",
        )
    elif 2 * used > limit:
        yield warning(
            memory,
            f"{words}: a copy can't be filled beside the one that is read",
            "raise maxmemory to twice what the boards need",
        )
    else:
        yield ok(memory, words)


def persistence(here: Deployment) -> Iterator[Finding]:
    """A restart brings the boards back; without that they are filled anew from PostgreSQL."""
    failed = [
        name
        for name in ("aof_last_write_status", "aof_last_bgrewrite_status", "rdb_last_bgsave_status")
        if here.info.get(name, "ok") != "ok"
    ]
    if failed:
        yield error(
            persistence,
            f"{', '.join(failed)}: the server could not write its files, and may refuse writes",
            "see its log; mostly its disk is full",
        )
    elif here.info["aof_enabled"] != "1":
        yield warning(
            persistence,
            "appendonly is off: after a restart PostgreSQL answers until all boards are filled"
            " anew",
            "set appendonly yes with appendfsync everysec",
        )
    else:
        yield ok(persistence, "appendonly is on")


def role(here: Deployment) -> Iterator[Finding]:
    """The server takes writes: it is no replica."""
    if here.info["role"] == "master":
        yield ok(role, "the server takes writes")
    else:
        yield error(role, "the server is a replica", "point TRUERANK_REDIS_URL at the primary")
