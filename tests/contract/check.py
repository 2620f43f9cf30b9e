"""Compare the answers of this version with those of 2634b2ce and their amendments.

    python tests/contract/check.py [--family NAME …] [--stride N] [--jobs N] [--match TEXT]
    python tests/contract/check.py --family points --amend "45 §1b" "one sentence: why it changed"

Exit status 1 if anything differs that `amendments.toml` does not list, or if an amendment is no difference.
``--amend`` lists all differences found; look at them before.
"""

import argparse
import functools
import sys
import time
from collections import Counter
from collections.abc import Iterator
from multiprocessing import Pool
from typing import Any

import answers
import decks
import store
from corpus import FAMILIES

Difference = tuple[str, str, str]

LISTS = {"decks": decks.ask, "pictures": decks.picture}
"""Families of commands, and what answers them."""


def arguments(about: str, words: list[str] | None = None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    names = [*FAMILIES, *LISTS]
    parser.add_argument("--family", action="append", choices=names, help="only these (repeatable)")
    parser.add_argument("--stride", type=int, default=1, help="every how manieth circuit or command")
    parser.add_argument("--match", default="", help="only keys that contain this text")
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--show", type=int, default=40, help="differences to print of each family")
    parser.add_argument("--amend", nargs=2, metavar=("ISSUE", "REASON"), help="add the differences to the amendments")
    options = parser.parse_args(words)
    options.family = options.family or names
    return options


def ask_seed(family: str, seed: int) -> tuple[str, tuple[answers.Answer, int]]:
    """One random circuit: key, answer and checksum of its deck."""
    text = FAMILIES[family].deck(seed)
    return f"{family} {seed}", (answers.answer(*FAMILIES[family].analysis(seed), text), store.checksum(text))


def ask_key(family: str, key: decks.Key) -> tuple[str, dict[str, Any]]:
    """One command of a deck: key and answer."""
    return text_of(family, key), LISTS[family](key)


def text_of(family: str, key: decks.Key) -> str:
    """A command as keys name it."""
    return " ".join([*(["picture"] if family == "pictures" else []), key[0], key[1], *key[2]])


def tasks(family: str, stride: int, match: str = "") -> list[Any]:
    """The seeds or keys of a family. Commands that took too long are left out unless ``match`` asks for them."""
    if family not in LISTS:
        return [seed for seed in range(0, FAMILIES[family].count, stride) if match in f"{family} {seed}"]
    expected = frozen(family) | store.read_json("amended")
    asked = [(text_of(family, key), key) for key in (decks.questions() if family == "decks" else decks.PICTURES)]
    quick = [key for text, key in asked if match in text and (match or expected.get(text, {}).get("code") != -1)]
    return quick[::stride]


def computed(family: str, options: argparse.Namespace) -> dict[str, Any]:
    """The answers of a family by key, with progress on standard error."""
    found, began = {}, time.perf_counter()
    work = tasks(family, options.stride, options.match)
    one = functools.partial(ask_key if family in LISTS else ask_seed, family)
    for done, (key, value) in enumerate(each(one, work, options.jobs), 1):
        found[key] = value
        if done % 100 == 0 or done == len(work):
            seconds = time.perf_counter() - began
            print(f"{family}: {done} of {len(work)}, {seconds:.0f} s", file=sys.stderr, flush=True)
    return found


def each(one: Any, work: list[Any], jobs: int) -> Iterator[Any]:
    """Results in order, by one or several processes."""
    if jobs == 1:
        yield from map(one, work)
        return
    with Pool(jobs) as pool:
        yield from pool.imap(one, work, chunksize=8)


def tolerance(family: str, key: str, value: Any) -> float:
    """Largest difference allowed, over the scale: the sum of the stated accuracies of implicit waveforms, else 1e-9.

    Projections of an implicit waveform add up about ten values.
    """
    if family == "implicit":
        return 10.0 * answers.IMPLICIT
    if family not in LISTS:
        return 1e-9
    if key.startswith("train ") and "circuit" not in key:
        return 1e-5  # single precision
    return answers.IMPLICIT if value.get("implicit") else 1e-9


@functools.cache
def frozen(family: str) -> Any:
    """The stored answers of a family."""
    return store.read_json(family) if family in LISTS else store.read_family(family)


def compare(family: str, key: str, value: Any, amended: dict[str, Any], current: bool = True) -> list[Difference]:
    """Where an answer differs from what is expected; with ``current`` False from what was frozen, amendments aside."""
    amendment = amended.get(key) if current else None
    if family in LISTS:
        old = frozen(family).get(key)
        if old is None and amendment is None:
            return [("command", "absent", "new: freeze it as an amendment")]
        return answers.differences(amendment or old, value, tolerance(family, key, value))
    seed, (answer, crc) = int(key.split()[1]), value
    stored = frozen(family)
    old = store.from_json(amendment) if amendment else stored.answers[seed]
    apart = answers.answers_apart(old, answer, tolerance(family, key, answer))
    # Processors round powers in different ways: the last digit of a value is not another circuit.
    if apart and stored.checksums[seed] != crc:
        apart = [("deck", "another circuit", "the generator draws differently"), *apart]
    return apart


def stale(family: str, key: str, amended: dict[str, Any]) -> bool:
    """Whether an amendment changes nothing."""
    value: Any = amended[key]
    if value == GONE:
        return key in {text_of(family, key) for key in tasks(family, 1, " ")}
    if family not in LISTS:
        value = (store.from_json(value), frozen(family).checksums[int(key.split()[1])])
    return not compare(family, key, value, {}, current=False)


def family_of(key: str) -> str:
    """The family of a key."""
    first, second = key.split()[:2]
    if first in FAMILIES and second.isdigit():
        return first
    return "pictures" if first == "picture" else "decks"


GONE: dict[str, Any] = {"gone": True}
"""The answer of a command that is asked no more: its deck went."""


def gone(family: str, amended: dict[str, Any]) -> list[str]:
    """Frozen commands that are asked no more, and are not amended so."""
    asked = {text_of(family, key) for key in tasks(family, 1, " ")}
    return [key for key in frozen(family) if key not in asked and amended.get(key) != GONE]


def listed_amiss(amended: dict[str, Any]) -> list[str]:
    """What is wrong with the amendments themselves."""
    listed = [key for entry in store.amendments() for key in entry.keys]
    wrong = [f"{key}: listed twice" for key, times in Counter(listed).items() if times > 1]
    wrong += [f"{key}: an amendment without an answer" for key in sorted(set(listed) - amended.keys())]
    wrong += [f"{key}: an amended answer without an amendment" for key in sorted(amended.keys() - set(listed))]
    wrong += [f"{key}: frozen, but asked no more" for family in LISTS for key in gone(family, amended)]
    return wrong + [f"{key}: no difference any more" for key in sorted(amended) if stale(family_of(key), key, amended)]


def amend(found: dict[str, tuple[Any, list[Difference]]], issue: str, reason: str) -> None:
    """Add differences to the amendments; those that read alike make one entry. One that differs again keeps its earlier
    reason beside the new one."""
    amended = store.read_json("amended")
    earlier = {key: entry for entry in store.amendments() for key in entry.keys}
    for key, (value, _) in found.items():
        amended[key] = value if family_of(key) in LISTS else store.as_json(value[0])
    back = {key for key in amended if stale(family_of(key), key, amended)}  # at the frozen answer
    entries = [
        x._replace(keys=tuple(k for k in x.keys if k not in found and k not in back)) for x in store.amendments()
    ]
    entries = [x for x in entries if x.keys]
    for key in back:
        del amended[key]
        found.pop(key, None)
    groups: dict[tuple[str, ...], list[str]] = {}
    for key, (value, differences) in found.items():
        if value != GONE:
            differences = compare(family_of(key), key, value, {}, current=False)
        texts = ["; ".join(f"{x[0]} {x[k]}" for x in differences[:3]) for k in (1, 2)]
        why = issue, reason
        if key in earlier and issue not in earlier[key].issue:
            why = f"{earlier[key].issue}; {issue}", f"{earlier[key].reason} {reason}"
        groups.setdefault((*texts, *why, "" if family_of(key) in LISTS else family_of(key)), []).append(key)
    entries += [store.Amendment(tuple(keys), *group[:4]) for group, keys in groups.items()]
    store.write_json("amended", amended)
    store.write_amendments(entries)


def main() -> int:
    """Check the families asked for; 1 if anything differs."""
    options = arguments(__doc__ or "")
    amended, found = store.read_json("amended"), dict[str, tuple[Any, list[Difference]]]()
    for family in options.family:
        values = computed(family, options)
        apart = {key: (value, compare(family, key, value, amended)) for key, value in values.items()}
        apart = {key: value for key, value in apart.items() if value[1]}
        if family in LISTS:
            apart |= {key: (GONE, [("command", "asked", "gone")]) for key in gone(family, amended)}
        for key, (_, differences) in list(apart.items())[: options.show]:
            print(key, *(f"    {what}: {old} → {new}" for what, old, new in differences[:8]), sep="\n")
        missing = set() if options.stride > 1 or options.match or family != "decks" else frozen("decks").keys() - values
        print(
            f"{family}: {len(values)} asked, {len(apart)} differ; {len(missing)} frozen commands are not asked any more"
        )
        found |= apart
    if options.amend:
        amend(found, *options.amend)
        return 0
    wrong = listed_amiss(amended)
    print(*wrong, sep="\n")
    return int(bool(found or wrong))


if __name__ == "__main__":
    sys.exit(main())
