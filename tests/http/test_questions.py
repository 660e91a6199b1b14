"""Every question over HTTP: what it answers, how fresh it must be, and what tells the two apart."""

from typing import Any

import httpx
import pytest

import truerank
from truerank.model import Order, Outcome, ScoreEvent, TieBreak

pytestmark = pytest.mark.usefixtures("worker")

POINTS = "/v1/boards/points"
TOKEN = "1.00000000-00000001-0000000000000"  # of another source


@pytest.fixture
def scores(tr: truerank.Truerank, http: httpx.Client) -> httpx.Client:
    """A board of four members, two of them equal, shown by the projection."""
    tr.create_board("points", seasons=("all",))
    scores = {"ann": 30, "bob": 20, "cid": 20, "dan": 10}
    receipts = tr.submit_scores(
        "points",
        [ScoreEvent(event_id=f"e-{m}", member=m, value=value) for m, value in scores.items()],
    )
    assert receipts[0].token is not None
    tr.wait_visible(receipts[0].token, ["points"])
    return http


def test_pages_follow_each_other_by_cursors_in_both_directions(scores: httpx.Client) -> None:
    def ask(**params: Any) -> Any:
        return scores.get(f"{POINTS}/top", params={"limit": 3, **params}).json()

    first = ask()
    second = ask(cursor=first["next"])
    back = ask(cursor=second["previous"])

    assert [(e["rank"], e["member"]) for e in second["entries"]] == [(4, "dan")]
    assert (first["previous"], second["next"]) == (None, None)
    assert back["entries"] == first["entries"]


def test_a_cursor_of_a_season_that_is_gone_is_told_as_gone(scores: httpx.Client) -> None:
    cursor = scores.get(f"{POINTS}/top", params={"limit": 2}).json()["next"]
    scores.post("/v1/boards", json={"board": "other"})
    scores.post("/v1/boards", json={"board": "no whole", "seasons": ["day"]})

    gone = scores.get("/v1/boards/other/top", params={"cursor": cursor})
    lacking = scores.get("/v1/boards/no whole/top", params={"cursor": cursor})
    none = scores.get(f"{POINTS}/top", params={"cursor": "x"})

    for answer in (gone, lacking):
        assert (answer.status_code, answer.json()["code"]) == (410, "cursor_gone")
    assert (none.status_code, none.json()["field"]) == (422, "cursor")


def test_a_rank_has_a_neighbourhood_too(scores: httpx.Client) -> None:
    answer = scores.get(f"{POINTS}/around", params={"rank": 4, "limit": 2}).json()

    assert [e["member"] for e in answer["around"]] == ["cid", "dan"]
    assert "place" not in answer


def test_friends_are_ranked_among_themselves(scores: httpx.Client) -> None:
    answer = scores.get(f"{POINTS}/places?member=dan&member=bob&member=zoe&among=1&percentile=1")

    assert answer.json()["places"] == [
        {"rank": 4, "member": "dan", "score": "10", "rank_among": 2, "percentile": 0.0},
        {
            "rank": 2,
            "member": "bob",
            "score": "20",
            "rank_among": 1,
            "percentile": pytest.approx(100 / 3),
        },
        {"rank": None, "member": "zoe", "score": None, "rank_among": None, "percentile": None},
    ]


def test_a_range_of_scores_holds_its_members(scores: httpx.Client) -> None:
    answer = scores.get(
        f"{POINTS}/between", params={"score_min": 15, "score_max": 20, "limit": 1}
    ).json()

    assert [(e["rank"], e["member"]) for e in answer["entries"]] == [(2, "bob")]
    assert answer["matching"] == 2
    assert answer["next"] is not None


def test_scores_are_counted_whoever_has_them(scores: httpx.Client) -> None:
    counts = scores.get(f"{POINTS}/counts?score=25&score=20").json()
    spread = scores.get(f"{POINTS}/histogram?edge=20&edge=30").json()

    for numbering, ranks in (("ordinal", [2, 4]), ("dense", [2, 2])):
        numbered = scores.get(f"{POINTS}/counts?score=25&score=20&numbering={numbering}").json()
        assert [count["rank"] for count in numbered["counts"]] == ranks
    low = scores.get(f"{POINTS}/counts?score=15&numbering=dense").json()
    assert (low["counts"][0]["better"], low["counts"][0]["rank"]) == (3, 3)
    assert counts["counts"] == [
        {"score": "25", "better": 1, "equal": 0, "rank": 2},
        {"score": "20", "better": 1, "equal": 2, "rank": 2},
    ]
    assert spread["buckets"] == [
        {"low": None, "high": "20", "members": 1},
        {"low": "20", "high": "30", "members": 2},
        {"low": "30", "high": None, "members": 1},
    ]


