"""Addresses and query strings: one documented rule each, never a 500, never the whole board."""

import httpx
import pytest

import truerank

TOP = "/v1/boards/points/top"


@pytest.fixture
def board(tr: truerank.Truerank, http: httpx.Client) -> httpx.Client:
    tr.create_board("points")
    tr.submit_scores(
        "points",
        [truerank.ScoreEvent(event_id=f"e{i}", member=f"m{i:03}", value=i) for i in range(300)],
    )
    return http


@pytest.mark.parametrize(
    "query",
    [
        "limit=-1", "limit=1.5", "limit=abc", "limit=007", "limit=1001", "limit=1000000000",
        "limit=", "limit=1&limit=1000", "limit=%2B5", "limit=5%20", "limit=%D9%A5", "limit[]=5",
        "limit=" + "9" * 5000, "offset=-1", "offset=1000000000000", "offset=abc",
        "season=", "season=%00", "version=99999999999999999999", "board=%F0%28", "season=%F0%28",
        "numbering=denser", "around_limit=3", "member=", "member=a&member=b", "Limit=5",
        "member=" + "x" * 201, "member=a%00b", "member=a&around_limit=1001",
        "&".join("a=1" for _ in range(2000)),
    ],
)  # fmt: skip
def test_a_parameter_of_another_spelling_is_refused(board: httpx.Client, query: str) -> None:
    answer = board.get(f"{TOP}?{query}")

    assert (answer.status_code, answer.json()["code"]) == (422, "invalid_input"), answer.text


@pytest.mark.parametrize(
    ("query", "rows"),
    [
        ("", 10), ("limit=0", 0), ("limit=1000", 300), ("limit=100&offset=299", 1),
        ("offset=300", 0), ("offset=2000000000", 0), ("limit=5;offset=1", None),
    ],
)  # fmt: skip
def test_a_slice_has_the_rows_that_were_asked_for(
    board: httpx.Client, query: str, rows: int | None
) -> None:
    answer = board.get(f"{TOP}?{query}")

    if rows is None:
        assert answer.status_code == 422
    else:
        assert (answer.status_code, len(answer.json()["entries"])) == (200, rows)
        assert answer.json()["total"] == 300


@pytest.mark.parametrize(
    "query",
    ["offset=9999999999", "offset=2147483648", "limit=9999999999", "limit=1001", "limit=-1"],
)
def test_a_slice_of_the_seasons_that_no_board_has_is_refused(
    board: httpx.Client, query: str
) -> None:
    answer = board.get(f"/v1/boards/points/seasons?{query}")

    assert (answer.status_code, answer.json()["code"]) == (422, "invalid_input"), answer.text
    assert answer.json()["field"] == query.partition("=")[0]
    last = board.get("/v1/boards/points/seasons?offset=2147483647")
    assert (last.status_code, last.json()["seasons"]) == (200, [])


@pytest.mark.parametrize(
    "label",
    ["9999", "9999-12", "9999-W52", "9999-12-31", "0001", "0001-01", "0001-W01", "0001-01-01"],
)
def test_a_season_beyond_what_clients_can_tell_is_unknown(
    tr: truerank.Truerank, http: httpx.Client, label: str
) -> None:
    tr.create_board("calendar", seasons=("day", "week", "month", "year"), zone="Etc/GMT-14")

    answer = http.get(f"/v1/boards/calendar/top?season={label}")

    assert (answer.status_code, answer.json()["code"]) == (404, "season_unknown"), answer.text
    for inside in ("9998", "9999-11", "9999-W51", "0002", "0001-02", "0001-W02"):
        assert http.get(f"/v1/boards/calendar/top?season={inside}").status_code == 200, inside


def test_a_member_must_be_named_where_one_is_needed(board: httpx.Client) -> None:
    for route in ("place", "places", "around"):
        answer = board.get(f"/v1/boards/points/{route}")
        assert (answer.status_code, answer.json()["field"]) == (422, "member")


def test_more_members_than_a_thousand_are_refused(board: httpx.Client) -> None:
    members = "&".join(f"member=m{i}" for i in range(1001))

    answer = board.get(f"/v1/boards/points/places?{members}")

    assert answer.status_code == 422
    thousand = members.rpartition("&")[0]
    assert len(board.get(f"/v1/boards/points/places?{thousand}").json()["places"]) == 1000


