import pickle
import subprocess
import sys

import torch

from jupyter_autotrain.agent.ranks.returned import dumps


def test_a_model_comes_back_with_its_gradients_and_the_optimizer_that_shares_them():
    model = torch.nn.Linear(2, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    model(torch.ones(2)).sum().backward()
    optimizer.step()
    again, its_optimizer = pickle.loads(dumps((model, optimizer)))
    assert torch.equal(again.weight.grad, model.weight.grad)
    assert its_optimizer.param_groups[0]["params"][0] is again.weight
    assert isinstance(again.weight, torch.nn.Parameter)


def test_a_tensor_comes_back_with_its_gradient_and_further_ones_add_to_it():
    weight = torch.tensor([1.0, 2.0], requires_grad=True)
    (weight * weight).sum().backward()
    again = pickle.loads(dumps(weight))
    (again * 3).sum().backward()
    assert again.grad.tolist() == [5.0, 7.0]


def test_what_a_cell_defines_itself_comes_back_too():
    double = eval("lambda x: 2 * x", {"__name__": "__main__"})
    assert pickle.loads(dumps({"f": double}))["f"](4) == 8


def test_a_pickle_with_gradients_is_read_without_this_package(tmp_path):
    weight = torch.tensor([3.0], requires_grad=True)
    weight.sum().backward()
    file = tmp_path / "weight.pkl"
    file.write_bytes(dumps(weight))
    code = f"import pickle, sys; print(pickle.load(open({str(file)!r}, 'rb')).grad, 'jupyter_autotrain' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "tensor([1.]) False\n"
