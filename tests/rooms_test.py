"""The rooms of src/ stay ones in which a stranger finds their way.

- Every file that docs/, the READMEs and CONTRIBUTING.md name exists: as `room/folder/file.h`, as
  `room/folder/file` without an ending, or in a room's own README as `file.h` (`x_…` is any).
- Every type, constant and member that the READMEs and docs/ARCHITECTURE.md name as code
  (`Groups::lost`, `kRecipe`) stands in a source somewhere.
- No flat folder has more than 40 files, and files that are crumbs (25 lines or less) are few.
- Every room has a README.
- A file's code stands in its room's namespace; include/cohort/ and base/ have `cohort` itself.
"""

import pathlib
import re
import sys

MOST_FILES = 40
CRUMB_LINES, MOST_CRUMBS = 25, 0.08
QUOTED = re.compile(r"`([^`\s]+)`")
FILE = re.compile(r"^(?:src/)?([a-z0-9_]+(?:/[a-z0-9_]+)*/?)(\.h|\.cc|\.py|\.proto)?$")
# `Groups::lost`, `WorkerCard`, `kRecipe`; not `SIGKILL`, nor a single word (`Bytes` may be anything).
CODE = re.compile(r"\b((?:[A-Z]\w*::)+\w+|[A-Z][a-z]+[A-Z]\w+|k[A-Z][a-z]\w+)")
SOURCES = {".h", ".cc", ".py", ".proto", ".txt", ".cmake"}
# What the code calls a room whose own name a public function has: cohort::train().
NAMESPACES = {"base": "cohort", "train": "cohort::training"}
OPENED = re.compile(r"^namespace (cohort[\w:]*) \{", re.MULTILINE)


def rooms_of(root):
    return sorted(p for p in (root / "src").iterdir() if p.is_dir())


def names_a_file(source, name, ending):
    path = source / name
    if ending:
        return path.with_name(path.name + ending).is_file()
    return path.is_dir() or any(path.with_name(path.name + e).is_file()
                                for e in (".h", ".cc", "_test.cc"))


def missing_names(root):
    source = root / "src"
    rooms = {room.name for room in rooms_of(root)}
    pages = [*(root / "docs").glob("*.md"), root / "README.md", root / "CONTRIBUTING.md",
             root / "SECURITY.md", *source.rglob("README.md")]
    for page in pages:
        for quoted in QUOTED.findall(page.read_text()):
            match = FILE.match(quoted.rstrip(","))
            if not match:
                continue
            name, ending = match.groups()
            if re.match(r"x(_|$)", name.split("/")[-1]):
                continue
            where = f"{page.relative_to(root)}: `{quoted}`"
            if not ending and page.name in {"data.md", "job.md"}:
                continue  # Users' own folders: `data/mnist`.
            if "/" in name.rstrip("/"):
                beside = page.parent if page.is_relative_to(source) else source
                places = (source, beside, root, root / "include")
                # A path with an ending is a file of ours; without one it may be anything.
                if (ending or name.split("/")[0] in rooms) and \
                        not any(names_a_file(place, name, ending) for place in places):
                    yield f"{where} does not exist"
            elif ending in {".h", ".cc"} and page.is_relative_to(source):
                if not any(page.parent.rglob(name + ending)) and \
                        not (root / "include" / "cohort" / (name + ending)).exists():
                    yield f"{where} is not in this room"


def missing_code(root):
    folders = [root / f for f in ("src", "include", "tests", "bench", "fuzz", "cmake")]
    text = "\n".join(p.read_text() for f in folders for p in f.rglob("*") if p.suffix in SOURCES)
    pages = [root / "docs" / "ARCHITECTURE.md", *(root / "src").rglob("README.md"),
             root / "bench" / "README.md", root / "fuzz" / "README.md"]
    for page in pages:
        for quoted in re.findall(r"`([^`\n]+)`", page.read_text()):
            for name in CODE.findall(quoted):
                if not all(re.search(rf"\b{part}", text) for part in name.split("::")):
                    yield f"{page.relative_to(root)}: `{quoted}`: there is no {name} in the code"


def full_folders(root):
    for folder in (root / "src").rglob("*"):
        if folder.is_dir():
            files = sum(p.is_file() for p in folder.iterdir())
            if files > MOST_FILES:
                yield f"{folder.relative_to(root)} has {files} files, more than {MOST_FILES}"


def crumbs(root):
    files = [p for p in (root / "src").rglob("*") if p.suffix in {".h", ".cc"}]
    small = [p for p in files if len(p.read_text().splitlines()) <= CRUMB_LINES]
    if len(small) > MOST_CRUMBS * len(files):
        yield (f"{len(small)} of {len(files)} files have {CRUMB_LINES} lines or less: "
               + ", ".join(str(p.relative_to(root)) for p in sorted(small)))


def elsewhere(root):
    """Files that have no namespace of their room: beside it, public functions and forward
    declarations of other rooms' types may stand."""
    for room in rooms_of(root):
        name = NAMESPACES.get(room.name, f"cohort::{room.name}")
        for path in [*room.rglob("*.h"), *room.rglob("*.cc")]:
            opened = OPENED.findall(path.read_text())
            own = [o for o in opened if o == name or o.startswith(name + "::")]
            defines_public = path.suffix == ".cc" and "cohort" in opened
            if opened and not own and not defines_public:
                yield f"{path.relative_to(root)} is in {opened[0]}, not in {name}"


def without_readme(root):
    for room in rooms_of(root):
        if not (room / "README.md").exists():
            yield f"{room.relative_to(root)} has no README.md"


def main(root):
    complaints = [*missing_names(root), *missing_code(root), *full_folders(root), *crumbs(root),
                  *elsewhere(root), *without_readme(root)]
    print("\n".join(complaints) or "rooms are as they should be")
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(sys.argv[1])))
