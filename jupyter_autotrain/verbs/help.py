"""The verb `help`: a header key, a verb, a name of the cell, or an overview on one screen.

Also the completions after `%autotrain`: verbs, their options, names of experiments.
"""

from __future__ import annotations

import argparse
import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Final

from jupyter_autotrain import backends, header
from jupyter_autotrain.core.table import WIDTH, Table
from jupyter_autotrain.core.text_format import closest_match
from jupyter_autotrain.errors import AutotrainError
from jupyter_autotrain.verbs.context import CommandContext
from jupyter_autotrain.verbs.grammar import BACKEND_ACTIONS, grammar

CELL_NAMES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "trial": """\
trial
  Has all that a trial gives a cell: trial.report, trial.params, trial.checkpoint, trial.should_stop, trial.display,
  trial.rank, trial.world_size. A name that the notebook binds itself stays the notebook's; `trial` reaches the others.
  trial.hints(batch_size=..., max_batch_size=..., replica_batch_size=(least, most), ...): tells AdaptDL how the training
  can use more replicas; elsewhere it does nothing. On a change should_stop() turns true: save a checkpoint, and leave.
  example: params = {"max_depth": 3}; train(params, lr=trial.params.lr)""",
        "report": """\
report(step=None, **metrics)
  Sends metrics from the cell: they are kept, plotted live, and ranked by the objective.
  step: how far the training is; it may not go back. Without it the calls are counted from 0.
  metrics: names and values, each an int, a float, a bool, or a NumPy or torch value of one element.
  It never waits and never raises: a value that cannot be kept leaves a note instead.
  example: report(step=epoch, loss=loss.item(), val_acc=accuracy)""",
        "params": """\
params
  The parameters of this trial, as a dict; params.lr and params["lr"] are the same.
  Each key of `search:` is a plain variable of the cell as well.
  example: optimizer = torch.optim.SGD(model.parameters(), lr=params.lr)""",
        "checkpoint": """\
checkpoint
  Saves state for the next attempt. A retry continues from the newest checkpoint.
  checkpoint.save(obj, step=None): saves anything that can be pickled, durably; the two newest are kept.
  checkpoint.load(default=None): the newest saved object, of this attempt or the one before.
  checkpoint.path: a folder for files that you write yourself.
  example: start = checkpoint.load(default={"epoch": 0})["epoch"]""",
        "should_stop": """\
should_stop()
  True once this trial is to end itself, after a stop or by an early-stopping rule. Cheap enough for every step.
  example: if should_stop(): break""",
        "display": """\
display(*objects)
  Keeps a picture of each object, such as a matplotlib figure, among the trial's outputs; the view and the card show it.
  plt.show() does the same. A picture may have 2 MB.
  example: display(figure)""",
        "rank": """\
rank
  The number of this process among those of the trial, from 0; 0 where there is only one.""",
        "world_size": """\
world_size
  How many processes the trial has; 1 where there is only one.""",
    }
)


_HELP = """\
%%autotrain [NAME] [--backend B] [--gpus N] [-j CONCURRENCY] [--wait]
            [--check] [--dry-run] [--rehearse] [-f FILE]
key: value               a header, optional; or lines `#| key: value`
---
report(step=1, loss=0.5) any Python; report() sends metrics, params holds
                         the trial's parameters

Header keys (%autotrain help KEY explains one):
{keys}
Verbs (%autotrain help VERB explains one):
{verbs}
In the cell (%autotrain help report explains one):
{names}

Experiments are named by name, name@N, a unique id prefix, -1 (the newest of
this notebook; in a shell, of all) or _. Without a name a verb takes that
newest one.
"""


