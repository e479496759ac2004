"""Tests of what torch keeps beside numbers: gradients, hooks, optimizer state travel; a graph is refused."""

# Cases are written on one line each, however long, so that they read as a list.
# ruff: noqa: E501

import pytest

from jupyter_autotrain.errors import CaptureError

TRAINING = "\n".join([
    "import torch",
    "from torch import nn",
    "torch.manual_seed(0)",
    "model, x = nn.Linear(3, 1), torch.ones(4, 3)",
    "opt = torch.optim.{optimizer}",
    "model(x).pow(2).sum().backward()",
    "opt.step(lambda: model(x).pow(2).sum())",
])  # fmt: skip
STEP = "\n".join([
    "print(opt.param_groups[0]['params'][0] is model.weight, model.weight.grad)",
    "model(x).sum().backward()",
    "opt.step(lambda: model(x).pow(2).sum())",
    "print(model.weight, model.weight.grad, len(opt.state))",
])  # fmt: skip


@pytest.mark.parametrize(
    "optimizer",
    ["SGD(model.parameters(), 0.1, momentum=0.9)", "Adam(model.parameters(), 0.1)", "LBFGS(model.parameters(), 0.1)"],
)
def test_gradients_and_optimizer_state_travel_with_their_parameters(notebook, optimizer):
    notebook(TRAINING.format(optimizer=optimizer)).both(STEP, "torch")


CASES = {
    "a gradient": ("w = torch.ones(2, requires_grad=True)\n(w * 2).sum().backward()", "(w * 3).sum().backward()\nprint(w.grad, w.is_leaf)"),
    "no gradient is None": ("w = torch.ones(2, requires_grad=True)", "print(w.grad, w.requires_grad)"),
    "a gradient that is named too": ("w = torch.ones(2, requires_grad=True)\nw.sum().backward()\ng = w.grad", "print(g is w.grad)\nw.grad.zero_()\nprint(g)"),
    "parameters of a model": ("m = torch.nn.Linear(2, 1)\nm(torch.ones(1, 2)).sum().backward()", "print(m.weight.grad, m.bias.grad)"),
    "a gradient of one parameter only": ("m = torch.nn.Linear(2, 1)\nm.bias.requires_grad_(False)\nm(torch.ones(1, 2)).sum().backward()", "print(m.weight.grad, m.bias.grad, m.bias.requires_grad)"),
    "evaluation mode and buffers": ("m = torch.nn.BatchNorm1d(2).eval()\nm.running_mean += 1\nm.register_buffer('b', torch.ones(1), persistent=False)", "print(m.training, m.running_mean, list(m.state_dict()), m.b)"),
    "a hook on a tensor": ("w = torch.ones(2, requires_grad=True)\nh = w.register_hook(lambda g: g * 10)", "w.sum().backward()\nprint(w.grad)\nh.remove()\nw.sum().backward()\nprint(w.grad)"),
    "a hook after the gradient": ("seen = []\np = torch.nn.Parameter(torch.ones(2))\n_ = p.register_post_accumulate_grad_hook(lambda p: seen.append(p.grad.sum().item()))", "p.sum().backward()\nprint(seen)"),
    "a hook that is added later": ("m = torch.nn.Linear(1, 1)\n_ = m.register_forward_hook(lambda *a: print('first'))", "_ = m.register_forward_hook(lambda *a: print('second'))\nm(torch.ones(1))"),
    "a hook on an optimizer": ("m = torch.nn.Linear(1, 1)\no = torch.optim.SGD(m.parameters(), 0.1)\n_ = o.register_step_post_hook(lambda *a: print('stepped'))", "m(torch.ones(1)).sum().backward()\no.step()"),
    "a scheduler": ("import warnings\nwarnings.simplefilter('error')\nm = torch.nn.Linear(1, 1)\no = torch.optim.SGD(m.parameters(), 0.1)\ns = torch.optim.lr_scheduler.StepLR(o, 1)", "import warnings\nwarnings.simplefilter('error')\no.step()\ns.step()\nprint(s.get_last_lr(), s.optimizer is o, s.base_lrs, o.param_groups[0]['lr'])"),
    "a generator": ("g = torch.Generator().manual_seed(3)\n_ = torch.rand(2, generator=g)", "print(torch.rand(2, generator=g))"),
    "a loader": ("g = torch.Generator().manual_seed(3)\nd = torch.utils.data.TensorDataset(torch.arange(6))\nl = torch.utils.data.DataLoader(d, 2, shuffle=True, generator=g)", "print([b[0].tolist() for b in l], l.generator is g)"),
    "a scaler": ("s = torch.amp.GradScaler('cpu')", "print(s.get_scale(), s.is_enabled())"),
    "weight normalisation": ("m = torch.nn.utils.weight_norm(torch.nn.Linear(2, 1))", "m.weight.sum().backward()\nprint(m.weight_g.grad, m(torch.ones(1, 2)))"),
    "pruning": ("from torch.nn.utils import prune\nm = prune.l1_unstructured(torch.nn.Linear(4, 1), 'weight', 0.5)", "m(torch.ones(1, 4)).sum().backward()\nprint(m.weight_orig.grad, m.weight)"),
    "attributes of a parameter": ("p = torch.nn.Parameter(torch.ones(1))\np.decay = False", "print(p.decay, type(p))"),
    "a tensor without its graph": ("w = torch.ones(2, requires_grad=True)\nd = (w * 2).detach()", "print(d)"),
    "averaged weights": ("m = torch.nn.Linear(1, 1)\na = torch.optim.swa_utils.AveragedModel(m)\na.update_parameters(m)", "a.update_parameters(m)\nprint(a.n_averaged)"),
}  # fmt: skip


