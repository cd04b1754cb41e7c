"""What a process and everything it started take: peak memory, and CPU time.

Memory is PSS (each shared page divided among the processes that map it), so that forked workers are not counted twice.
Reading it makes the kernel walk page tables: the pause between samples is 100 ms, or 50 times what the last sample took
if that is more, which keeps the observer below 2 % of one core. Linux only.
"""

from __future__ import annotations

import threading
import time
from pathlib import Path

import psutil

PAUSE = 0.1
COURTESY = 50


class TreeWatch:
    """Watches the tree of one process id from a thread, until `stop`; then `peak_memory` and `cpu_seconds` are final.

    CPU time is kept per process as last seen, for a process that nobody waits for (a JVM) tells its parent nothing.
    """

    def __init__(self, pid: int) -> None:
        self.peak_memory = 0
        self._process = psutil.Process(pid)
        self._cpu: dict[psutil.Process, float] = {}
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    @property
    def cpu_seconds(self) -> float:
        """What the tree's processes had computed when they were last seen."""
        return sum(self._cpu.values())

    def stop(self) -> None:
        self._stopped.set()
        self._thread.join()

    def _watch(self) -> None:
        pause = 0.0
        while not self._stopped.wait(pause):
            started = time.perf_counter()
            self._sample()
            pause = max(PAUSE, COURTESY * (time.perf_counter() - started))

    def _sample(self) -> None:
        memory = 0
        for process in tree(self._process):
            memory += proportional_set_size(process.pid)
            self._cpu[process] = max(self._cpu.get(process, 0.0), cpu_seconds(process))
        self.peak_memory = max(self.peak_memory, memory)


def tree(root: psutil.Process) -> list[psutil.Process]:
    try:
        return [root, *root.children(recursive=True)]
    except psutil.NoSuchProcess:
        return []


def proportional_set_size(pid: int) -> int:
    """Bytes; a process that has just ended counts as nothing."""
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except (FileNotFoundError, ProcessLookupError):
        return 0
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith("Pss:")), 0)


def cpu_seconds(process: psutil.Process) -> float:
    try:
        times = process.cpu_times()
    except psutil.NoSuchProcess:
        return 0.0
    return float(times.user + times.system)


def machine_cpu_seconds() -> float:
    """What all processes of the machine have computed so far."""
    times = psutil.cpu_times()
    return float(times.user + times.nice + times.system)
