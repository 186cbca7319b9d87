"""Plays SolarWolf (Debian package `solarwolf`) in this process with a scripted bot.

The game's own modules run unchanged; only the clock is replaced, so that one step is always
25 ms (the game's own 40 steps a second), and the sound calls are noted while they are made.
"""

import os
import random
import sys
import tempfile
import wave

import numpy as np

from capture_io import Inputs, Spool

FPS = 40
RATE = 44000          # twice the 22000 Hz at which the game opens its mixer; 1100 samples a tick
CODE = "/usr/lib/games/solarwolf"
DATA = "/usr/share/games/solarwolf"

KEYS = [("ArrowUp", "up"), ("ArrowDown", "down"), ("ArrowLeft", "left"),
        ("ArrowRight", "right"), ("Space", "turbo")]
WAYS = {"ArrowUp": (0, -1), "ArrowDown": (0, 1), "ArrowLeft": (-1, 0), "ArrowRight": (1, 0)}
TICK_COLUMNS = [("pos_x", "f64", "pixel"), ("pos_y", "f64", "pixel"),
                ("move_x", "i64", "sign"), ("move_y", "i64", "sign"), ("turbo", "i64", "bool"),
                ("level", "i64", "number"), ("lives", "i64", "count"),
                ("boxes_left", "i64", "count"), ("shots", "i64", "count"),
                ("time_left", "f64", "point"), ("shield", "i64", "level"),
                ("alive", "i64", "bool"), ("dead", "i64", "bool")]
ACTION_COLUMNS = [(name, "i64", "bool") for _, name in KEYS]


class Mix:
    """Plays the game's sound calls sample by sample: the same files, times and volumes.

    It stands in for pygame's mixer, which has no way to run slower or faster than the wall
    clock.  SolarWolf opens that mixer at 22000 Hz; here each sample is linearly resampled.
    """

    def __init__(self, total_ticks):
        self.per_tick = RATE // FPS
        self.out = np.zeros((total_ticks * self.per_tick, 2), np.float32)
        self.tick = 0
        self.cache = {}
        self.calls = 0

    def load(self, name):
        path = os.path.join(DATA, "data", "audio", name + ".wav")
        if name not in self.cache:
            if not os.path.exists(path):
                self.cache[name] = None
                return None
            with wave.open(path, "rb") as f:
                raw, rate = f.readframes(f.getnframes()), f.getframerate()
                width, channels = f.getsampwidth(), f.getnchannels()
            if width == 1:
                data = (np.frombuffer(raw, np.uint8).astype(np.float32) - 128.0) / 128.0
            else:
                data = np.frombuffer(raw, "<i2").astype(np.float32) / 32768.0
            data = data.reshape(-1, channels).mean(axis=1)
            count = int(len(data) * RATE / rate)
            self.cache[name] = np.interp(np.arange(count) * rate / RATE,
                                         np.arange(len(data)), data).astype(np.float32)
        return self.cache[name]

    def play(self, name, volume=1.0, pos=-1):
        data = self.load(name)
        if data is None or not volume:
            return
        right = 0.5 if pos == -1 else min(max(pos / 700.0, 0.0), 1.0)   # as in snd.py
        at = self.tick * self.per_tick
        piece = data[:max(0, len(self.out) - at)]
        self.out[at:at + len(piece), 0] += piece * (1.0 - right) * volume
        self.out[at:at + len(piece), 1] += piece * right * volume
        self.calls += 1


def game_arena():
    import game                                       # on the path only after record() began
    return game.arena


