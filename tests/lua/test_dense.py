"""Where a ranking is counted densely: each score and tie-breaks kept once, and counted."""

import random
from typing import Any

import pytest

from tests.lua.harness import BOARD, END, RANKING, SIBLING, Scripts, drop, key, part, put
from tests.lua.test_states import ACTIVE, BANNED, HIDDEN, states
from truerank.outbox.ticks import Part
from truerank.projection.scripts import ApplyReply, PageReply
from truerank.steps import ScriptCall

EQUAL_BYTES = 7  # of 8: the last one stands for the instant


def at(score: int, instant: int = 0) -> int:
    """The number of a sort key."""
    return score << 8 | instant


def dense(*rows: bytes, ranking: int = RANKING) -> Part:
    return part(*rows, ranking=ranking, equal_bytes=EQUAL_BYTES)


def moves(*members: str, ranking: int = RANKING) -> Part:
    """Bring these members of a ranking in line with their states."""
    rows = [b"m" + bytes(8) + member.encode() for member in members]
    return Part(ranking, 0, rows, EQUAL_BYTES)


def prefixes(scripts: Scripts, ranking: int = RANKING) -> list[int]:
    """The different scores that are kept."""
    kept = scripts.link.command("ZRANGE", scripts.copy().prefixes(ranking), 0, -1)
    return [int.from_bytes(prefix) for prefix in kept]


def ranks(scripts: Scripts, *members: str) -> list[int | None]:
    """The dense rank of each member."""
    reply = scripts.page(*members, row_bytes=EQUAL_BYTES, dense=True)
    assert reply[0] == PageReply.OK
    return [place[1] + 1 if len(place) > 1 else None for place in reply[5]]


@pytest.fixture(autouse=True)
def _copy(scripts: Scripts) -> None:
    scripts.begin(scan="done", high="5:5:")
    scripts.go_live()


@pytest.fixture
def four(scripts: Scripts) -> Scripts:
    """101, 100, 100, 99, best first."""
    rows = [put("ann", 1, at(1)), put("bob", 2, at(2)), put("cid", 3, at(2, 1))]
    scripts.apply_next(dense(*rows, put("dan", 4, at(3))))
    return scripts


def test_equals_are_counted_once(four: Scripts) -> None:
    assert (prefixes(four), four.counts()) == ([1, 2, 3], "4 0 0 3")
    assert ranks(four, "ann", "bob", "cid", "dan", "eve") == [1, 2, 2, 3, None]


def test_a_slice_and_a_neighbourhood_tell_how_many_scores_are_better(four: Scripts) -> None:
    reply = four.page("dan", offset=2, limit=2, around=2, row_bytes=EQUAL_BYTES, dense=True)

    first, rows, better, *_ = reply[4]
    assert (first, [row[8:] for row in rows], better) == (2, [b"cid", b"dan"], 1)
    first, rows, better = reply[6]
    assert (first, [row[8:] for row in rows], better) == (2, [b"cid", b"dan"], 1)


def test_a_score_that_nobody_need_have_is_counted_in_members_and_in_scores(four: Scripts) -> None:
    marks = [key(at(score))[:EQUAL_BYTES] for score in (1, 3, 9)]

    counted = four.page(row_bytes=EQUAL_BYTES, dense=True, marks=marks)
    plain = four.page(row_bytes=EQUAL_BYTES, marks=marks)

    assert (counted[7], plain[7]) == ([0, 3, 4, 0, 2, 3], [0, 3, 4])


def test_the_other_numberings_of_a_dense_ranking_count_members(four: Scripts) -> None:
    reply = four.page("dan", offset=3, limit=1, row_bytes=EQUAL_BYTES)

    assert (reply[4][2], reply[5][0][:2]) == (3, [3, 3])


def test_a_score_that_the_last_one_leaves_is_kept_no_longer(four: Scripts) -> None:
    four.apply_next(dense(put("bob", 5, at(4))))
    assert (prefixes(four), four.counts()) == ([1, 2, 3, 4], "4 0 0 4")

    four.apply_next(dense(put("cid", 6, at(4)), drop("ann", 7)))

    assert (prefixes(four), four.counts()) == ([3, 4], "3 1 0 2")
    assert ranks(four, "ann", "bob", "cid", "dan") == [None, 2, 2, 1]


def test_a_score_that_one_leaves_and_another_takes_in_one_call_is_kept(four: Scripts) -> None:
    four.apply_next(dense(put("ann", 5, at(3)), put("dan", 6, at(1))))

    assert (prefixes(four), four.counts()) == ([1, 2, 3], "4 0 0 3")
    assert ranks(four, "ann", "dan") == [3, 1]


