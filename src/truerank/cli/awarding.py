"""`truerank award`: who gets what of settled seasons."""

from dataclasses import fields
from pathlib import Path
from typing import Annotated, Literal

import msgspec
from cyclopts import Parameter

from truerank.cli.attach import Actor, Reason, login
from truerank.cli.exporting import written
from truerank.cli.options import CohortNumber, CohortOf, Given, Json, Numbers, Period
from truerank.cli.output import escaped, note, say, shown, table, write_json
from truerank.errors import InvalidInput
from truerank.model import Award, AwardRule, Numbering
from truerank.read.settlement import award_json, award_rule_json
from truerank.read.shapes import Shape

_PAGE = 1000
_COLUMNS = tuple(field.name for field in fields(Award))
_OTHERS_TEXTS = {"board", "season", "rule", "member", "acknowledged_by"}


def make(
    board: str,
    period: Period,
    name: str,
    /,
    *,
    reason: Reason,
    ranks: Annotated[str | None, Parameter(show_default=False)] = None,
    numbering: Numbers = "competition",
    percent: Annotated[str | None, Parameter(show_default=False)] = None,
    score: Annotated[str | None, Parameter(show_default=False)] = None,
    actor: Actor = None,
    json: Json = False,
    given: Given,
) -> None:
    """Say who gets an award of a board's seasons of one period, when they are settled from now on.

    With competition ranks and by percent, equals at the edge all get it; with ordinal ranks as many
    as there are ranks, of equals those who were first.

    Args:
        board: The board's key.
        period: Of the seasons: all, day, week, month, year or custom.
        name: Of the award.
        ranks: From one rank to another, such as 1-3, or one rank alone.
        percent: Or the best so many percent of the members, rounded up.
        score: Or everybody with this score or a better one.
    """
    rule = AwardRule(
        period=period,
        name=name,
        ranks=None if ranks is None else _ranks(ranks),
        numbering=Numbering(numbering),
        percent=percent,
        score=score,
    )
    with given.client() as client:
        made = client.make_award_rule(board, rule, actor=login(actor), reason=reason)
    if json:
        write_json({"board": board, "period": period, "name": name, "made": made})
    else:
        say(f"award {shown(name)} {'holds from now on' if made else 'holds already'}")


def drop(
    board: str,
    period: Period,
    name: str,
    /,
    *,
    reason: Reason,
    actor: Actor = None,
    json: Json = False,
    given: Given,
) -> None:
    """Let an award be given no longer; what was given stays.

    Args:
        board: The board's key.
        period: Of the seasons.
        name: Of the award.
    """
    with given.client() as client:
        client.drop_award_rule(board, period, name, actor=login(actor), reason=reason)
    if json:
        write_json({"board": board, "period": period, "name": name, "dropped": True})
    else:
        say(f"award {shown(name)} is given no longer")


def rules(board: str, /, *, json: Json = False, given: Given) -> None:
    """List which awards are given when seasons are settled.

    Args:
        board: The board's key.
    """
    with given.client() as client:
        found = client.award_rules(board)
    if json:
        write_json({"board": board, "rules": [award_rule_json(rule) for rule in found]})
        return
    rows = [(rule.period, _told(rule), shown(rule.name)) for rule in found]
    for line in table(("period", "to", "award"), rows, left="period to award"):
        say(line)


def show(
    board: str | None = None,
    season: str | None = None,
    /,
    *,
    after: int = 0,
    unacknowledged: Annotated[bool, Parameter(negative=())] = False,
    cohort: CohortNumber = None,
    cohort_of: CohortOf = None,
    json: Json = False,
    given: Given,
) -> None:
    """List what members got, in the order in which it was given or withdrawn.

    With everybody's id: for who pays out. A season that isn't final is refused as not_settled.

    Args:
        board: The board's key; without it, of all boards.
        season: Its label; without it, of all final seasons.
        after: Only what changed after this.
        unacknowledged: Only what isn't acknowledged.
    """
    found: list[Award] = []
    with given.client() as client:
        while page := client.awards(
            board,
            season,
            after=found[-1].change if found else after,
            limit=_PAGE,
            unacknowledged=unacknowledged,
            cohort=cohort,
            cohort_of=cohort_of,
        ):
            found += page
    if json:
        write_json({"awards": [award_json(award) for award in found]})
        return
    rows = [
        (
            str(award.change),
            award.state,
            "-" if award.acknowledged_at is None else "yes",
            escaped(award.board),
            escaped(award.season),
            str(award.rank),
            award.score,
            escaped(award.rule),
            shown(award.member),
        )
        for award in found
    ]
    headers = ("change", "state", "acknowledged", "board", "season", "rank", "score", "award",
               "member")  # fmt: skip
    left = "state acknowledged board season award member"
    for line in table(headers, rows, left=left):
        say(line)