@pytest.mark.parametrize(
    ("method", "path", "status", "code"),
    [
        ("GET", "/nothing", 404, "route_unknown"),
        ("GET", "/v1/boards/points/top/", 404, "route_unknown"),
        ("GET", "/v1/boards//top", 404, "route_unknown"),
        ("GET", "/v1/boards/a%2Fb/top", 404, "route_unknown"),
        ("GET", "/v1/boards%2Fpoints", 404, "route_unknown"),
        ("GET", "/v1%2Fboards/points/top", 404, "route_unknown"),
        ("GET", "/v1/boards%2Fpoints/top", 404, "route_unknown"),
        ("GET", "/v1/boards/points%2Ftop", 404, "board_unknown"),
        ("GET", "/v1/boards/%FF/top", 422, "invalid_input"),
        ("GET", "/v1/boards/a%00b/top", 422, "invalid_input"),
        ("GET", "/v1/boards/%ED%A0%80/top", 422, "invalid_input"),
        ("GET", "/v1/boards/points/scores", 405, "method_not_allowed"),
        ("DELETE", "/v1/boards/points", 405, "method_not_allowed"),
        ("POST", "/v1/boards/points/top", 405, "method_not_allowed"),
        ("OPTIONS", "/v1/boards", 405, "method_not_allowed"),
        ("GET", "/web/../server.py", 404, "route_unknown"),
        ("GET", "/web/%2e%2e/server.py", 404, "route_unknown"),
    ],
)
def test_what_no_route_takes_is_answered_in_the_one_error_shape(
    http: httpx.Client, method: str, path: str, status: int, code: str
) -> None:
    # httpx would tidy the dots away.
    request = http.build_request(method, "/")
    request.url = request.url.copy_with(raw_path=path.encode())

    answer = http.send(request)

    assert answer.status_code == status, answer.text
    error = answer.json()
    assert (set(error), error["code"]) == ({"code", "message", "field"}, code)
    assert answer.headers["content-type"] == "application/json"


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:8080", "", "localhost.evil.example"]
)
def test_a_name_of_another_host_is_refused(http: httpx.Client, host: str) -> None:
    answer = http.get("/v1/boards", headers={"host": host})

    assert (answer.status_code, answer.json()["code"]) == (421, "host_unknown")
    assert http.get("/v1/boards", headers={"host": "LOCALHOST:1234"}).status_code == 200


@pytest.mark.parametrize("key", ["100%", "a?b", "a b", "ä/ö".replace("/", "."), "a+b", "a:b", "s*"])
def test_a_board_is_addressed_by_its_encoded_key(http: httpx.Client, key: str) -> None:
    made = http.post("/v1/boards", json={"board": key})

    assert made.status_code == 201, made.text
    path = "/v1/boards/" + "".join(f"%{byte:02X}" for byte in key.encode())
    assert http.get(f"{path}/top").json()["board"] == key


def test_a_board_is_made_once_with_what_it_is_made_of(http: httpx.Client) -> None:
    body = {
        "board": "golf", "operator": "best", "order": "asc", "seasons": ["all", "day"],
        "zone": "Europe/Berlin", "decimals": 2, "value_min": 0, "value_max": "9007199254740993",
        "tie_breaks": [{"name": "holes", "order": "desc", "min": "0", "max": 18}],
        "dense": True,
    }  # fmt: skip

    made, again = (http.post("/v1/boards", json=body) for _ in range(2))
    other = http.post("/v1/boards", json=body | {"decimals": 3})

    assert (made.status_code, again.status_code, other.status_code) == (201, 200, 409)
    assert made.json() == again.json()
    assert made.json()["value_max"] == "9007199254740993"
    assert made.json()["dense"] is True
    assert made.json()["tie_breaks"] == [
        {"name": "holes", "order": "desc", "min": "0", "max": "18"}
    ]
    assert other.json()["code"] == "board_exists"


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"board": "a/b"}, "board"),
        ({"board": ".."}, "board"),
        ({"board": "a\nb"}, "board"),
        ({"board": ""}, "board"),
        ({"board": "x" * 101}, "board"),
        ({"board": 5}, "board"),
        ({"operator": "avg"}, "operator"),
        ({"order": "up"}, "order"),
        ({"seasons": ["hour"]}, "seasons"),
        ({"seasons": "all"}, "seasons"),
        ({"decimals": True}, "decimals"),
        ({"decimals": 19}, "decimals"),
        ({"value_min": 1.5}, "value_min"),
        ({"value_min": "one"}, "value_min"),
        ({"value_max": 2**63}, "value"),
        ({"tie_breaks": [{"name": "t", "order": "up"}]}, "tie_breaks[0].order"),
        ({"tie_breaks": [{"name": "a\0"}]}, "tie_breaks"),
        ({"tie_breaks": [{"name": ""}]}, "tie_breaks"),
        ({"tie_breaks": [{"name": "x" * 101}]}, "tie_breaks"),
        ({"tie_breaks": [{"name": "a"}, {"name": "a"}]}, "tie_breaks"),
        ({"colour": "red"}, "colour"),
    ],
)
def test_a_board_that_can_not_be_made_is_refused_by_field(
    http: httpx.Client, change: dict[str, object], field: str
) -> None:
    answer = http.post("/v1/boards", json={"board": "golf"} | change)

    assert (answer.status_code, answer.json()["field"]) == (422, field), answer.text
    assert http.get("/v1/boards").json() == {"boards": []}


def test_an_unknown_zone_is_refused(http: httpx.Client) -> None:
    answer = http.post("/v1/boards", json={"board": "golf", "zone": "Mars/Olympus"})

    assert answer.status_code == 422
    assert "Mars/Olympus" in answer.json()["message"]


def test_a_refused_body_with_half_a_surrogate_pair_is_still_answered(http: httpx.Client) -> None:
    answer = http.post(
        "/v1/boards",
        content=rb'{"board": "golf", "\ud800": 1}',
        headers={"content-type": "application/json"},
    )

    assert answer.status_code == 422
