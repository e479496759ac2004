"""The ranks that all tests of this folder share until its last, and what one process does alone."""

from functools import cache

import pytest

from tests.labs.rank_pool import RankPool

BODIES = ("loading_code", "loops", "sharing", "staging", "starting", "training")
IMPORTED = ("transformers.models.gpt2.modeling_gpt2", *(f"tests.parallel.{one}" for one in BODIES))


@pytest.fixture(scope="package")
def ranks(tmp_path_factory):
    pool = RankPool(tmp_path_factory.mktemp("ranks"), IMPORTED)
    yield pool
    pool.close()


@pytest.fixture(scope="package")
def alone(ranks):
    """Model and clipping → losses and gradients of one process, without a plan."""
    from tests.parallel import training  # the folder is collected without torch too

    return cache(lambda model, **words: ranks.run(1, training.train, model=model, **words)[0])
