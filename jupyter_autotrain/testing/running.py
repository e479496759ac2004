"""The backend contract, first part: asking, submitting, reading."""

from __future__ import annotations

import json
import pickle
import threading

import pytest

from jupyter_autotrain.agent import wire
from jupyter_autotrain.agent.states import TrialState
from jupyter_autotrain.core.backend import Backend, BackendContext, Cursor, JobRef
from jupyter_autotrain.core.home import Home
from jupyter_autotrain.core.spec import NodePlacement, Placement, Resources, TrialSource
from jupyter_autotrain.testing.bundles import trial_of, wait_until, write_bundle
from jupyter_autotrain.testing.harness import WAITS, BackendHarness


class RunningContract(BackendHarness):
    """The contract of every backend about a trial that goes well."""

    def test_a_usable_backend_says_so_in_one_sentence(self, backend: Backend) -> None:
        probe = backend.probe()
        assert probe.usable
        assert probe.reason.endswith(".")
        assert "\n" not in probe.reason

    def test_the_inventory_names_each_node_once_and_says_how_limits_are_kept(self, backend: Backend) -> None:
        inventory = backend.discover()
        names = [node.name for node in inventory.nodes]
        assert names
        assert len(set(names)) == len(names)
        assert inventory.limits

    def test_what_a_node_does_not_know_is_none_and_never_zero(self, backend: Backend) -> None:
        for node in backend.discover().nodes:
            assert node.cpus is None or node.cpus > 0
            assert node.memory_bytes is None or node.memory_bytes > 1 << 20
            assert all(gpu.memory_bytes is None or gpu.memory_bytes > 0 for gpu in node.accelerators)

    def test_rendering_is_pure(self, backend: Backend, home: Home) -> None:
        trial = trial_of(home, "", params={"lr": 0.1})
        before = sorted(home.root.rglob("*"))
        first = backend.render(trial, Placement())
        assert backend.render(trial, Placement()) == first
        assert sorted(home.root.rglob("*")) == before

    def test_what_is_rendered_holds_the_parameters_but_no_secret_value(
        self, backend: Backend, home: Home, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("API_KEY", "hunter2-hunter2")
        plan = backend.render(trial_of(home, "", params={"lr": 0.125}, secrets=("API_KEY",)), Placement())
        text = f"{plan}"
        assert "0.125" in text
        assert "API_KEY" in text
        assert "hunter2" not in text

    def test_a_cell_that_ends_well_succeeds(self, backend: Backend, home: Home) -> None:
        _, status = self.run(backend, home, "x = 1")
        assert (status.state, status.reason) == (TrialState.SUCCEEDED, "")

    def test_parameters_reach_the_cell_in_all_three_ways(self, backend: Backend, home: Home) -> None:
        ref, _ = self.run(backend, home, "print(params.lr, params['lr'], lr)", params={"lr": 0.25})
        assert self.read(backend, ref, wire.STDOUT) == b"0.25 0.25 0.25\n"

    def test_metrics_come_in_order_with_steps_counted_when_not_given(self, backend: Backend, home: Home) -> None:
        ref, _ = self.run(backend, home, "for k in range(3): report(loss=k / 2)\nreport(step=9, loss=float('nan'))")
        assert self.points(backend, ref) == [
            (0, {"loss": 0.0}),
            (1, {"loss": 0.5}),
            (2, {"loss": 1.0}),
            (9, {"loss": None}),
        ]

    def test_the_first_frame_tells_the_version_of_the_wire(self, backend: Backend, home: Home) -> None:
        ref, _ = self.run(backend, home, "report(loss=1)")
        assert json.loads(self.read(backend, ref, wire.METRICS).splitlines()[0]) == ["v", wire.VERSION]

    def test_stdout_and_stderr_are_kept_apart(self, backend: Backend, home: Home) -> None:
        ref, _ = self.run(backend, home, "import sys\nprint('out')\nprint('err', file=sys.stderr)")
        assert self.read(backend, ref, wire.STDOUT) == b"out\n"
        assert self.read(backend, ref, wire.STDERR) == b"err\n"

    def test_a_cursor_gives_only_what_is_new(self, backend: Backend, home: Home) -> None:
        ref, _ = self.run(backend, home, "print('one')\nprint('two')")
        assert self.read(backend, ref, wire.STDOUT, 4) == b"two\n"
        assert self.read(backend, ref, wire.STDOUT, 8) == b""

    def test_several_streams_are_read_in_one_call_and_in_order(self, backend: Backend, home: Home) -> None:
        ref, _ = self.run(backend, home, "print('out')\nreport(loss=1)")
        cursors = [Cursor(ref, wire.METRICS, 0), Cursor(ref, wire.STDOUT, 1)]
        chunks = backend.read(cursors)
        assert [chunk.cursor for chunk in chunks] == cursors
        assert b'"loss"' in chunks[0].data
        assert chunks[1].data == b"ut\n"

    def test_a_read_is_bounded_and_goes_on_where_it_stopped(self, backend: Backend, home: Home) -> None:
        ref, _ = self.run(backend, home, "import sys\nsys.stdout.write('x' * (5 << 20) + 'end')")
        first = self.read(backend, ref, wire.STDOUT)
        assert len(first) == 4 << 20
        assert self.read(backend, ref, wire.STDOUT, len(first)).endswith(b"end")

    def test_the_same_trial_submitted_twice_runs_once(self, backend: Backend, home: Home) -> None:
        trial = trial_of(home, "print('ran')")
        first = backend.submit(trial, Placement(), {})
        self.finish(backend, first)
        assert self.make(BackendContext(home)).submit(trial, Placement(), {}) == first
        self.finish(backend, first)
        assert self.read(backend, first, wire.STDOUT) == b"ran\n"

    def test_two_starters_at_once_start_a_trial_once(self, backend: Backend, home: Home) -> None:
        self.needs_background(backend)
        trial = trial_of(home, "print('ran')")
        starters = [
            threading.Thread(target=lambda: self.make(BackendContext(home)).submit(trial, Placement(), {}))
            for _ in range(4)
        ]
        for starter in starters:
            starter.start()
        for starter in starters:
            starter.join()
        ref = backend.submit(trial, Placement(), {})
        assert self.finish(backend, ref).state is TrialState.SUCCEEDED
        assert self.read(backend, ref, wire.STDOUT) == b"ran\n"

    def test_a_fresh_instance_finds_the_job_again(self, backend: Backend, home: Home) -> None:
        ref, status = self.run(backend, home, "print('kept')")
        backend.close()
        fresh = self.make(BackendContext(home))
        assert self.status(fresh, ref).state is status.state
        assert self.read(fresh, ref, wire.STDOUT) == b"kept\n"

    def test_a_running_job_goes_on_after_close(self, backend: Backend, home: Home) -> None:
        self.needs_background(backend)
        ref = self.start(backend, home, WAITS)
        self.begun(backend, ref)
        backend.close()
        fresh = self.make(BackendContext(home))
        wait_until(lambda: self.status(fresh, ref).state is TrialState.RUNNING, "the job, by another instance")
        fresh.put(ref, wire.STOP_FILE, b"")
        assert self.finish(fresh, ref).state is TrialState.EARLY_STOPPED

    def test_an_unknown_job_is_lost_with_a_reason_and_has_no_output(self, backend: Backend) -> None:
        ref = JobRef(backend.name, "nobody-1-1")
        status = self.status(backend, ref)
        assert status.state is TrialState.LOST
        assert "nobody-1-1" in status.reason
        assert self.read(backend, ref, wire.STDOUT) == b""

    def test_one_poll_answers_for_all_in_order(self, backend: Backend, home: Home) -> None:
        refs = [self.start(backend, home, "", number=number) for number in (1, 2, 3)]
        assert [status.ref for status in backend.poll(refs[::-1])] == refs[::-1]
        for ref in refs:
            self.finish(backend, ref)

    def test_a_status_is_whole_whenever_it_is_asked_for(self, backend: Backend, home: Home) -> None:
        ref = self.start(backend, home, "report(loss=1)")
        seen = [TrialState.PREPARING]

        def ask() -> bool:
            state = self.status(backend, ref).state
            if state is not seen[-1]:
                seen.append(state)
            return state.is_final

        wait_until(ask, f"the end of {ref.job_id}")
        order = [TrialState.PREPARING, TrialState.RUNNING, TrialState.SUCCEEDED]
        assert seen == sorted(seen, key=order.index)

    def test_what_a_trial_uses_is_a_stream_of_its_own(self, backend: Backend, home: Home) -> None:
        self.needs_background(backend)
        ref = self.start(backend, home, "sum(range(5_000_000))\n" + WAITS)
        line = wait_until(lambda: self.read(backend, ref, wire.USAGE).partition(b"\n")[0], "a look at the trial")
        seconds, cpu_percent, memory_bytes, *_ = json.loads(line)
        assert 1.0 <= seconds < 60.0
        assert cpu_percent > 0.0
        assert memory_bytes > 1 << 20
        backend.put(ref, wire.STOP_FILE, b"")
        self.finish(backend, ref)
        assert self.read(backend, ref, wire.USAGE).startswith(line)

    def test_a_file_put_there_is_seen_by_the_trial(self, backend: Backend, home: Home) -> None:
        self.needs_background(backend)
        ref = self.start(backend, home, WAITS)
        self.begun(backend, ref)
        backend.put(ref, wire.STOP_FILE, b"No better than the median.")
        status = self.finish(backend, ref)
        assert (status.state, status.reason) == (TrialState.EARLY_STOPPED, "No better than the median.")

    def test_a_second_attempt_goes_on_from_the_first_ones_checkpoint(self, backend: Backend, home: Home) -> None:
        code = "start = checkpoint.load(0)\nprint('from', start)\ncheckpoint.save(start + 10, step=start + 10)"
        first = trial_of(home, code)
        self.finish(backend, backend.submit(first, Placement(), {}))
        ref, _ = self.run(backend, home, code, attempt=2, resume_attempt=1)
        assert self.read(backend, ref, wire.STDOUT) == b"from 10\n"

    def test_a_trial_goes_on_from_the_checkpoint_of_a_trial_of_another_experiment(
        self, backend: Backend, home: Home
    ) -> None:
        code = "start = checkpoint.load(0)\nprint('from', start)\ncheckpoint.save(start + 10, step=start + 10)"
        self.run(backend, home, code)
        source = TrialSource("e1", 1, 1, "digits#1")
        ref, _ = self.run(backend, home, code, experiment_id="e2", number=3, source=source, resume_attempt=0)
        assert self.read(backend, ref, wire.STDOUT) == b"from 10\n"

    def test_a_trial_whose_source_has_no_checkpoint_begins_anew_and_says_so(self, backend: Backend, home: Home) -> None:
        source = TrialSource("e9", 1, 1, "digits#1")
        code = "print('from', checkpoint.load(0))"
        ref, _ = self.run(backend, home, code, source=source, resume_attempt=0)
        assert self.read(backend, ref, wire.STDOUT) == b"from 0\n"
        assert b"starts over: digits#1 has no checkpoint" in self.read(backend, ref, wire.METRICS)

    def test_attempts_that_save_nothing_or_never_run_hide_no_checkpoint(self, backend: Backend, home: Home) -> None:
        code = "start = checkpoint.load(0)\nprint('from', start)\nif not start: checkpoint.save(10)"
        self.run(backend, home, code)
        for attempt in (2, 4):
            ref, _ = self.run(backend, home, code, attempt=attempt, resume_attempt=attempt - 1)
            assert self.read(backend, ref, wire.STDOUT) == b"from 10\n"

    def test_a_second_attempt_goes_on_from_what_another_backend_left_in_the_home(
        self, backend: Backend, home: Home
    ) -> None:
        saved = home.trial("e1", 1, 1) / wire.CHECKPOINTS / "step-000000000010.pkl"
        saved.parent.mkdir(mode=0o700, parents=True)
        saved.write_bytes(pickle.dumps(10))
        ref, _ = self.run(backend, home, "print('from', checkpoint.load(0))", attempt=2, resume_attempt=1)
        assert self.read(backend, ref, wire.STDOUT) == b"from 10\n"

    def test_an_attempt_that_does_not_go_on_from_the_one_before_says_why(self, backend: Backend, home: Home) -> None:
        code = "print('from', checkpoint.load(0))"
        ref, _ = self.run(backend, home, code, attempt=2, resume_note="begins anew: lab does not answer")
        assert self.read(backend, ref, wire.STDOUT) == b"from 0\n"
        assert b"attempt 2 begins anew: lab does not answer" in self.read(backend, ref, wire.METRICS)

    def test_data_and_shipped_files_are_there(self, backend: Backend, home: Home) -> None:
        code = """
            import helper
            from pathlib import Path
            print(__autotrain_data__("table")[1], helper.WORD, Path("d/x.txt").read_text())
        """
        files = {"helper.py": "WORD = 'beside'", "d/x.txt": "text"}
        write_bundle(home.bundle("e1"), code, data={"table": [1, 2]}, files=files)
        ref, _ = self.run(backend, home, "")
        assert self.read(backend, ref, wire.STDOUT) == b"2 beside text\n"

    def test_a_trial_imports_its_own_shipped_module_and_not_that_of_another(self, backend: Backend, home: Home) -> None:
        code = "import helper\nprint(helper.WORD)"
        for word in ("first", "second"):
            write_bundle(home.bundle(word), code, files={"helper.py": f"WORD = {word!r}"})
            ref, _ = self.run(backend, home, "", experiment_id=word)
            assert self.read(backend, ref, wire.STDOUT) == f"{word}\n".encode()

    def test_the_seed_makes_two_runs_alike(self, backend: Backend, home: Home) -> None:
        code = """
            import random
            print(random.random())
            try:
                import numpy  # not every image has it
                print(numpy.random.rand())
            except ImportError:
                print("without numpy")
        """
        said = {self.read(backend, self.run(backend, home, code, number=n, seed=7)[0], wire.STDOUT) for n in (1, 2)}
        assert len(said) == 1
        assert len(said.pop().splitlines()) == 2

    def test_variables_of_the_header_reach_the_cell(self, backend: Backend, home: Home) -> None:
        ref, _ = self.run(backend, home, "import os\nprint(os.environ['MY_MODE'])", env={"MY_MODE": "fast"})
        assert self.read(backend, ref, wire.STDOUT) == b"fast\n"

    def test_given_gpus_are_the_visible_ones(self, backend: Backend, home: Home) -> None:
        if not backend.capabilities.gpu_slots:
            pytest.skip("this backend has no GPU slots")
        code = "import os\nprint(os.environ['CUDA_VISIBLE_DEVICES'])"
        trial = trial_of(home, code, resources=Resources(gpus=2))
        node = backend.discover().nodes[0].name
        ref = backend.submit(trial, Placement((NodePlacement(node, ("GPU-a", "GPU-b")),)), {})
        self.finish(backend, ref)
        assert self.read(backend, ref, wire.STDOUT) == b"GPU-a,GPU-b\n"
