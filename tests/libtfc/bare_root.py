"""Makes a bare system in a folder: Debian's essential packages and what the given packages of tfc say that they need, and
nothing else. Files and scripts are this machine's installed packages'; all are left to be configured there (dpkg
--configure -a).

    bare_root.py ROOT PACKAGE.deb...

Fails where a package that is needed is not installed here.
"""

import glob
import os
import re
import shutil
import stat
import subprocess
import sys

root, debs = sys.argv[1], sys.argv[2:]
DATABASE = "/var/lib/dpkg"


def run(*command):
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout


installed, provided, essential = {}, {}, []
fields = "${db:Status-Status}\t${binary:Package}\t${Package}\t${Essential}\t${Pre-Depends}, ${Depends}\t${Provides}\n"
for line in run("dpkg-query", "-W", "-f", fields).splitlines():
    status, full, name, is_essential, needs, provides = line.split("\t")
    if status != "installed":
        continue
    installed[name] = (full, needs)
    for each in provides.split(","):
        provided.setdefault(re.sub(r"[ (].*", "", each.strip()), []).append(name)
    if is_essential == "yes":
        essential.append(name)

own = {run("dpkg", "-f", deb, "Package").strip() for deb in debs}
wanted, asked = set(), list(essential) + ["base-files", "base-passwd"]


def ask(needs, whose):
    """One package of each clause of a Depends field."""
    for clause in filter(None, (c.strip() for c in needs.split(","))):
        names = [re.sub(r"[ (:\[].*", "", alternative.strip()) for alternative in clause.split("|")]
        if any(name in own or name in wanted for name in names):
            continue
        here = [n for n in names if n in installed] + [p for n in names for p in provided.get(n, [])]
        if not here:
            sys.exit("%s needs %s, which is not installed here" % (whose, clause))
        asked.append(here[0])


for deb in debs:
    ask(run("dpkg", "-f", deb, "Pre-Depends") + ", " + run("dpkg", "-f", deb, "Depends"), os.path.basename(deb))
while asked:
    name = asked.pop()
    if name not in wanted:
        wanted.add(name)
        ask(installed[name][1], name)

for folder in ("bin", "sbin", "lib", "lib64"):  # links into /usr, as on Debian 12
    os.makedirs(os.path.join(root, "usr", folder), exist_ok=True)
    if os.path.islink("/" + folder):
        os.symlink("usr/" + folder, os.path.join(root, folder))
for folder in ("info", "updates", "triggers", "alternatives"):
    os.makedirs(root + os.path.join(DATABASE, folder))
copied = 0
with open(root + DATABASE + "/status", "w") as status:
    for name in sorted(wanted):
        full = installed[name][0]
        status.write(re.sub("^Status: .*", "Status: install ok unpacked", run("dpkg-query", "-s", full), flags=re.M).strip() + "\n\n")
        for file in glob.glob(DATABASE + "/info/" + glob.escape(full) + ".*"):
            shutil.copy2(file, root + file)
        for path in run("dpkg-query", "-L", full).splitlines():
            if not path.startswith("/") or path == "/." or not os.path.lexists(path) or os.path.lexists(root + path):
                continue
            mode = os.lstat(path).st_mode
            os.makedirs(os.path.dirname(root + path), exist_ok=True)
            if stat.S_ISLNK(mode):
                os.symlink(os.readlink(path), root + path)
            elif stat.S_ISDIR(mode):
                os.makedirs(root + path, exist_ok=True)
                os.chmod(root + path, stat.S_IMODE(mode))
            elif stat.S_ISREG(mode):
                shutil.copy2(path, root + path)
                copied += os.path.getsize(path)
shutil.copy2(DATABASE + "/info/format", root + DATABASE + "/info/format")
open(root + DATABASE + "/available", "w").close()
for file in ("passwd", "group"):  # of the package base-passwd
    shutil.copy2("/usr/share/base-passwd/%s.master" % file, root + "/etc/" + file)
for folder in ("proc", "sys", "dev", "tmp", "root", "packages"):
    os.makedirs(os.path.join(root, folder), exist_ok=True)
os.chmod(root + "/tmp", 0o1777)
for deb in debs:
    shutil.copy(deb, root + "/packages")
print("%d packages, %d MB" % (len(wanted), copied // 1000000))
