"""The table of commands, the options before them, and what becomes of errors.

Commands load drivers and engines when they run, so `--help` stays quick.
"""

import os
import sys
from collections.abc import Callable, Iterable, Sequence
from importlib.metadata import version
from io import TextIOWrapper
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import App, Group, Parameter
from cyclopts.exceptions import CycloptsError, UnknownOptionError

from truerank.cli import (
    attach,
    awarding,
    boards,
    closing,
    correcting,
    delivering,
    drilling,
    erasing,
    exporting,
    filling,
    freezing,
    governing,
    leagues,
    loading,
    looking,
    members,
    naming,
    parked,
    projecting,
    reading,
    rebuilding,
    reconciling,
    running,
    submitting,
    verifying,
)
from truerank.cli.context import Context
from truerank.cli.output import complain, note
from truerank.errors import TruerankError

_FAILED, _USAGE, _INTERRUPTED = 1, 2, 130
_GLOBAL = Group("Options of every command", sort_key=9)

_ABOUT = """Leaderboards with PostgreSQL as the truth and Valkey or Redis as a fast view of it.

With TRUERANK_DATABASE_URL and TRUERANK_REDIS_URL set, commands work on these two. With neither, \
they run PostgreSQL and Valkey themselves, in a data folder, for as long as the command takes; \
where another command runs them already, they join it."""
_EXAMPLES = """\
Examples:
```text
truerank up --demo
truerank import completions.csv.gz --create-boards --zone Europe/Berlin
truerank top project-a --json
```

Exit status: 0 done; 1 refused or failed, with error[code] on standard error; 2 wrong usage.
`status` and `doctor` also say with it what they found: 3 warnings, 4 worse."""

