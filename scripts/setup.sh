#!/usr/bin/env bash
# Sets up this folder: a virtual environment with Headrace and its tools, a Java for Spark, and a browser for the tests
# of the server's page.
# Safe to run again: it installs only what is missing or older than pyproject.toml.
set -euo pipefail
cd "$(dirname "$0")/.."
venv=.venv
stamp=$venv/.headrace-installed

may_install() { [[ $(id -u) -eq 0 ]] && command -v apt-get >/dev/null; }

apt_install() {
    echo "Installing $* with apt-get"
    apt-get update -qq
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$@" >/dev/null
}

# The first Python that Headrace runs on and that can make a virtual environment, or nothing.
find_python() {
    local name
    for name in ${PYTHON:-} python3 python3.14 python3.13 python3.12 python3.11; do
        if "$name" - 2>/dev/null <<<'
import sys, ensurepip, venv
sys.exit(not (3, 11) <= sys.version_info < (3, 15))'; then
            command -v "$name"
            return
        fi
    done
}

setup_python() {
    local python
    python=$(find_python)
    if [[ -z $python ]] && may_install; then
        apt_install python3 python3-venv
        python=$(find_python)
    fi
    if [[ -z $python ]]; then
        cat >&2 <<'HINT'
Headrace needs Python 3.11, 3.12, 3.13 or 3.14 with its venv module, and found none.
  Debian, Ubuntu:  sudo apt-get install python3 python3-venv
  Fedora:          sudo dnf install python3
  macOS:           brew install python@3.13
Then run make again; PYTHON=/path/to/python3 make ... picks a certain one.
HINT
        return 1
    fi
    if ! "$venv/bin/python" -c '' 2>/dev/null; then
        echo "Making $venv with $("$python" --version)"
        "$python" -m venv --clear "$venv"
        rm -f "$stamp"
    fi
    if [[ ! -e $stamp || pyproject.toml -nt $stamp || $0 -nt $stamp ]]; then
        echo "Installing Headrace and its tools into $venv (Spark alone is about 450 MB; this takes minutes)"
        "$venv/bin/python" -m pip install --quiet --disable-pip-version-check -e '.[dev]'
        touch "$stamp"
    fi
}

setup_java() {
    if scripts/find_java.sh >/dev/null; then
        return
    fi
    if may_install; then
        apt_install openjdk-17-jre-headless || true
    fi
    if ! scripts/find_java.sh >/dev/null; then
        cat >&2 <<'HINT'
Spark needs Java 17 or newer, and none was found in JAVA_HOME, in PATH or in the usual folders.
  Debian, Ubuntu:  sudo apt-get install openjdk-17-jre-headless
  Fedora:          sudo dnf install java-21-openjdk-headless
  macOS:           brew install openjdk@17
Then run make again; JAVA_HOME=/path/to/java make ... picks a certain one.
Without Java everything but Spark works: headrace run --runner inline.
HINT
        return 1
    fi
}

# Without a browser the tests of the page are skipped, and all else works.
setup_browser() {
    command -v chromium chromium-browser google-chrome >/dev/null && return
    if may_install; then
        apt_install chromium || true
    fi
    if ! command -v chromium >/dev/null; then
        echo "No Chromium was found: the tests of the server's page are skipped (apt-get install chromium)" >&2
    fi
}

setup_python
setup_java
setup_browser
