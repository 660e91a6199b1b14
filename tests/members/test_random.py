"""A random life of a club, against a plain model, in both sources after every settled step."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.members.conftest import Club
from truerank.command import freezing

WHO: Any = {"actor": "op", "reason": "why"}
UNSWEPT = "SELECT 1 FROM truerank.erasure WHERE swept_xid IS NULL LIMIT 1"
MEMBERS = ("ann", "bob", "cid", "dan")
BOARDS = ("b", "best")


@dataclass
class Model:
    """The same club in plain Python: who has which events, and what was said of whom."""

    events: list[tuple[str, str, int]] = field(default_factory=list)  # board, member, value
    hides: set[tuple[str | None, str]] = field(default_factory=set)
    bans: set[tuple[str | None, str]] = field(default_factory=set)
    owners: dict[str, str] = field(default_factory=dict)
    scored: set[str] = field(default_factory=set)  # ids with events, be they ended
    frozen: dict[str, dict[str, int]] = field(default_factory=dict)  # by board: scores of back then

    def owner(self, member: str) -> str:
        return self.owners.get(member, member)

    def names(self, owner: str) -> set[str]:
        return {owner, *(m for m, o in self.owners.items() if o == owner)}

    def score(self, board: str, member: str, value: int) -> None:
        self.events.append((board, self.owner(member), value))
        self.scored.add(member)

    def says(self, action: str, member: str, board: str | None) -> None:
        said = (board, self.owner(member))
        match action:
            case "hide":
                self.hides.add(said)
            case "show":
                self.hides.discard(said)
            case "ban":
                self.bans.add(said)
            case "unban":
                self.bans.discard(said)
            case _:
                self.events = [
                    event
                    for event in self.events
                    if event[1] != said[1] or board not in {None, event[0]}
                ]
                for frozen in (
                    self.frozen.values() if board is None else [self.frozen.get(board, {})]
                ):
                    frozen.pop(said[1], None)
                if action == "delete":
                    ended = {None, *BOARDS} if board is None else {board}
                    gone = {(scope, said[1]) for scope in ended}
                    self.hides -= gone
                    self.bans -= gone

    def merges(self, member: str, into: str) -> bool:
        """Whether the merge is possible."""
        into = self.owner(into)
        if into == member or self.owners.get(member, into) != into:
            return False
        if self.owners.get(member) != into:
            carried = [self.bans] if self.scored & self.names(into) else [self.bans, self.hides]
            for said in carried:
                said.update([(scope, into) for scope, m in said if m == member])
        self.owners = {m: into if o == member else o for m, o in self.owners.items()}
        self.owners[member] = into
        self.events = [(b, into if m == member else m, v) for b, m, v in self.events]
        for frozen in self.frozen.values():
            if member in frozen and into not in frozen:
                frozen[into] = frozen.pop(member)
        return True

    def erases(self, member: str) -> None:
        """All ids of the person begin anew, each for itself."""
        owner = self.owner(member)
        self.says("delete", owner, None)
        names = self.names(owner)
        self.scored -= names
        self.owners = {m: o for m, o in self.owners.items() if o != owner}
        self.hides = {said for said in self.hides if said[1] not in names}
        self.bans = {said for said in self.bans if said[1] not in names}
        for frozen in self.frozen.values():
            for name in names:
                frozen.pop(name, None)

    def scores(self, board: str) -> dict[str, int]:
        """Of everybody with events, in sight or not."""
        values: dict[str, list[int]] = {}
        for named, member, value in self.events:
            if named == board:
                values.setdefault(member, []).append(value)
        return {m: sum(v) if board == "b" else max(v) for m, v in values.items()}

    def shown(self, board: str) -> dict[str, tuple[int, str]]:
        """Rank and score of everybody with a place."""
        said = {m for scope, m in self.hides | self.bans if scope in {None, board}}
        scores = {
            member: score
            for member, score in self.frozen.get(board, self.scores(board)).items()
            if member not in said and member not in self.owners
        }
        return {
            m: (1 + sum(other > score for other in scores.values()), str(score))
            for m, score in scores.items()
        }


SCORES = st.fixed_dictionaries(
    {
        "do": st.just("score"),
        "board": st.sampled_from(BOARDS),
        "member": st.sampled_from(MEMBERS),
        "value": st.integers(-2, 3),
    }
)
WORDS = st.fixed_dictionaries(
    {
        "do": st.sampled_from(["hide", "show", "ban", "unban", "reset", "delete"]),
        "board": st.sampled_from([None, *BOARDS]),
        "member": st.sampled_from(MEMBERS),
    }
)
MERGES = st.fixed_dictionaries(
    {"do": st.just("merge"), "member": st.sampled_from(MEMBERS), "into": st.sampled_from(MEMBERS)}
)
ERASURES = st.fixed_dictionaries({"do": st.just("erase"), "member": st.sampled_from(MEMBERS)})
FREEZES = st.fixed_dictionaries(
    {"do": st.sampled_from(["freeze", "reveal"]), "board": st.sampled_from(BOARDS)}
)
OTHERS = st.sampled_from(["step", "settle", "flush", "lose"]).map(lambda do: {"do": do})


_numbers = count(1)


@dataclass
class Life:
    """One example: boards and members of its own, for what came before stays."""

    club: Club
    model: Model = field(default_factory=Model)
    number: int = field(default_factory=lambda: next(_numbers))

    def __post_init__(self) -> None:
        self.club.client.create_board(self.named("b"), seasons=["all", "day"])
        self.club.client.create_board(self.named("best"), operator="best", seasons=["all", "month"])

    def named(self, name: str) -> str:
        return f"{name} {self.number}"

    def check(self) -> None:
        self.club.client.run(freezing.work())
        self.club.pipeline.settle(self.club.projector)
        for board in BOARDS:
            shown = self.club.shown(self.named(board))
            assert {m.split()[0]: row for m, row in shown.items()} == self.model.shown(board)

    def does(self, act: Mapping[str, Any]) -> None:  # noqa: C901 - one case per act
        club, model = self.club, self.model
        member = self.named(act.get("member", ""))
        match act["do"]:
            case "score":
                club.pipeline.submit(self.named(act["board"]), {member: act["value"]})
                model.score(act["board"], act["member"], act["value"])
            case "merge":
                ((outcome,),) = club.pipeline.conn.execute(
                    "SELECT outcome FROM truerank.merge_members(%s, %s, 'op', 'why')",
                    (member, self.named(act["into"])),
                ).fetchall()
                possible = model.merges(act["member"], act["into"])
                assert (outcome in {"changed", "same"}) is possible
            case "erase":
                club.pipeline.conn.execute(
                    "SELECT truerank.erase_member(%s, 'op', 'why')", (member,)
                )
                model.erases(act["member"])
                # What is submitted until then is out of sight.
                while club.pipeline.conn.execute(UNSWEPT).fetchone():
                    club.pipeline.conn.execute("SELECT truerank.sweep_erasures(100)")
            case "freeze":
                club.client.freeze_season(self.named(act["board"]), "all", **WHO)
                model.frozen.setdefault(act["board"], model.scores(act["board"]))
            case "reveal":
                revealed = club.client.reveal_season(self.named(act["board"]), "all", **WHO)
                assert revealed is (model.frozen.pop(act["board"], None) is not None)
            case "step":
                club.projector.step()
            case "settle":
                self.check()
            case "flush":
                club.pipeline.redis.flushdb()
                club.projector = club.pipeline.projector(scan_rows_max=2, call_rows_max=2)
            case "lose":
                generation = club.pipeline.generation()
                if generation is not None:
                    copy = club.pipeline.keys().generation(generation)
                    club.pipeline.redis.delete(copy.counts, copy.members)
                # The first step of a worker looks at every copy.
                club.projector = club.pipeline.projector()
            case word:
                board = act["board"] and self.named(act["board"])
                club.does(word, member, board=board)
                model.says(word, act["member"], act["board"])


@given(
    acts=st.lists(
        st.one_of(SCORES, SCORES, WORDS, WORDS, MERGES, ERASURES, FREEZES, OTHERS),
        min_size=5,
        max_size=25,
    )
)
@settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_random_life_ends_as_a_plain_model_says(
    club: Club, acts: list[Mapping[str, Any]]
) -> None:
    life = Life(club)
    for act in acts:
        life.does(act)

    life.check()
    while club.pipeline.conn.execute("SELECT 1 FROM truerank.merging LIMIT 1").fetchone():
        club.pipeline.conn.execute("SELECT truerank.sweep_members(100)")
    life.check()