class Bot:
    """Goes for one cube after another, one axis at a time, and steps aside from shots."""

    def __init__(self, rng):
        self.rng = rng
        self.way = None
        self.box = None
        self.turbo_until = 0
        self.wait = 0

    @staticmethod
    def danger(play, x, y, way):
        """How near a shot, rock or mine comes if the ship flies `way` for the next 18 ticks."""
        mx, my = WAYS[way]
        speed = play.player.speeds[play.player.turbo]
        arena = game_arena().inflate(-play.player.rect.width, -play.player.rect.height)
        worst = 999.0
        for thing in list(play.shotobjs) + list(play.asteroidobjs) + list(play.spikeobjs):
            vx, vy = getattr(thing, "move", (0, 0))
            cx, cy = thing.rect.center
            for k in range(0, 19, 3):
                sx = min(max(x + mx * speed * k, arena.left), arena.right)
                sy = min(max(y + my * speed * k, arena.top), arena.bottom)
                worst = min(worst, max(abs(cx + vx * k - sx), abs(cy + vy * k - sy)))
        return worst

    def decide(self, play, tick):
        """Returns (direction key or None for no change, turbo held, tap)."""
        ship = play.player
        if not ship.active:
            self.way = self.box = None
            return None, False, False
        x, y = ship.rect.center
        turbo = tick < self.turbo_until
        if self.wait > 0 and self.danger(play, x, y, self.way) > 28:
            self.wait -= 1
            return self.way, turbo, False
        boxes = play.boxobjs + play.powerupobjs
        if not boxes:
            return self.way, False, False
        if self.box not in boxes or self.box.touches_seen != getattr(self.box, "touches", 0):
            # A cube that must be touched twice is left first; the next one is taken meanwhile.
            free = [b for b in boxes if b is not self.box] or boxes
            self.box = min(free, key=lambda b: (
                abs(b.rect.centerx - x) + abs(b.rect.centery - y), b.rect.centerx, b.rect.centery))
            self.box.touches_seen = getattr(self.box, "touches", 0)
        dx, dy = self.box.rect.centerx - x, self.box.rect.centery - y
        across = "ArrowRight" if dx > 0 else "ArrowLeft"
        along = "ArrowDown" if dy > 0 else "ArrowUp"
        if abs(dx) < 18:
            wishes = [along, across]
        elif abs(dy) < 18:
            wishes = [across, along]
        elif self.way in (across, along):
            wishes = [self.way, along if self.way == across else across]
        else:
            wishes = [across, along] if abs(dx) > abs(dy) else [along, across]
        wishes += [w for w in WAYS if w not in wishes]

        def cost(pair):
            near = self.danger(play, x, y, pair[1])
            return pair[0] * 20 + (300 - 10 * near if near < 30 else 0) + (15 if near < 42 else 0)

        best = min(enumerate(wishes), key=cost)[1]
        if best != self.way:
            self.way = best
            self.wait = self.rng.randint(0, 2)
        if max(abs(dx), abs(dy)) > 150 and tick > self.turbo_until + 25:
            self.turbo_until = tick + self.rng.randint(8, 22)
        return self.way, turbo, self.rng.random() < 0.5


