"""Plays a Freedoom level in ViZDoom with a scripted bot and spools what happens."""

import math
import os
import random
import struct

import numpy as np
import vizdoom as vzd

from capture_io import Inputs, Spool
from doom_map import WalkGrid, path_to

FPS = 35
RATE = 44100
DEGREES_PER_COUNT = 0.05

MONSTERS = {"Zombieman", "ShotgunGuy", "ChaingunGuy", "DoomImp", "Demon", "Spectre",
            "LostSoul", "Cacodemon", "HellKnight", "BaronOfHell"}
PICKUPS = {"Clip", "ClipBox", "Shell", "ShellBox", "Stimpack", "Medikit", "HealthBonus",
           "ArmorBonus", "GreenArmor", "BlueArmor", "Shotgun", "Chaingun", "SuperShotgun",
           "RocketLauncher", "RocketAmmo", "Backpack", "Soulsphere", "Chainsaw"}

# (button of the game, control that the bot presses, column of the actions track)
HOLDS = [
    (vzd.Button.MOVE_FORWARD, "KeyW", "forward"),
    (vzd.Button.MOVE_BACKWARD, "KeyS", "back"),
    (vzd.Button.MOVE_LEFT, "KeyA", "left"),
    (vzd.Button.MOVE_RIGHT, "KeyD", "right"),
    (vzd.Button.SPEED, "ShiftLeft", "run"),
    (vzd.Button.USE, "KeyE", "use"),
    (vzd.Button.ATTACK, "MouseLeft", "attack"),
]
V = vzd.GameVariable
VARIABLES = [
    (V.POSITION_X, "pos_x", "f64", "map_unit"), (V.POSITION_Y, "pos_y", "f64", "map_unit"),
    (V.POSITION_Z, "pos_z", "f64", "map_unit"), (V.ANGLE, "angle", "f64", "degree"),
    (V.VELOCITY_X, "vel_x", "f64", "map_unit_per_tic"),
    (V.VELOCITY_Y, "vel_y", "f64", "map_unit_per_tic"),
    (V.HEALTH, "health", "i64", "percent"), (V.ARMOR, "armor", "i64", "percent"),
    (V.SELECTED_WEAPON, "weapon", "i64", "slot"),
    (V.SELECTED_WEAPON_AMMO, "ammo", "i64", "count"),
    (V.KILLCOUNT, "kills", "i64", "count"), (V.ITEMCOUNT, "items", "i64", "count"),
    (V.HITCOUNT, "hits", "i64", "count"), (V.DAMAGE_TAKEN, "damage_taken", "i64", "percent"),
    (V.DEAD, "dead", "i64", "bool"),
]
TICK_COLUMNS = ([("game_tic", "i64", "tic")] + [v[1:] for v in VARIABLES])
ACTION_COLUMNS = ([(c, "i64", "bool") for _, _, c in HOLDS]
                  + [("turn", "f64", "degree"), ("next_weapon", "i64", "bool")])


def freedoom_version(wad):
    """The text of the FREEDOOM lump, which names the release."""
    with open(wad, "rb") as f:
        _, count, directory = struct.unpack("<4sii", f.read(12))
        f.seek(directory)
        for entry in struct.iter_unpack("<ii8s", f.read(16 * count)):
            if entry[2].rstrip(b"\0") == b"FREEDOOM":
                f.seek(entry[0])
                return f.read(entry[1]).decode("ascii").strip()
    raise RuntimeError(f"{wad} is not a Freedoom wad")


def wrap(degrees):
    return (degrees + 180.0) % 360.0 - 180.0