def test_another_instant_of_the_same_score_changes_nothing(four: Scripts) -> None:
    four.apply_next(dense(put("ann", 5, at(1, 9))))

    assert (prefixes(four), four.counts()) == ([1, 2, 3], "4 0 0 3")


def test_old_rows_and_rows_that_come_again_change_nothing(four: Scripts) -> None:
    row = put("dan", 5, at(9))
    four.apply_next(dense(row, put("ann", 0, at(7)), row))
    four.apply_next(dense(row))

    assert (prefixes(four), four.counts()) == ([1, 2, 9], "4 0 0 3")


def test_a_withheld_member_leaves_no_score_and_comes_back_with_it(four: Scripts) -> None:
    four.apply_next(states(("ann", 5, HIDDEN), ("bob", 6, BANNED)), moves("ann", "bob"))
    assert (prefixes(four), four.counts()) == ([2, 3], "2 0 2 2")
    assert ranks(four, "ann", "cid", "dan") == [None, 1, 2]

    four.apply_next(dense(put("ann", 7, at(5))))
    assert prefixes(four) == [2, 3]
    four.apply_next(states(("ann", 8, ACTIVE)), moves("ann"))

    assert (prefixes(four), four.counts()) == ([2, 3, 5], "3 0 1 3")


def test_a_filled_copy_keeps_the_same(four: Scripts) -> None:
    four.begin("g2")
    rows = [put(m, i, at(s)) for i, (m, s) in enumerate([("ann", 1), ("bob", 2), ("cid", 2)])]
    reply = four.fill(dense(*rows), generation="g2")

    assert reply == [ApplyReply.APPLIED, 3, []]
    assert four.counts(generation="g2") == "3 0 0 2"
    assert four.link.command("ZCARD", four.copy("g2").prefixes(RANKING)) == 2


def test_a_thousand_rows_of_one_call_are_kept_in_few_commands(scripts: Scripts) -> None:
    rows = [put(f"m{i}", i + 1, at(i % 700)) for i in range(3000)]
    scripts.apply_next(dense(*rows))
    assert (len(prefixes(scripts)), scripts.counts()) == (700, "3000 0 0 700")

    scripts.apply_next(dense(*(put(f"m{i}", 5000 + i, at(1000)) for i in range(2999))))

    assert prefixes(scripts) == [2999 % 700, 1000]


def test_a_call_that_failed_half_way_is_put_right_when_it_comes_again(four: Scripts) -> None:
    places = four.copy().places(RANKING)
    four.link.command("ZADD", places, 0, key(at(8)) + b"ann")
    four.link.command("ZREM", places, key(at(1)) + b"ann")

    reply = four.apply_next(dense(put("ann", 5, at(8))))

    assert reply == [ApplyReply.APPLIED, 1, [], 1]
    assert (prefixes(four), four.counts()) == ([2, 3, 8], "4 0 0 3")


@pytest.mark.parametrize("lost", ["all", "one", "one too many"])
def test_lost_prefixes_are_noticed_by_readers_workers_and_rounds(four: Scripts, lost: str) -> None:
    name = four.copy().prefixes(RANKING)
    match lost:
        case "all":
            four.link.command("DEL", name)
        case "one":
            four.link.command("ZREMRANGEBYRANK", name, 1, 1)
        case _:
            four.link.command("ZADD", name, 0, b"x" * EQUAL_BYTES)

    assert four.page("dan", row_bytes=EQUAL_BYTES, dense=True) == [PageReply.DAMAGED]
    assert four.page("dan", row_bytes=EQUAL_BYTES)[0] == PageReply.OK, "who doesn't need them"
    copy = four.copy()
    keys = [copy.meta, copy.counts, copy.places(RANKING), copy.shown(RANKING), name]
    assert four.link.call(ScriptCall("count", keys, [RANKING]))[0] == [str(RANKING).encode()]
    damaged = [ApplyReply.APPLIED, 0, [str(RANKING).encode()], 1]
    assert four.apply_next(dense(put("eve", 9, at(1)))) == damaged
    assert (four.counts(), four.meta()["cursor"]) == ("damaged", END)


def test_a_round_finds_nothing_wrong_with_whole_rankings(four: Scripts) -> None:
    four.apply_next(part(put("ann", 5, at=1), ranking=SIBLING))
    copy = four.copy()
    keys = [
        key_
        for ranking in (RANKING, SIBLING)
        for key_ in (copy.places(ranking), copy.shown(ranking), copy.prefixes(ranking))
    ]

    reply, _ = four.link.call(
        ScriptCall("count", [copy.meta, copy.counts, *keys], [RANKING, SIBLING])
    )

    assert reply == []


