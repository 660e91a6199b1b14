"""`truerank status` and `truerank doctor`: how an installation is, and what to do about it."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from truerank.cli.options import Given, Json
from truerank.cli.output import duration_words, escaped, pairs, say, table, write_json
from truerank.telemetry.safe import without_passwords
from truerank.telemetry.words import bytes_words

if TYPE_CHECKING:
    from truerank.cli.context import Installation
    from truerank.read.status import Status

_FILLINGS_MAX = 10
_WAITING_COUNTED_MAX = 100_000
_OPEN_MS_MIN = 10_000  # transactions that are younger are everyday life
_STATUSES = {"healthy": 0, "lagging": 3, "degraded": 4}
_SEVERITIES = {"ok": 0, "warning": 3, "error": 4}


def status(*, json: Json = False, given: Given) -> int:
    """Tell how the pipeline is doing: a verdict, why, what to do, and the numbers behind it.

    Exit status: 0 healthy; 3 lagging: everything works, what is shown is older than it should be;
    4 degraded: somebody is served worse than promised, or soon will be.
    """
    from truerank.client import Truerank
    from truerank.read.shapes import status_json

    with (
        given.installation(project=False, check=False) as installation,
        Truerank(installation.settings) as client,
    ):
        found = client.status()
    if json:
        write_json(status_json(found) | {"embedded": _embedded(installation)})
    else:
        for line in pairs((name, escaped(text)) for name, text in _rows(found, installation)):
            say(line)
    return _STATUSES[found.verdict]


def _embedded(installation: "Installation") -> dict[str, object] | None:
    engines = installation.engines
    if engines is None:
        return None
    return {
        "data": str(engines.data),
        "owner_pid": engines.owner_pid,
        "attached": engines.attached,
    }


def _rows(found: "Status", installation: "Installation") -> Iterator[tuple[str, str]]:
    yield "verdict", found.verdict
    for problem in found.problems:
        yield "  because", problem.message
        yield "  to do", problem.advice
    known = "" if found.groups is None else f", {found.groups_live} of {found.groups} groups"
    yield "projection", f"{found.projection}{known}"
    if found.lag_ms is not None:
        yield "lag", duration_words(found.lag_ms)
    if found.database_error is None:
        yield from _database_rows(found)
    yield "PostgreSQL", found.database_version or "does not answer"
    yield "Redis", " ".join(_redis_words(found))
    engines = installation.engines
    if engines is not None:
        runs = f"run by process {engines.owner_pid}" if engines.attached else "run for this command"
        yield "engines", f"embedded, {runs}, in {engines.data}"


def _database_rows(found: "Status") -> Iterator[tuple[str, str]]:
    age = found.last_tick_age_ms
    yield "last tick", "never" if age is None else f"{duration_words(age)} ago"
    many = "or more " if (found.outbox_waiting or 0) >= _WAITING_COUNTED_MAX else ""
    waited = f", for {duration_words(found.outbox_age_ms)}" if found.outbox_age_ms else ""
    waiting = f"{found.outbox_waiting} {many}waiting{waited}"
    yield "outbox", f"{waiting}, {bytes_words(found.outbox_bytes or 0)}"
    sizes = ", ".join(map(bytes_words, found.segment_bytes))
    yield "segments", f"{sizes}; written to number {found.segment} for {_age(found.segment_age_ms)}"
    yield "workers", f"{found.workers}, with {found.groups_leased} of {found.groups} groups"
    for filling in found.fillings[:_FILLINGS_MAX]:
        rows = f"{filling.rows} of about {filling.rows_about} standings"
        words = f"group {filling.group} ({filling.cause}): {rows}, {filling.checked} checked"
        yield "rebuild", words
    yield "boards", f"{found.boards}, with {found.rankings} rankings"
    if found.copies_warming:
        yield "copies", f"{found.copies_warming} being filled"
    if found.copies_dead:
        yield "copies", f"{found.copies_dead} given up, to be filled anew"
    if found.parked_rankings:
        yield "parked", f"{found.parked_rankings} rankings: see `truerank projection parked`"
    if found.parked_rows:
        yield "parked", f"{found.parked_rows} rows: see `truerank attachment parked`"
    if found.deliveries_waiting or found.deliveries_parked:
        yield "webhooks", f"{found.deliveries_waiting} waiting, {found.deliveries_parked} parked"
    if found.reconciled_age_ms is not None:
        yield "reconciled", _reconciled_words(found, found.reconciled_age_ms)
    yield from _held_rows(found)


def _reconciled_words(found: "Status", age_ms: int) -> str:
    """When everything was last compared with PostgreSQL, and what was wrong."""
    drift = f"{found.reconciled_drift} differences, {found.reconciled_unrepaired} left"
    wrong = drift if found.reconciled_drift else "nothing wrong"
    words = f"{found.reconciled_standings} standings {duration_words(age_ms)} ago"
    return f"{words}: {wrong}"


def _held_rows(found: "Status") -> Iterator[tuple[str, str]]:
    """What keeps dead rows of the score table, where there are any that are worth a word."""
    if found.dead_rows:
        yield "dead rows", f"{found.dead_rows} of the score table, as PostgreSQL estimates"
    for each in found.held_back:
        if each.kind == "session" and (each.age_ms or 0) < _OPEN_MS_MIN:
            continue
        age = "" if each.age_ms is None else f"open for {_age(each.age_ms)}, "
        many = f"; {each.held} of its kind" if each.held > 1 else ""
        since = f"{each.xids} transactions since its snapshot"
        yield f"oldest {each.kind}", f"{each.name}: {age}{since}{many}"


def _redis_words(found: "Status") -> Iterator[str]:
    yield found.redis_version or "does not answer"
    if found.redis_memory_bytes is not None:
        limit = found.redis_memory_max_bytes
        yield f"with {bytes_words(found.redis_memory_bytes)}"
        yield f"of {bytes_words(limit)}" if limit else "and no limit"
    if found.redis_evicted_keys:
        yield f"and {found.redis_evicted_keys} keys evicted since its start"


def _age(ms: int | None) -> str:
    return duration_words(ms or 0)


def doctor(*, json: Json = False, given: Given) -> int:
    """Examine the deployment: servers, settings, role, schema, clocks; and say what to do.

    It changes nothing. Run it after an installation, after an upgrade of a server, and when
    `truerank status` is not healthy.

    Exit status: 0 all is well; 3 warnings: it works, and may not when it matters; 4 errors.
    """
    from dataclasses import asdict

    from truerank.doctor.examine import examine
    from truerank.doctor.findings import Severity

    with given.installation(project=False, check=False) as installation:
        found = list(examine(installation.settings))
    worst = max((finding.severity for finding in found), key=list(Severity).index)
    if json:
        write_json({"verdict": worst, "findings": [asdict(finding) for finding in found]})
        return _SEVERITIES[worst]
    rows = [
        line
        for finding in found
        for line in (
            (finding.severity, finding.check, finding.message),
            *([("", "  to do", finding.advice)] if finding.advice else []),
        )
    ]
    cells = [(severity, check, escaped(without_passwords(text))) for severity, check, text in rows]
    for line in table(("severity", "check", "finding"), cells, left="severity check finding")[1:]:
        say(line)
    return _SEVERITIES[worst]
