"""Work on several cores keeps its results in order and restores the number of torch's threads."""

from __future__ import annotations

import threading
import time

import pytest
import torch

from attention_atlas.model.serve.batching import Batcher, Turns
from attention_atlas.model.serve.cores import Cores, map_on_spare_core, map_over_cores, run_in_new_thread
from attention_atlas.model.serve.limits import BatchLimits
from tests.conftest import SENTENCES


@pytest.fixture(autouse=True)
def three_threads():
    before = torch.get_num_threads()
    torch.set_num_threads(3)
    yield
    assert torch.get_num_threads() == 3
    torch.set_num_threads(before)


def test_results_keep_their_order_and_threads_are_divided():
    together = threading.Barrier(3, timeout=10)

    def work(item: int) -> tuple[int, int]:
        together.wait()  # only if three run at once
        return item * item, torch.get_num_threads()

    assert map_over_cores(work, range(6)) == [(i * i, 1) for i in range(6)]


def test_a_new_thread_ends_with_its_work_and_its_error_is_raised():
    result = run_in_new_thread(lambda item: (threading.current_thread(), item, torch.get_num_threads()), 7)
    assert result[1:] == (7, 3) and not result[0].is_alive()
    with pytest.raises(ValueError, match="as it was said"):
        run_in_new_thread(_fail, "as it was said")


def _fail(words: str) -> None:
    raise ValueError(words)


def test_a_single_item_keeps_all_threads():
    assert map_over_cores(lambda item: (item, torch.get_num_threads()), [7]) == [(7, 3)]
    assert map_over_cores(lambda item: item, []) == []


def test_nested_calls_run_in_order():
    def outer(item: int) -> list[str]:
        return map_over_cores(lambda _: threading.current_thread().name, [item, item])

    for names in map_over_cores(outer, range(3)):
        assert len(set(names)) == 1 and names[0].startswith("map-over-cores")


def test_the_first_error_is_raised_and_later_items_do_not_start():
    begun = []

    def work(item: int) -> None:
        begun.append(item)
        time.sleep(0.05)
        if item == 0:
            raise ValueError("the first one")

    with pytest.raises(ValueError, match="the first one"):
        map_over_cores(work, range(100))
    assert len(begun) < 20
    assert map_over_cores(lambda item: item, [1, 2]) == [1, 2]  # and it can be used again


@pytest.mark.parametrize("beam", [1, pytest.param(3, marks=pytest.mark.long)])
def test_batches_on_several_cores_give_the_same_translations(tiny_translator, beam):
    """More batches than threads; texts of many lengths, in no order."""
    texts = [*SENTENCES, *(" ".join(SENTENCES[i : i + 2]) for i in (4, 0, 2))]
    sources = [tiny_translator.encode(text) for text in texts]
    sources = [ids for ids in sources if len(ids) <= 60]
    together = tiny_translator.generate(sources, batch_size=2, beam=beam)
    torch.set_num_threads(1)
    assert tiny_translator.generate(sources, batch_size=2, beam=beam) == together
    torch.set_num_threads(3)
    assert together == [tiny_translator.generate([ids], beam=beam)[0] for ids in sources]


def test_a_single_pass_has_all_cores_and_parallel_ones_their_share():
    cores, result = Cores(4), []
    both, done = threading.Barrier(2, timeout=10), threading.Barrier(2, timeout=10)

    def run(items: list[int]) -> list[int]:
        result.append(torch.get_num_threads())
        if items[0] > 1:  # until the other one has begun, too
            both.wait()
            done.wait()
        return items

    limits = BatchLimits(rows=1, at_once=2, cores=cores)
    batches, turns = Batcher(run, limits), Turns(limits)
    assert batches(1, length=1) == 1 and result == [4]  # a single waiting request
    with turns.turn():
        assert torch.get_num_threads() == 4  # and a single action on the page
    other = threading.Thread(target=batches, args=(2,), kwargs={"length": 1})
    other.start()
    both.wait()
    with turns.turn():
        assert result == [4, 4] and torch.get_num_threads() == 2
        with turns.turn():
            assert torch.get_num_threads() == 1
    done.wait()
    other.join(10)
    with pytest.raises(ValueError, match="in words"), turns.turn():
        raise ValueError("in words")
    with turns.turn():  # whatever happened, no pass is still counted
        assert torch.get_num_threads() == 4
    torch.set_num_threads(3)


def test_map_on_spare_core_uses_a_second_core():
    cores, seen = Cores(2), []
    cores.threads = 1  # one of torch's threads a pass
    together = threading.Barrier(2, timeout=10)

    def work(item: int) -> int:
        seen.append((item, threading.get_ident(), torch.is_inference_mode_enabled(), torch.get_num_threads()))
        if item < 2:
            together.wait()  # for the other thread: without one this would fail
        return 2 * item

    with cores.share(), torch.inference_mode():
        assert map_on_spare_core(work, range(6)) == [0, 2, 4, 6, 8, 10]
        assert len({thread for _, thread, *_ in seen}) == 2 and all(one[2:] == (True, 1) for one in seen)
        assert map_on_spare_core(work, [7]) == [14]

    def fails(item: int) -> None:
        if item == 3:
            raise ValueError("item 3")

    with cores.share(), pytest.raises(ValueError, match="item 3"):
        map_on_spare_core(fails, range(9))
    torch.set_num_threads(3)


def test_map_on_spare_core_runs_in_order_where_no_core_is_spare():
    cores, mine, threads = Cores(2), threading.get_ident(), []
    cores.threads = 1
    map_on_spare_core(lambda item: threads.append(threading.get_ident()), range(3))  # outside a share
    with cores.share(), cores.share():  # as many passes as cores
        map_on_spare_core(lambda item: threads.append(threading.get_ident()), range(3))
    assert threads == [mine] * 6
    torch.set_num_threads(3)
