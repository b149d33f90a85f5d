"""Draws who uses whom, by the sources' includes and by the symbols that object files take from each other, and fails on
an arrow upwards, on a circle of more than four files, on a circle of three or four and on a header of several files'
functions whose reason no README.md gives, on a function that other files could call and none does, on one that only tests
call, and on an error of a failed allocation that is written out.

    arrows.py BUILD_FOLDER
"""

import os
import re
import subprocess
import sys

# Each folder, the lowest first, with the folders that it may use in addition to itself. A name also stands for the
# folders below it, unless they have a row of their own; a file may have a row, too. The README.md of each folder says what
# the folder owns.
RUNTIME = ["runtime/base", "runtime/graph", "runtime/io", "runtime/ops", "runtime/pass", "runtime/host", "runtime/device",
           "runtime/exec"]
TASKS = ["runtime/transport", "runtime/cluster"]
PROFILED = RUNTIME + ["runtime/trace.h", "profiler"]
SIMULATED = PROFILED + ["placer/model", "placer/simulate"]
# The search finds the algorithms by name in their list (algo.c), and knows no other file of their folder.
ALGORITHMS = ["placer/algo/algo.h", "placer/algo/algo.c"]
SEARCHED = SIMULATED + ["placer/exact", "placer/search", "placer/algo"] + ALGORITHMS
PLACED = SEARCHED + ["placer/subject", "placer/measure", "placer/learned", "placer/job", "placer"]
MAY_USE = {
    "runtime/base": [],
    "runtime/trace.h": ["runtime/base"],
    "runtime/graph": ["runtime/base"],
    "runtime/io": ["runtime/base", "runtime/graph"],
    "runtime/ops": ["runtime/base", "runtime/graph", "runtime/io"],
    "runtime/pass": ["runtime/base", "runtime/graph", "runtime/ops"],
    "runtime/host": ["runtime/base", "runtime/graph", "runtime/ops"],
    "runtime/device": ["runtime/base", "runtime/graph", "runtime/ops", "runtime/host", "runtime/trace.h"],
    "runtime/exec": RUNTIME + ["runtime/trace.h"],
    "runtime/transport": ["runtime/base", "runtime/graph"],
    "runtime/cluster": RUNTIME + ["runtime/trace.h"] + TASKS,
    "profiler": PROFILED,
    "placer/model": PROFILED,
    "placer/simulate": PROFILED + ["placer/model"],
    "placer/exact": SIMULATED,
    "placer/algo/algo.h": SIMULATED,
    "placer/search": SIMULATED + ["placer/exact"] + ALGORITHMS,
    "placer/algo": SEARCHED,
    "placer/algo/algo.c": ["placer/algo"] + ALGORITHMS,
    "placer/subject": SEARCHED,
    "placer/measure": SEARCHED + ["placer/subject"],
    "placer/learned": SEARCHED,
    "placer/job": SEARCHED + ["placer/subject", "placer/measure", "placer/learned"],
    "placer/tasks": PLACED + TASKS,
    "placer": PLACED,
    "rl": PLACED,
    "reports": ["runtime/base", "profiler"] + PLACED[len(PROFILED):],
    "libtfc": PLACED,
    "cli": PLACED + ["rl", "reports", "placer/tasks"] + TASKS,
}
# Exceptions: what a folder may not use although its row allows it, nor include through other headers. The executor uses
# devices only through their driver's vtable. Of its own folders, those in ready order know those in a fixed order, and
# these know the rewrites, never the other way round. What both kinds of plan stand on (SHARED) knows none of the three:
# only the files above them do: session.c, which makes plans, and fallback.c and where.c, which tell what is in one.
SHARED = ["runtime/exec/" + name for name in (
    "execution.c execution.h gate.c gate.h groundwork.c groundwork.h model.c model.h model_checkpoint.c model_checkpoint.h "
    "node_state.c node_state.h order_heap.c order_heap.h queue_threads.c queue_threads.h saved_state.c saved_state.h session.h "
    "session_internal.h variables.c variables.h where.h").split()]
MAY_NOT_USE = [(file, "runtime/exec/" + room) for file in SHARED for room in ("plan", "dynamic", "rewrites")] + [("runtime/exec", "runtime/device/cpu"), ("runtime/exec", "runtime/device/cuda"),
               ("runtime/exec", "runtime/device/emulated"), ("runtime/exec/plan", "runtime/exec/dynamic"),
               ("runtime/exec/rewrites", "runtime/exec/plan"), ("runtime/exec/rewrites", "runtime/exec/dynamic")]