@pytest.mark.filterwarnings("ignore")  # torch calls some of what is used here old
@pytest.mark.parametrize("case", CASES)
def test_what_torch_keeps_beside_the_numbers_travels(notebook, case):
    made, code = CASES[case]
    notebook(f"import torch\ntorch.manual_seed(1)\n{made}").both(code, "torch")


def refusal(book, code):
    with pytest.raises(CaptureError) as caught:
        book.capture(code)
    assert len(str(caught.value).splitlines()) <= 6
    return str(caught.value)


def test_a_loss_is_refused_and_what_to_move_is_named(notebook):
    book = notebook(
        "import torch\nw = torch.ones(2, requires_grad=True)", "def f(w): return (w ** 2).sum()", "loss = f(w)"
    )
    text = refusal(book, "loss.backward()\nprint(w.grad)")
    assert "loss (cell [3]): a tensor that autograd computed from w" in text
    assert "move `loss = f(w)` into the cell" in text


@pytest.mark.parametrize(
    "code",
    [
        "loss.backward()\nloss = f(w)",
        "for _ in range(2):\n    loss.backward()\n    loss = f(w)",
        "def step():\n    loss.backward()\nstep()\nloss = f(w)",
        "try:\n    loss.backward()\nexcept Exception:\n    loss = None",
    ],
)
def test_a_loss_that_the_cell_reads_before_it_binds_its_own_is_refused(notebook, code):
    book = notebook("import torch\nw = torch.ones(2, requires_grad=True)\ndef f(w): return (w ** 2).sum()\nloss = f(w)")
    assert "loss (cell [1]): a tensor that autograd computed from w" in refusal(book, code)


@pytest.mark.parametrize(
    "code",
    [
        "for _ in range(2):\n    loss = f(w)\nprint(loss)",
        "if w.sum() > 0:\n    loss = f(w)\nprint(loss)",
        "def step():\n    global loss\n    loss = f(w)\nstep()\nprint(loss)",
    ],
)
def test_a_loss_that_the_cell_binds_before_it_reads_it_stays_here(notebook, code):
    book = notebook("import torch\nw = torch.ones(2, requires_grad=True)\ndef f(w): return (w ** 2).sum()\nloss = f(w)")
    book.both(code, "torch")


def test_what_a_model_gave_is_refused_and_the_model_is_named(notebook):
    book = notebook("import torch\nmodel, x = torch.nn.Linear(2, 2), torch.ones(1, 2)", "out = {'logits': model(x)}")
    text = refusal(book, "out['logits'].sum().backward()")
    assert "out['logits'] (cell [2]): a tensor that autograd computed" in text
    assert "move `out = {'logits': model(x)}` into the cell" in text
    book.run("y = model(x)")
    assert "computed from model, whose graph" in refusal(book, "y.sum().backward()")


@pytest.mark.parametrize(
    ("made", "path"),
    [
        ("losses = []\nlosses.append(w * 2)", "losses[0]"),
        ("class Net(torch.nn.Module): pass\nnet = Net()\nnet.h = w * 2", "net.h"),
        ("v = torch.ones(2, requires_grad=True)\n(g,) = torch.autograd.grad((v ** 3).sum(), v, create_graph=True)\nv.grad = g", "v"),
        ("q = w[:1]", "q"),
    ],
)  # fmt: skip
def test_a_graph_anywhere_inside_is_refused(notebook, made, path):
    book = notebook(f"import torch\nw = torch.ones(2, requires_grad=True)\n{made}")
    text = refusal(book, f"print({path})")
    assert f"{path} (cell [1]): " in text
    assert "a tensor that autograd computed" in text


def test_everything_else_that_a_running_loop_holds_is_refused_by_name(notebook):
    book = notebook("import torch\nl = torch.utils.data.DataLoader([1, 2, 3])\nit = iter(l)")
    assert "it (cell [1]): " in refusal(book, "print(next(it))")


def test_a_training_cell_that_has_run_before_is_captured_again(notebook):
    train = (
        "for epoch in range(2):\n    for x in batches:\n        loss = model(x).sum()\n        loss.backward()\n"
        "        optimizer.step()\n        optimizer.zero_grad()\n    print(round(loss.item(), 6))"
    )
    book = notebook(
        "import torch\ntorch.manual_seed(0)\nmodel = torch.nn.Linear(2, 1)\nbatches = torch.rand(3, 4, 2)\n"
        "optimizer = torch.optim.SGD(model.parameters(), 0.1)",
        train,
    )
    assert len(book.both(train).splitlines()) == 2


def test_a_graph_that_a_function_reads_is_refused_although_the_cell_binds_its_name(notebook):
    book = notebook(
        "import torch\nw = torch.ones(2, requires_grad=True)\nloss = w.sum()\ndef show():\n    return loss.item()"
    )
    with pytest.raises(CaptureError, match="loss"):
        book.capture("if show() > 1:\n    loss = w.sum()\nprint(loss)")
