"""When a delivery that failed is tried again. Pure."""

import random
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Schedule:
    """5 s after the first attempt, and three times as long after each further one, up to 12 h.

    Each pause is up to a fifth longer or shorter, by chance: what failed together isn't repeated
    together.
    """

    attempts_max: int = 12
    first_s: float = 5.0
    growth: float = 3.0
    longest_s: float = 43_200.0
    receiver_s: float = 1.0  # a receiver that failed is left in peace; twice as long each time
    jitter: Callable[[], float] = random.random

    def pause_s(self, attempts: int, retry_after_s: float | None = None) -> float | None:
        """Seconds until the next attempt after so many; None: there is none.

        Args:
            attempts: that were made, from 1.
            retry_after_s: what the receiver asked for; it is heard where it is longer.
        """
        if attempts >= self.attempts_max:
            return None
        usual_s = min(self.first_s * self.growth ** min(attempts - 1, 30), self.longest_s)
        asked_s = min(retry_after_s or 0.0, self.longest_s)
        return max(usual_s * (0.8 + 0.4 * self.jitter()), asked_s)
