"""Every method refuses arguments of the wrong kind before it does anything with them."""

import inspect
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any, get_type_hints

import pytest

import truerank
from truerank import aio
from truerank.errors import InvalidInput
from truerank.model import AwardRule, Consistency, LeagueRule, Need, Token
from truerank.operations import Operations
from truerank.settings import Settings

# By what a signature says: what it is not.
WRONG: dict[str, tuple[Any, ...]] = {
    "str": (None, 5, b"b", ["b"]),
    "str | None": (5, b"b", ["b"]),
    "int": (None, "5", 5.5, True),
    "int | None": ("5", 5.5, True),
    "float": (None, "5", True),
    "bool": (None, "yes", 1),
    "bool | None": ("yes", 1),
    "datetime": (None, "2026-01-01", 5),
    "datetime | None": ("2026-01-01", 5),
    "Sequence[str]": (None, 5, "ada", b"ada", {"ada": 1}, ["ada", 5], [None]),
    "Sequence[str] | None": (5, "ada", ["ada", 5]),
    "Iterable[str]": (None, 5, "ada", b"ada", ["ada", 5]),
    "Sequence[int]": (None, 5, "123", ["1"], [True]),
    "Sequence[int] | None": (5, "123", ["1"]),
    "Iterable[int | str]": (None, 5, "123"),
    "Sequence[int | str]": (None, 5, "45"),
    "Sequence[TieBreak]": (None, "laps", ["laps"]),
    "Sequence[ScoreEvent]": (None, "event", ["event"]),
    "Sequence[Profile]": (None, "ada", [{"member": "ada"}]),
    "Mapping[str, object]": (None, "dense", ["dense"]),
    "Token": (None, 7, b"7"),
    "Numbering | str": (None, 5),
    "Operator | str": (None, 5),
    "Order | str": (None, 5),
    "Consistency | str": (None, 5),
    "Source | str | None": (5,),
    "LeagueRule": (None, "monthly"),
    "AwardRule": (None, "winner"),
}
# What reads these says what they are not.
OWN = {"int | str", "int | str | None", "Any", "Callable[[Sequence[Writer]], None]"}
NEED: Any = Consistency  # whatever its types say
AWAY = Settings(database_url="postgresql:///away?host=/away", redis_url="unix:///away")


def methods() -> Iterator[tuple[str, list[tuple[str, str, bool]]]]:
    """Every operation, and of each argument its name, its kind and whether it must be given."""
    for name, operation in inspect.getmembers(Operations, inspect.isfunction):
        if not name.startswith("_"):
            _, *parameters = inspect.signature(operation).parameters.values()
            hints = get_type_hints(operation)
            yield (
                name,
                [
                    (p.name, words(hints[p.name]), p.default is inspect.Parameter.empty)
                    for p in parameters
                ],
            )


def words(hint: Any) -> str:
    """A hint as it is written in a signature."""
    text = hint.__name__ if isinstance(hint, type) and "[" not in str(hint) else str(hint)
    for part in ("collections.abc.", "datetime.", "typing."):
        text = text.replace(part, "")
    for module in ("answers", "boards", "leagues", "scores", "settlements", "members"):
        text = text.replace(f"truerank.model.{module}.", "")
    return text


def right(kind: str) -> Any:
    """Something of a kind, for the arguments that aren't wrong."""
    return {
        "LeagueRule": LeagueRule.__new__(LeagueRule),
        "AwardRule": AwardRule.__new__(AwardRule),
        "datetime": datetime(2026, 1, 1, tzinfo=UTC),
        "Mapping[str, object]": {},
        "int": 1,
        "int | str": 1,
        "bool": True,
        "float": 1.0,
    }.get(kind, [] if kind.startswith(("Sequence", "Iterable")) else "b")


def test_every_argument_of_every_method_is_of_a_kind_that_this_test_knows() -> None:
    kinds = {kind for _, parameters in methods() for _, kind, _ in parameters}

    assert kinds - OWN == set(WRONG)


async def test_arguments_of_the_wrong_kind_are_refused_by_name_and_no_store_is_asked() -> None:
    async with aio.Truerank(AWAY) as awaiting:
        with truerank.Truerank(AWAY) as client:
            for name, parameters in methods():
                needed = {each: right(kind) for each, kind, must in parameters if must}
                for each, kind, _ in parameters:
                    for value in WRONG.get(kind, ()):
                        given = needed | {each: value}
                        with pytest.raises(InvalidInput) as raised:
                            getattr(client, name)(**given)
                        assert raised.value.field == each, (name, each, value)
                        with pytest.raises(InvalidInput) as raised:
                            await getattr(awaiting, name)(**given)
                        assert raised.value.field == each, (name, each, value)


def test_arguments_given_by_their_place_are_looked_at_as_well() -> None:
    # To a checker of types a text is a sequence of texts.
    with truerank.Truerank(AWAY) as client, pytest.raises(InvalidInput) as raised:
        client.places("b", "ada")

    assert raised.value.field == "members"
    assert str(raised.value) == "members is a list of which each is text, not str"


def test_an_export_looks_at_its_arguments_before_it_is_opened() -> None:
    wrong: list[tuple[tuple[Any, ...], dict[str, Any], str]] = [
        ((5,), {}, "board"),
        (("b", 5), {}, "season"),
        (("b",), {"cohort": "1"}, "cohort"),
    ]
    with truerank.Truerank(AWAY) as client:
        for args, given, field in wrong:
            with pytest.raises(InvalidInput) as raised:
                client.export(*args, **given)
            assert raised.value.field == field


@pytest.mark.parametrize(
    ("make", "field"),
    [
        (lambda: NEED.at_least(None), "token"),
        (lambda: NEED.at_least(7), "token"),
        (lambda: NEED.monotonic_after(7), "token"),
        (lambda: NEED(need=Need.AT_LEAST), "token"),
        (lambda: NEED(need="at_least"), "token"),
        (lambda: NEED(need=Need.MAX_AGE), "max_age"),
        (lambda: NEED.max_age("5s"), "max_age"),
        (lambda: NEED(need="fresh"), "consistency"),
        (lambda: NEED(need=Need.ANY, max_age_ms=5), "max_age"),
        (lambda: NEED(need=Need.MAX_AGE, max_age_ms=5, token=Token("1")), "token"),
    ],
)
def test_a_need_without_its_value_is_no_need(make: Any, field: str) -> None:
    with pytest.raises(InvalidInput) as raised:
        make()

    assert raised.value.field == field


def test_a_need_by_its_name_is_the_need_itself() -> None:
    assert NEED(need="authoritative").need is Need.AUTHORITATIVE
