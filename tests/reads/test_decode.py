"""Answers are values that stay as they are, and scores keep each digit."""

import random
from decimal import Decimal

import pytest

from truerank.model import Board, BoardSpec, Entry, Order
from truerank.read.scores import SIGN, number_bytes, score_text, score_texts


def test_rows_of_answers_are_equal_by_what_they_say_and_stay_so() -> None:
    row = Entry(rank=1, member="ann", score="9")

    with pytest.raises(AttributeError):
        row.rank = 2  # type: ignore[misc]

    assert {row, Entry(rank=1, member="ann", score="9")} == {row}


@pytest.mark.parametrize("order", list(Order))
@pytest.mark.parametrize("decimals", [0, 1, 3, 9])
def test_scores_of_many_rows_are_exact_at_every_size(order: Order, decimals: int) -> None:
    draw = random.Random(f"{order} {decimals}")
    numbers = [0, 1, -1, 9, -10, 10**decimals, 1 - 10**decimals, SIGN - 1, -SIGN]
    numbers += [draw.randrange(-(2**bits), 2**bits) for bits in range(1, 64)]
    board = Board(id=1, group=1, spec=BoardSpec(key="b", order=order, decimals=decimals))
    keys = [number_bytes(order, number) + b"the tie-breaks" for number in numbers]

    texts = score_texts(board, keys)

    assert texts == [f"{Decimal(number).scaleb(-decimals):f}" for number in numbers]
    assert texts == [score_text(board, key) for key in keys]
