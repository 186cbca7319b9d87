"""Penstock client: batches of game captures for a training rank.

    feed = penstock.attach(feed="feed.yaml", data=(rank, world), resume="new")
    for step in feed:                       # asking for the next acknowledges this
        for mb in step.microbatches:
            train(mb["video"], mb["keys"])  # read-only numpy views of the arena
    saved = feed.state_dict()               # the same on every rank

Source of the bytes: the daemon of this node (penstockd).
"""

import json as _json
import operator

from . import _native

__version__ = _native.version
__all__ = ["attach", "Feed", "Step", "Microbatch", "Error", "InvalidArgument",
           "AttachRefused", "DataWaitTimeout", "Unavailable", "DataLoss",
           "Aborted", "Forked"]


class Error(Exception):
    """Base of all errors: the message says where, what, found, expected, do."""


class InvalidArgument(Error):
    """An argument, the feed or the coordinates are wrong."""


class AttachRefused(Error):
    """A field does not agree with the job, the run is fenced, or no room."""


class DataWaitTimeout(Error):
    """No batch within the deadline; names who is waited for."""


class Unavailable(Error):
    """No daemon answers, or it went away and did not come back in time."""


class DataLoss(Error):
    """Damaged data, named."""


class Aborted(Error):
    """Feed.abort() ended the wait."""


class Forked(Error):
    """The feed belongs to the parent process."""


_CLASSES = {2: InvalidArgument, 3: AttachRefused, 4: DataWaitTimeout,
            5: Unavailable, 6: DataLoss, 7: Aborted, 8: Forked}


def _call(function, *args):
    try:
        return function(*args)
    except _native.NativeError as e:
        code, message = e.args
        raise _CLASSES.get(code, Error)(message) from None


class Microbatch(dict):
    """Named read-only numpy arrays; the first dimension is units: samples or packs,
    then masked ones; with buckets, samples of this microbatch.

    With buckets `sample_frames` [samples] i32 says how many frames of each sample
    are not padding. With packing `segment_ids` and `position_ids` [packs, tokens]
    i32 (segments from 1, 0 is padding), `cu_seqlens` and `cu_frames`
    [packs, segments + 1] i32 (ends of the segments in tokens and frames; the last
    value repeats) come along. `bucket` is the name of its bucket, or empty;
    `samples` counts its samples.
    """

    def __init__(self, native, m):
        super().__init__(native.tensors(m))
        self._native = native
        self.bucket, self._first, self.samples = native.microbatch_info(m)

    @property
    def sample_ids(self):
        """Its samples; fewer than units when some are masked, more with packing."""
        return self._native.sample_ids()[self._first:self._first + self.samples]


class Step:
    """One optimizer step's share of this rank.

    Arrays stay valid as long as they are referenced; the slot goes back to the
    daemon when the step and all its arrays are gone.
    """

    def __init__(self, native):
        self._native = native

    @property
    def number(self):
        """Step number, from 0."""
        return self._native.number

    @property
    def samples(self):
        """Samples of this rank."""
        return self._native.samples

    @property
    def global_samples(self):
        """Samples of all ranks."""
        return self._native.global_samples

    @property
    def tokens(self):
        """Tokens of this rank's samples, with a context-parallel cut of its slice of
        them; 0 when the feed has no lengths."""
        return self._native.tokens

    @property
    def global_tokens(self):
        """Tokens of all ranks' samples."""
        return self._native.global_tokens

    @property
    def units(self):
        """First dimension of the tensors: samples or packs, then masked units
        (zeros); with buckets, microbatches. The same on all ranks."""
        return self._native.units

    @property
    def loss_scale(self):
        """What the mean loss of this rank's samples (of its tokens, when the feed has
        lengths) is multiplied with, so that the mean over data ranks (with a
        context-parallel cut over its ranks too) is the mean over all."""
        return self._native.loss_scale

    @property
    def wait_seconds(self):
        """How long the call that gave this step waited."""
        return self._native.wait_ns / 1e9

    @property
    def sample_ids(self):
        return self._native.sample_ids()

    @property
    def item_digests(self):
        """XXH3-128 of every sample, hex, in the order of sample_ids."""
        return self._native.item_digests()

    @property
    def batch_digest(self):
        return self._native.batch_digest

    @property
    def global_digest(self):
        """Over all items of the step; empty where not all are on this node."""
        return self._native.global_digest

    @property
    def microbatches(self):
        return [Microbatch(self._native, m)
                for m in range(self._native.microbatches)]

    @property
    def tensors(self):
        """The whole share of the rank; InvalidArgument when the feed has buckets."""
        return _call(self._native.tensors, -1)

    def __getitem__(self, name):
        return self.tensors[name]