def help_text(command: CommandContext, arguments: argparse.Namespace) -> None:
    """Explain a header key, a verb or a name of the cell; without one, print the overview."""
    verbs = grammar()
    schema = backends.header_schema()
    key = arguments.key
    if key is None:
        groups = {**header.KEY_GROUPS, "of one place": schema.backend_sections}
        shown = Table(["", ""], [(f"  {title}", ", ".join(keys)) for title, keys in groups.items()]).text()
        command.write(_HELP.format(keys=shown, verbs=_list(verbs), names=_list(CELL_NAMES)))
    elif key in verbs or key in CELL_NAMES:  # `report` is both
        command.write(f"{CELL_NAMES[key]}\n" if key in CELL_NAMES else "")
        command.write(verbs[key].format_help() if key in verbs else "")
    else:
        command.write(_key_help(key, schema, [*header.known_keys(schema), *verbs, *CELL_NAMES]) + "\n")


def _list(names: Iterable[str]) -> str:
    return textwrap.fill(", ".join(names), WIDTH, initial_indent="  ", subsequent_indent="  ")


def _key_help(key: str, schema: type[header.Header], known: list[str]) -> str:
    if key in header.known_keys(schema):
        return header.help_text(key, schema)
    near = closest_match(key, known)
    raise AutotrainError(
        f"%autotrain help: there is no {key!r}.",
        f"Did you mean {near!r}?" if near else "Expected a header key, a verb, or a name of the cell.",
        "See: %autotrain help",
    )


MAGIC = "%autotrain"
_NONE: Mapping[str, str] = MappingProxyType({})


def complete_verb(
    text: str, experiments: Callable[[], Sequence[str]], backends: Callable[[], Mapping[str, str]] = dict
) -> dict[str, str]:
    """Return the words that fit at the end of a line, each with what it means in a few words.

    Args:
        text: The line up to the cursor, beginning with `%autotrain`.
        experiments: Gives the names of the experiments, newest first; called only where a name is expected.
        backends: Gives the names of the backends, each with where it is defined, likewise.
    """
    words = text.removeprefix(MAGIC).split(" ")[1:]
    if not words:
        return {}
    *before, word = words
    known = _known([*filter(None, before)], word, experiments, backends)
    return {one: title for one, title in known.items() if one.startswith(word) and one != word}


def _known(
    given: Sequence[str],
    word: str,
    experiments: Callable[[], Sequence[str]],
    backends: Callable[[], Mapping[str, str]],
) -> Mapping[str, str]:
    """Return the words that may follow those that are given; `word` is what the next one begins with."""
    if not given:
        return _verbs()
    if given[0] == "backends" and len(given) <= 2 and not word.startswith("-"):
        return _words(BACKEND_ACTIONS) if len(given) == 1 else backends()
    return _after(given, word, experiments)


def _words(texts: Sequence[str], title: str = "keyword") -> dict[str, str]:
    return dict.fromkeys(texts, title)


def _verbs() -> dict[str, str]:
    return {verb: parser.description or "" for verb, parser in grammar().items()}


def _after(given: Sequence[str], word: str, experiments: Callable[[], Sequence[str]]) -> Mapping[str, str]:
    parser = grammar().get(given[0])
    if parser is None:
        return _NONE
    actions = parser._actions  # noqa: SLF001 - argparse has no public list of its actions
    for action in actions:
        if given[-1] in action.option_strings and action.nargs != 0:
            return _words([*map(str, action.choices or ())])
    if word.startswith("-"):
        return {_longest(action): action.help or "" for action in actions if action.option_strings}
    return _positional(given[0], actions, experiments)


def _positional(
    verb: str, actions: Sequence[argparse.Action], experiments: Callable[[], Sequence[str]]
) -> Mapping[str, str]:
    if verb == "help":
        from jupyter_autotrain import backends, header  # noqa: PLC0415 - only this verb needs them, and they are heavy

        keys = header.known_keys(backends.header_schema())
        return {**_verbs(), **_words(keys, "key of a header"), **_words([*CELL_NAMES], "name in a cell")}
    takes_names = any(action.dest in {"experiment", "pattern"} for action in actions)
    return _words(experiments(), "experiment") if takes_names else _NONE


def _longest(action: argparse.Action) -> str:
    return max(action.option_strings, key=len)
