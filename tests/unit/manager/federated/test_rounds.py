"""The rounds of clients that train well, lie, vanish, come back or are slow, and of a manager that is killed."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from jupyter_autotrain.agent.ranks.federated.rounds import Round
from jupyter_autotrain.agent.ranks.federated.weights import Weights
from jupyter_autotrain.core.federated import FederatedSpec, Privacy

from .training import Train, Training, spec_of, until

Begin = Callable[[FederatedSpec], Training]


@pytest.fixture
def begin(tmp_path: Path) -> Iterator[Begin]:
    made: list[Training] = []

    def of(spec: FederatedSpec) -> Training:
        made.append(Training(tmp_path, spec))
        return made[-1]

    yield of
    for training in made:
        training.close()


def adds(value: float) -> Train:
    def train(model: Weights, _: Round) -> None:
        model["w"] += value
        model["count"] += 1

    return train


def test_the_global_model_is_the_mean_of_all_clients_by_their_samples(begin: Begin) -> None:
    training = begin(spec_of(3))
    for number, samples in ((1, 1), (2, 1), (3, 2)):
        training.client(number, adds(number), samples=samples)
    found = training.end()
    np.testing.assert_allclose(found["w"], 3 * (1 + 2 + 2 * 3) / 4)
    assert found["count"] == 3
    ended = [news for news in training.told() if news.round]
    assert [news.round for news in ended] == [1, 2, 3]
    assert ended[0].metrics == {"global_loss": (1 + 2 + 2 * 3) / 4, "global_clients": 3.0}
    for client in training.clients.values():
        np.testing.assert_array_equal(client.model["w"], found["w"])


def test_of_a_fraction_of_the_clients_others_take_part_in_other_rounds(begin: Begin) -> None:
    training = begin(spec_of(4, rounds=12, fraction=0.5))
    taken: set[int] = set()
    for number in range(1, 5):
        training.client(number, lambda model, _, number=number: taken.add(number))  # type: ignore[misc]
    training.end()
    assert {news.metrics["global_clients"] for news in training.told() if news.round} == {2.0}
    assert taken == {1, 2, 3, 4}


def lies_with(change: Callable[[Weights], object]) -> Train:
    def train(model: Weights, _: Round) -> None:
        change(model)

    return train


def reshape(model: Weights) -> None:
    model["w"] = np.zeros((2, 2))


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda model: model["w"].fill(np.nan), "values that are not finite"),
        (lambda model: model["w"].fill(1e9), "times the median"),
        (reshape, "of shape (2, 2), expected (3,)"),
        (lambda model: model.pop("w"), "sent no weight 'w'"),
        (lambda model: model.update(more=np.zeros(1)), "which the model does not have"),
        (lambda model: model.update(w=model["w"].astype(np.float32)), "as float32, expected float64"),
    ],
)
def test_what_a_client_that_lies_sends_is_refused_with_the_reason_and_the_others_go_on(
    begin: Begin, change: Callable[[Weights], Any], says: str
) -> None:
    training = begin(spec_of(4, rounds=1))
    for number in (1, 2, 3):
        training.client(number, adds(1))
    training.client(4, lies_with(change))
    until(lambda: training.coordinator.is_over)
    np.testing.assert_allclose(training.model()["w"], 1)
    ((number, text),) = training.refusals()
    assert number == 4
    assert says in text
    assert text.endswith("; refused")


def test_a_training_whose_clients_stay_wrong_ends_and_says_what_they_sent(begin: Begin) -> None:
    training = begin(spec_of(2))
    training.client(1, adds(1))
    training.client(2, lies_with(lambda model: model["w"].fill(np.inf)))
    until(lambda: any(news.failure for news in training.told()))
    (failure,) = [news.failure for news in training.told() if news.failure]
    assert failure.startswith("round 1 needs 2 good updates: client 2 sent weight 'w' with values that are not finite")


def test_the_round_goes_on_without_a_client_that_is_gone_and_with_it_when_it_is_back(begin: Begin) -> None:
    training = begin(spec_of(3, rounds=2))
    training.client(1, adds(1))
    training.client(2, adds(1))
    started = threading.Event()
    stopped: list[threading.Event] = []

    def hangs(model: Weights, _: Round) -> None:
        started.set()
        until(lambda: bool(stopped) and stopped[0].is_set())
        raise SystemExit

    stopped.append(training.client(3, hangs).stop)
    assert started.wait(60)
    training.vanish(3)
    until(lambda: training.coordinator.round == 2)
    training.client(3, adds(4), attempt=2)
    np.testing.assert_allclose(training.end()["w"], 1 + (1 + 1 + 4) / 3)
    assert [news.metrics["global_clients"] for news in training.told() if news.round] == [2.0, 3.0]


def test_a_round_does_not_wait_for_a_slow_client_beyond_its_deadline(begin: Begin) -> None:
    training = begin(spec_of(3, rounds=2, deadline_s=0.3))
    may_end = threading.Event()

    def waits(model: Weights, one: Round) -> None:
        if one.number == 1:
            may_end.wait()
        model["w"] += 100

    training.client(1, adds(1))
    training.client(2, adds(1))
    training.client(3, waits)
    until(lambda: training.coordinator.round > 1)
    np.testing.assert_allclose(training.model()["w"], 1)
    may_end.set()
    training.end()


def test_the_next_manager_goes_on_with_the_round_under_way_and_asks_no_client_twice(begin: Begin) -> None:
    training = begin(spec_of(2, rounds=4))
    may_go_on = threading.Event()
    trained: list[int] = []

    def second(model: Weights, one: Round) -> None:
        if one.number == 3:
            may_go_on.wait()
        model["w"] += 1

    def first(model: Weights, one: Round) -> None:
        trained.append(one.number)
        model["w"] += 1

    training.client(1, first)
    training.client(2, second)
    until(lambda: trained == [1, 2, 3] and training.coordinator.round == 3)
    training.kill()
    training.begin()
    may_go_on.set()
    np.testing.assert_allclose(training.end()["w"], 4)
    assert trained == [1, 2, 3, 4]
    assert {news.round for news in training.told()} == {1, 2, 3, 4}


def test_masked_updates_have_the_mean_of_plain_ones_and_show_nothing_alone(begin: Begin, tmp_path: Path) -> None:
    training = begin(spec_of(3, min_clients=3, secure=True))
    for number in (1, 2, 3):
        training.client(number, adds(number), samples=number)
    np.testing.assert_allclose(training.end()["w"], 3 * (1 + 4 + 9) / 6, atol=1e-8)
    sent = np.load(next((tmp_path / "trial-1-1" / "updates").glob("*.npz")))["w:w"]
    assert sent.dtype == np.uint64
    assert len(set(sent >> np.uint64(40))) == 3  # three equal weights look like any numbers


def test_a_masked_round_is_made_again_without_the_client_that_left_it(begin: Begin) -> None:
    training = begin(spec_of(4, rounds=1, min_clients=3, secure=True))
    started = threading.Event()
    stopped: list[threading.Event] = []

    def hangs(model: Weights, _: Round) -> None:
        started.set()
        until(lambda: bool(stopped) and stopped[0].is_set())
        raise SystemExit

    for number in (1, 2, 3):
        training.client(number, adds(1))
    stopped.append(training.client(4, hangs).stop)
    assert started.wait(60)
    training.vanish(4, expected=3)
    np.testing.assert_allclose(training.end()["w"], 1, atol=1e-8)


def test_a_client_that_comes_back_with_another_key_does_not_spoil_a_masked_round(begin: Begin) -> None:
    training = begin(spec_of(3, rounds=1, min_clients=3, secure=True))
    started = threading.Event()
    stopped: list[threading.Event] = []

    def hangs(model: Weights, _: Round) -> None:
        started.set()
        until(lambda: bool(stopped) and stopped[0].is_set())
        raise SystemExit

    training.client(1, adds(1))
    training.client(2, adds(2))
    stopped.append(training.client(3, hangs).stop)
    assert started.wait(60)
    until(lambda: all(list(training.directory(n, 1).glob("updates/*.npz")) for n in (1, 2)))
    training.vanish(3)
    training.client(3, adds(3), attempt=2)
    np.testing.assert_allclose(training.end()["w"], 2.0, atol=1e-8)


def test_a_masked_round_is_made_without_a_client_that_is_late(begin: Begin) -> None:
    training = begin(spec_of(4, rounds=1, min_clients=3, secure=True, deadline_s=8.0))
    may_end = threading.Event()

    def waits(_: Weights, __: Round) -> None:
        may_end.wait()

    training.client(4, waits)
    for number in (1, 2, 3):
        training.client(number, adds(1))
    until(lambda: training.coordinator.is_over)
    np.testing.assert_allclose(training.model()["w"], 1.0, atol=1e-8)
    may_end.set()
    training.end()


def test_updates_are_clipped_and_what_noise_spends_is_a_curve(begin: Begin) -> None:
    training = begin(spec_of(2, rounds=1, privacy=Privacy(clip=0.5)))
    training.client(1, adds(100))
    training.client(2, adds(100))
    assert np.linalg.norm(training.end()["w"]) == pytest.approx(0.5)


def test_masked_and_clipped_updates_count_alike_however_many_samples_they_are_of(begin: Begin) -> None:
    training = begin(spec_of(3, rounds=1, min_clients=3, secure=True, privacy=Privacy(clip=100.0)))
    for number in (1, 2, 3):
        training.client(number, adds(number), samples=10 * number)
    np.testing.assert_allclose(training.end()["w"], 2.0, atol=1e-8)


def test_noise_has_its_deviation_and_its_epsilon_grows(begin: Begin) -> None:
    pytest.importorskip("dp_accounting", reason="package dp-accounting is not installed")
    training = begin(spec_of(2, rounds=2, privacy=Privacy(clip=1.0, noise=2.0)))
    training.client(1, adds(0))
    training.client(2, adds(0))
    assert 0 < np.linalg.norm(training.end()["w"]) < 20
    spent = [news.metrics["global_epsilon"] for news in training.told() if news.round]
    assert 0 < spent[0] < spent[1] < 10


@pytest.mark.parametrize("strategy", ["fedadam", "fedyogi", "median", "trimmed_mean", "krum"])
def test_strategies_of_flower_make_the_model(begin: Begin, strategy: str) -> None:
    pytest.importorskip("flwr", reason="package flwr is not installed")
    training = begin(spec_of(3, rounds=1, strategy=strategy, most_norm=1e6))
    for number, value in ((1, 1.0), (2, 1.0), (3, 7.0)):
        training.client(number, adds(value))
    found = training.end()["w"]
    expected = {"fedadam": 0.1, "fedyogi": 0.1, "median": 1.0, "trimmed_mean": 3.0, "krum": 1.0}[strategy]
    np.testing.assert_allclose(found, expected, rtol=0.7 if "fed" in strategy else 1e-9)


def test_a_strategy_with_moments_goes_on_with_them_after_a_kill(tmp_path: Path) -> None:
    pytest.importorskip("flwr", reason="package flwr is not installed")
    found = []
    for is_killed in (False, True):
        folder = tmp_path / str(is_killed)
        folder.mkdir()
        training = Training(folder, spec_of(1, rounds=3, min_clients=1, strategy="fedadam"))
        may_go_on = threading.Event()

        def train(model: Weights, one: Round, may_go_on: threading.Event = may_go_on) -> None:
            if one.number == 2:
                may_go_on.wait()
            model["w"] += one.number

        training.client(1, train)
        until(lambda training=training: training.coordinator.round == 2)  # type: ignore[misc] # bound at once
        if is_killed:
            training.kill()
            training.begin()
        may_go_on.set()
        found.append(training.end()["w"])
        training.close()
    np.testing.assert_array_equal(found[0], found[1])


def test_fedprox_draws_clients_to_the_global_model(begin: Begin) -> None:
    training = begin(spec_of(1, rounds=2, min_clients=1, strategy="fedprox", mu=0.5))
    penalties: list[float] = []

    def train(model: Weights, one: Round) -> None:
        model["w"] += 2
        penalties.append(one.penalty())

    training.client(1, train)
    training.end()
    assert penalties == [0.25 * 12, 0.25 * 12]
