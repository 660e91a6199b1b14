"""What a drill says, on a terminal and where there is none."""

import io

import pytest
from rich.console import Console

from truerank.drill.play import Drill, drill_json
from truerank.drill.story import ActResult, Check, SideBySide
from truerank.drill.telling import Told


def played(*, kept: bool = True) -> Drill:
    act = ActResult(name="flushed", title="Redis is emptied", whole_after_ms=840, duration_ms=2100)
    act.checks.append(Check(promise="all is back in Redis", kept=True))
    act.checks.append(
        Check(promise="no reader was refused, whoever asked", kept=kept, found="busy [x]")
    )
    return Drill(
        acts=(act,), postgres_version="18.6", valkey_version="Valkey 9.1.2", duration_ms=2500
    )


def told(drill: Drill, *, width: int = 80, encoding: str = "utf-8", terminal: bool = False) -> str:
    raw = io.BytesIO()
    file = io.TextIOWrapper(raw, encoding=encoding)
    console = Console(
        file=file,
        width=width,
        force_terminal=terminal,
        color_system="truecolor" if terminal else "auto",
    )
    teller = Told(console)
    teller.opening(drill.postgres_version, drill.valkey_version)
    for number, act in enumerate(drill.acts, 1):
        teller.begins(number, act)
        teller.did("FLUSHALL: Redis is empty, while a reader asks without a pause")
        teller.did("truerank reconcile drill --repair:\nchecked 2: corrupt 1")
        teller.saw("22 answers: 2 from Redis; 20 from PostgreSQL")
        teller.compared(SideBySide(source={"ada": "17"}, projection={"ada": None}))
        for check in act.checks:
            teller.checked(check)
        teller.ends(act)
    teller.ending(drill)
    file.flush()
    return raw.getvalue().decode(encoding)


@pytest.mark.parametrize("width", [40, 60, 80, 200])
def test_no_line_is_wider_than_the_terminal_or_than_reads_well(width: int) -> None:
    lines = told(played(), width=width).splitlines()

    assert max(map(len, lines)) <= min(width, 88)


def test_a_pipe_gets_neither_colours_nor_spaces_at_the_ends_of_texts() -> None:
    text = told(played())

    assert "\x1b" not in text
    assert "   FLUSHALL: Redis is empty, while a reader asks without a pause.\n" in text
    assert "     checked 2: corrupt 1\n" in text


def test_a_terminal_gets_colours() -> None:
    assert "\x1b[" in told(played(), terminal=True)


def test_a_terminal_without_such_signs_gets_words() -> None:
    text = told(played(kept=False), encoding="ascii")

    assert "ok all is back in Redis" in text
    assert "FAILED no reader was refused, whoever asked  (busy [x])" in text


def test_the_end_says_what_it_comes_to() -> None:
    assert "The act passed, in 2 s" in told(played())
    assert "1 of 1 acts failed, in 2 s" in told(played(kept=False))


def test_json_has_all_of_it() -> None:
    shape = drill_json(played(kept=False), broken="fence")

    assert (shape["passed"], shape["broken"]) == (False, "fence")
    (act,) = shape["acts"]
    assert (act["act"], act["passed"], act["whole_after_ms"]) == ("flushed", False, 840)
    assert act["checks"][1] == {
        "promise": "no reader was refused, whoever asked",
        "kept": False,
        "found": "busy [x]",
    }
