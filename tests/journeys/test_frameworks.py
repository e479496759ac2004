"""Two workers of TensorFlow and of PaddlePaddle train one model from a cell, as their launchers tell them to."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

STEPS = 4
DATA = """\
import numpy as np
x = np.random.default_rng(0).normal(size=(8, 3)).astype("float32")
y = x @ np.array([[1.0], [-2.0], [3.0]], "float32")
"""
# Keras 2 is trained by `fit`; that of Keras 3 (3.15) fails under this strategy, whose own loop takes its models.
KERAS_2 = f"""\
import os
os.environ["TF_USE_LEGACY_KERAS"] = "1"
import tensorflow as tf
{DATA}
strategy = tf.distribute.MultiWorkerMirroredStrategy()
with strategy.scope():
    layer = tf.keras.layers.Dense(1, use_bias=False, kernel_initializer="zeros")
    model = tf.keras.Sequential([tf.keras.Input((3,)), layer])
    model.compile(tf.keras.optimizers.SGD(0.1), "mse")
model.fit(tf.data.Dataset.from_tensor_slices((x, y)).batch(8), epochs={STEPS}, verbose=0)
found = {{"replicas": strategy.num_replicas_in_sync, "weights": model.get_weights()[0].ravel().tolist()}}
"""
KERAS_3 = f"""\
import tensorflow as tf
{DATA}
strategy = tf.distribute.MultiWorkerMirroredStrategy()
with strategy.scope():
    layer = tf.keras.layers.Dense(1, use_bias=False, kernel_initializer="zeros")
    model = tf.keras.Sequential([tf.keras.Input((3,)), layer])
    optimizer = tf.keras.optimizers.SGD(0.1)
    optimizer.build(model.trainable_variables)

@tf.function
def step_of_all(batch):
    def step_here(x, y):
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum((model(x) - y) ** 2) / 8
        optimizer.apply_gradients(zip(tape.gradient(loss, model.trainable_variables), model.trainable_variables))
        return loss
    return strategy.reduce("SUM", strategy.run(step_here, batch), axis=None)

batches = tf.data.Dataset.from_tensor_slices((x, y)).batch(8).repeat({STEPS})
for step, batch in enumerate(strategy.experimental_distribute_dataset(batches)):
    report(step=step, loss=float(step_of_all(batch)))
found = {{"replicas": strategy.num_replicas_in_sync, "weights": model.get_weights()[0].ravel().tolist()}}
"""
PADDLE = f"""\
import paddle
import paddle.distributed as dist
{DATA}
dist.init_parallel_env()
zeros = paddle.ParamAttr(initializer=paddle.nn.initializer.Constant(0.0))
model = paddle.DataParallel(paddle.nn.Linear(3, 1, weight_attr=zeros, bias_attr=False))
optimizer = paddle.optimizer.SGD(0.1, parameters=model.parameters())
mine = slice(dist.get_rank(), None, dist.get_world_size())
for step in range({STEPS}):
    loss = paddle.nn.functional.mse_loss(model(paddle.to_tensor(x[mine])), paddle.to_tensor(y[mine]))
    loss.backward()
    optimizer.step()
    optimizer.clear_grad()
    report(step=step, loss=float(loss), all_ranks=True)
found = {{"replicas": dist.get_world_size(), "weights": model.parameters()[0].numpy().ravel().tolist()}}
"""


def python_of(framework):
    python = Path(sys.prefix, framework, "bin", "python")
    if not python.exists():
        pytest.skip(f"there is no {python}: sh .ci/frameworks makes it")
    return python


def trained_alone():
    """Return the losses and the weights of a training with all samples in one process."""
    names = {}
    exec(DATA, names)
    x = names["x"]
    y = names["y"]
    weights = np.zeros((3, 1))
    losses = []
    for _ in range(STEPS):
        error = x @ weights - y
        losses.append(float((error**2).mean()))
        weights -= 0.1 * 2 * x.T @ error / len(x)
    return losses, weights.ravel().tolist()


@pytest.mark.long
@pytest.mark.parametrize(
    ("framework", "cell"),
    [("tensorflow", KERAS_2), ("tensorflow", KERAS_3), ("paddlepaddle", PADDLE)],
    ids=["keras 2", "keras 3", "paddle"],
)
def test_two_workers_of_a_cell_train_as_one_process_with_all_samples(notebook, framework, cell):
    header = f"""\
resources: {{workers_per_node: 2}}
environment: {{python: {python_of(framework)}}}
objective: minimize loss
returns: [found]"""
    result, shown = notebook.run(f"%%autotrain --wait\n{header}\n---\n{cell}")
    assert result.success, shown
    experiment = notebook.value("_")
    assert experiment.state == "SUCCEEDED", (experiment.why(), experiment.logs(stream="stderr"))
    losses, weights = trained_alone()
    found = experiment.load("found")
    assert found == {"replicas": 2, "weights": pytest.approx(weights, rel=1e-4)}
    curve = [(row["step"], row["value"]) for row in experiment.metrics() if row["name"] == "loss"]
    assert curve == [(step, pytest.approx(loss, rel=1e-4)) for step, loss in enumerate(losses)]
