"""Every key of the header: what it takes, in every spelling."""

import jsonschema
import pytest

from jupyter_autotrain import backends, header, tuners
from jupyter_autotrain.agent.json import from_json, to_json
from jupyter_autotrain.core.objective import Direction, Objective
from jupyter_autotrain.core.space import Choice, NestedSpace, Normal, RandInt, Uniform
from jupyter_autotrain.core.spec import Bundle, ExperimentSpec
from jupyter_autotrain.errors import HeaderError
from jupyter_autotrain.header.quantities import parse_duration, parse_size
from jupyter_autotrain.header.search_keys import TUNERS

SCHEMA = backends.header_schema()
STORAGE = "image: 'python:3.12', storage: {local_path: /mnt/pai, mount_path: /mnt/confignfs}"
SERVICES = {  # whose types alone do not suffice
    "openpai": f"{{type: openpai, address: https://pai.example.org, user: ada, {STORAGE}}}",
    "dlc": f"{{type: dlc, region: cn-hangzhou, workspace: '123456', {STORAGE}}}",
    "dlts": f"{{type: dlts, address: https://dlts.example.org, team: vision, {STORAGE}}}",
    "aml": "{type: aml, subscription: 7a6b, resource_group: research, workspace: vision, compute: cluster, "
    "image: 'python:3.12'}",
}
FULL = """
objective: maximize val_acc
search:
  lr: loguniform(1e-4, 1e-1)
  width: choice(32, 64)
tuner: tpe
early_stop: median
trials: 40
concurrency: 2
resources: {cpus: 1.5, memory: 8GB, gpus: 1, gpu_memory: 16GB..}
timeout: 1h30m
budget: {time: 2h, failures: 3}
seed: 1
env: {PYTHON: 3.10, START: 12:30:00, ANSWER: yes, EMPTY: }
secrets: [HF_TOKEN]
ship: {files: [data/*.csv], limits: {size: 1GB}}
returns: [model]
retries: 2
local: {max_trials_per_gpu: 2, use_active_gpu: true, gpu_indices: [0, 1]}
parallel: {cluster: 2x8xH100, memory_limit: 80GB}
---
x = 1
"""


def parse(cell, line="", **context):
    return header.parse_cell(line, cell, header.HeaderContext(schema=SCHEMA, **context))


def search(text):
    return parse(f"search:\n  p: {text}\n---\n").header.search["p"]


def lines(cell, line="", **context):
    with pytest.raises(HeaderError) as caught:
        parse(cell, line, **context)
    return caught.value.faults