def test_a_write_is_read_by_its_token(scores: httpx.Client) -> None:
    for value in range(1, 6):
        event = {"event_id": f"more-{value}", "member": "dan", "value": 10}
        token = scores.post(f"{POINTS}/scores", json=event).json()["token"]

        answer = scores.get(
            f"{POINTS}/place", params={"member": "dan", "at_least": token, "wait": "20s"}
        ).json()

        assert answer["place"]["score"] == str(10 + 10 * value)
        assert answer["freshness"]["token"]


def test_what_is_needed_decides_who_answers(scores: httpx.Client) -> None:
    def source(**params: str) -> Any:
        return scores.get(f"{POINTS}/top", params=params).json()["freshness"]["source"]

    assert source() == source(consistency="any") == source(max_age="1h") == "projection"
    assert source(consistency="authoritative") == "database"
    assert source(max_age="0s") == "database"


def test_a_store_may_be_insisted_on(scores: httpx.Client) -> None:
    for path in ("top", "top?member=ann", "place?member=ann", "counts?score=1", "around?rank=1"):
        for source in ("projection", "database"):
            answer = scores.get(f"{POINTS}/{path}{'&' if '?' in path else '?'}source={source}")
            assert answer.json()["freshness"]["source"] == source, path


def test_a_score_is_counted_with_its_tie_breaks(tr: truerank.Truerank, http: httpx.Client) -> None:
    tr.create_board(
        "race",
        seasons=("all",),
        operator="best",
        tie_breaks=[TieBreak(name="penalty", order=Order.ASC), TieBreak(name="laps")],
    )
    event = ScoreEvent(event_id="e", member="ann", value=5, ties=(-3, 7))
    assert tr.submit_scores("race", [event])[0].outcome is Outcome.APPLIED

    def count(ties: str) -> Any:
        path = f"/v1/boards/race/counts?score=5&ties={ties}&consistency=authoritative"
        ((_, better, equal, _),) = [each.values() for each in http.get(path).json()["counts"]]
        return better, equal

    assert [count(ties) for ties in ("-3,7", "-4,7", "-3,6")] == [(0, 1), (0, 0), (1, 0)]


def test_a_settled_result_that_is_none_yet_is_a_conflict(scores: httpx.Client) -> None:
    answer = scores.get(f"{POINTS}/top", params={"consistency": "settled"})

    assert (answer.status_code, answer.json()["code"]) == (409, "not_settled")


def test_a_reader_never_goes_back_in_time(scores: httpx.Client) -> None:
    last = "new"
    for value in range(1, 6):
        event = {"event_id": f"more-{value}", "member": "dan", "value": 1}
        scores.post(f"{POINTS}/scores", json=event)
        newest = scores.get(f"{POINTS}/top", params={"monotonic": last, "consistency": "any"})
        assert newest.status_code == 422  # one need, not two
        answer = scores.get(f"{POINTS}/top", params={"monotonic": last}).json()
        last = answer["freshness"]["token"]
    assert last != "new"


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ("consistency=fresh", "consistency"),
        ("consistency=at_least", "consistency"),
        ("at_least=x", "at_least"),
        (f"at_least={TOKEN}x", "at_least"),
        (f"at_least={TOKEN[:-3]}", "at_least"),
        (f"at_least={TOKEN}%0A", "at_least"),
        (f"monotonic=9:3:.{TOKEN[2:]}", "monotonic"),
        ("monotonic=x", "monotonic"),
        ("max_age=5", "max_age"),
        ("max_age=-5s", "max_age"),
        ("max_age=99999999h", "max_age"),
        ("wait=1s", "wait"),
        (f"at_least={TOKEN}&wait=61s", "wait"),
        (f"at_least={TOKEN}&else=error", "else"),
        (f"at_least={TOKEN}&else=pending", "else"),
        ("else=pending", "else"),
        ("source=elsewhere", "source"),
        (f"at_least={TOKEN}&max_age=1s", "max_age"),
        ("cursor=x", "cursor"),
        ("cursor=", "cursor"),
    ],
)
def test_needs_that_make_no_sense_are_refused(scores: httpx.Client, query: str, field: str) -> None:
    answer = scores.get(f"{POINTS}/top?{query}")

    assert (answer.status_code, answer.json()["field"]) == (422, field)


@pytest.mark.parametrize("how", ["else=pending", "wait=60s"])
def test_a_token_of_another_epoch_is_told_at_once(scores: httpx.Client, how: str) -> None:
    answer = scores.get(f"{POINTS}/top?member=ann&at_least={TOKEN}&{how}")

    assert (answer.status_code, answer.json()["code"]) == (409, "epoch_changed")


