"""One step ahead: the order of things, errors, and that no thread is left."""

import threading

import pytest

from pexeso.semantic.executor import prefetched


def threads() -> list[str]:
    return [
        thread.name for thread in threading.enumerate() if thread.name.startswith("pexeso-prefetch")
    ]


@pytest.mark.parametrize("threaded", [False, True])
def test_all_items_come_in_order_and_none_is_made_twice(threaded):
    made = []

    def items():
        for number in range(20):
            made.append(number)
            yield number

    with prefetched(items(), threaded=threaded) as numbers:
        assert list(numbers) == list(range(20))
    assert made == list(range(20))
    assert not threads()


def test_the_next_item_is_made_while_this_one_is_worked_on_and_no_further():
    made, second = [], threading.Event()

    def items():
        for number in range(5):
            made.append(number)
            if number == 1:
                second.set()
            yield number

    with prefetched(items()) as numbers:
        assert next(numbers) == 0
        assert second.wait(10)
        assert made == [0, 1]
    assert not threads()


@pytest.mark.parametrize("threaded", [False, True])
def test_an_error_comes_where_the_item_would_have_come(threaded):
    def items():
        yield 1
        raise ValueError("no second item")

    with prefetched(items(), threaded=threaded) as numbers:
        assert next(numbers) == 1
        with pytest.raises(ValueError, match="no second item"):
            next(numbers)
    assert not threads()


def test_a_caller_that_fails_leaves_no_thread():
    def fail() -> None:
        with prefetched(iter(range(10))) as numbers:
            raise RuntimeError(f"{next(numbers)} is enough")

    with pytest.raises(RuntimeError, match="0 is enough"):
        fail()
    assert not threads()
