# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Where the tests come from (the source of the compiler in use, as Debian packages it) and which there
are: one Test for each program that a folder of the suite gives."""

import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import dejagnu
from machine import Machine

# The folders, with what compiles them. Those of C and C++ have a common one, compiled as both.
FORTRAN = (".f", ".f90", ".f95", ".f03", ".f08", ".F", ".F90", ".F95", ".F03", ".F08")
FOLDERS = (
    # name, common folder, language, suffixes, OpenACC
    ("libgomp.c", "libgomp.c-c++-common", "c", (".c",), False),
    ("libgomp.c++", "libgomp.c-c++-common", "c++", (".C",), False),
    ("libgomp.fortran", "", "fortran", FORTRAN, False),
    ("libgomp.oacc-c", "libgomp.oacc-c-c++-common", "c", (".c",), True),
    ("libgomp.oacc-c++", "libgomp.oacc-c-c++-common", "c++", (".C",), True),
    ("libgomp.oacc-fortran", "", "fortran", FORTRAN, True),
)
# What the tests include besides themselves.
MEMBERS = ("libgomp/testsuite/*", "libgomp/*.h", "include/gomp-constants.h",
           "gcc/testsuite/c-c++-common/goacc/*", "gcc/testsuite/g++.dg/goacc/*",
           "gcc/testsuite/gfortran.dg/goacc/*")
# What libgomp's own build would say of the machine, as far as tests ask.
CONFIG = "#define HAVE_PTHREAD_AFFINITY_NP 1\n"
STAMP = "unpacked"
HOST_ONLY = ["-DACC_DEVICE_TYPE_host=1", "-DACC_MEM_SHARED=1", "-foffload=disable"]


class NoSuite(Exception):
    """The tests cannot be had; the text says why."""


class NoPackage(NoSuite):
    """Debian's archive does not give it now."""


@dataclass
class Test:
    """One program of the suite: a source file in one language."""
    name: str  # FOLDER/FILE, with @c++ where a common file is compiled as C++
    folder: str
    source: Path
    language: str
    openacc: bool
    flags: list
    directives: dejagnu.Directives


def run_or_fail(command: list, folder: Path = None):
    result = subprocess.run(command, cwd=folder, stdin=subprocess.DEVNULL, text=True,
                            capture_output=True, check=False)
    if result.returncode != 0:
        last = (result.stderr.strip() or result.stdout.strip() or "no message").splitlines()[-1]
        raise NoSuite("%s: %s" % (" ".join(map(str, command[:3])), last))
    return result.stdout


def fetch(place: Path, say) -> Path:
    """Unpacks the suite below `place`, once; returns its folder (the one with libgomp/testsuite)."""
    version = run_or_fail(["gcc", "-dumpversion"]).strip().partition(".")[0]
    package = "gcc-%s-source" % version
    done = place / package
    wanted = " ".join(MEMBERS) + CONFIG
    if identity(done).partition("\n")[2] == wanted:
        return done
    for tool in ("apt-get", "dpkg-deb", "tar", "xz"):
        if not shutil.which(tool):
            raise NoSuite("%s is missing; give the folder of GCC's source with --source" % tool)
    shutil.rmtree(done, ignore_errors=True)
    done.mkdir(parents=True)
    say("fetching %s" % package)
    try:
        run_or_fail(["apt-get", "download", package], done)
    except NoSuite as error:
        raise NoPackage("%s (are the package lists there? apt-get update)" % error) from error
    file = next(done.glob("*.deb"))
    run_or_fail(["dpkg-deb", "-x", str(file), "package"], done)
    archive = next(done.glob("package/usr/src/gcc-*/gcc-*.tar.*"), None)
    if archive is None:
        raise NoSuite("%s holds no archive of GCC's source" % package)
    say("unpacking %s" % archive.name)
    run_or_fail(["tar", "-xf", str(archive), "--strip-components=1", "--wildcards",
                 *("*/" + member for member in MEMBERS)], done)
    (done / "include" / "config.h").write_text(CONFIG, encoding="ascii")
    shutil.rmtree(done / "package")
    file.unlink()
    (done / STAMP).write_text(file.name + "\n" + wanted, encoding="ascii")
    return done


def identity(source: Path) -> str:
    """What was unpacked there, and when it is a folder of the user's own, its name."""
    stamp = source / STAMP
    return stamp.read_text(encoding="ascii") if stamp.exists() else str(source)


def find(source: Path, chosen: re.Pattern) -> tuple:
    """All tests whose name matches, and the names in selectors that machine.py does not know."""
    root = source / "libgomp" / "testsuite"
    if not root.is_dir():
        raise NoSuite("%s has no libgomp/testsuite" % source)
    tests, unknown = [], set()
    for folder, common, language, suffixes, openacc in FOLDERS:
        machine = Machine(language, openacc)
        for place, endings in ((folder, suffixes), (common, (".c",))):
            files = sorted((root / place).rglob("*")) if place else []
            for file in files:
                if file.suffix in endings and file.is_file():
                    test = make(root, place, file, language, openacc, machine)
                    if chosen.search(test.name):
                        tests.append(test)
        unknown |= machine.unknown
    return tests, sorted(unknown)


def make(root: Path, folder: str, file: Path, language: str, openacc: bool,
         machine: Machine) -> Test:
    name = file.relative_to(root).as_posix()
    if folder.endswith("-common") and language == "c++":
        name += "@c++"
    fixed = ["-fopenacc", *HOST_ONLY] if openacc else ["-fopenmp"]
    # dg-options takes the place of the optimisation in C and C++ on OpenMP; elsewhere it is added.
    replaced = language != "fortran" and not openacc
    reader = dejagnu.Reader(machine, fixed + ["-O2"])
    directives = reader.read(file.read_text(encoding="utf-8", errors="replace"))
    options = directives.options
    if replaced:
        options = ["-O2"] if options is None else options
    else:
        options = ["-O2"] + (options or [])
    return Test(name, folder, file, language, openacc,
                fixed + options + directives.more_options, directives)