class Feed:
    """A rank's end of a job. Attaches at the first use; one thread at a time
    (abort() from any). Iterating ends when the data ends, for all ranks at the
    same step; every failure is an Error."""

    def __init__(self, **options):
        self._options = options
        self._native = None
        self._info = None
        self._closed = False

    def _open(self):
        if self._closed:
            raise InvalidArgument("the feed is closed")
        if self._native is None:
            o = self._options
            rank, world = _coordinates("data", o["data"])
            self._native = _call(
                _native.Feed, o["address"], o["job"], o["feed"],
                o["incarnation"], o["resume"], rank, world,
                _count("ranks_per_node", o["ranks_per_node"]),
                _speeds_text(o["speeds"]), _coordinates("cp", o["cp"]),
                o["cp_cut"], _coordinates("pp", o["pp"]), o["ack_leader"],
                o["ack"] == "explicit", o["takeover"],
                int(o["timeout"] * 1000), int(o["first_timeout"] * 1000))
            self._info = self._native.info()
        return self._native

    @property
    def info(self):
        """Generation, start step, digests, batch sizes (dict)."""
        self._open()
        return dict(self._info)

    def __iter__(self):
        return self

    def __next__(self):
        native = _call(self._open().next)
        if native is None:
            raise StopIteration
        return Step(native)

    def ack(self, step):
        """The optimizer step is finished; only with ack="explicit"."""
        _call(self._open().ack, step.number if isinstance(step, Step) else step)

    def checkpoint(self, name):
        """Names the position after the last step durably."""
        _call(self._open().checkpoint, name)

    def state_dict(self):
        """The cursor: plain values, the same on all ranks, no rank in it."""
        return _json.loads(_call(self._open().state_dict))

    def resume(self, value):
        """Sets where to start; before the first use only."""
        if self._native is not None:
            raise InvalidArgument("resume() after the feed was attached")
        self._options["resume"] = _resume_text(value)

    load_state_dict = resume

    def abort(self):
        """Ends a wait of another thread with Aborted, and every later one."""
        if self._native is not None:
            self._native.abort()

    def close(self):
        self._closed = True
        if self._native is not None:
            self._native.close()
            self._native = None

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.close()


def _coordinates(name, value):
    try:
        rank, world = (operator.index(v) for v in value)
    except (TypeError, ValueError):
        rank = world = -1
    if not 0 <= rank < world < 2 ** 32:
        raise InvalidArgument(
            "%s: no such coordinates\n  found     %r\n"
            "  expected  (rank, size), 0 <= rank < size\n"
            "  do        give the coordinates of this rank in its group"
            % (name, value))
    return rank, world


def _count(name, value):
    try:
        count = operator.index(value)
    except TypeError:
        count = -1
    if not 0 <= count < 2 ** 32:
        raise InvalidArgument("%s: no such number\n  found     %r\n"
                              "  expected  a whole number from 0\n"
                              "  do        correct the argument" % (name, value))
    return count


def _speeds_text(value):
    if value is None or isinstance(value, str):
        return value or ""
    try:
        return ",".join(v if isinstance(v, str) else "%.9f" % v for v in value)
    except TypeError:
        raise InvalidArgument(
            "speeds: no such speeds\n  found     %r\n"
            "  expected  a number for each data rank, as [1, 1, 0.5]\n"
            "  do        correct the argument" % (value,)) from None


def _resume_text(value):
    if isinstance(value, str):
        return value
    if isinstance(value, dict) and set(value) == {"step"}:
        return "step:%d" % value["step"]
    if isinstance(value, dict):
        return _json.dumps(value, sort_keys=True, separators=(",", ":"))
    raise InvalidArgument(
        "resume: found %r, expected \"new\", \"step:K\", {\"step\": K} or the "
        "value of state_dict()" % (value,))


def attach(feed, resume, *, job="", data=(0, 1), address="", incarnation="",
           ack="on_next", ack_leader=True, takeover=False, timeout=120.0,
           first_timeout=600.0, ranks_per_node=0, speeds=None, cp=(0, 1),
           cp_cut="off", pp=(0, 1)):
    """A Feed for one rank; the daemon is asked at its first use.

    feed:    path of the feed file
    resume:  "new", "step:K", {"step": K}, or what state_dict() gave
    data:    (data rank, data world)
    ack:     "on_next": asking for step k+1 acknowledges k; "explicit"
    timeout: seconds that one wait may take
    ranks_per_node: data rank r is on node r // ranks_per_node, for `cut: local`;
             0: all on one; the same on all ranks
    speeds:  of the data ranks, relative to each other, as [1, 1, 0.5]: ranks get
             units in proportion (the feed says `uneven: mask`); the same on all ranks
    cp:      (context-parallel rank, size); the same size on all ranks
    cp_cut:  which slice of token tensors (segment_ids, position_ids) a
             context-parallel rank is given: "off" (all), "contiguous", "head_tail",
             "per_document", "striped"; the same on all ranks
    pp:      (pipeline stage, stages): the first is given outputs whose role is input,
             the last those of role target, all of them metadata
    """
    if ack not in ("on_next", "explicit"):
        raise InvalidArgument("ack: found %r, expected \"on_next\" or "
                              "\"explicit\"" % (ack,))
    return Feed(feed=str(feed), resume=_resume_text(resume), job=job, data=data,
                address=str(address), incarnation=incarnation, ack=ack,
                ack_leader=ack_leader, takeover=takeover, timeout=timeout,
                ranks_per_node=ranks_per_node, speeds=speeds, cp=cp, cp_cut=cp_cut, pp=pp,
                first_timeout=first_timeout)
