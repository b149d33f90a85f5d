"""Checks that each record of a job is written only by the source file that owns it: prints every assignment elsewhere to
a field of a record, or of what a record contains, and every call elsewhere that changes the learned model (model.c) or
the database (journal.c), and fails if there is one.

    owners.py [FOLDER]      FOLDER: placer/job, or a copy of it
"""

import os
import re
import sys

FOLDER = "placer/job"
# The records that live as long as the job, by the names of their files. (What a phase fills and hands out, such as the
# outcome, and what only carries arguments has no single writer.)
OWNERS = ["clock", "schedule", "model", "candidates", "journal", "proposers"]

STRUCT = re.compile(r"\bstruct (\w+) \{(.*?)\n\}", re.S)
FUNCTION = re.compile(r"^[a-z][^\n;={}]*\([^;{}]*\) \{$.*?^\}", re.S | re.M)
DECLARED = re.compile(r"(?:TFC_ARRAY\()?(?:const )?struct (\w+)\)? \*?(\w+)")
INDEX = r"(?:\[[^][]*(?:\[[^]]*\])?[^][]*\])?"
CHAIN = r"(\w+(?:" + INDEX + r"(?:->|\.)\w+)+)" + INDEX
WRITTEN = re.compile(CHAIN + r" *(?:[-+*/|&^%]|<<|>>)?=(?!=)|" + CHAIN + r"(?:\+\+|--)|(?:\+\+|--)" + CHAIN +
                     r"|(?:memset|memcpy|sscanf|tfc_array_push|tfc_array_free)\([^;]*?&" + CHAIN)
# Functions that change what a record points to but another folder defines, by the only file that may call them.
CHANGES = {"model.c": re.compile(r"\b(tfc_learned_(?:create|free|add|load|fit))\("),
           "journal.c": re.compile(r"\b(tfc_store_(?:close|commit|rollback|exec|put|gc|index|(?:open|begin)(?:_\w+)?|"
                                   r"(?:add|put|set|drop|finish)_\w+))\(")}
MADE = re.compile(r"\bstruct (\w+)(?: \w+ = |\))\{(?!0\})")


def fields(text):
    """{struct: {field: the struct that it is, or points to}}"""
    return {kind: {name: part for part, name in DECLARED.findall(body)} for kind, body in STRUCT.findall(text)}


def read(folder):
    """The texts of the sources, with blanks for comments and strings."""
    texts = {}
    for name in sorted(os.listdir(folder)):
        if name.endswith((".c", ".h")):
            with open(os.path.join(folder, name), encoding="utf-8") as text:
                texts[name] = re.sub(r'//[^\n]*|"(?:\\.|[^"\\\n])*"', lambda found: " " * len(found.group()), text.read())
    return texts


def owner_of(chain, variables, types, owner):
    """The record that `chain` (t->model->trace) writes to, and the field: it is followed by the types of variables and
    fields. A write to what a record contains is one to the record."""
    names = re.split(r"->|\.", re.sub(r"\[.*?\](?=->|\.|$)", "", chain))
    kind, found = variables.get(names[0]), None
    for at, name in enumerate(names[1:], 1):
        part = types.get(kind, {}).get(name)
        if name in ("data", "count") and not part and found:
            continue  # of an array: its elements have the type that its field was declared with
        if kind in owner:
            found = kind, ".".join(names[at:])
        kind = part
    return found


def foreign_writes(folder):
    """(file, line, record, field) of each write outside the file that owns the record; field "": it makes a record."""
    texts = read(folder)
    types, owner = {}, {}
    for name, text in texts.items():
        if name.endswith(".h"):
            types.update(fields(text))
            if name[:-2] in OWNERS:
                owner.update({kind: name[:-1] + "c" for kind, body in STRUCT.findall(text)})
    for name, text in texts.items():
        if not name.endswith(".c"):
            continue
        for body in FUNCTION.finditer(text):
            variables = {variable: kind for kind, variable in DECLARED.findall(body.group())}
            at = lambda found: text[:body.start() + found.start()].count("\n") + 1
            for write in WRITTEN.finditer(body.group()):
                found = owner_of(next(filter(None, write.groups())), variables, {**types, **fields(text)}, owner)
                if found and owner[found[0]] != name:
                    yield (name, at(write), *found)
            for made in MADE.finditer(body.group()):
                if owner.get(made.group(1), name) != name:
                    yield name, at(made), made.group(1), ""


def foreign_changes(folder):
    """(file, line, function, owner) of each call of one of CHANGES outside its file."""
    for name, text in read(folder).items():
        for owner, calls in CHANGES.items():
            for found in calls.finditer(text if name.endswith(".c") and name != owner else ""):
                yield name, text[:found.start()].count("\n") + 1, found.group(1), owner


def main():
    folder = sys.argv[1] if len(sys.argv) > 1 else FOLDER
    known = [name for name in OWNERS if not os.path.exists(os.path.join(folder, name + ".h"))]
    faults = [f"{folder} has no {name}.h" for name in known]
    for file, line, record, field in foreign_writes(folder):
        what = f"writes {field} of struct {record}" if field else f"makes a struct {record}"
        faults.append(f"{os.path.join(folder, file)}:{line} {what}, which another file owns")
    for file, line, function, owner in foreign_changes(folder):
        faults.append(f"{os.path.join(folder, file)}:{line} calls {function}, which only {owner} does")
    for fault in faults:
        print(fault)
    return 1 if faults else 0


sys.exit(main())