def export(
    board: str | None = None,
    season: str | None = None,
    /,
    *,
    after: int = 0,
    kind: Annotated[Literal["csv", "ndjson"], Parameter(name="--format")] = "csv",
    output: Annotated[Path | None, Parameter(name=("--output", "-o"))] = None,
    unacknowledged: Annotated[bool, Parameter(negative=())] = False,
    cohort: CohortNumber = None,
    cohort_of: CohortOf = None,
    given: Given,
) -> None:
    """Write what members got to a file, in the order in which it was given or withdrawn.

    One that a revision changes meanwhile comes once more, under its new change. In CSV a text that
    a spreadsheet would take for a formula stands behind an apostrophe.

    Args:
        board: The board's key; without it, of all boards.
        season: Its label; without it, of all final seasons.
        after: Only what changed after this.
        kind: csv, or ndjson with one JSON object a line.
        output: Write to this file, made anew, instead of standard output.
        unacknowledged: Only what isn't acknowledged.
    """
    from truerank.exporting import csv_line, inert

    def line(shape: Shape) -> bytes:
        cells = (shape[name] for name in _COLUMNS)
        return csv_line(
            [
                inert(cell) if name in _OTHERS_TEXTS and cell is not None else cell
                for name, cell in zip(_COLUMNS, cells, strict=True)
            ]
        )

    count = 0
    with given.client() as client, written(output) as file:
        if kind == "csv":
            file.write(csv_line(_COLUMNS))
        while page := client.awards(
            board,
            season,
            after=after,
            limit=_PAGE,
            unacknowledged=unacknowledged,
            cohort=cohort,
            cohort_of=cohort_of,
        ):
            for award in page:
                shape = award_json(award)
                file.write(line(shape) if kind == "csv" else msgspec.json.encode(shape) + b"\n")
            after = page[-1].change
            count += len(page)
    note(f"{count} awards, up to change {after}")


def acknowledge(
    changes: Annotated[tuple[int, ...], Parameter(name="CHANGE", consume_multiple=True)],
    /,
    *,
    actor: Actor = None,
    json: Json = False,
    given: Given,
) -> None:
    """Note that awards were dealt with: paid out, or taken back. Safe to repeat.

    Args:
        changes: As `award list` shows them; one that has changed since isn't acknowledged.
    """
    with given.client() as client:
        count = client.acknowledge_awards(changes, actor=login(actor))
    if json:
        write_json({"acknowledged": count})
    else:
        say(f"{count} acknowledged")


def _ranks(text: str) -> tuple[int, int]:
    first, _, last = text.partition("-")
    try:
        return int(first), int(last or first)
    except ValueError as exc:
        raise InvalidInput("ranks are such as 1-3, or 1", field="ranks") from exc


def _told(rule: AwardRule) -> str:
    if rule.ranks is not None:
        return f"ranks {rule.ranks[0]}-{rule.ranks[1]}, {rule.numbering}"
    return f"the best {rule.percent} %" if rule.percent is not None else f"score {rule.score}"


COMMANDS = (
    (
        "make",
        make,
        (
            "truerank award make contest month medal --ranks 1-3 --reason 'monthly prizes'",
            "truerank award make contest month badge --percent 10 --reason 'monthly prizes'",
        ),
    ),
    ("drop", drop, ("truerank award drop contest month badge --reason 'no more badges'",)),
    ("rules", rules, ("truerank award rules contest",)),
    (
        "list",
        show,
        (
            "truerank award list contest 2026-11",
            "truerank award list --unacknowledged --after 120 --json",
        ),
    ),
    ("export", export, ("truerank award export contest 2026-11 --output medals.csv",)),
    ("acknowledge", acknowledge, ("truerank award acknowledge 121 122",)),
)