def test_a_full_header_becomes_a_full_spec_that_survives_the_store():
    spec = parse(FULL, "digits -j 4 --dry-run").header.to_spec(bundle=Bundle(), name="cell")
    assert (spec.name, spec.concurrency, spec.trials, spec.timeout_s, spec.budget.time_s) == (
        "digits",
        4,
        40,
        5400,
        7200,
    )
    assert spec.objective == Objective("val_acc", Direction.MAXIMIZE)
    assert spec.env == {"PYTHON": "3.10", "START": "12:30:00", "ANSWER": "yes", "EMPTY": ""}
    assert (spec.resources.memory_bytes, spec.resources.gpu_memory_bytes) == (8 * 10**9, 16 * 10**9)
    assert spec.backends[0].options == {"max_trials_per_gpu": 2, "use_active_gpu": True, "gpu_indices": [0, 1]}
    assert from_json(ExperimentSpec, to_json(spec)) == spec


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("choice(sgd, adam, 3, true, null)", Choice(("sgd", "adam", 3, True, None))),
        ("choice(resnet-18, 'a, b', yes)", Choice(("resnet-18", "a, b", "yes"))),
        ("randint(1, 5)", RandInt(1, 5)),
        ("uniform(0, 1)", Uniform(0, 1)),
        ("uniform(low=0, high=1)", Uniform(0, 1)),
        ("loguniform(1e-4, 1e-1)", Uniform(1e-4, 1e-1, log=True)),
        ("quniform(0, 1, 0.1)", Uniform(0, 1, q=0.1)),
        ("qloguniform(1, 100, 2)", Uniform(1, 100, log=True, q=2)),
        ("normal(0, 1)", Normal(0, 1)),
        ("qnormal(0, 1, 0.5)", Normal(0, 1, q=0.5)),
        ("lognormal(0, 1)", Normal(0, 1, log=True)),
        ("qlognormal(0, 1, 0.5)", Normal(0, 1, log=True, q=0.5)),
        ("{choice: [sgd, adam]}", Choice(("sgd", "adam"))),
        ("{loguniform: [1e-4, 1e-1]}", Uniform(1e-4, 1e-1, log=True)),
        ("{_type: quniform, _value: [0, 1, 0.1]}", Uniform(0, 1, q=0.1)),
        ("{_type: choice, _value: [16, 32]}", Choice((16, 32))),
        ("[16, 32]", Choice((16, 32))),
        ("{values: [16, 32]}", Choice((16, 32))),
        ("{min: 1, max: 4}", RandInt(1, 5)),
        ("{min: 0.1, max: 4}", Uniform(0.1, 4)),
        ("{min: 1e-4, max: 1e-1, distribution: log_uniform_values}", Uniform(1e-4, 1e-1, log=True)),
        ("{distribution: normal, mu: 0, sigma: 1}", Normal(0, 1)),
        (
            "{_type: choice, _value: [{_name: mlp, k: {_type: randint, _value: [1, 3]}}, {_name: none}]}",
            Choice((NestedSpace("mlp", {"k": RandInt(1, 3)}), NestedSpace("none", {}))),
        ),
    ],
)
def test_a_distribution_is_read_in_every_spelling(text, expected):
    assert search(text) == expected


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("int(2, 8)", "did you mean `randint(2, 8)` (2 to 7)?"),
        ("range(5)", "did you mean `randint(5)` (0 to 4)?"),
        ("suggest_int(low=2, high=8)", "did you mean `randint(low=2, high=8)` (2 to 7)?"),
        ("{int: [2, 8]}", "did you mean `randint(2, 8)` (2 to 7)?"),
        ("float(0, 1)", "did you mean `uniform(0, 1)`?"),
        ("log(1e-4, 1e-1)", "did you mean `loguniform(1e-4, 1e-1)`?"),
        ("tune.loguniform(1e-4, 1e-1)", "did you mean `loguniform(1e-4, 1e-1)`?"),
        ("trial.suggest_float('lr', 1e-5, 1e-1, log=True)", "did you mean `loguniform(1e-5, 1e-1)`?"),
        ("uniform(1e-5, 1e-1, log=True)", "did you mean `loguniform(1e-5, 1e-1)`?"),
        ("uniform('lr', 0, 1)", "did you mean `uniform(0, 1)`?"),
        ("categorical(adam, 'sgd')", "did you mean `choice(adam, 'sgd')`?"),
        ("hp.choice('opt', ['a', 'b'])", "did you mean `choice(['a', 'b'])`?"),
        ("int(8, 2)", "expected randint(low, high)"),
        ("range(2, 8, 2)", "expected randint(low, high)"),
        ("loguniform(1e-5, 1e-1, 2)", "expected loguniform(low, high), found 3 numbers"),
        ("categorical(ghp_abcdefghijklmnop1234A)", "expected choice(a, b, ...)"),
    ],
)
def test_a_distribution_of_another_tool_is_answered_with_the_one_that_is_meant(text, meant):
    line = lines(f"search:\n  lr: {text}\n---\n")[-1]
    assert line.endswith(f"; {meant}")


def test_calls_inside_braces_keep_their_commas():
    found = parse("#| search: {lr: loguniform(1e-4, 1e-1), w: choice(1, 2, 3), l: [uniform(0, 1)]}\n").header.search
    assert found == {"lr": Uniform(1e-4, 1e-1, log=True), "w": Choice((1, 2, 3)), "l": Choice(("uniform(0, 1)",))}


