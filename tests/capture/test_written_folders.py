"""Tests of folders that a cell writes into: they exist in a trial, and shipped files that it may write are copies."""


def test_a_folder_made_for_a_trial_is_there_wherever_the_cell_runs(notebook, result_folder):
    book = notebook(cwd=result_folder)
    code = "import os\nwith open('models/m.txt', 'w') as f:\n    f.write('x')\nprint(os.listdir('models'))"
    captured = book.capture(code)
    assert captured.folders == ("models", "models/old")
    code = "import os\nwith open('figures/m.txt', 'w') as f:\n    f.write('x')\nprint(os.path.exists('figures/m.txt'))"
    assert book.elsewhere(code) == "True\n"
