"""`truerank rebuild`: new copies in Redis, or standings computed again from their events."""

import time
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from truerank.cli.attach import Actor, login
from truerank.cli.options import Given, Json
from truerank.cli.output import duration_words, escaped, note, say, shown, table, write_json
from truerank.cli.progress import counting_bar
from truerank.errors import InvalidInput
from truerank.read.consistency import duration_ms
from truerank.read.shapes import time_text

if TYPE_CHECKING:
    from truerank.cli.context import Context
    from truerank.client import Truerank
    from truerank.repair.rebuild import Rebuild
    from truerank.repair.recompute import Differing, Recomputation
    from truerank.settings import Settings

_FAILED = 1
_POLL_S = 0.2
_EXAMPLES_MAX = 100


def rebuild(
    board: Annotated[str | None, Parameter(name="--board")] = None,
    *,
    groups: Annotated[tuple[int, ...], Parameter(name="--group", negative=())] = (),
    everything: Annotated[bool, Parameter(name="--all", negative=())] = False,
    back: Annotated[bool, Parameter(negative=())] = False,
    unthrottled: Annotated[bool, Parameter(negative=())] = False,
    keep: str | None = None,
    detach: Annotated[bool, Parameter(negative=())] = False,
    from_events: Annotated[bool, Parameter(negative=())] = False,
    repair: Annotated[bool, Parameter(negative=())] = False,
    actor: Actor = None,
    json: Json = False,
    given: Given,
) -> int:
    """Fill new copies in Redis beside the live ones, compare them with PostgreSQL, and switch.

    Boards are kept in groups, and a whole group is rebuilt. Readers and writers notice nothing.
    The worker that holds the group does it; where none runs, this command is one until it is
    done. Exit status: 0 done; 1 a rebuild failed, and readers read what they did before, or
    (with --from-events) differences are left.

    Args:
        board: The group that this board is in.
        groups: A group by its number; may be given several times.
        everything: All groups.
        back: Go back to the copies before the last rebuild, while they follow along.
        unthrottled: As fast as possible, instead of so that readers come first.
        keep: How long the copies before follow along, such as 60s; 0s: there is no way back.
        detach: Don't wait. `truerank status` shows how far it is.
        from_events: Rebuild nothing in Redis, but compute the standings in PostgreSQL again from
            their events (of the board, or of all), and show those that differ.
        repair: With --from-events, mend them.
    """
    if repair and not from_events:
        raise InvalidInput("--repair belongs to --from-events", field="repair")
    if from_events:
        if groups or back or unthrottled or keep or detach:
            raise InvalidInput("--from-events takes a board and --repair", field="from_events")
        return _recompute(given, board, repair=repair, json=json)
    if sum((board is not None, bool(groups), everything)) != 1:
        raise InvalidInput("say what to rebuild: a board, --group, or --all", field="group")
    keep_ms = None if keep is None else duration_ms(keep, "keep")
    from truerank.client import Truerank
    from truerank.repair.rebuild import all_groups, ask_rebuilds, rebuild_states

    with (
        given.installation(project=not detach) as installation,
        Truerank(installation.settings) as client,
    ):
        settings = installation.settings
        if board is not None:
            groups = (client.board(board).group,)
        requests = client.run(
            ask_rebuilds(
                client.run(all_groups()) if everything else groups,
                actor=login(actor),
                back=back,
                throttled=not unthrottled,
                keep_ms=settings.rebuild_keep_ms if keep_ms is None else keep_ms,
            )
        )
        if not detach:
            _wait(client, settings, requests)
        found = client.run(rebuild_states(requests))
    if json:
        write_json({"rebuilds": [_rebuild_json(each) for each in found]})
    else:
        _say(found)
    return _FAILED if any(each.state == "failed" for each in found) else 0


def _wait(client: "Truerank", settings: "Settings", requests: Sequence[int]) -> None:
    """Wait until all requests have ended; be the worker oneself where none works."""
    from truerank.cli.foreground import Parts
    from truerank.projection import worker
    from truerank.repair.rebuild import rebuild_states

    idle_until = time.monotonic() + 2 * settings.lease_ms / 1000
    with counting_bar("standings") as told, Parts() as parts:
        working = False
        while True:
            parts.check()
            found = client.run(rebuild_states(requests))
            open_ = [each for each in found if not each.ended]
            if not open_:
                return
            if told is not None:
                done = sum(_done(each) for each in found)
                told(done, sum(2 * max(each.rows_about, each.rows) for each in found))
            if any(each.leased for each in open_):
                idle_until = time.monotonic() + 2 * settings.lease_ms / 1000
            elif not working and time.monotonic() > idle_until:
                note("no worker runs: this command is one until it is done")
                parts.start("worker", partial(worker.run, settings, parts.stop))
                working = True
            time.sleep(_POLL_S)


def _done(each: "Rebuild") -> int:
    """Standings filled in and compared."""
    if each.ended:
        return 2 * max(each.rows_about, each.rows)
    return each.rows + each.checked


def _say(found: "Sequence[Rebuild]") -> None:
    rows = [
        (
            str(each.group),
            each.state,
            str(each.rows),
            "-"
            if each.ended_at is None
            else duration_words(round((each.ended_at - each.asked_at).total_seconds() * 1000)),
            time_text(each.kept_until) or "-",
            f"{each.code}: {escaped(each.message or '')}" if each.code else "-",
        )
        for each in found
    ]
    headers = ("group", "state", "standings", "took", "back-until", "reason")
    for line in table(headers, rows, left="state back-until reason"):
        say(line)


def _rebuild_json(each: "Rebuild") -> dict[str, object]:
    return {
        "id": str(each.id),
        "group": each.group,
        "kind": "back" if each.back else "rebuild",
        "state": each.state,
        "rows": each.rows,
        "rows_about": each.rows_about,
        "checked": each.checked,
        "tries": each.tries,
        "asked_by": each.asked_by,
        "asked_at": time_text(each.asked_at),
        "ended_at": time_text(each.ended_at),
        "code": each.code,
        "message": each.message,
        "kept_until": time_text(each.kept_until),
    }


def _recompute(given: "Context", board: str | None, *, repair: bool, json: bool) -> int:
    from truerank.repair.recompute import recompute

    with given.client() as client, counting_bar("rankings") as told:
        found = client.run(recompute(board, repair=repair, told=told))
    if json:
        write_json(
            {
                "rankings": found.rankings,
                "members": found.members,
                "differing": [_differing_json(each) for each in found.differing],
                "left": found.left,
            }
        )
    else:
        _say_differing(found)
    return _FAILED if found.left else 0


def _say_differing(found: "Recomputation") -> None:
    if found.differing:
        rows = [
            (
                each.kind,
                each.stored or "-",
                each.recomputed or "-",
                "yes" if each.mended else "no",
                escaped(each.board),
                escaped(each.season),
                shown(each.member),
            )
            for each in found.differing[:_EXAMPLES_MAX]
        ]
        headers = ("kind", "stored", "recomputed", "mended", "board", "season", "member")
        for line in table(headers, rows, left="kind mended board season member"):
            say(line)
        if len(found.differing) > len(rows):
            say(f"... and {len(found.differing) - len(rows)} more")
    many = len(found.differing)
    say(f"{found.members} standings in {found.rankings} rankings: {many} differ, {found.left} left")


def _differing_json(each: "Differing") -> dict[str, object]:
    return {
        "board": each.board,
        "season": each.season,
        "member": each.member,
        "kind": each.kind,
        "stored": each.stored,
        "version": None if each.version is None else str(each.version),
        "recomputed": each.recomputed,
        "mended": each.mended,
    }
