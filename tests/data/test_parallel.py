"""Order is kept, work stays bounded, and a failing worker is heard."""

import threading
from itertools import count

import pytest

from igcd.data.parallel import map_in_order
from igcd.errors import IgcdError


@pytest.mark.parametrize("n_workers", [1, 2, 5, None])
@pytest.mark.parametrize("n_ahead", [1, 3, 100])
def test_order_is_kept(n_workers, n_ahead):
    assert list(map_in_order(lambda x: x * x, range(50), n_workers=n_workers, n_ahead=n_ahead)) == [
        x * x for x in range(50)
    ]


def test_nothing_is_drawn_further_ahead_than_asked():
    drawn = []

    def items():
        for number in count():  # endless: reading it whole would never return
            drawn.append(number)
            yield number

    results = map_in_order(lambda x: x, items(), n_workers=2, n_ahead=4)
    assert [next(results) for _ in range(10)] == list(range(10))
    assert len(drawn) <= 10 + 4
    results.close()


def test_workers_end_when_the_reader_stops():
    before = threading.active_count()
    results = map_in_order(lambda x: x, range(1000), n_workers=3, n_ahead=6)
    next(results)
    results.close()
    assert threading.active_count() == before


def test_a_failing_worker_is_heard():
    with pytest.raises(ZeroDivisionError):
        list(map_in_order(lambda x: 1 // x, [2, 1, 0], n_workers=2, n_ahead=2))


def test_no_workers_is_an_error():
    with pytest.raises(IgcdError, match="n_workers must be at least 1, got 0"):
        map_in_order(abs, [1], n_workers=0, n_ahead=1)
