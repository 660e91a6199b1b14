"""`truerank verify`: prove that all paths give the same ranking."""

from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from truerank.cli.options import CohortNumber, CohortOf, Given, Json, SeasonLabel
from truerank.cli.output import duration_words, escaped, note, say, shown, table, write_json

if TYPE_CHECKING:
    from truerank.repair.verified import PathResult, Verification

_STATUSES = {"same": 0, "different": 1, "moving": 3}


def verify(
    board: str,
    /,
    *,
    season: SeasonLabel = None,
    cohort: CohortNumber = None,
    cohort_of: CohortOf = None,
    url: Annotated[str | None, Parameter(name="--url", show_default=False)] = None,
    json: Json = False,
    given: Given,
) -> int:
    """Prove that events, standings, projection and every read path give one ranking, at one tick.

    The source is read in one snapshot, every path after the projection shows it, and none counts
    after which the ranking changed. Standings are computed again from their events, member by
    member. Nothing is written, but a snapshot of PostgreSQL stays open meanwhile.

    The digest is the SHA-256 over lines such as `[1,"ada","25"]`: rank (1224), member and score as
    JSON in UTF-8, each with a line feed. `truerank export --format ndjson` has the same rows.

    Exit status: 0 all the same; 1 different; 3 moving: scores arrived faster than all could be
    read, so nothing is said.

    Args:
        board: The board's key.
        url: An HTTP service to ask as well, such as http://127.0.0.1:8080.
    """
    from truerank.repair.verified import verification_json
    from truerank.repair.verify import verify as compare

    with given.installation(project=True) as installation:
        found = compare(
            installation.settings, board, season, cohort=cohort, cohort_of=cohort_of, url=url
        )
    if json:
        write_json(verification_json(found))
    else:
        _tell(found)
    return _STATUSES[found.verdict]


def _tell(found: "Verification") -> None:
    rows = [(_verdict(path), str(path.compared), path.name, _note(path)) for path in found.paths]
    for line in table(("result", "compared", "path", "note"), rows, left="result path note"):
        say(line)
    for path in found.paths:
        for each in path.differences:
            expected = "nothing" if each.expected is None else escaped(each.expected)
            there = "nothing" if each.found is None else escaped(each.found)
            say(f"{path.name}: {escaped(each.subject)}: {there}; the source has {expected}")
        if path.error is not None:
            say(f"{path.name}: {escaped(path.error)}")
    members = "1 member" if found.members == 1 else f"{found.members} members"
    cohort = "" if found.cohort is None else f", cohort {found.cohort}"
    where = f"{shown(found.board)}, season {shown(found.season)}{cohort} ({found.state})"
    say(f"{found.verdict}: {members} of {where}")
    say(f"sha256:{found.digest}")
    tries = "one attempt" if found.attempts == 1 else f"{found.attempts} attempts"
    note(f"at tick {found.tick or 'unknown'}; {tries}, {duration_words(found.duration_ms)}")


def _verdict(path: "PathResult") -> str:
    return "same" if path.same else "different" if path.error is None else "failed"


def _note(path: "PathResult") -> str:
    if path.note:
        return path.note
    return "" if path.whole else "a sample"
