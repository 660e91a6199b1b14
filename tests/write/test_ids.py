"""Ids are exact text: nothing is trimmed, folded, cut, or taken for something else."""

from typing import Any

import psycopg
import pytest

import truerank
from truerank import ScoreEvent, Truerank
from truerank.command.submit import submit_parameters
from truerank.errors import InvalidInput

Connection = psycopg.Connection[Any]


@pytest.fixture
def board(tr: Truerank) -> str:
    tr.create_board("b", seasons=("all",))
    return "b"


def of_member(*members: Any) -> list[ScoreEvent]:
    return [
        ScoreEvent(event_id=f"e{n}", member=member, value=n) for n, member in enumerate(members, 1)
    ]


def listed(tr: Truerank, board: str) -> dict[str, str]:
    page = tr.top(board, limit=100, source="database")
    return {entry.member: entry.score for entry in page.entries}


# IDS-1, IDS-2
@pytest.mark.parametrize("bad", ["ab\0c", "\ud800", "\udc00 x"], ids=["NUL", "high", "low"])
@pytest.mark.parametrize("field", ["event_id", "member", "metadata", "name in metadata"])
def test_text_that_cannot_be_stored_is_refused_by_field(field: str, bad: str) -> None:
    given: dict[str, Any] = {"event_id": "e1", "member": "A", "value": 1}
    metadata = {"metadata": ["x", {"y": bad}], "name in metadata": {bad: 1}}
    given |= {"metadata": metadata[field]} if field in metadata else {field: bad}

    with pytest.raises(InvalidInput) as caught:
        submit_parameters("b", [ScoreEvent(**given)], None)

    assert caught.value.field == field.rpartition(" ")[2]


# IDS-1
def test_one_malformed_event_keeps_its_batch_from_being_sent(conn: Connection, board: str) -> None:
    with conn.transaction():
        with pytest.raises(InvalidInput):
            truerank.submit_scores(conn, board, of_member("A", "B\0"))
        stored = conn.execute("SELECT FROM truerank.event").rowcount

    assert stored == 0


# IDS-1, IDS-2
@pytest.mark.parametrize("bad", ["b\0", "\ud800"])
def test_a_board_key_that_cannot_be_stored_is_refused(
    tr: Truerank, conn: Connection, bad: str
) -> None:
    with pytest.raises(InvalidInput):
        tr.create_board(bad)
    with pytest.raises(InvalidInput):
        truerank.submit_scores(conn, bad, of_member("A"))


# IDS-2
def test_a_whole_surrogate_pair_is_one_character_and_comes_back(
    tr: Truerank, conn: Connection, board: str
) -> None:
    text = "\U0001f600"

    truerank.submit_score(
        conn, board, ScoreEvent(event_id=text, member=text, value=1, metadata={text: text})
    )

    assert listed(tr, board) == {text: "1"}
    rows = conn.execute("SELECT event_text, metadata FROM truerank.event").fetchall()
    assert rows == [(text, {text: text})]


def test_a_backslash_before_u0000_is_text_and_no_nul(conn: Connection, board: str) -> None:
    truerank.submit_score(
        conn,
        board,
        ScoreEvent(event_id=r"\u0000", member=r"\u0000", value=1, metadata=[r"\u0000", r"\\u0000"]),
    )

    rows = conn.execute("SELECT event_text, member, metadata FROM truerank.event").fetchall()
    assert rows == [(r"\u0000", r"\u0000", [r"\u0000", r"\\u0000"])]


# IDS-3
def test_ids_with_separators_do_not_collide(tr: Truerank, conn: Connection) -> None:
    for key in ("a", "a:b"):
        tr.create_board(key, seasons=("all",))

    for key, member, value in (("a", "b:c", 1), ("a:b", "c", 2)):
        truerank.submit_score(conn, key, ScoreEvent(event_id="e", member=member, value=value))

    assert (listed(tr, "a"), listed(tr, "a:b")) == ({"b:c": "1"}, {"c": "2"})
    tr.delete_board("a", actor="ops", reason="a check")
    while tr.purge_boards(10):
        pass
    assert listed(tr, "a:b") == {"c": "2"}


# IDS-4
def test_wildcards_in_board_keys_are_plain_characters(tr: Truerank, conn: Connection) -> None:
    keys = ["s*", "s1", "s?", "s[12]", "s%", "s_"]
    for key in keys:
        tr.create_board(key, seasons=("all",))

    for value, key in enumerate(keys):
        truerank.submit_score(conn, key, ScoreEvent(event_id="e", member="A", value=value))

    assert [listed(tr, key) for key in keys] == [{"A": str(value)} for value in range(len(keys))]
    assert [board.spec.key for board in tr.boards()] == sorted(keys)


# IDS-5
def test_case_tells_members_and_boards_apart(tr: Truerank, conn: Connection, board: str) -> None:
    tr.create_board("B", seasons=("all",))

    truerank.submit_scores(conn, board, of_member("Ann", "ann"))

    assert listed(tr, board) == {"Ann": "1", "ann": "2"}
    assert tr.place(board, "ANN", source="database").places[0].rank is None
    assert listed(tr, "B") == {}


def test_composed_and_decomposed_letters_and_blanks_are_kept_apart(
    tr: Truerank, conn: Connection, board: str
) -> None:
    members = ["\u00e9", "e\u0301", "e", "e ", " e", "e\t", "e\u200b"]

    truerank.submit_scores(conn, board, of_member(*members))

    assert set(listed(tr, board)) == set(members)