def test_an_experiment_file_of_nni_is_read():
    spec = parse("""experimentName: night
trialConcurrency: 2
maxTrialNumber: 5
maxExperimentDuration: 1h
trialGpuNumber: 1
searchSpace:
  lr: {_type: loguniform, _value: [0.0001, 0.1]}
tuner:
  name: TPE
  classArgs: {optimize_mode: minimize}
assessor: {name: Medianstop}
trainingService: {platform: local, useActiveGpu: true, maxTrialNumberPerGpu: 2}
---
""").header.to_spec(bundle=Bundle(), name="x")
    assert (spec.name, spec.concurrency, spec.trials, spec.tuner, spec.early_stop) == ("night", 2, 5, "tpe", "median")
    assert (spec.budget.time_s, spec.resources.gpus, spec.backend_names) == (3600, 1, "local")
    assert spec.objective == Objective("default", Direction.MINIMIZE)
    assert spec.backends[0].options == {"max_trials_per_gpu": 2, "use_active_gpu": True}


@pytest.mark.parametrize(
    ("text", "seconds"), [("90", 90), ("30m", 1800), ("1h30m", 5400), ("1.5h", 5400), ("2d", 172800), ("500ms", 0.5)]
)
def test_times_are_read(text, seconds):
    assert parse_duration(text) == seconds


@pytest.mark.parametrize(
    ("text", "size"),
    [("8GB", 8 * 10**9), ("16GB..", 16 * 10**9), ("1GiB", 2**30), ("512 MB", 512 * 10**6), ("1.5k", 1500)],
)
def test_sizes_are_read(text, size):
    assert parse_size(text) == size


def test_traps_of_yaml_are_closed():
    assert "write 12h30m" in lines("timeout: 12:30:00\n---\n")[0]
    assert "expected true or false" in lines("local: {use_active_gpu: yes}\n---\n")[0]
    assert "write the unit" in lines("resources: {memory: 8}\n---\n")[0]
    assert "given twice (first on line 2)" in lines("trials: 1\ntrials: 2\n---\n")[0]


def test_all_faults_come_at_once_each_with_its_line():
    cell = "trails: 3\nobjective: maximise acc\nsearch:\n  lr: logunifrom(1, 2)\n  w: uniform(3, 1)\nconcurrency: 0\n"
    assert lines(f"{cell}bad line\nlocal: {{gpu_indces: 1}}\n---\n") == (
        "line 2: unknown key 'trails'; did you mean 'trials'?",
        "line 3: objective: 'maximise acc'; did you mean `maximize acc`?",
        "line 5: search.lr: 'logunifrom(1, 2)'; did you mean `loguniform(1, 2)`?",
        "line 6: search.w: 'uniform(3, 1)'; expected low <= high, found 3 and 1",
        "line 7: concurrency: 0; expected at least 1; as in `concurrency: 4`",
        "line 8: 'bad line'; expected `key: value`; put a colon after the key",
        "line 9: unknown key 'gpu_indces' in local; did you mean 'gpu_indices'?",
    )


@pytest.mark.parametrize(
    ("rows", "faulty"),
    [
        (["objective maximize acc", "search: {lr: 'a", "trials 3"], [2, 3, 4]),
        (["search:", "  lr: uniform(0, 1", "  width: {a: 1", "  deep: [1, 2", "trials: three"], [3, 4, 5, 6]),
        (["search:", "\tlr: uniform(0, 1)", "  w: 'a", 'trials: "3'], [3, 4, 5]),
        (["objective: maximize a\x07cc", "trials: [3", "trails: 1"], [2, 3, 4]),
        (["resources:", "  gpus: 1", "   cpus: 2", "  nodes: [1", "search:", "  lr: {a"], [4, 5, 7]),
    ],
)
def test_one_slip_of_yaml_hides_no_other(rows, faulty):
    faults = header.cell_faults("\n".join(["%%autotrain x", *rows, "---", ""]), header.HeaderContext())
    assert sorted({fault.location.line for fault in faults}) == faulty


def test_at_most_six_lines_are_shown():
    with pytest.raises(HeaderError) as caught:
        parse("".join(f"key_{i}: 1\n" for i in range(9)) + "---\n")
    assert len(str(caught.value).splitlines()) == 6
    assert str(caught.value).endswith("and 4 more")