LARGEST_CIRCLE = 4
# plug-ins, which are loaded only when needed
PLUGIN = re.compile(r"runtime/device/cuda/|profiler/cupti/|runtime/transport/mpi/")
DECLARES = re.compile(r"^(?!static|typedef|extern const)(?:TFC_(?:MUST_USE|API|CUDA_API) )?[a-z_][\w *]*?\b(\w+)\([^;{}]*\)[^;{}]*;",
                      re.M)
# Functions that the product offers and only tests call, with the reason why they stay.
FOR_TESTS = {
    "tfc_activity_free": "releases what a program keeps until it ends",
    "tfc_checkpoint_entries": "fuzzing and tests read every entry of a file, programs only those that a graph names",
    "tfc_driver_add": "drivers of tests, and of others, have no other way in",
    "tfc_emulated_calls": "tells a test what was asked of the emulated device",
    "tfc_emulated_inject": "makes the emulated device fail where a test says",
    "tfc_gemm_name": "says which kernels a test has checked",
    "tfc_gpu_profiler_set": "a profiler that is played, where there is no GPU",
    "tfc_member_static_parts": "whether a task ran the kind of plan that a test is about",
    "tfc_plan_in_another_order": "whether a plan adapted",
    "tfc_rl_algos": "the policies without the command line's list",
    "tfc_session_variable_bytes": "what a session holds, which no result shows",
    "tfc_split_suppose_fast": "a result must not depend on what was measured",
    "tfc_train": "made the policy that is built in (tests/bench/policy_bench.c), and makes the next one",
    "tfc_transport_faulty": "a transport that loses and delays messages",
    "tfc_warnings_deinit": "releases what a program keeps until it ends",
}


def is_in(file, name):
    """Whether the file is of this name, or in the folder of this name."""
    return file == name or file.startswith(name + "/")


def room(path):
    """The row of MAY_USE that a file belongs to."""
    while path:
        if path in MAY_USE:
            return path
        path = os.path.dirname(path)
    return None


def sources():
    """Every source of the product."""
    found = []
    for top in ("runtime", "profiler", "placer", "rl", "reports", "libtfc", "cli"):
        for folder, _, names in os.walk(top):
            found += [os.path.join(folder, name) for name in names if name.endswith((".c", ".h", ".cu", ".cuh", ".inc"))]
    return sorted(found)


def includes(files):
    """Arrows by includes: (user, used, how)."""
    line = re.compile(r'^ *# *include +"([^"]+)"', re.M)
    for path in files:
        with open(path, encoding="utf-8") as text:
            for used in line.findall(text.read()):
                beside = os.path.normpath(os.path.join(os.path.dirname(path), used))
                yield path, used if os.path.exists(used) else beside, "includes it"


def included(uses, file):
    """All headers that a file includes, also through others, each with the one that includes it."""
    by, left = {}, [file]
    while left:
        at = left.pop()
        for header in sorted(uses.get(at, ())):
            if header.endswith(".h") and header not in by:
                by[header] = at
                left.append(header)
    return by


def objects(build, files):
    """Object files of the product's sources as {object: source}; those of sources that are gone are left out."""
    known, found = set(files), {}
    for folder, _, names in os.walk(build):
        for name in names:
            path = os.path.join(folder, name)
            inside = re.search(r"CMakeFiles/[^/]+\.dir/(.+)\.o$", path)
            if inside and inside.group(1) in known:
                found[path] = inside.group(1)
    return found


def symbols(found):
    """{symbol: sources that define it} and [(source, symbol that it takes)]. Names of one file alone (t, d, ...) are
    nobody's."""
    defined, wanted = {}, []
    if not found:
        return defined, wanted
    listed = subprocess.run(["nm", "-A", "-P"] + sorted(found), stdout=subprocess.PIPE, check=True, text=True).stdout
    for line in listed.splitlines():
        path, symbol, kind = re.match(r"(.*?)(?:\[.*\])?: (\S+) (\S)", line).groups()
        if kind in "TDBRV":
            defined.setdefault(symbol, set()).add(found[path])
        elif kind == "U":
            wanted.append((found[path], symbol))
    return defined, wanted


def calls(defined, wanted):
    """Arrows by symbols: (user, used, how)."""
    for user, symbol in wanted:
        # A symbol that several files define (the copies of a kernel on the host) does not show which of them is called.
        if len(defined.get(symbol, ())) == 1:
            yield user, next(iter(defined[symbol])), symbol


def words(paths):
    """Every word of the texts, without comments and declarations of functions."""
    found = set()
    for path in paths:
        with open(path, encoding="utf-8", errors="replace") as text:
            text = re.sub(r"//[^\n]*", "", text.read())
        found.update(re.findall(r"\w+", DECLARES.sub("", text) if path.endswith(".h") else text))
    return found


