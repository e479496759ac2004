"""Models that cannot be traced are refused with the line and the reason; losses are found in every form of output."""

from collections import namedtuple
from dataclasses import dataclass
from pathlib import Path

import pytest
import torch
from torch import nn

from jupyter_autotrain.errors import TraceError
from jupyter_autotrain.parallel.graph.graph import Family
from jupyter_autotrain.parallel.trace import trace
from tests.oracle import trace_models
from tests.oracle.trace_models import mlp, transformers

one_thread = trace_models.one_thread  # for every test here


class Branching(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(4, 4)

    def forward(self, x):
        y = self.inner(x)
        if y.sum() > 0:  # the line that is named
            return y
        return -y


class Choosing(nn.Module):
    def forward(self, x):
        return x[x > 0] * 2  # the line that is named


@pytest.mark.parametrize("model", [Branching(), Choosing()])
def test_a_course_that_depends_on_values_names_the_line(model):
    with pytest.raises(TraceError) as caught:
        trace(model, torch.randn(3, 4))
    lines = Path(__file__).read_text(encoding="utf-8").splitlines()
    wanted = [n for n, line in enumerate(lines, 1) if line.endswith("# the line that is named")]
    assert any(f"{__file__}:{n}:" in caught.value.found for n in wanted)
    assert caught.value.expected
    assert caught.value.action
    assert len(str(caught.value).splitlines()) <= 6


def test_a_branch_on_an_integer_input_is_refused_too():
    class Peeking(nn.Module):
        def forward(self, x):
            return x.float() if (x == 0).any() else x.float() * 2

    with pytest.raises(TraceError, match="depends on the values"):
        trace(Peeking(), torch.arange(4))


def test_a_model_that_fails_says_where():
    with pytest.raises(TraceError, match="raises RuntimeError") as caught:
        trace(nn.Sequential(nn.Linear(4, 4)), torch.randn(3, 5))
    assert caught.value.action


def test_outputs_that_make_no_loss_are_refused():
    class Counting(nn.Module):
        def forward(self, x):
            return (x > 0).sum()

    with pytest.raises(TraceError, match="without a floating point tensor"):
        trace(Counting(), torch.randn(3))


@dataclass
class Output:
    logits: torch.Tensor
    loss: torch.Tensor | None = None
    layers: tuple[dict[str, torch.Tensor], ...] = ()


class Returning(nn.Module):
    def __init__(self, form):
        super().__init__()
        self.inner = nn.Linear(4, 4)
        self.form = form

    def forward(self, x):
        return self.form(self.inner(x))


@pytest.mark.parametrize(
    "form",
    [
        Output,
        lambda y: Output(y.detach(), y.sum()),
        lambda y: Output((y > 0).long(), None, ({"first": y},)),
        lambda y: {"count": 3, "parts": [Output(y)]},
        lambda y: namedtuple("Pair", "a b")(y, None),
        lambda y: transformers.modeling_outputs.CausalLMOutput(logits=y),
        lambda y: transformers.modeling_outputs.CausalLMOutput(loss=y.mean(), logits=y),
        lambda y: torch.complex(y, y),
    ],
)
def test_a_loss_is_found_in_every_form_of_output(form):
    graph = trace(Returning(form), torch.randn(3, 4))
    assert graph.ops[0].kind == "linear"
    assert graph.ops[0].flops_backward > 0


def test_an_output_that_hides_its_tensors_is_called_what_it_is():
    class Opaque:
        def __init__(self, y):
            self.y = y

    with pytest.raises(TraceError, match="a Opaque, in which no tensors can be found") as caught:
        trace(Returning(Opaque), torch.randn(3, 4))
    assert "dataclass" in caught.value.expected
    graph = trace(Returning(Opaque), torch.randn(3, 4), loss_fn=lambda out: out.y.sum())
    assert graph.ops[0].kind == "linear"


@pytest.mark.parametrize("loss_fn", [lambda out: None, lambda out: out, lambda out: 3.0])
def test_a_loss_function_that_makes_no_number_is_refused(loss_fn):
    with pytest.raises(TraceError, match="The loss_fn returns"):
        trace(Returning(nn.Identity()), torch.randn(3, 4), loss_fn=loss_fn)


def test_a_loss_function_is_part_of_the_graph():
    target = torch.tensor([0, 1, 2, 3, 0, 1])
    model, inputs = mlp()
    graph = trace(model, inputs, loss_fn=lambda out: nn.functional.cross_entropy(out, target))
    assert [op.family for op in graph.ops[-2:]] == [Family.LOSS, Family.LOSS]