@pytest.mark.parametrize(
    "cell",
    [
        "secrets: [hf_abcdefghijklmnopqrstuv]\n---\n",
        "secrets: {A: hf_abcdefghijklmnopqrstuv}\n---\n",
        "secrets: [A=hf_abcdefghijklmnopqrstuv]\n---\n",
        "env: {A: hf_abcdefghijklmnopqrstuv}\n---\n",
        "secrets: {A: hf_abcdefghijklmnopqrstuv\n---\n",
        "hf_abcdefghijklmnopqrstuv: 1\n---\n",
    ],
)
def test_a_secret_value_is_refused_and_never_repeated(cell):
    assert not any("abcdefgh" in line for line in lines(cell))


def test_contradictions_are_named_with_their_line():
    assert "line 3: tuner tpe without an objective" in lines("search: {x: [1, 2]}\ntuner: tpe\n---\n")[0]
    assert "expected one `choice`" in lines("search: {x: uniform(0, 1)}\ntuner: batch\n---\n")[0]
    assert "a grid of 1,000,000 points" in lines("search: {x: randint(0, 1000000)}\ntuner: grid\n---\n")[0]
    assert "did you mean 'local'?" in lines("backend: locl\n---\n", backends=("local", "ssh"))[0]


def test_how_many_trials_run_when_the_header_does_not_say():
    def trials(cell):
        return parse(f"{cell}\n---\n").header.trial_count

    assert trials("retries: 1") == 1
    assert trials("search: {x: uniform(0, 1)}") == 10
    assert trials("search: {x: [1, 2], y: randint(0, 3)}\ntuner: grid") == 6


@pytest.mark.parametrize(
    ("text", "tuner", "trials"),
    [
        ("search: {x: [1, 2]}", "grid", 2),
        ("search: {x: [1, 2]}\ntrials: 10\nobjective: maximize acc", "grid", 10),
        ("search: {x: randint(0, 30)}\nobjective: maximize acc", "tpe", 10),
        ("search: {x: 'quniform(0, 1, 0.25)', y: [a]}\nobjective: maximize acc", "grid", 5),
        ("search: {x: 'uniform(0, 1)'}", "random", 10),
        ("search: {x: [1, 2]}\ntuner: tpe\nobjective: maximize acc", "tpe", 2),
        ("search: {x: [{_name: a, k: 'uniform(0, 1)'}, b]}", "random", 10),
    ],
)
def test_a_search_of_no_more_points_than_trials_is_a_grid(text, tuner, trials):
    spec = parse(f"{text}\n---\n").header.to_spec(bundle=Bundle(), name="x")
    assert (spec.tuner, spec.trials) == (tuner, trials)


@pytest.mark.parametrize(
    ("text", "name", "options"),
    [
        ("GridSearch", "grid", {}),
        ("{name: tpe, n_startup_trials: 20}", "tpe", {"n_startup_trials": 20}),
        ("{name: TPE, classArgs: {constant_liar: false}}", "tpe", {"constant_liar": False}),
        ("{optuna: GPSampler, deterministic_objective: true}", "optuna:GPSampler", {"deterministic_objective": True}),
        ("{optunahub: samplers/auto, class: Auto}", "optunahub:samplers/auto:Auto", {}),
        ("optuna:BruteForceSampler", "optuna:BruteForceSampler", {}),
    ],
)
def test_a_tuner_is_a_name_or_a_class_with_options(text, name, options):
    spec = parse(f"objective: maximize acc\nsearch: {{x: 'uniform(0, 1)'}}\ntuner: {text}\n---\n").header.to_spec(
        bundle=Bundle(), name="x"
    )
    assert (spec.tuner, spec.tuner_options) == (name, options)


def test_several_objectives_and_constraints_reach_the_spec():
    text = "objective: [maximize acc, minimize ms]\nconstraints: [mb <= 5e2, acc >= 0.5]\n---\n"
    spec = parse(text).header.to_spec(bundle=Bundle(), name="x")
    assert [str(one.metric) for one in spec.objectives] == ["acc", "ms"]
    assert spec.objective.metric == "acc"
    assert [str(one) for one in spec.constraints] == ["mb <= 500", "acc >= 0.5"]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("tuner: tpee", "did you mean 'tpe'?"),
        ("tuner: {optunahub: samplers/auto}", "expected {optunahub: PACKAGE, class: CLASS}"),
        ("tuner: {n_startup_trials: 2}", "expected a name such as tpe"),
        ("tuner: {name: grid, steps: 3}", "expected no options of grid"),
        ("constraints: [ms = 3]", "expected `METRIC <= NUMBER`"),
        ("objective: [maximize acc, minimize acc]", "expected different metrics"),
    ],
)
def test_what_cannot_be_searched_by_is_told_with_what_can(text, told):
    assert told in lines(f"search: {{x: 'uniform(0, 1)'}}\n{text}\n---\n")[0]