def test_a_ranking_that_has_rows_already_is_not_counted_densely_from_now_on(
    scripts: Scripts,
) -> None:
    scripts.apply_next(part(put("ann", 1, at(1))))

    scripts.apply_next(dense(put("bob", 2, at(2))))

    assert (prefixes(scripts), scripts.counts()) == ([], "2 0 0")
    assert scripts.page("bob", row_bytes=EQUAL_BYTES, dense=True) == [PageReply.NOT_DENSE]


def test_one_that_no_longer_asks_for_it_is_counted_so_no_more(four: Scripts) -> None:
    four.apply_next(part(put("eve", 5, at(9))))
    assert four.counts() == "5 0 0"
    assert four.page("ann", row_bytes=EQUAL_BYTES, dense=True) == [PageReply.NOT_DENSE]

    four.apply_next(dense(put("fay", 6, at(9))))

    assert four.counts() == "6 0 0", "what was missed meanwhile is not known"


def test_without_rows_there_is_nothing_to_count(scripts: Scripts) -> None:
    assert ranks(scripts, "ann") == [None]
    scripts.apply_next(part(put("ann", 1, at(1))))
    scripts.apply_next(part(drop("ann", 2)))
    assert ranks(scripts, "ann") == [None]


def test_a_ranking_that_does_not_ask_costs_no_key_and_no_command(scripts: Scripts) -> None:
    def commands(call: Part) -> dict[str, int]:
        scripts.link.command("CONFIG", "RESETSTAT")
        assert scripts.apply_next(call)[1] == 2
        told: Any = scripts.link.command("INFO", "commandstats")
        if isinstance(told, bytes):
            lines = [line.split(":calls=") for line in told.decode().splitlines() if ":" in line]
            told = {name: {"calls": int(rest.split(",")[0])} for name, rest in lines}
        names = ("zadd", "zrem", "zcard", "zrange")
        return {name: int(told.get(f"cmdstat_{name}", {"calls": 0})["calls"]) for name in names}

    scripts.apply_next(part(put("ann", 1, at(1)), put("bob", 2, at(2))))
    scripts.apply_next(dense(put("ann", 1, at(1)), put("bob", 2, at(2)), ranking=SIBLING))
    rows = [put("ann", 3, at(3)), put("bob", 4, at(4))]

    plain = commands(part(*rows))
    counted = commands(dense(*rows, ranking=SIBLING))

    assert plain == {"zadd": 1, "zrem": 1, "zcard": 1, "zrange": 0}
    assert counted == {"zadd": 2, "zrem": 2, "zcard": 2, "zrange": 2}
    copy = scripts.copy()
    assert scripts.link.command("EXISTS", copy.prefixes(RANKING)) == 0
    assert scripts.link.command("EXISTS", copy.prefixes(SIBLING)) == 1


@pytest.mark.parametrize("seed", range(3))
def test_random_rows_and_states_are_counted_as_a_plain_computation_says(
    scripts: Scripts, seed: int
) -> None:
    random_ = random.Random(seed)
    members = [f"m{i}" for i in range(10)]
    shown: dict[str, int | None] = {}
    hidden: dict[str, bool] = {}
    for version in range(1, 250):
        chosen = random_.sample(members, random_.randint(1, 4))
        if random_.random() < 0.3:
            hidden[chosen[0]] = not hidden.get(chosen[0], False)
            letter = HIDDEN if hidden[chosen[0]] else ACTIVE
            call = [states((chosen[0], version, letter), board=BOARD), moves(chosen[0])]
        else:
            rows = []
            for member in chosen:
                gone = random_.random() < 0.2
                shown[member] = None if gone else at(random_.randrange(6), random_.randrange(9))
                number = shown[member]
                rows.append(
                    drop(member, version) if number is None else put(member, version, number)
                )
            call = [dense(*rows)]
        for _ in range(random_.choice([1, 1, 2])):
            scripts.apply_next(*call)

        seen = {
            m: number for m, number in shown.items() if number is not None and not hidden.get(m)
        }
        scores = sorted({number >> 8 for number in seen.values()})
        assert prefixes(scripts) == scores
        wanted = {m: 1 + scores.index(number >> 8) for m, number in seen.items()}
        assert ranks(scripts, *members) == [wanted.get(m) for m in members]