# Name, function, examples. What it does, its docstring tells.
_COMMANDS = (
    (
        "up",
        running.up,
        ("truerank up --demo", "truerank --data ./data up --port 9000"),
    ),
    (
        "demo",
        loading.demo,
        ("truerank demo", "truerank --data ./data demo --json"),
    ),
    (
        "import",
        loading.import_file,
        (
            "truerank import completions.csv.gz --create-boards --zone Europe/Berlin",
            "truerank import runs.csv --board laps --map member=runner --map points=seconds",
            "zcat old.csv.gz | truerank import - --create-boards --json",
        ),
    ),
    (
        "submit",
        submitting.submit,
        (
            "truerank submit project-a ada 5",
            "truerank submit laps ada 62.318 --event-id run-1 --at 2026-08-29T12:00:00Z",
        ),
    ),
    (
        "void",
        correcting.void,
        (
            "truerank void project-a commit:1f --reason 'counted by mistake'",
            "truerank void project-a --member mallory --since 2026-11-01T00:00:00Z --reason cheat",
        ),
    ),
    (
        "amend",
        correcting.amend,
        ("truerank amend laps run-1 61.9 --reason 'clock was read wrong'",),
    ),
    (
        "explain",
        correcting.explain,
        ("truerank explain project-a ada", "truerank explain project-a ada --season 2026-W35"),
    ),
    (
        "attach",
        attach.attach,
        (
            "truerank attach laps run --event-id id --member runner --value seconds --backfill",
            "truerank attach sales purchase --event-id id --member buyer --value-fixed 1 --at paid",
        ),
    ),
    (
        "detach",
        attach.detach,
        ("truerank detach 3",),
    ),
    (
        "top",
        reading.top,
        (
            "truerank top project-a",
            "truerank top project-a --season 2026-W35 --limit 3 --json",
            "truerank top project-a --member ada",
        ),
    ),
    (
        "place",
        reading.place,
        ("truerank place project-a ada", "truerank place project-a ada --percentile --json"),
    ),
    (
        "places",
        reading.places,
        (
            "truerank places project-a ada bao --season 2026-11",
            "truerank places project-a ada bao --among",
        ),
    ),
    (
        "around",
        reading.around,
        (
            "truerank around project-a ada",
            "truerank around project-a ada --limit 5 --json",
            "truerank around project-a --rank 500",
        ),
    ),
    (
        "between",
        reading.between,
        ("truerank between project-a --score-min 100 --score-max 200",),
    ),
    (
        "counts",
        reading.counts,
        ("truerank counts project-a 150", "truerank counts project-a 100 150 200 --json"),
    ),
    (
        "histogram",
        reading.histogram,
        ("truerank histogram project-a 0 100 1000",),
    ),
    (
        "profile",
        naming.profile,
        (
            'truerank profile ada --name "Ada Lovelace"',
            """truerank profile ada --name Ada --details '{"flag": "gb"}'""",
            "truerank profile ada",
        ),
    ),
    (
        "export",
        exporting.export,
        (
            "truerank export project-a --season 2026-11 --output november.csv",
            "truerank export project-a --format ndjson",
        ),
    ),
    (
        "status",
        looking.status,
        ("truerank status", "truerank status --json"),
    ),
    (
        "doctor",
        looking.doctor,
        ("truerank doctor", "truerank doctor --json"),
    ),
    (
        "drill",
        drilling.drill,
        (
            "truerank drill",
            "truerank drill --act experiment --act rebuild",
            "truerank drill --break fence",
        ),
    ),
    (
        "verify",
        verifying.verify,
        (
            "truerank verify project-a",
            "truerank verify project-a --season 2026-W35 --url http://127.0.0.1:8080 --json",
        ),
    ),
    (
        "reconcile",
        reconciling.reconcile,
        (
            "truerank reconcile",
            "truerank reconcile project-a --season all --repair",
            "truerank reconcile --repair --json",
        ),
    ),
    (
        "rebuild",
        rebuilding.rebuild,
        (
            "truerank rebuild project-a",
            "truerank rebuild --all --unthrottled --json",
            "truerank rebuild --back --group 7",
            "truerank rebuild --from-events project-a --repair",
        ),
    ),
    (
        "prune",
        governing.prune,
        ("truerank prune", "truerank prune project-a --json"),
    ),
    (
        "migrate",
        running.migrate,
        ("truerank migrate",),
    ),
    (
        "worker",
        running.work,
        ("truerank worker", "truerank worker --metrics-port 9464"),
    ),
    (
        "serve",
        running.serve,
        ("truerank serve", "truerank serve --port 9000"),
    ),
)
_BOARD_COMMANDS = (
    (
        "create",
        boards.create,
        (
            "truerank board create project-a --zone Europe/Berlin",
            "truerank board create laps --operator best --order asc --decimals 3",
        ),
    ),
    (
        "list",
        boards.show_all,
        ("truerank board list", "truerank board list --json"),
    ),
    ("show", boards.show, ("truerank board show project-a",)),
    (
        "update",
        governing.update,
        (
            "truerank board update project-a rate_max=60 late_grace='1 day' --reason abuse",
            "truerank board update project-a accepting=false --reason 'the contest is over'",
        ),
    ),
    (
        "rename",
        governing.rename,
        ("truerank board rename project-a project-alpha --reason 'new name'",),
    ),
    (
        "delete",
        governing.delete,
        ("truerank board delete project-a --yes --reason 'a trial'",),
    ),
)
_SEASON_COMMANDS = (
    (
        "list",
        boards.list_seasons,
        ("truerank season list project-a", "truerank season list project-a --period month"),
    ),
    (
        "create",
        boards.create_season,
        ("truerank season create project-a summer 2026-06-01T00:00:00Z 2026-09-01T00:00:00Z",),
    ),
    (
        "change",
        governing.change_season,
        ("truerank season change laps cup 2026-06-01T00:00:00Z 2026-09-15T00:00:00Z --reason x",),
    ),
)
_ATTACHMENT_COMMANDS = (
    (
        "list",
        attach.show_all,
        ("truerank attachment list", "truerank attachment list --json"),
    ),
    (
        "backfill",
        attach.run_backfill,
        ("truerank attachment backfill 3", "truerank attachment backfill 3 --restart"),
    ),
    (
        "parked",
        parked.show_parked,
        ("truerank attachment parked", "truerank attachment parked 3 --all --json"),
    ),
    (
        "retry",
        parked.retry,
        ("truerank attachment retry 17", "truerank attachment retry 17 --value 5 --reason typo"),
    ),
    (
        "dismiss",
        parked.dismiss,
        ("truerank attachment dismiss 17 --reason 'a test order'",),
    ),
)
_PROJECTION_COMMANDS = (
    (
        "parked",
        projecting.show_parked,
        ("truerank projection parked", "truerank projection parked --json"),
    ),
    (
        "retry",
        projecting.retry,
        ("truerank projection retry", "truerank projection retry 75161927680"),
    ),
)


