"""The day and the machine, as one JSON object. Usage: machine.py "" FOLDER (both are for other scripts)."""

import datetime
import json
import os
import platform
from importlib.metadata import version


def processor():
    try:
        with open("/proc/cpuinfo") as lines:
            return next(line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()


cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
load = f"load average {os.getloadavg()[0]:.1f} before" if hasattr(os, "getloadavg") else "load not known"
machine = f"{cores} cores of {processor()}, {platform.system()}, {load}; Python {platform.python_version()}, NumPy {version('numpy')}"
print(json.dumps({"date": datetime.date.today().isoformat(), "machine": machine}))
