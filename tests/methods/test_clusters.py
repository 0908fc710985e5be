"""Which cluster stands for which category, on cases small enough to see."""

import json

import numpy as np

from igcd.methods.clusters import ClusterBook
from igcd.methods.method import Discovery


def labels(*values):
    return np.array(values, dtype=np.int64)


def book_with(known, found):
    """Categories 0 to known - 1 labeled, and discoveries behind them."""
    book = ClusterBook()
    book.take_in_labels(labels(*range(known)), labels(*range(known)), ())
    for cluster in book.open(found):
        book.found[cluster] = Discovery(cluster, 1, (f"image-{cluster}",), 0)
    return book


def test_numbers_are_given_once():
    book = ClusterBook()
    assert book.open(2) == [0, 1]
    book.drop([0, 1])
    assert book.open(0) == [] and book.open(3) == [2, 3, 4]


def test_first_labels_open_clusters_in_order():
    book = ClusterBook()
    assert book.take_in_labels(labels(2, 0, 2, 1), labels(0, 0, 0, 0), ()) == set()
    assert book.cluster_of == {0: 0, 1: 1, 2: 2}
    assert book.of(labels(2, 2, 0)).tolist() == [2, 2, 0]


def test_a_discovery_gets_the_name_of_what_it_mostly_holds():
    """Clusters 2 and 3 were found. 2 holds three images of category 2 and one of 3; 3 holds one of each of two."""
    book = book_with(known=2, found=2)
    predicted = labels(2, 2, 2, 2, 3, 3)
    dropped = book.take_in_labels(labels(2, 2, 2, 3, 3, 0), predicted, [2, 3])
    assert book.cluster_of[2] == 2
    assert book.cluster_of[3] == 4  # half is not most: a new cluster
    assert dropped == {3}


def test_known_images_in_a_discovery_count_against_it():
    """Cluster 2 holds two images of the newly labeled category 2, but three of category 0."""
    book = book_with(known=2, found=1)
    assert book.take_in_labels(labels(0, 0, 0, 2, 2), labels(2, 2, 2, 2, 2), [2]) == {2}
    assert book.cluster_of == {0: 0, 1: 1, 2: 3}


def test_one_discovery_per_category():
    """Two discoveries share a category: the larger one is it."""
    book = book_with(known=1, found=2)
    dropped = book.take_in_labels(labels(1, 1, 1), labels(1, 1, 2), [1, 2])
    assert book.cluster_of[1] == 1 and dropped == {2}


def test_labels_that_are_not_new_name_and_drop_nothing():
    book = book_with(known=2, found=1)
    assert book.take_in_labels(labels(0, 1), labels(2, 2), [2]) == set()
    assert book.cluster_of == {0: 0, 1: 1} and set(book.found) == {2}
    assert book.take_in_labels(labels(), labels(), [2]) == set()


def test_dropping_forgets_the_discovery_alone():
    book = book_with(known=1, found=2)
    book.drop({1, 7})
    assert set(book.found) == {2} and book.n_clusters == 3


def test_the_state_is_text_and_comes_back():
    book = book_with(known=2, found=2)
    state = book.state_dict()
    assert all(isinstance(json.loads(value), list | int) for value in state.values())
    again = ClusterBook.from_state_dict(state)
    assert (again.cluster_of, again.found, again.n_clusters) == (book.cluster_of, book.found, book.n_clusters)
    assert again.open(1) == [4]
