"""The names that a cell has inside a trial, as `help NAME` explains them."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

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