class Bot:
    """Walks to pickups and unseen places, opens what stops it, shoots the monsters it sees."""

    def __init__(self, rng, sectors, boldness):
        self.rng = rng
        self.grid = WalkGrid(sectors)
        self.boldness = boldness
        self.visited = set()
        self.given_up = set()
        self.path, self.goal = [], None
        self.trail = []
        self.fire_wait = 0
        self.fire_left = 0
        self.strafe, self.strafe_left = None, 0
        self.turn_speed = 0.0
        self.escape = 0
        self.tap_use = 0

    def plan(self, state, x, y):
        here = self.grid.cell(x, y)
        dist, parent = self.grid.flood(here)
        best, best_cost = None, 1e9
        for thing in state.objects:
            if thing.name not in PICKUPS and thing.name not in MONSTERS:
                continue
            cell = self.grid.cell(thing.position_x, thing.position_y)
            if cell not in dist or cell in self.given_up or dist[cell] < 3:
                continue
            cost = dist[cell] * (self.boldness if thing.name in MONSTERS else 1.0)
            if cost < best_cost:
                best, best_cost = cell, cost
        if best is None or best_cost > 140:
            fresh = [c for c in dist if (c[0] // 8, c[1] // 8) not in self.visited
                     and c not in self.given_up and dist[c] > 12]
            if fresh:
                best = min(fresh, key=lambda c: (abs(dist[c] - 70), c))
            elif best is None and dist:
                best = max(dist, key=lambda c: (dist[c], c))
        self.goal = best
        self.path = path_to(parent, best) if best else []

    def target(self, state, x, y):
        """The nearest live monster on the screen, as (distance, bearing)."""
        found = None
        for label in state.labels:
            if label.object_name not in MONSTERS or label.height < 6:
                continue
            dx, dy = label.object_position_x - x, label.object_position_y - y
            distance = math.hypot(dx, dy)
            # A fallen monster keeps its name in some versions; its picture is wide and low.
            if label.width > 1.6 * label.height or distance > 1400:
                continue
            if found is None or distance < found[0]:
                found = (distance, math.degrees(math.atan2(dy, dx)))
        return found

    def decide(self, state, tic, values):
        """Returns (set of held controls, set of tapped controls, mouse counts, wheel clicks)."""
        x, y, angle = values["pos_x"], values["pos_y"], values["angle"]
        rng = self.rng
        held, taps, wheel = set(), set(), 0
        here = self.grid.cell(x, y)
        self.visited.add((here[0] // 8, here[1] // 8))
        self.trail.append((x, y))
        enemy = self.target(state, x, y) if values["ammo"] > 0 else None

        if enemy:
            distance, want = enemy
            aim_error = wrap(want - angle)
            if distance > 420 and abs(aim_error) < 40:
                held.add("KeyW")
            elif distance < 160:
                held.add("KeyS")
            if self.strafe_left <= 0:
                self.strafe = rng.choice(["KeyA", "KeyD", None])
                self.strafe_left = rng.randint(8, 22)
            self.strafe_left -= 1
            if self.strafe:
                held.add(self.strafe)
            if abs(aim_error) < math.degrees(math.atan2(22, distance)) + 1.0:
                if self.fire_left > 0:
                    self.fire_left -= 1
                    held.add("MouseLeft")
                elif self.fire_wait > 0:
                    self.fire_wait -= 1
                elif rng.random() < 0.5:
                    taps.add("MouseLeft")          # a click shorter than one tic
                    self.fire_wait = rng.randint(3, 8)
                else:
                    held.add("MouseLeft")
                    self.fire_left = rng.randint(2, 9)
                    self.fire_wait = rng.randint(4, 9)
            self.path = []
        else:
            self.fire_left = 0
            if self.path and self.goal:
                gx, gy = self.grid.centre(self.goal)
                if math.hypot(gx - x, gy - y) < 28:
                    self.given_up.add(self.goal)
                    self.path = []
            if not self.path or tic % 50 == 0:
                self.plan(state, x, y)
            want = angle
            if self.path:
                near = min(range(len(self.path)), key=lambda k: (
                    (self.path[k][0] - here[0]) ** 2 + (self.path[k][1] - here[1]) ** 2, -k))
                ahead = near + 1
                for k in range(min(near + 14, len(self.path) - 1), near, -1):
                    if self.grid.clear_line(here, self.path[k]):
                        ahead = k
                        break
                wx, wy = self.grid.centre(self.path[min(ahead, len(self.path) - 1)])
                want = math.degrees(math.atan2(wy - y, wx - x))
            error = wrap(want - angle)
            if self.escape > 0:
                self.escape -= 1
                held.add("KeyS")
                held.add(self.strafe or "KeyA")
            elif abs(error) < 55:
                held.add("KeyW")
                if abs(error) < 12 and len(self.path) > 20:
                    held.add("ShiftLeft")
            if 12 < abs(error) < 60 and self.escape == 0:
                held.add("KeyA" if error > 0 else "KeyD")
            # Standing although it wants to walk: a door, a barrel or a corner.
            if len(self.trail) > 14 and self.escape == 0 and abs(error) < 30:
                ox, oy = self.trail[-14]
                if math.hypot(x - ox, y - oy) < 10:
                    if self.tap_use < 3:
                        taps.add("KeyE")
                        self.tap_use += 1
                        self.trail = self.trail[-4:]
                    else:
                        self.tap_use = 0
                        ahead_x = x + 30 * math.cos(math.radians(angle))
                        ahead_y = y + 30 * math.sin(math.radians(angle))
                        self.grid.block(ahead_x, ahead_y, 26)
                        if self.goal:
                            self.given_up.add(self.goal)
                        self.path = []
                        self.strafe = rng.choice(["KeyA", "KeyD"])
                        self.escape = 12
                        self.trail = self.trail[-1:]
                elif math.hypot(x - ox, y - oy) > 60:
                    self.tap_use = 0

        # A hand's turn: it speeds up and slows down, and is never quite exact.
        error = wrap(want - angle)
        goal_speed = max(-13.0, min(13.0, error * 0.32))
        self.turn_speed += 0.6 * (goal_speed - self.turn_speed)
        turn = self.turn_speed + (rng.gauss(0, 0.12) if abs(self.turn_speed) > 0.3 else 0.0)
        counts = round(-turn / DEGREES_PER_COUNT)   # the mouse to the right turns clockwise
        if values["shotgun"] and tic % 160 == 150:
            wheel = 1
        return held, taps, counts, wheel


def record(plan, folder):
    rng = random.Random(plan["seed"])
    width, height = plan["size"]
    before = os.getcwd()
    os.chdir(folder)                                # the engine writes its settings where it runs
    game = vzd.DoomGame()
    base = os.path.dirname(vzd.__file__)
    game.set_doom_game_path(os.path.join(base, plan["wad"]))
    game.set_doom_map(plan["map"])
    game.set_doom_skill(plan["skill"])
    game.set_screen_resolution(getattr(vzd.ScreenResolution, f"RES_{width}X{height}"))
    game.set_screen_format(vzd.ScreenFormat.RGB24)
    game.set_window_visible(False)
    game.set_render_hud(True)
    game.set_render_crosshair(False)
    game.set_sound_enabled(True)
    game.set_audio_buffer_enabled(True)
    game.set_audio_sampling_rate(vzd.SamplingRate.SR_44100)
    game.set_audio_buffer_size(1)
    # Debian's OpenAL 1.19.1 stops with an assertion in its reverb filter when a level starts
    # in silence; without the reverb effects the rest of the mix is as the game makes it.
    game.add_game_args("+snd_efx 0")
    game.set_labels_buffer_enabled(True)
    game.set_objects_info_enabled(True)
    game.set_sectors_info_enabled(True)
    game.set_available_buttons([b for b, _, _ in HOLDS]
                               + [vzd.Button.TURN_LEFT_RIGHT_DELTA, vzd.Button.SELECT_NEXT_WEAPON])
    game.set_available_game_variables([v for v, *_ in VARIABLES] + [V.WEAPON3])
    game.set_mode(vzd.Mode.PLAYER)
    game.set_episode_timeout(0)
    game.set_seed(plan["seed"])
    game.init()

    state = game.get_state()
    bot = Bot(rng, state.sectors, plan["boldness"])
    inputs = Inputs(FPS)
    spool = Spool(folder, width, height, FPS, RATE)
    ticks, actions = [], []
    warm_up = plan["warm_up"]
    step_ns = 10**9 / FPS
    total = warm_up + plan["frames"]
    for tic in range(total):
        index = tic - warm_up
        state = game.get_state()
        raw = dict(zip([name for _, name, _, _ in VARIABLES] + ["shotgun"], state.game_variables))
        if index == 0:
            inputs.start_recording()
        if index >= 0:
            spool.frame(state.screen_buffer)
            row = {"tick": index, "game_tic": int(state.tic)}
            for _, name, kind, _ in VARIABLES:
                row[name] = int(raw[name]) if kind == "i64" else round(float(raw[name]), 3)
            ticks.append(row)

        start = inputs.frame_ns(index)
        if tic < 8 or tic == total - 1:             # the bot lets go of everything at the end
            held, taps, counts, wheel = set(), set(), 0, 0
        else:
            held, taps, counts, wheel = bot.decide(state, tic, raw)
        down = {}
        for _, code, _ in HOLDS:
            was = bool(inputs.held.get(code))
            if code in taps and not was:
                press = start + rng.uniform(2e6, 8e6)
                inputs.key(press, code, 1)
                inputs.key(press + rng.uniform(9e6, 17e6), code, 0)
                down[code] = 1
                continue
            if was != (code in held):
                inputs.key(start + rng.uniform(1e6, 0.9 * step_ns), code, int(code in held))
            down[code] = int(code in held)
        left = counts
        reports = 1 if abs(counts) < 15 else 2 if abs(counts) < 120 else 3
        for k in range(reports):                    # a fast turn comes as several mouse reports
            part = round(left / (reports - k))
            left -= part
            if part:
                inputs.motion(start + (k + rng.uniform(0.1, 0.9)) * step_ns / reports, part)
        if wheel:
            inputs.wheel(start + rng.uniform(3e6, 20e6), wheel)

        turn = counts * DEGREES_PER_COUNT
        game.make_action([down[c] for _, c, _ in HOLDS] + [turn, int(wheel > 0)], 1)
        if index >= 0:
            row = {"frame": index}
            for _, code, name in HOLDS:
                row[name] = down[code]
            row["turn"] = round(turn, 2)
            row["next_weapon"] = int(wheel > 0)
            actions.append(row)
        if game.is_episode_finished():
            raise RuntimeError(f"the level ended at tic {tic}; take another seed or fewer frames")
        sound = game.get_state().audio_buffer
        if index >= 0:
            assert sound.shape == (RATE // FPS, 2), sound.shape
            spool.samples(np.ascontiguousarray(sound, dtype="<i2"))
    assert not any(inputs.held.values()), inputs.held
    game.close()
    os.chdir(before)
    spool.close()
    version = getattr(vzd, "__version__", "?")
    return {
        "inputs": inputs, "ticks": ticks, "actions": actions,
        "tick_columns": TICK_COLUMNS, "action_columns": ACTION_COLUMNS,
        "source": f"ViZDoom {version} (synchronous PLAYER mode, one frame per tic), "
                  f"{plan['wad']} of its wheel (Freedoom "
                  f"{freedoom_version(os.path.join(base, plan['wad']))}), {plan['map']}, skill {plan['skill']}, "
                  f"seed {plan['seed']}, {warm_up} tics played before frame 0; scripted bot of "
                  f"loadtest/captures/record.py; mouse: {DEGREES_PER_COUNT} degree a count",
        "pairing_note": "Frame i shows the state of ticks row i, which is the state before the "
                        "inputs of [i, i+1)/35 s act. Those inputs, summed in actions row i, are "
                        "applied in the step from tick i to tick i+1 and first show in frame i+1. "
                        "A control counts as down in a row when it is down at the end of the "
                        "interval or was pressed and released inside it.",
    }, spool
