from rich.progress import Progress

from igcd.cli.console import Speed


def test_the_speed_is_of_what_was_done_since_the_start():
    clock = [0.0]
    bar = Progress(Speed(), get_time=lambda: clock[-1])
    task = bar.add_task("embedding", total=None)
    column, state = Speed(), bar.tasks[0]
    bar.update(task, completed=5_000, total=9_000)  # of an earlier run
    assert column.render(state).plain == ""
    for now, n_done in ((2.0, 5_064), (4.0, 5_128)):
        clock.append(now)
        bar.update(task, completed=n_done, total=9_000)
    assert column.render(state).plain == "32.0/s"
