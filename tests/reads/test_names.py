"""Names stand beside ids: exact, in no order, and gone before ranks are when PostgreSQL is."""

import msgspec
import psycopg
import pytest

import truerank
from tests.projection.pipeline import Pipeline
from truerank.errors import InvalidInput
from truerank.model import Profile, Source
from truerank.read import names as remembering

MARKUP = '"><script>alert(1)</script>\n{{7*7}} d\u0279\u01dd\u15e1 <3 A&B \N{PARTY POPPER}'


def names(page: truerank.Page) -> list[str | None]:
    rows: list[truerank.Entry | truerank.Place] = [*page.entries, *page.places, *page.around]
    return [None if row.profile is None else row.profile.name for row in rows]


def test_a_name_is_shown_exactly_as_it_was_given_wherever_a_member_is(stopped: Pipeline) -> None:
    stopped.client.set_profiles([Profile(member="ann", name=MARKUP, details={"flag": [1, None]})])

    page = stopped.client.top("b", member="ann", names=True)

    assert names(page) == [MARKUP] * 2
    assert page.entries[0].profile is not None
    assert page.entries[0].profile.details == {"flag": [1, None]}
    assert names(stopped.client.top("b", member="ann")) == [None] * 2
    assert names(stopped.client.around("b", "ann", names=True)) == [MARKUP] * 2
    assert names(stopped.client.around("b", rank=1, names=True)) == [MARKUP]
    assert names(stopped.client.between("b", names=True)) == [MARKUP]
    assert names(stopped.client.places("b", ["ann", "bob"], names=True)) == [MARKUP, None]


@pytest.mark.parametrize("source", Source)
def test_members_stand_in_the_order_of_their_scores_whatever_they_are_called(
    idle: Pipeline, source: Source
) -> None:
    idle.submit("b", {"bob": 10, "cid": 10, "dan": 9})
    idle.settle(idle.projector())
    called = {"ann": "D", "bob": "C", "cid": "B", "dan": "A"}
    idle.client.set_profiles([Profile(member=each, name=name) for each, name in called.items()])

    page = idle.client.top("b", names=True, source=source)

    assert [entry.member for entry in page.entries] == list(called)
    assert names(page) == list(called.values())


def test_a_change_is_seen_at_once_here_and_in_time_elsewhere(stopped: Pipeline) -> None:
    settings = msgspec.structs.replace(stopped.settings, names_cache_ms=1)
    with truerank.Truerank(settings) as elsewhere:
        stopped.client.set_profiles([Profile(member="ann", name="Ann")])
        assert names(stopped.client.top("b", names=True)) == ["Ann"]
        assert names(elsewhere.top("b", names=True)) == ["Ann"]

        stopped.client.set_profiles(
            [Profile(member="ann", name="old"), Profile(member="ann", name="new")]
        )

        assert names(stopped.client.top("b", names=True)) == ["new"]
        assert names(elsewhere.top("b", names=True)) == ["new"]
        stopped.client.set_profiles([Profile(member="ann")])
        assert names(stopped.client.top("b", names=True)) == [None]


def test_many_names_are_one_question_and_none_while_they_are_remembered(stopped: Pipeline) -> None:
    stopped.submit("b", {f"m{i}": i for i in range(200)})
    stopped.client.set_profiles([Profile(member=f"m{i}", name=f"n{i}") for i in range(0, 200, 2)])
    stopped.settle(stopped.projector())
    client = stopped.client

    first = client.top("b", limit=201, names=True)
    stopped.conn.execute("ALTER FUNCTION truerank.profiles(text[]) RENAME TO profiles_away")
    again = client.top("b", limit=201, names=True)

    assert sum(name is not None for name in names(first)) == 100
    assert names(again) == names(first)
    with pytest.raises(psycopg.Error):
        stopped.conn.execute("SELECT truerank.profiles('{}')")


def test_a_page_keeps_the_names_that_were_remembered_when_room_is_made(
    idle: Pipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(remembering, "_REMEMBERED_MAX", 1)
    idle.submit("b", {"bob": 5})
    idle.settle(idle.projector())
    idle.client.set_profiles([Profile(member=each, name=each.title()) for each in ("ann", "bob")])
    assert names(idle.client.top("b", limit=1, names=True)) == ["Ann"]

    page = idle.client.top("b", limit=2, names=True)

    assert names(page) == ["Ann", "Bob"]


def test_a_postgresql_that_is_away_costs_names_not_ranks(stopped: Pipeline) -> None:
    stopped.client.set_profiles([Profile(member="ann", name="Ann")])
    with truerank.Truerank(stopped.settings) as reader:
        reader.top("b")
        stopped.conn.execute("ALTER FUNCTION truerank.profiles(text[]) RENAME TO profiles_away")
        stopped.conn.execute(
            "CREATE FUNCTION truerank.profiles(text[])"
            " RETURNS TABLE (member text, display_name text, profile jsonb) LANGUAGE plpgsql AS"
            " $$ BEGIN RAISE SQLSTATE '57P01'; END $$"
        )

        page = reader.top("b", names=True)

    assert [(e.rank, e.member, e.profile) for e in page.entries] == [(1, "ann", None)]


def test_a_member_who_is_deleted_leaves_no_name(stopped: Pipeline) -> None:
    stopped.client.set_profiles([Profile(member="ann", name="Ann", details={"a": 1})])

    stopped.client.delete_member("ann", actor="eve", reason="asked", timeout_s=0)

    row = stopped.conn.execute(
        "SELECT count(*) FROM truerank.member WHERE display_name IS NOT NULL OR profile IS NOT NULL"
    ).fetchone()
    assert row == (0,)


@pytest.mark.parametrize(
    ("profile", "field"),
    [
        (Profile(member="", name="x"), "member"),
        (Profile(member="m" * 201, name="x"), "member"),
        (Profile(member="a\0", name="x"), "member"),
        (Profile(member="ann", name=""), "name"),
        (Profile(member="ann", name="n" * 201), "name"),
        (Profile(member="ann", name="n\0"), "name"),
        (Profile(member="ann", name="\ud800"), "name"),
        (Profile(member="ann", details="x" * 1024), "details"),
        (Profile(member="ann", details=float("nan")), "details"),
        (Profile(member="ann", details={"a": "\0"}), "details"),
        (Profile(member="ann", details=object()), "details"),
    ],
)
def test_what_cannot_be_stored_is_refused_whole(
    stopped: Pipeline, profile: Profile, field: str
) -> None:
    with pytest.raises(InvalidInput) as caught:
        stopped.client.set_profiles([Profile(member="bob", name="Bob"), profile])

    assert caught.value.field == field
    assert stopped.conn.execute("SELECT count(*) FROM truerank.member").fetchone() == (0,)