@pytest.mark.parametrize(
    ("path", "field"),
    [
        ("around", "member"),
        ("around?member=ann&rank=1", "member"),
        ("around?rank=0", "rank"),
        ("counts", "score"),
        ("counts?score=x", "score"),
        ("places?" + "&".join(["member=ann"] * 1001), "member"),
        ("places?" + "&".join(["member=ann"] * 1100), "member"),
        ("counts?" + "&".join(["score=1"] * 1001), "score"),
        ("histogram?" + "&".join(f"edge={n}" for n in range(1001)), "edge"),
        ("histogram?edge=9223372036854775808", "edge"),
        ("between?score_min=2&score_max=1", "score_min"),
        ("histogram", "edge"),
        ("counts?score=1&ties=x", "ties"),
        ("counts?score=1&ties=1,2", "ties"),
        ("histogram?edge=2&edge=1", "edge"),
        ("histogram?edge=x", "edge"),
        ("between?score_min=1e400", "score_min"),
        ("between?score_max=x", "score_max"),
        ("places?member=a&among=yes", "among"),
    ],
)
def test_questions_that_make_no_sense_are_refused(
    scores: httpx.Client, path: str, field: str
) -> None:
    answer = scores.get(f"{POINTS}/{path}")

    assert (answer.status_code, answer.json()["field"]) == (422, field)


def test_what_is_too_many_or_too_far_is_told_with_the_bound(scores: httpx.Client) -> None:
    for path, bound in (
        ("places?" + "&".join(["member=ann"] * 1001), "member: at most 1000"),
        ("places?" + "&".join(["member=ann"] * 1100), "member: at most 1000"),
        ("top?offset=1000000000000", "from 0 to 2147483647"),
        ("top?limit=" + "9" * 30, "from 0 to 1000"),
    ):
        assert bound in scores.get(f"{POINTS}/{path}").json()["message"], path


def test_freshness_stands_in_headers_and_an_answer_that_did_not_change_is_not_sent_again(
    scores: httpx.Client,
) -> None:
    first = scores.get(f"{POINTS}/top")
    tag = first.headers["etag"]

    again = scores.get(f"{POINTS}/top", headers={"if-none-match": f'"other", {tag}'})
    scores.post(f"{POINTS}/scores", json={"event_id": "x", "member": "zoe", "value": 1})
    changed = scores.get(
        f"{POINTS}/top", params={"consistency": "authoritative"}, headers={"if-none-match": tag}
    )

    fresh = first.json()["freshness"]
    assert first.headers["truerank-source"] == "projection"
    assert first.headers["truerank-tick"] == fresh["tick"]
    assert first.headers["truerank-staleness-ms"] == str(fresh["staleness_ms"])
    assert (again.status_code, again.content, again.headers["etag"]) == (304, b"", tag)
    assert again.headers["truerank-source"] == "projection"
    assert changed.status_code == 200
    assert changed.headers["etag"] != tag


def test_an_answer_is_the_same_from_both_stores_apart_from_its_freshness(
    scores: httpx.Client,
) -> None:
    for path in ("top?member=bob", "places?member=bob&percentile=1", "between?score_min=15"):
        mark = "&" if "?" in path else "?"
        shown = scores.get(f"{POINTS}/{path}")
        true = scores.get(f"{POINTS}/{path}{mark}consistency=authoritative")

        assert shown.headers["etag"] == true.headers["etag"]
        assert shown.headers["truerank-source"] != true.headers["truerank-source"]


def test_names_are_given_and_shown_where_asked_for(scores: httpx.Client) -> None:
    answer = scores.post(
        "/v1/profiles",
        json={"profiles": [{"member": "ann", "name": "<b>Ann</b>", "details": {"x": 1}}]},
    )
    assert (answer.status_code, answer.json()) == (200, {"profiles": 1})

    page = scores.get(f"{POINTS}/top", params={"names": 1, "limit": 2}).json()

    assert page["entries"] == [
        {"rank": 1, "member": "ann", "score": "30", "name": "<b>Ann</b>", "details": {"x": 1}},
        {"rank": 2, "member": "bob", "score": "20"},
    ]
    refused = scores.post("/v1/profiles", json={"profiles": [{"member": "ann", "nick": "A"}]})
    assert refused.status_code == 422
    refused = scores.post("/v1/profiles", json={"profiles": [{"member": "ann", "name": ""}]})
    assert (refused.status_code, refused.json()["field"]) == (422, "name")
