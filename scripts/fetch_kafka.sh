#!/usr/bin/env bash
# Fetches the jars of Kafka's broker with Maven, which checks their digests, and prints the folder they are in.
# Safe to run again, and by two processes at once: it does only what is missing.
set -euo pipefail
cd "$(dirname "$0")/.."
version=3.9.1
folder=build/kafka-$version
mkdir -p build
exec 9>build/kafka.lock
flock 9
if [[ ! -d $folder ]]; then
    draft=$(mktemp -d build/kafka-draft.XXXXXX)
    trap 'rm -rf "$draft"' EXIT
    cat >"$draft/pom.xml" <<POM
<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>headrace</groupId><artifactId>broker</artifactId><version>1</version><packaging>pom</packaging>
  <dependencies>
    <dependency><groupId>org.apache.kafka</groupId><artifactId>kafka_2.13</artifactId><version>$version</version></dependency>
  </dependencies>
</project>
POM
    mvn -q -B --strict-checksums -f "$draft/pom.xml" dependency:copy-dependencies -DincludeScope=runtime \
        -DoutputDirectory="$PWD/$draft/jars" >&2
    mv "$draft/jars" "$folder"
fi
echo "$PWD/$folder"