def test_the_schema_knows_the_tuners_there_are():
    assert list(TUNERS) == tuners.names()


@pytest.mark.parametrize(
    "bad",
    [
        {"trails": 3},
        {"trials": 0},
        {"concurrency": 0},
        {"retries": 101},
        {"seed": -1},
        {"resources": {"cpus": 0}},
        {"local": {"max_trials_per_gpu": 0}},
    ],
)
def test_the_json_schema_refuses_what_the_header_refuses(bad):
    with pytest.raises(HeaderError):
        header.from_mapping(bad, header.HeaderContext(schema=SCHEMA))
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.Draft202012Validator(header.json_schema(SCHEMA)).validate(bad)


def test_the_json_schema_accepts_a_valid_header():
    schema = header.json_schema(SCHEMA)
    jsonschema.Draft202012Validator.check_schema(schema)
    good = {"trials": 3, "tuner": "grid", "resources": {"memory": "8GB"}, "search": {"x": "uniform(0, 1)"}}
    jsonschema.Draft202012Validator(schema).validate(good)


@pytest.mark.parametrize("key", header.known_keys(SCHEMA))
def test_help_of_a_key_gives_an_example_that_is_valid(key, tmp_path):
    (tmp_path / "requirements.txt").write_text("six\n")
    text = header.help_text(key, SCHEMA)
    example = text.splitlines()[-1].removeprefix("  example: ")
    for part in reversed(key.split(".")[:-1]):
        example = f"{part}: [{{{example}}}]" if part == "task_roles" else f"{part}: {{{example}}}"
    if key == "resources.gpu_memory":
        example = "resources: {gpus: 1, gpu_memory: 16GB..}"
    if key == "resources.adjacent":
        example = "resources: {gpus: 4, adjacent: ring}"
    needed = {"elastic": "launcher: torchrun\n", "constraints": "objective: minimize loss\n"}.get(key, "")
    if key.partition(".")[0] in {"mode", "clients", "federated"}:
        lines = {"mode": "mode: federated", "clients": "clients: [local, local, local]"}
        needed = "".join(f"{line}\n" for name, line in lines.items() if name != key)
    if (section := key.partition(".")[0]) in set(backends.type_names()) - {"local"}:
        needed = f"backend: {SERVICES.get(section, section)}\n"
    found = parse(f"{needed}{example}\n---\n", cwd=tmp_path).header.model_fields_set
    assert key.split(".")[0] in found <= {key.split(".")[0], "launcher", "backend", "objective", "mode", "clients"}


def test_help_of_an_unknown_key_names_the_nearest():
    with pytest.raises(HeaderError, match="did you mean 'trials'"):
        header.help_text("trails")


def test_python_values_are_checked_by_the_same_schema():
    found = header.from_mapping({"trials": 3, "search": {"x": Uniform(0, 1)}, "timeout": 60, "name": None})
    assert (found.trials, found.search, found.timeout) == (3, {"x": Uniform(0, 1)}, 60)
    with pytest.raises(HeaderError, match="did you mean 'trials'"):
        header.from_mapping({"trails": 3})


def test_what_becomes_of_an_earlier_run_is_chosen_by_name():
    parsed = header.parse_cell("--on-rerun stop", "report(a=1)", header.HeaderContext())
    assert parsed.header.on_rerun == "stop"
    assert header.from_mapping({}).on_rerun == "keep"
    assert header.json_schema(SCHEMA)["properties"]["on_rerun"]["enum"] == ["keep", "stop", "ask"]
    assert "one of: keep, stop, ask" in header.help_text("on_rerun")
    cell = "%%autotrain\non_rerun: \n---\nreport(a=1)"
    assert header.completions(cell, cell.index("\n---")).matches == ("keep", "stop", "ask")
    with pytest.raises(HeaderError, match="did you mean 'stop'"):
        header.from_mapping({"on_rerun": "stopp"})