def main() -> None:
    """Run the command that the process was started with, and exit with its status."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            # A terminal that can't show a name must not fail over it.
            stream.reconfigure(errors="backslashreplace")
    sys.exit(run(sys.argv[1:]))


def run(arguments: Sequence[str]) -> int:
    """Run one command; returns the exit status."""
    try:
        result = _app().meta(
            arguments, exit_on_error=False, print_error=False, result_action="return_value"
        )
        sys.stdout.flush()
    except CycloptsError as exc:
        complain("usage", str(exc))
        if isinstance(exc, UnknownOptionError):
            note("A board, member or label that begins with - follows --, as in `place b -- -x`.")
        note("`truerank --help` and `truerank COMMAND --help` show what there is.")
        return _USAGE
    except TruerankError as exc:
        complain(exc.reason, exc.message)
        return _FAILED
    except KeyboardInterrupt:
        return _INTERRUPTED
    except BrokenPipeError:
        # The reader of our output has gone; the flush at exit would fail over it again.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return _FAILED
    return result if isinstance(result, int) else 0


def _app() -> App:
    app = App(
        name="truerank",
        help=_ABOUT,
        help_format="markdown",
        help_epilogue=_EXAMPLES,
        default_parameter=Parameter(negative=(), show_default=_shown_default),
        version=lambda: version("truerank"),
        suppress_keyboard_interrupt=False,
    )
    _register(app, (*_COMMANDS, *freezing.COMMANDS))
    board = App(name="board", help="Make, show, change and delete boards.", help_epilogue="")
    _register(board, (*_BOARD_COMMANDS, *filling.COMMANDS))
    season = App(name="season", help="Show, add, change and close seasons.", help_epilogue="")
    _register(season, (*_SEASON_COMMANDS, *closing.COMMANDS))
    attachment = App(
        name="attachment", help="Look after tables whose rows are events.", help_epilogue=""
    )
    _register(attachment, _ATTACHMENT_COMMANDS)
    member = App(
        name="member", help="Hide, ban, reset, delete, merge and erase members.", help_epilogue=""
    )
    _register(member, (*members.COMMANDS, *erasing.COMMANDS))
    award = App(name="award", help="Say who gets what of settled seasons.", help_epilogue="")
    _register(award, awarding.COMMANDS)
    league = App(
        name="league",
        help="Divide the members of seasons into cohorts, with tiers.",
        help_epilogue="",
    )
    _register(league, leagues.COMMANDS)
    webhook = App(
        name="webhook", help="Tell receivers of what happens, by webhook.", help_epilogue=""
    )
    _register(webhook, delivering.COMMANDS)
    app.command(webhook)
    app.command(award)
    app.command(league)
    app.command(attachment)
    app.command(member)
    app.command(board)
    app.command(season)
    projection = App(
        name="projection", help="Look after what is shown from Redis.", help_epilogue=""
    )
    _register(projection, _PROJECTION_COMMANDS)
    app.command(projection)

    def launch(
        *tokens: Annotated[str, Parameter(show=False, allow_leading_hyphen=True)],
        data: Annotated[Path | None, Parameter(group=_GLOBAL, show_default=False)] = None,
        log_level: Annotated[
            Literal["debug", "info", "warning", "error"] | None,
            Parameter(group=_GLOBAL, env_var="TRUERANK_LOG_LEVEL", show_default=False),
        ] = None,
        log_format: Annotated[
            Literal["text", "json"],
            Parameter(group=_GLOBAL, env_var="TRUERANK_LOG_FORMAT"),
        ] = "text",
    ) -> object:
        """Run the command in `tokens`.

        Args:
            tokens: The command and its options.
            data: The folder of embedded engines; without it, truerank in the user's data home.
            log_level: Of the log on standard error; without it, info for what runs in the
                foreground and warning for the rest.
            log_format: Of the log on standard error: for people, or one JSON object a line.
        """
        command, bound, unparsed = app.parse_args(
            tokens, exit_on_error=False, print_error=False, help_on_error=False
        )
        given = (
            {"given": Context(data=data, log_level=log_level, log_json=log_format == "json")}
            if "given" in unparsed
            else {}
        )
        return command(*bound.args, **bound.kwargs, **given)

    app.meta.default(launch)
    return app


def _shown_default(value: object) -> str | None:
    """The default of an option as `--help` shows it; that a flag is off goes without saying."""
    return None if value is None or value is False or value == () else str(value)


def _register(
    app: App, commands: Iterable[tuple[str, Callable[..., object], tuple[str, ...]]]
) -> None:
    for name, command, examples in commands:
        app.command(
            command,
            name=name,
            help_epilogue="\n".join(("Examples:\n```text", *examples, "```")),
        )