# IDS-7
@pytest.mark.parametrize("unit", ["a", "é", "\U0001f600"])
@pytest.mark.parametrize("field", ["member", "event_id"])
def test_ids_have_1_to_200_characters_whatever_their_bytes(
    conn: Connection, board: str, field: str, unit: str
) -> None:
    receipts = []
    for n in (0, 1, 199, 200, 201, 4000):
        given: dict[str, Any] = {"event_id": f"e{n}", "member": "A", "value": 1, field: unit * n}
        receipts += truerank.submit_scores(conn, board, [ScoreEvent(**given)])

    refused = f"{field}_invalid"
    assert [r.code for r in receipts] == [refused, None, None, None, refused, refused]


# IDS-7
@pytest.mark.parametrize("unit", ["a", "é", "\U0001f600"])
def test_ids_that_differ_in_their_last_unit_only_are_two(
    tr: Truerank, conn: Connection, board: str, unit: str
) -> None:
    first, second = unit * 199 + "1", unit * 199 + "2"

    truerank.submit_scores(
        conn,
        board,
        [ScoreEvent(event_id=text, member=text, value=1) for text in (first, second)],
    )

    assert set(listed(tr, board)) == {first, second}


# IDS-8
def test_ids_that_look_like_something_else_are_text(
    tr: Truerank, conn: Connection, board: str
) -> None:
    members = ["007", "7", "7.0", "1e3", "0x10", "-0", "null", "true", "None", "NaN"]
    members += ["NULL", "{}", "'", '"', "\\", "%s", "{a,b}", "\\N", "--", "\N{RIGHT-TO-LEFT MARK}"]

    truerank.submit_scores(conn, board, of_member(*members))

    assert listed(tr, board) == {member: str(n) for n, member in enumerate(members, 1)}
    places = tr.places(board, members, source="database").places
    assert [place.member for place in places if place.rank] == members


# IDS-8
@pytest.mark.parametrize("member", [7, 0, True, None, 1.5, b"A"])
@pytest.mark.parametrize("field", ["member", "event_id"])
def test_ids_that_are_not_text_are_refused(field: str, member: Any) -> None:
    given: dict[str, Any] = {"event_id": "e1", "member": "A", "value": 1, field: member}

    with pytest.raises(InvalidInput) as caught:
        submit_parameters("b", [ScoreEvent(**given)], None)

    assert caught.value.field == field


def test_null_ids_are_refused_in_sql(conn: Connection, board: str) -> None:
    rows = conn.execute(
        "SELECT ord, code FROM truerank.submit_scores(%s, ARRAY[NULL, 'e2', 'e3'],"
        " ARRAY['A', NULL, 'C'], ARRAY[1, 2, NULL])",
        (board,),
    ).fetchall()

    assert rows == [(1, "event_id_invalid"), (2, "member_invalid"), (3, "value_invalid")]


def test_arrays_of_different_length_are_the_callers_mistake(conn: Connection, board: str) -> None:
    with pytest.raises(psycopg.errors.InvalidParameterValue):
        conn.execute(
            "SELECT truerank.submit_scores(%s, ARRAY['e1', 'e2'], ARRAY['A', 'B'], ARRAY[1])",
            (board,),
        )

    assert conn.execute("SELECT FROM truerank.event").rowcount == 0


@pytest.mark.parametrize(("chars", "code"), [(1022, None), (1023, "metadata_too_large")])
def test_metadata_has_up_to_1024_bytes(
    conn: Connection, board: str, chars: int, code: str | None
) -> None:
    event = ScoreEvent(event_id="e1", member="A", value=1, metadata="x" * chars)

    (receipt,) = truerank.submit_scores(conn, board, [event])

    assert receipt.code == code


def test_arrays_of_any_shape_mean_the_same(tr: Truerank, conn: Connection) -> None:
    ties = (truerank.TieBreak(name="a"), truerank.TieBreak(name="b"))
    tr.create_board("b", seasons=("all",), tie_breaks=ties)
    submit = "SELECT ord, outcome FROM truerank.submit_scores('b', %s, %s, %s, NULL, %s)"

    shaped = conn.execute(
        submit, ("[0:1]={e1,e2}", "[0:1]={A,B}", "[0:1]={1,2}", "{{1,2},{3,4}}")
    ).fetchall()
    conn.execute(submit, ("{e3,e4}", "{C,D}", "{1,2}", "{1,2,3,4}"))

    assert shaped == [(1, "applied"), (2, "applied")]
    rows = conn.execute(
        "SELECT ties, substr(sort_key, 1, 24) FROM truerank.standing ORDER BY member"
    ).fetchall()
    assert rows[:2] == rows[2:]


def test_a_number_beyond_all_bounds_is_refused_and_the_others_stay(
    tr: Truerank, conn: Connection
) -> None:
    tr.create_board("b", seasons=("all",), decimals=2)

    rows = conn.execute(
        "SELECT ord, outcome, code FROM truerank.submit_scores"
        "('b', '{e1,e2}', '{A,B}', ARRAY[1.25, ('1' || repeat('0', 131071))::numeric])"
    ).fetchall()

    assert rows == [(1, "applied", None), (2, "refused", "value_out_of_range")]
