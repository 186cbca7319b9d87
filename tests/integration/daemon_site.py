"""A daemon with a dataset of the repository's captures, for Python tests."""
import ctypes
import json
import os
import signal
import subprocess
import tempfile


def end_with_parent():
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG


class DaemonSite:
    """Folder `home` with `dataset`, `run` (sockets), `state`; caches stay in it."""

    def __init__(self, binaries, captures, arena_bytes=268435456):
        self._tmp = tempfile.TemporaryDirectory()
        self.home = self._tmp.name
        self.binaries = binaries
        self.env = dict(os.environ, XDG_CACHE_HOME=self.home + "/cache")
        self.run("import", *captures, "--out", self.home + "/dataset")
        self.write("d.yaml", "socket_dir: %s/run\nstate_dir: %s/state\n"
                   "arena_bytes: %d\n" % (self.home, self.home, arena_bytes))
        self.daemon = None

    def write(self, name, text):
        path = self.home + "/" + name
        with open(path, "w") as f:
            f.write(text)
        return path

    def run(self, *arguments):
        """Output of `penstock` with these arguments."""
        return subprocess.run([self.binaries + "/penstock", *arguments], check=True,
                              capture_output=True, text=True, env=self.env).stdout

    def refusal(self, *arguments):
        """Exit code and message of `penstock` with arguments that it refuses."""
        done = subprocess.run([self.binaries + "/penstock", *arguments],
                              capture_output=True, text=True, env=self.env)
        return done.returncode, done.stderr.strip()

    def lines(self, *arguments):
        return [json.loads(x) for x in self.run(*arguments, "--json").splitlines()]

    def start(self):
        self.daemon = subprocess.Popen(
            [self.binaries + "/penstockd", "--config", self.home + "/d.yaml",
             "--insecure-loopback"], stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL, preexec_fn=end_with_parent, env=self.env)
        self.daemon.stdout.readline()  # it is ready

    def kill(self):
        self.daemon.kill()
        self.daemon.wait()
        self.daemon.stdout.close()

    def close(self):
        self.daemon.terminate()
        self.daemon.stdout.close()
        assert self.daemon.wait(20) == 0
        self._tmp.cleanup()
