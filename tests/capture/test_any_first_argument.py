"""Calls whose first argument is no text, though calls of their name may read names in one."""

LIBRARY = """\
class Falsy:
    def __bool__(self):
        raise ValueError('The truth value is ambiguous')
class Model:
    def fit(self, data):
        return self
    query = eval = fit
data, model, pieces = Falsy(), Model(), {'a': Falsy()}
"""


def test_data_without_a_truth_value_is_given_to_any_method(notebook):
    here = notebook(LIBRARY)
    code = "print(all(call(data) is model for call in (model.fit, model.query, model.eval)))\n"
    assert here.both(f"{code}model.fit(data), model.query(data), model.eval(data)") == "True\n"


def test_data_without_a_truth_value_stands_in_a_text(notebook):
    here = notebook(LIBRARY)
    assert here.both("print(model.query(f'value: {len(pieces)} {data is None}') is model)") == "True\n"
    assert here.capture("model.query(f'value: {data}')").captured
