"""When a model has more requests than it can answer, and how few are let in then.

A queue takes up bursts, but under lasting overload it only makes every answer late: it is always full. So it is as long
as `capacity` until requests are refused at least as fast as others are let in for longer than a full queue takes, and
from then on only what runs together in the time of one request is let in, and as many that wait for it: none, where
batches gain nothing, since reading a second request delays the first. What waits for longer is told to come again.
Where more are refused than let in by a whole queue, that is known at once. After some time a longer queue is tried,
twice as long with each batch up to all of it, and stays open where no more are refused than let in: under lasting
overload that is refuted before many requests wait.

Source: the difference between a good queue, which drains, and a bad one, which stands, is that of Nichols and Jacobson,
Controlling Queue Delay, ACM Queue 10 (2012).
"""

from __future__ import annotations

import time
from collections.abc import Callable

_SMOOTH = 0.2  # weight of the newest batch in the mean times
_LEAST_REFUSED = 8  # requests, before they say anything
_LEAST_SECONDS, _MOST_SECONDS = 0.1, 1.0  # of refusals, before they are overload
_FIRST_TRIAL, _LAST_TRIAL = (
    1.0,
    16.0,
)  # seconds of overload before the whole queue is tried; twice as many each time
_CALM_SECONDS = 1.0  # without a refusal, after which there is no overload any more
_FIRST_LENGTH = 4  # of the queue in a trial
_NO_LONGER = 1.1  # times one item's seconds: a batch that takes no longer is free


class LoadControl:
    """How many requests of a model may be under way.

    It is told of what is let in, refused and done, and is cheap to ask. Only hints of how busy a model is are kept, so
    several threads may use it without a lock.

    Args:
        capacity: Requests under way at most.
        longest_wait: Seconds that a request may have to wait for those before it.
        seconds_alone: Of a request that waits for no other, where that is known before the first.
        clock: Seconds that only grow.
    """

    def __init__(
        self,
        capacity: int,
        longest_wait: float,
        seconds_alone: float = 0.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.capacity, self.longest_wait, self._clock = capacity, longest_wait, clock
        self.seconds_alone = seconds_alone
        self.seconds_per_item = 0.0
        self.is_overloaded = False
        self._seconds_of: dict[int, float] = {}  # a batch, by its items
        self._since = 0.0  # the first refusal of those that are counted, or the start of a trial
        self._admitted = self._refused = 0  # since then
        self._is_trial = False
        self._length = capacity  # of the queue while it is tried
        self._last_refusal = 0.0
        self._trial = 0.0  # when the next one begins
        self._pause = _FIRST_TRIAL

    @property
    def seconds_each(self) -> float:
        """Of a request among others; before any has run, of one that waits for no other: the first burst is bounded by
        the wait, too."""
        return self.seconds_per_item or self.seconds_alone

    def is_full(self, admitted: int, waiting: int) -> bool:
        """Whether a request that comes now is refused.

        Args:
            admitted: Requests under way.
            waiting: Items that are queued or run.
        """
        if admitted >= self.capacity:
            return True
        if admitted == 0:
            return False
        wait = max(admitted, waiting) * self.seconds_each
        if wait > self.longest_wait:
            return True
        if not self._check_overload():
            return self._is_trial and admitted >= self._length
        size = self._free_size()
        return admitted >= (1 if size == 1 else 2 * size)

    def batch_limit(self, size: int) -> int:
        """Items that run together, of at most `size`: under overload no more than take the time of one."""
        return min(size, self._free_size()) if self.is_overloaded else size

    def is_stale(self, waited: float) -> bool:
        """Whether an item that has waited so many seconds for its turn is better asked for again."""
        longest = 2 * max(self.seconds_alone, self.seconds_per_item)
        return self.is_overloaded and 0 < longest < waited  # 0: nothing has run yet that tells

    def note_admitted(self) -> None:
        """A request was let in."""
        self._admitted += 1

    def note_refused(self) -> None:
        """A request was refused."""
        now = self._clock()
        self._last_refusal = now
        if self.is_overloaded:
            return
        if not self._refused and not self._is_trial:
            self._since, self._admitted = now, 0
        self._refused += 1
        is_heavy = self._refused >= self._admitted + self.capacity
        if self._is_trial:
            is_open = self._length >= self.capacity
            if is_heavy or (is_open and self._refused >= max(self._admitted, _LEAST_REFUSED)):
                self._pause = min(2 * self._pause, _LAST_TRIAL)
                self._begin(now)
            elif now - self._since > self._pause:
                self._is_trial, self._refused = False, 0
                self._pause = _FIRST_TRIAL
            return
        full_queue = 0.0 if is_heavy else self.capacity * self.seconds_each
        if now - self._since < min(max(full_queue, _LEAST_SECONDS), _MOST_SECONDS):
            return
        if self._refused >= _LEAST_REFUSED and self._refused >= self._admitted:
            self._begin(now)
        else:
            self._refused = 0

    def note_batch(self, seconds: float, count: int, was_alone: bool) -> None:
        """A batch has run.

        Args:
            seconds: From the end of the batch before, or from when the first of its items came where that is later, to
                its end: others are read and written in this time, too.
            count: Its items.
            was_alone: Whether it was one item, and no other request was under way.
        """
        if self._is_trial and self._length < self.capacity:
            self._length *= 2
            if self._length >= self.capacity:  # those that were refused before came to a shorter queue
                self._since, self._admitted, self._refused = self._clock(), 0, 0
        self.seconds_per_item = _mean(self.seconds_per_item, seconds / count)
        self._seconds_of[count] = _mean(self._seconds_of.get(count, 0.0), seconds)
        if was_alone and not self.is_overloaded:
            self.seconds_alone = _mean(self.seconds_alone, seconds)

    def _free_size(self) -> int:
        """Items of the largest batch that takes no longer than one item."""
        longest = _NO_LONGER * self.seconds_alone
        return max(
            (count for count, seconds in tuple(self._seconds_of.items()) if seconds <= longest), default=1
        )

    def _begin(self, now: float) -> None:
        self.is_overloaded, self._is_trial = True, False
        self._refused = 0
        self._trial = now + self._pause

    def _check_overload(self) -> bool:
        """Whether there is overload still; where there is none any more, or it is time to try, the queue is open."""
        if not self.is_overloaded:
            return False
        now = self._clock()
        is_calm = now - self._last_refusal >= _CALM_SECONDS
        if now < self._trial and not is_calm:
            return True
        self.is_overloaded, self._is_trial = False, True
        self._length = self.capacity if is_calm else _FIRST_LENGTH
        self._since, self._admitted, self._refused = now, 0, 0
        return False


def _mean(before: float, newest: float) -> float:
    return before + _SMOOTH * (newest - before) if before else newest
