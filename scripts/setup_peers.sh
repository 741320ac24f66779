#!/usr/bin/env bash
# Sets up what only `make bench-peers` needs, in the folder .peers: PyFlink in an environment of its own, since
# it asks for other versions of Arrow and pandas than Headrace, a source and a sink of rows for it, compiled; and
# Pathway in another one.
# Safe to run again: it does only what is missing or older than its source.
set -euo pipefail
cd "$(dirname "$0")/.."
flink=2.3.0
pathway=0.33.0
folder=.peers
venv=$folder/flink
sources=(benchmarks/{PreloadedRows,NotedAnswers,Pace}.java)
jar=$folder/preloaded-rows.jar

# A Python that PyFlink has wheels for and that can make a virtual environment, or nothing.
find_python() {
    local name
    for name in ${PYTHON:-} .venv/bin/python python3.12 python3.11 python3.10 python3; do
        if "$name" - 2>/dev/null <<<'
import sys, ensurepip, venv
sys.exit(not (3, 10) <= sys.version_info < (3, 13))'; then
            command -v "$name"
            return
        fi
    done
}

# The home folder of a Java that Flink supports and that has a compiler, or nothing.
find_jdk() {
    local home version
    for home in "${JAVA_HOME:-}" "$(scripts/find_java.sh)" /usr/lib/jvm/* "$HOME"/.sdkman/candidates/java/*; do
        version=$("$home/bin/javac" -version 2>/dev/null | sed 's/javac \([0-9]*\).*/\1/')
        if [[ -n $home && ($version == 17 || $version == 21) ]]; then
            echo "$home"
            return
        fi
    done
}

python=$(find_python)
if [[ -z $python ]]; then
    echo "PyFlink $flink needs Python 3.10, 3.11 or 3.12 with its venv module, and none was found." >&2
    exit 1
fi
jdk=$(find_jdk)
if [[ -z $jdk && $(id -u) -eq 0 ]] && command -v apt-get >/dev/null; then
    echo "Installing openjdk-17-jdk-headless with apt-get"
    apt-get update -qq
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends openjdk-17-jdk-headless >/dev/null
    jdk=$(find_jdk)
fi
if [[ -z $jdk ]]; then
    echo "Flink $flink needs a JDK 17 or 21 with javac, and none was found in JAVA_HOME or the usual folders." >&2
    exit 1
fi
mkdir -p "$folder"
ln -sfn "$jdk" "$folder/jdk"

if [[ ! -e $venv/.flink-$flink ]]; then
    echo "Installing PyFlink $flink into $venv (about 850 MB; this takes minutes)"
    "$python" -m venv --clear "$venv"
    "$venv/bin/python" -m pip install -qq --disable-pip-version-check "apache-flink==$flink"
    touch "$venv/.flink-$flink"
fi

stale=
for source in "${sources[@]}"; do
    if [[ ! -e $jar || $source -nt $jar ]]; then
        stale=yes
    fi
done
if [[ $stale ]]; then
    lib=$(echo "$venv"/lib/python*/site-packages/pyflink/lib)
    classes=$folder/classes
    rm -rf "$classes"
    mkdir -p "$classes/META-INF/services"
    printf '%s\n' PreloadedRows NotedAnswers >"$classes/META-INF/services/org.apache.flink.table.factories.Factory"
    "$jdk/bin/javac" -Xlint:all -cp "$lib/*" -d "$classes" "${sources[@]}"
    "$jdk/bin/jar" --create --file "$jar" -C "$classes" .
fi

if [[ ! -e $folder/pathway/.pathway-$pathway ]]; then
    echo "Installing Pathway $pathway into $folder/pathway (about 1.6 GB)"
    "$python" -m venv --clear "$folder/pathway"
    "$folder/pathway/bin/python" -m pip install -qq --disable-pip-version-check "pathway==$pathway" pyarrow
    touch "$folder/pathway/.pathway-$pathway"
fi
