"""Run many seeds of a fuzzer, each batch in a process of its own, so that a crash names its seed.

python tests/support/fuzz_readers.py --count 10000
python tests/support/fuzz_saved.py --only models --count 20000
python tests/support/serve_fuzz_decode.py --only arrow --first 4711 --count 1  # one seed again
"""

import argparse
import resource
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable

STEP = 1000


def main(kinds: Iterable[str], run: Callable[[str, int, str], str], gigabytes: int = 8) -> None:
    """Run ``run(kind, seed, folder)``, which returns an outcome, for seeds of all kinds or one.

    The last line of a process is its outcomes, as words and numbers.
    """
    parser = argparse.ArgumentParser()
    parser.add_argument("--only", choices=list(kinds))
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--count", type=int, default=10_000)
    parser.add_argument("--here", action="store_true", help="in this process")
    options = parser.parse_args()
    if options.here:
        resource.setrlimit(resource.RLIMIT_AS, (gigabytes << 30, gigabytes << 30))
        found: Counter[str] = Counter()
        with tempfile.TemporaryDirectory() as folder:
            for seed in range(options.first, options.first + options.count):
                print(seed, file=sys.stderr)  # the last one printed is the one that crashed
                found[run(options.only, seed, folder)] += 1
        print(*(word for item in found.items() for word in item))
        return
    failed = False
    for kind in [options.only] if options.only else kinds:
        found = Counter()
        for first in range(options.first, options.first + options.count, STEP):
            count = min(STEP, options.first + options.count - first)
            command = [sys.executable, sys.argv[0], "--here", "--only", kind, f"--first={first}"]
            try:
                done = subprocess.run(
                    [*command, f"--count={count}"], capture_output=True, text=True, timeout=1200
                )
                trouble = f"exit code {done.returncode}" if done.returncode else ""
                output, errors = done.stdout, done.stderr
            except subprocess.TimeoutExpired as error:
                trouble, output, errors = "no end", "", (error.stderr or b"").decode()
            if trouble:
                failed = True
                print(f"{kind}: {trouble}; {errors[-3000:]}")
            words = output.split()
            found.update(dict(zip(words[::2], map(int, words[1::2]), strict=True)))
        print(f"{kind}:", *(f"{outcome} {n}" for outcome, n in sorted(found.items())), flush=True)
    sys.exit(failed)
