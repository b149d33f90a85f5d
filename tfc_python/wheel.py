"""Makes a wheel of the package with libtfc, tfc's programs, and every library that these stand on in it, so that pip alone
installs it on any x86-64 Linux whose C library is not older than this machine's:

    python3 tfc_python/wheel.py BUILD OUT        (cmake --build BUILD --target wheel: OUT is BUILD/wheel)

What every Linux has is left out: the C and C++ libraries. The plug-ins are left out, too: CUDA's and MPI's libraries are
the machine's own. Prints the wheel's path.
"""

import base64
import glob
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile

EVERYWHERE = re.compile(r"(ld-linux.*|lib(c|m|dl|rt|pthread|resolv|util|gcc_s|stdc\+\+))\.so[.0-9]*$")
PLUGINS = ("libtfc_mpi.so", "libtfc_cuda.so", "libtfc_cupti.so")
PROGRAMS = ("tfc-place", "tfc-run", "tfc-report", "tfc-export")
METADATA = """Metadata-Version: 2.1
Name: tfc
Version: {version}
Summary: Runs TensorFlow graphs without TensorFlow, and finds out where each of their operations should run
License: Apache-2.0
Requires-Python: >=3.8
Requires-Dist: numpy
"""


def run(*command):
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout


def libraries(files):
    """{soname: path} of what the files need, directly or not, without what is everywhere or lies beside them."""
    found = {}
    for file in files:
        for name, path in re.findall(r"^\s*(\S+) => (\S+)", run("ldd", file), re.M):
            if path == "not":
                sys.exit("%s needs %s, which is not on this machine" % (file, name))
            if not EVERYWHERE.match(name) and not name.startswith("libtfc"):
                found[name] = os.path.realpath(path)
    return found


def copyrights(paths, folder):
    """The libraries' own licences, where Debian's packages have them."""
    for path in paths:
        for spelled in (path, path[len("/usr"):] if path.startswith("/usr/lib") else path):
            said = subprocess.run(["dpkg", "-S", spelled], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
            if said.returncode == 0:
                package = said.stdout.split(":")[0]
                text = "/usr/share/doc/%s/copyright" % package
                if os.path.exists(text):
                    shutil.copy(text, os.path.join(folder, package + ".txt"))
                break


def tag():
    version = re.search(r"(\d+)\.(\d+)", run("getconf", "GNU_LIBC_VERSION"))
    return "py3-none-manylinux_%s_%s_%s" % (version.group(1), version.group(2), os.uname().machine)


def stage(build, folder):
    """Fills `folder` with what the wheel has, and returns the version."""
    tree = os.path.join(folder, "tree")
    for component in ("tfc", "libtfc", "python3-tfc"):
        run("cmake", "--install", build, "--prefix", tree, "--component", component, "--strip")
    package = os.path.join(folder, "wheel", "tfc")
    (installed,) = glob.glob(os.path.join(tree, "lib*", "python3", "dist-packages", "tfc"))
    shutil.copytree(installed, package, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(os.path.join(os.path.dirname(os.path.abspath(__file__)), "tfc", "_programs.py"), package)
    (library,) = glob.glob(os.path.join(tree, "lib*", "**", "libtfc.so.*.*.*"), recursive=True)
    version = library.split(".so.")[1]
    private = os.path.join(package, "lib", "tfc")
    os.makedirs(private)
    shutil.copy(library, os.path.join(package, "lib", "libtfc.so." + version.split(".")[0]))
    for file in glob.glob(os.path.join(os.path.dirname(library), "tfc", "libtfc_*.so")):
        if os.path.basename(file) not in PLUGINS:
            shutil.copy(file, private)
    os.makedirs(os.path.join(package, "bin"))
    for program in PROGRAMS:
        shutil.copy(os.path.join(tree, "bin", program), os.path.join(package, "bin"))
    shutil.copytree(os.path.join(tree, "share", "tfc"), os.path.join(package, "share", "tfc"))
    own = glob.glob(os.path.join(package, "lib", "*.so.*")) + glob.glob(os.path.join(private, "*.so"))
    others = libraries(own + [os.path.join(package, "bin", p) for p in PROGRAMS])
    for name, path in others.items():
        shutil.copy(path, os.path.join(private, name))
    about = os.path.join(folder, "wheel", "tfc-%s.dist-info" % version)
    os.makedirs(os.path.join(about, "licenses"))
    copyrights(others.values(), os.path.join(about, "licenses"))
    shutil.copy(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "LICENSE"), os.path.join(about, "LICENSE"))
    with open(os.path.join(about, "METADATA"), "w") as file:
        file.write(METADATA.format(version=version))
    with open(os.path.join(about, "WHEEL"), "w") as file:
        file.write("Wheel-Version: 1.0\nGenerator: tfc\nRoot-Is-Purelib: false\nTag: %s\n" % tag())
    with open(os.path.join(about, "entry_points.txt"), "w") as file:
        file.write("[console_scripts]\n" + "".join("%s = tfc._programs:%s\n" % (p, p.replace("-", "_")) for p in PROGRAMS))
    return version


def pack(folder, path, about):
    """The folder as a wheel: with a record of every file, and files that programs start marked so."""
    record = []
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=6) as out:

        def add(name, content, mode):
            info = zipfile.ZipInfo(name)
            info.external_attr, info.compress_type = (0o100000 | mode) << 16, zipfile.ZIP_DEFLATED
            out.writestr(info, content)

        for top, folders, files in os.walk(folder):
            folders.sort()
            for file in sorted(files):
                full = os.path.join(top, file)
                name = os.path.relpath(full, folder)
                with open(full, "rb") as opened:
                    content = opened.read()
                digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
                record.append("%s,sha256=%s,%d\n" % (name, digest, len(content)))
                add(name, content, 0o755 if os.access(full, os.X_OK) else 0o644)
        record.append("%s/RECORD,,\n" % about)
        add("%s/RECORD" % about, "".join(record), 0o644)


def main(build, out):
    os.makedirs(out, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="tfc-wheel-") as folder:
        version = stage(build, folder)
        path = os.path.join(out, "tfc-%s-%s.whl" % (version, tag()))
        pack(os.path.join(folder, "wheel"), path, "tfc-%s.dist-info" % version)
    print(path)


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__.strip())
    main(*sys.argv[1:])
