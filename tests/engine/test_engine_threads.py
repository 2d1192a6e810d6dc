"""Threads: steps on few numbers take one, pieces are shared out among all."""

import threading

import torch
from engine_lakes import threads_of_torch

from pexeso.engine.arrays import SMALL, available_threads, few_threads, in_pieces


def test_few_numbers_take_one_thread_and_the_others_stay_available():
    with threads_of_torch(3):
        with few_threads(SMALL):
            assert torch.get_num_threads() == 1
            assert available_threads() == 3
            with few_threads():
                assert available_threads() == 3
        assert torch.get_num_threads() == available_threads() == 3
        with few_threads(SMALL + 1):
            assert torch.get_num_threads() == 3


def test_threads_come_back_after_an_error():
    with threads_of_torch(2):
        try:
            with few_threads():
                raise KeyError
        except KeyError:
            pass
        assert torch.get_num_threads() == available_threads() == 2


def test_pieces_cover_everything_once_in_as_many_threads_as_there_are():
    for threads in (1, 2):
        seen, names = torch.zeros(100, dtype=torch.int64), set()
        meeting = threading.Barrier(threads)

        def task(begin, end, seen=seen, names=names, meeting=meeting):
            meeting.wait(timeout=20)
            assert torch.get_num_threads() == 1
            names.add(threading.current_thread().name)
            seen[begin:end] += 1

        with threads_of_torch(threads):
            in_pieces(100, 25, torch.device("cpu"), task)
        assert seen.tolist() == [1] * 100
        assert len(names) == threads


def test_no_pieces():
    in_pieces(0, 10, torch.device("cpu"), lambda begin, end: 1 / 0)