def record(plan, folder):
    os.environ["SDL_VIDEODRIVER"] = "dummy"
    os.environ["SDL_AUDIODRIVER"] = "dummy"
    home = tempfile.mkdtemp(prefix="home-", dir=folder)
    os.environ["HOME"] = home
    before = os.getcwd()
    os.chdir(DATA)
    sys.path.insert(0, CODE)
    import pygame
    pygame.init()
    now = {"ms": 0}
    pygame.time.get_ticks = lambda: now["ms"]

    class Clock:                                      # always on time
        def tick(self, *_):
            return 1000 // FPS

        def get_fps(self):
            return float(FPS)

    random.seed(plan["seed"])
    import game
    import gfx
    import input as controls
    import snd
    import txt
    import allmodules  # noqa: F401  loads every module whose resources are needed
    import gameinit
    import gameplay
    import players

    game.clock, game.clockticks = Clock(), 1000 // FPS
    game.help, game.comments = 1, 1                   # short help lines instead of a stopped game
    controls.load_translations()
    mix = Mix(plan["frames"] + 1)
    snd.play = lambda name, volume=1.0, pos=-1: mix.play(name, volume, pos) if recording else None
    snd.fetch = lambda name: None
    snd.playmusic = lambda *_: None                   # Debian's package has no music files
    recording = False
    gfx.initialize((800, 600), 0)
    txt.initialize()
    game.threadstop = 0
    gameinit.loadresources()
    if gameinit.load_finished_status < 0:
        raise RuntimeError("SolarWolf could not load its files")
    game.player = players.Player("bot", guid="bot", score=plan["level"])
    play = gameplay.GamePlay(None)
    play.startmusic = 0
    game.handler = play
    gfx.surface.fill(0)

    keys = {"ArrowUp": pygame.K_UP, "ArrowDown": pygame.K_DOWN, "ArrowLeft": pygame.K_LEFT,
            "ArrowRight": pygame.K_RIGHT, "Space": pygame.K_SPACE}
    rng = random.Random(plan["seed"] * 7919)          # the bot's own, so as not to disturb the game
    bot = Bot(rng)
    inputs = Inputs(FPS)
    spool = Spool(folder, 800, 600, FPS, RATE)
    ticks, actions = [], []
    stars_at = 0

    def step(events):
        nonlocal stars_at
        if now["ms"] - stars_at >= 1000:              # main.py's timer event
            stars_at = now["ms"]
            gfx.starobj.recalc_num_stars(float(FPS))
        for code, value in events:
            event = pygame.event.Event(pygame.KEYDOWN if value else pygame.KEYUP,
                                       {"key": keys[code], "mod": 0, "unicode": ""})
            translated = controls.translate(event)
            translated = controls.exclusive((controls.UP, controls.DOWN, controls.LEFT,
                                             controls.RIGHT), translated)
            play.input(translated)
            play.event(translated)
        play.run()
        gfx.update()
        now["ms"] += 1000 // FPS

    while play.state in ("gamestart", ""):            # the intro of a new game is not recorded
        step([])
    inputs.start_recording()
    recording = True
    step_ns = 10**9 // FPS
    for tick in range(plan["frames"]):
        picture = pygame.surfarray.array3d(gfx.surface).swapaxes(0, 1)
        spool.frame(np.ascontiguousarray(picture, dtype=np.uint8))
        ship = play.player
        ticks.append({"tick": tick, "pos_x": float(ship.pos[0]), "pos_y": float(ship.pos[1]),
                      "move_x": ship.move[0], "move_y": ship.move[1], "turbo": int(ship.turbo),
                      "level": play.levelnum, "lives": play.lives_left,
                      "boxes_left": len(play.boxobjs), "shots": len(play.shotobjs),
                      "time_left": round(game.timeleft, 3), "shield": int(ship.shield),
                      "alive": int(ship.active), "dead": int(play.state == "playerdie")})
        way, turbo, tap = bot.decide(play, tick)
        if tick == plan["frames"] - 1:                # the bot lets go of everything at the end
            way, turbo, tap = None, False, False
        start = inputs.frame_ns(tick)
        count = len(inputs.events)
        # Several events of one tick, in the order of their times inside it.
        at = start + rng.uniform(1e6, 5e6)
        held = [c for c in WAYS if inputs.held.get(c)]
        tapped = None
        if way is None or way not in held:
            for code in held:
                inputs.key(at, code, 0)
                at += rng.uniform(1e6, 4e6)
            # The ship keeps its course, so a short tap does the same as holding the key.
            if way and tap:
                inputs.key(at, way, 1)
                inputs.key(at + rng.uniform(4e6, 9e6), way, 0)
                tapped = way
                at += 9e6
            elif way and ship.active and ship.move != list(WAYS[way]):
                inputs.key(at, way, 1)
                at += rng.uniform(1e6, 4e6)
        if bool(inputs.held.get("Space")) != bool(turbo):
            inputs.key(at, "Space", int(turbo))
        assert not inputs.events or inputs.events[-1]["t_ns"] < start + step_ns
        row = {"frame": tick}
        for code, name in KEYS:
            row[name] = int(bool(inputs.held.get(code)) or code == tapped)
        actions.append(row)
        mix.tick = tick
        step([(e["code"], e["value"]) for e in inputs.events[count:]])
        if game.handler is not play or play.state == "gameover":
            raise RuntimeError(f"the game ended at tick {tick}; take another seed or fewer frames")
    assert not any(inputs.held.values()), inputs.held
    sound = mix.out[:plan["frames"] * mix.per_tick]
    spool.samples((np.clip(sound * 0.8, -1, 1) * 32767).astype("<i2"))
    spool.close()
    os.chdir(before)
    return {
        "inputs": inputs, "ticks": ticks, "actions": actions,
        "tick_columns": TICK_COLUMNS, "action_columns": ACTION_COLUMNS,
        "source": f"SolarWolf 1.5 (Debian solarwolf 1.5+dfsg1) under pygame-ce "
                  f"{pygame.version.ver}, its modules driven with a fixed clock of 25 ms, level "
                  f"{plan['level']}, seed {plan['seed']}; scripted bot of "
                  f"loadtest/captures/record.py; sound: the game's own {mix.calls} sound calls "
                  f"mixed from its own files at the tick of the call, because a real mixer would "
                  f"follow the wall clock; no music, Debian's package has none",
        "pairing_note": "Frame i shows the state of ticks row i, which is the state before the "
                        "inputs of [i, i+1)/40 s act. Those inputs, summed in actions row i, are "
                        "applied in the step from tick i to tick i+1 and first show in frame i+1. "
                        "A control counts as down in a row when it is down at the end of the "
                        "interval or was pressed and released inside it.",
    }, spool
