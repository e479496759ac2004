"""The coordinator of a federated training: a thread that gives clients orders and makes the next model of answers.

What must survive the manager is in `round_state`; an order that is under way is given again, and clients that have
answered it already are not asked twice.
"""

from __future__ import annotations

import logging
import queue
import random
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from jupyter_autotrain.core.federated import GLOBAL, FederatedSpec, RoundNews
from jupyter_autotrain.core.text_format import count
from jupyter_autotrain.manager.federated import aggregation, round_state
from jupyter_autotrain.manager.federated.aggregation import Update
from jupyter_autotrain.manager.federated.client_link import Answer, ClientJob, ClientLink, Joined, Message, Order

_LOOK_S = 0.05
_MOST_TRIES = 3
_log = logging.getLogger(__name__)


class Coordinator:
    """The rounds of one experiment.

    Args:
        experiment: Its id.
        spec: The training.
        folder: Where its state is kept.
        emit: Takes news.
    """

    def __init__(self, experiment: str, spec: FederatedSpec, folder: Path, emit: Callable[[RoundNews], None]) -> None:
        self._experiment = experiment
        self._spec = spec
        self._folder = folder
        self._emit = emit
        self._state = round_state.read_state(folder)
        for left in folder.glob(f"{experiment}-*"):  # by a manager that was killed while it took an answer
            left.unlink(missing_ok=True)
        self._weights, self._moments = round_state.read_model(folder, self._state) if self._state.round else ({}, {})
        self._inbox: queue.Queue[Message] = queue.Queue()
        self._jobs: dict[int, ClientJob] = {}
        self._links: dict[int, ClientLink] = {}
        self._expected = len(spec.clients)
        self._keys: dict[int, str] = {}  # of the clients that are ready
        self._told: dict[int, str] = {}  # the job that has the present order, by client
        self._updates: dict[int, Update] = {}
        self._refused: dict[int, str] = {}
        self._tries = 0
        self._began_s = time.monotonic()
        self._closed = threading.Event()

    @property
    def is_over(self) -> bool:
        """True when all rounds are made."""
        return self._state.round > self._spec.rounds

    @property
    def round(self) -> int:
        """The round under way."""
        return self._state.round

    def start(self) -> None:
        """Begin, or go on with the round under way."""
        if self._state.round > 1:
            self._emit(RoundNews(self._experiment, self._state.round - 1, self._state.metrics))
        threading.Thread(target=self._run, name=f"rounds-{self._experiment}", daemon=True).start()

    def set_clients(self, jobs: Mapping[int, ClientJob], expected: int) -> None:
        """Take the jobs that run now, by client, and how many clients there are with those that are to come."""
        self._expected = expected
        self._jobs = dict(jobs)

    def close(self) -> None:
        """End the thread."""
        self._closed.set()

    def _run(self) -> None:
        try:
            while not self._closed.is_set():
                self._follow_clients()
                self._take_messages()
                while self._advance():
                    continue
        except Exception as error:  # noqa: BLE001 - one bad training must not stop the manager
            _log.exception("%s: its rounds failed", self._experiment)
            failure = f"round {self.round} failed: {type(error).__name__}: {error}"
            self._emit(RoundNews(self._experiment, failure=failure))
        for link in self._links.values():
            link.close()

    def _follow_clients(self) -> None:
        jobs = self._jobs
        for number, link in list(self._links.items()):
            if number not in jobs or jobs[number].job_id != link.job.job_id:
                link.close()
                del self._links[number]
                self._keys.pop(number, None)
        for number, job in jobs.items():
            if number not in self._links:
                self._links[number] = ClientLink(job, self._folder, self._inbox)

    def _take_messages(self) -> None:
        try:
            message = self._inbox.get(timeout=_LOOK_S)
            while True:
                self._take(message)
                message = self._inbox.get_nowait()
        except queue.Empty:
            return

    def _take(self, message: Message) -> None:
        number = message.number
        if isinstance(message, Joined) and number in self._links:
            self._keys[number] = message.key
        elif isinstance(message, Answer) and self._is_wanted(message):
            self._take_answer(message)

    def _is_wanted(self, answer: Answer) -> bool:
        number = answer.number
        is_new = number not in self._updates and number not in self._refused
        return is_new and answer.order == self._state.order and number in self._state.members

    def _take_answer(self, answer: Answer) -> None:
        fault = answer.fault
        if answer.update is not None:
            is_masked = self._spec.secure and self._state.round > 0
            current = self._weights or answer.update.weights
            fault = aggregation.fault_of(self._spec, current, answer.update, is_masked=is_masked)
        if fault or answer.update is None:
            self._refuse({answer.number: fault})
        else:
            self._updates[answer.number] = answer.update

    def _refuse(self, faults: Mapping[int, str]) -> None:
        for number, fault in faults.items():
            self._updates.pop(number, None)
            self._refused[number] = fault
        if faults:
            told = {number: f"round {self.round}: this client {fault}; refused" for number, fault in faults.items()}
            self._emit(RoundNews(self._experiment, refused=told))

    def _advance(self) -> bool:
        """Do what can be done now: give orders, or end the round; tell whether more may follow."""
        if self.is_over:
            self._give(self._order("end"), tuple(self._keys))
            return False
        if not self._state.members:
            return self._begin()
        if self._has_other_keys():
            self._repeat()
            return True
        if self._is_late() and not self._spec.secure:
            self._add_ready()
        self._give(self._order("train" if self._state.round else "initial"), self._state.members)
        is_answered = self._is_answered()
        if is_answered:
            self._end_round()
        return is_answered

    def _begin(self) -> bool:
        """Choose the clients of the next order, when enough are ready; all that are to come, before the deadline."""
        ready = sorted(number for number in self._keys if number not in self._refused)
        possible = self._expected - len(self._refused)
        asked = self._spec.per_round if self._state.round else 1
        least = self._spec.min_clients if self._state.round else 1
        if possible < least and self._refused:
            self._try_again()
        if len(ready) < (least if self._is_late() else max(least, min(asked, possible))):
            return False
        if asked < len(ready):
            generator = random.Random(f"{self._experiment} {self._state.round}")
            ready = sorted(generator.sample(ready, asked))
        self._state.order += 1
        self._state.members = tuple(ready)
        self._state.keys = {str(number): self._keys[number] for number in ready}
        self._state.write(self._folder)
        self._told.clear()
        self._updates.clear()
        self._began_s = time.monotonic()
        return True

    def _has_other_keys(self) -> bool:
        """Tell whether a client that is still to answer cannot mask as the others do, as it has begun anew."""
        state = self._state
        if not self._spec.secure or not state.round:
            return False
        known = {number: self._keys[number] for number in state.members if number in self._keys}
        return any(key != state.keys.get(str(n)) for n, key in known.items() if n not in self._updates)

    def _add_ready(self) -> None:
        """Let clients take part that have come since the order, where those that have it are too few, or silent."""
        state = self._state
        others = sorted(set(self._keys) - set(state.members) - set(self._refused))
        if others and len(self._updates) < self._spec.min_clients:
            state.members = (*state.members, *others)
            state.write(self._folder)

    def _is_late(self) -> bool:
        deadline_s = self._spec.deadline_s
        return deadline_s is not None and time.monotonic() - self._began_s > deadline_s

    def _try_again(self) -> None:
        """Ask those again that were refused; a training in which they stay wrong ends."""
        self._tries += 1
        if self._tries >= _MOST_TRIES:
            why = "; ".join(f"client {number} {fault}" for number, fault in sorted(self._refused.items()))
            text = f"round {self.round} needs {count(self._spec.min_clients, 'good update')}: {why}"
            self._emit(RoundNews(self._experiment, failure=text))
            self._closed.set()
        self._refused.clear()

    def _order(self, kind: str) -> Order:
        state = self._state
        config: dict[str, object] = {}
        if self._spec.strategy == "fedprox":
            config["mu"] = self._spec.mu
        if self._spec.privacy is not None:
            config["clip"] = self._spec.privacy.clip
        if self._spec.secure and kind == "train":
            config["members"] = state.keys
        order_id = state.order + (kind == "end")
        weights = round_state.model_file(self._folder, state.round) if state.round else None
        shown = min(state.round, self._spec.rounds)
        return Order(order_id, kind, shown, self._spec.rounds, weights, state.sha256, config)

    def _give(self, order: Order, members: tuple[int, ...]) -> None:
        """Give an order to the clients that have not got it, in this run of theirs."""
        for number in members:
            link = self._links.get(number)
            mark = f"{order.kind} {order.id} {link.job.job_id}" if link else ""
            if link is not None and number in self._keys and self._told.get(number) != mark:
                self._told[number] = mark
                link.give(order)

    def _is_answered(self) -> bool:
        """Tell whether the round can end: all have answered, or enough of them and the others are gone or late."""
        pending = [n for n in self._state.members if n not in self._updates and n not in self._refused]
        if not pending:
            return True
        are_gone = not set(pending) & set(self._links)
        if self._state.round == 0:
            return bool(self._updates) or are_gone
        is_enough = len(self._updates) >= self._spec.min_clients or self._spec.secure
        return is_enough and (are_gone or self._is_late())

    def _end_round(self) -> None:
        state = self._state
        if state.round == 0:
            if self._updates:
                self._weights = next(iter(self._updates.values())).weights
                self._move_on({})
            else:
                self._repeat()
            return
        self._refuse(aggregation.outliers(self._spec, self._weights, self._updates))
        is_whole = len(self._updates) == len(state.members) or not self._spec.secure
        if len(self._updates) < self._spec.min_clients or not is_whole:
            if not is_whole and self._is_late():
                late = set(state.members) - set(self._updates) - set(self._refused)
                self._refuse(dict.fromkeys(sorted(late), "has not answered before the deadline"))
            self._repeat()
            return
        updates = [self._updates[number] for number in sorted(self._updates)]
        self._weights, self._moments = aggregation.aggregate(
            self._spec, state.round, self._weights, updates, self._moments
        )
        metrics = {f"{GLOBAL}{name}": value for name, value in aggregation.mean_metrics(updates).items()}
        metrics[f"{GLOBAL}clients"] = float(len(updates))
        if (spent := aggregation.epsilon(self._spec, state.round)) is not None:
            metrics[f"{GLOBAL}epsilon"] = spent
        self._move_on(metrics)
        self._emit(RoundNews(self._experiment, state.round - 1, metrics))

    def _repeat(self) -> None:
        """Let the round begin anew with the clients that are there and were not refused."""
        self._state.members = ()

    def _move_on(self, metrics: Mapping[str, float]) -> None:
        """Keep the new model, then that the next round is under way."""
        state = self._state
        state.sha256 = round_state.write_model(self._folder, state.round + 1, self._weights, self._moments)
        state.round += 1
        state.members = ()
        state.metrics = metrics
        state.write(self._folder)
        self._refused.clear()
        self._tries = 0
        self._began_s = time.monotonic()