def uncalled(defined, wanted, files, built):
    """Functions and data that a file offers and that no other file or plug-in takes: (file, symbol, whether a test names
    it). Sources of plug-ins that are not `built` here take what they name; a declaration in a header takes nothing.
    A function that its own file uses may be named by tests besides. Left out are the library's own folder (its functions
    are the public ones), sources that are not C, and names that begin with __ (compilers and sanitizers make these)."""
    taken = {symbol for _, symbol in wanted}
    plugins = words([file for file in files if PLUGIN.match(file) and file not in built])
    for file in files:  # what a plug-in offers is looked up by name when it is loaded
        with open(file, encoding="utf-8") as text:
            plugins.update(re.findall(r'\bdlsym\([^;"]*"(\w+)"', text.read()))
    tests = []
    for top in ("tests", "examples"):
        for folder, _, names in os.walk(top):
            tests += [os.path.join(folder, name) for name in names if name.endswith((".c", ".h", ".cpp", ".cu"))]
    tests = words(tests)
    for symbol, places in sorted(defined.items()):
        if symbol in taken or symbol in plugins or symbol == "main" or symbol.startswith("__"):
            continue
        if any(at.startswith("libtfc/") or not at.endswith(".c") for at in places):
            continue
        file = min(places)
        if symbol not in tests:
            yield file, symbol, False
            continue
        with open(file, encoding="utf-8") as text:
            if len(re.findall(r"\b" + symbol + r"\b", re.sub(r"//[^\n]*", "", text.read()))) == 1:
                yield file, symbol, True


def shared_headers(files):
    """{header: the files whose functions it declares} where these are several."""
    defines = re.compile(r"^(?!static|typedef)(?:TFC_CUDA_API )?[a-z_][\w *]*?\b(\w+)\([^;{}]*\)\s*\{", re.M)
    texts, where = {}, {}
    for path in files:
        with open(path, encoding="utf-8") as text:
            texts[path] = re.sub(r"//[^\n]*", "", text.read())
        if path.endswith((".c", ".cu")):
            for name in defines.findall(texts[path]):
                where.setdefault(name, set()).add(path)
    found = {}
    for header in files:
        if not header.endswith(".h"):
            continue
        places = {place for function in DECLARES.findall(texts[header]) for place in where.get(function, ())}
        if len(places) > 1:
            found[header] = sorted(places)
    return found


def said_to_be_shared():
    """Headers that a README.md beside them calls shared, in a paragraph "Shared header:" that says why."""
    for top in ("runtime", "profiler", "placer", "rl", "reports", "libtfc", "cli"):
        for folder, _, names in os.walk(top):
            if "README.md" not in names:
                continue
            with open(os.path.join(folder, "README.md"), encoding="utf-8") as text:
                for part in re.findall(r"Shared headers?:(.*?)(?:\n\n|\n- |\Z)", text.read(), re.S):
                    yield from (os.path.normpath(os.path.join(folder, name)) for name in re.findall(r"`([\w/]+\.h)`", part))


def written_out(files):
    """Where an error of a failed allocation is written out instead of made by tfc_status_no_memory or
    tfc_status_no_memory_for: (file, line). Memory that a limit or a device refused is another matter: those errors say how
    much was asked for and what the limit is, or what CUDA's error is called."""
    literal = re.compile(r'TFC_RESOURCE_EXHAUSTED,\s*"[^"]*out of memory(?![^"]*(?:asked for|the limit is))[^"]*"')
    for path in files:
        if path not in ("runtime/base/status.c", "runtime/device/cuda/failure.c"):
            with open(path, encoding="utf-8") as file:
                text = file.read()
            for found in literal.finditer(text):
                yield path, text.count("\n", 0, found.start()) + 1


def circles(arrows):
    """Strongly connected components of more than one file, largest first (Tarjan), and each file's level: 0 calls nobody."""
    index, low, stack, on, out, level = {}, {}, [], set(), [], {}
    for start in sorted(arrows):
        if start in index:
            continue
        work = [(start, iter(sorted(arrows[start])))]
        index[start] = low[start] = len(index)
        stack.append(start)
        on.add(start)
        while work:
            at, rest = work[-1]
            step = next(rest, None)
            if step is None:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[at])
                if low[at] == index[at]:
                    circle = []
                    while not circle or circle[-1] != at:
                        circle.append(stack.pop())
                        on.discard(circle[-1])
                    below = [level[used] for file in circle for used in arrows[file] if used in level]
                    for file in circle:
                        level[file] = 1 + max(below, default=-1)
                    if len(circle) > 1:
                        out.append(sorted(circle))
            elif step not in index:
                index[step] = low[step] = len(index)
                stack.append(step)
                on.add(step)
                work.append((step, iter(sorted(arrows[step]))))
            elif step in on:
                low[at] = min(low[at], index[step])
    return sorted(out, key=lambda circle: (-len(circle), circle)), level


