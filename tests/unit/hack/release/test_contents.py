"""What is in an image is read from what packages say of themselves."""

import hashlib
import io

from release.contents import Component, Contents, debian_licences, python_component

STATUS = """Package: libc6
Status: install ok installed
Architecture: arm64
Version: 2.36-9+deb12u13

Package: gone
Status: deinstall ok config-files
Architecture: all
Version: 1
"""
COPYRIGHT = """Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/

Files: *
License: LGPL-2.1+

Files: a
License: BSD-3-clause
 All of its words.
"""


def test_an_image_has_debians_and_pythons_packages_and_our_own_files() -> None:
    base, ours = Contents(), Contents()
    base.see("var/lib/dpkg/status", io.BytesIO(STATUS.encode()))
    base.see("usr/share/doc/libc6/copyright", io.BytesIO(COPYRIGHT.encode()))
    ours.see("opt/gpucap/libgpucap.so", io.BytesIO(b"elf"))
    metadata = b"Name: Some_Thing\nVersion: 2\nLicense-Expression: MIT\n"
    ours.see("opt/venv/lib/python3.11/site-packages/s-2.dist-info/METADATA", io.BytesIO(metadata))
    ours.see("opt/other.so", io.BytesIO(b"elf"))
    base.add(ours)
    digest = hashlib.sha256(b"elf").hexdigest()
    assert base.components() == [
        Component("deb", "libc6", "2.36-9+deb12u13", "arm64", ("BSD-3-clause", "LGPL-2.1+")),
        Component("file", "libgpucap.so", licences=("Apache-2.0",), sha256=digest),
        Component("pypi", "some-thing", "2", licences=("MIT",)),
    ]


def test_the_last_layer_that_has_a_database_counts() -> None:
    base, later = Contents(), Contents()
    base.see("var/lib/dpkg/status", io.BytesIO(STATUS.encode()))
    later.see("var/lib/dpkg/status", io.BytesIO(STATUS.replace("libc6", "libc7").encode()))
    base.add(Contents())
    base.add(later)
    assert [each.name for each in base.components()] == ["libc7"]


def test_of_a_copyright_file_in_free_words_nothing_is_guessed() -> None:
    assert debian_licences("This is free software.\nLicense: as you like\n") == ()


def test_a_distribution_says_its_licence_in_one_of_three_ways() -> None:
    head = "Name: a\nVersion: 1\n"
    said = {
        "License-Expression: MIT\nLicense: other\n": ("MIT",),
        "License: Apache-2.0\n": ("Apache-2.0",),
        f"License: {'x' * 100}\nClassifier: License :: OSI Approved :: BSD License\n": (
            "BSD License",
        ),
        "Classifier: Framework :: AsyncIO\n": (),
    }
    for text, licences in said.items():
        assert python_component(head + text).licences == licences