def explained(circle):
    """Whether a README.md of the circle's folders has a line "Circle:" that names all its files."""
    for folder in {os.path.dirname(file) for file in circle}:
        while folder:
            path = os.path.join(folder, "README.md")
            if os.path.exists(path):
                with open(path, encoding="utf-8") as text:
                    for part in re.findall(r"Circle:(.*?)(?:\n\n|\n- |\Z)", text.read(), re.S):
                        if all("`" + os.path.basename(file) + "`" in part for file in circle):
                            return True
            folder = os.path.dirname(folder)
    return False


def main():
    build = sys.argv[1]
    files = sources()
    found = objects(build, files)
    faults = []

    defined, wanted = symbols(found)
    uses, upwards = {file: set() for file in files}, {}
    by_call = {file: set() for file in files if file in set(found.values())}
    for user, used, how in list(includes(files)) + list(calls(defined, wanted)):
        above, below = room(user), room(used)
        if user == used or not below:
            continue
        uses[user].add(used)
        if how != "includes it":
            by_call[user].add(used)
        never = any(is_in(user, a) and used.startswith(b + "/") for a, b in MAY_NOT_USE)
        if never or (above != below and below not in MAY_USE[above]):
            upwards.setdefault((user, used), []).append(how)
    for (user, used), how in sorted(upwards.items()):
        faults.append(f"{user} may not use {used}: {', '.join(sorted(set(how))[:4])}")

    for above, below in MAY_NOT_USE:
        for file in files:
            if is_in(file, above):
                faults += [f"{file} may not use {header}, which {by} includes" for header, by in included(uses, file).items()
                           if header.startswith(below + "/") and by != file]

    missing = sorted(file for file in files if file.endswith(".c") and file not in by_call)
    faults += [f"{file} has no object file in {build}: build first" for file in missing if not PLUGIN.match(file)]
    if not faults:  # the calls of a folder that is not built are not known
        idle = list(uncalled(defined, wanted, files, set(found.values())))
        faults += [f"{file}: nobody takes {symbol}: delete it, or make it static" for file, symbol, tested in idle if not tested]
        faults += [f"{file}: only tests take {symbol}: delete it, or say in FOR_TESTS why it stays"
                   for file, symbol, tested in idle if tested and symbol not in FOR_TESTS]
        faults += [f"{symbol} is in FOR_TESTS, but tests are not its only callers"
                   for symbol in sorted(set(FOR_TESTS) - {symbol for _, symbol, tested in idle if tested})]
    shared = shared_headers(files)
    reasons = set(said_to_be_shared())
    faults += [f"{header} declares functions of several files ({' '.join(places)}), and no README.md beside it says why"
               for header, places in sorted(shared.items()) if header not in reasons]
    faults += [f"{header} does not declare functions of several files, but a README.md says so" for header in sorted(reasons)
               if header not in shared]

    faults += [f"{file}:{line}: use tfc_status_no_memory" for file, line in written_out(files)]

    found_circles, level = circles(by_call)
    for circle in found_circles:
        if len(circle) > LARGEST_CIRCLE:
            faults.append(f"a circle of {len(circle)} files: {' '.join(circle)}")
        elif len(circle) > 2 and not explained(circle):
            faults.append(f"a circle of {len(circle)} files without its reason in README.md: {' '.join(circle)}")
    headers, _ = circles({file: {used for used in uses[file] if used.endswith(".h") and used in uses} for file in files if file.endswith(".h")})
    faults += [f"headers include each other: {' '.join(circle)}" for circle in headers]

    rows = {}
    for file, at in level.items():
        rows.setdefault(room(file), []).append(at)
    print("levels (0 calls no other file): folder, files, from, to")
    for name in MAY_USE:
        if name in rows:
            print(f"  {name:18} {len(rows[name]):4} {min(rows[name]):4} {max(rows[name]):4}")
    print(f"{sum(map(len, by_call.values()))} arrows by calls between {len(by_call)} files, "
          f"{len(upwards)} upwards, circles: {' '.join(str(len(circle)) for circle in found_circles) or 'none'}")
    print(f"{sum(file.endswith('.h') for file in files)} headers, {len(shared)} of them with functions of several files")
    if missing:
        print(f"{len(missing)} files of plug-ins are not built here: their includes were seen, their calls were not")
    for fault in faults:
        print(fault)
    return 1 if faults else 0


sys.exit(main())
