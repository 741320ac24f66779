#!/usr/bin/env bash
# Prints the home folder of a Java 17 or newer; exits with 1, and prints nothing, where there is none.
# Looks at JAVA_HOME, then at the java in PATH, then where package managers put them.
set -u

# The home folder of a java command that runs and is new enough, or nothing.
home_of() {
    local properties version
    properties=$("$1" -XshowSettings:properties -version 2>&1) || return 1
    version=$(sed -n 's/^ *java\.specification\.version = //p' <<<"$properties")
    [[ $version =~ ^[0-9]+$ && $version -ge 17 ]] || return 1
    sed -n 's/^ *java\.home = //p' <<<"$properties"
}

candidates() {
    [[ -n ${JAVA_HOME:-} ]] && echo "$JAVA_HOME/bin/java"
    command -v java
    [[ -x /usr/libexec/java_home ]] && echo "$(/usr/libexec/java_home -v 17+ 2>/dev/null)/bin/java"
    ls -d /usr/lib/jvm/*/bin/java /usr/java/*/bin/java /opt/*/bin/java /opt/java/*/bin/java \
        /opt/homebrew/opt/openjdk*/bin/java /usr/local/opt/openjdk*/bin/java \
        "$HOME"/.sdkman/candidates/java/*/bin/java "$HOME"/.jdks/*/bin/java 2>/dev/null
    return 0
}

while read -r java; do
    if [[ -x $java ]] && home_of "$java"; then
        exit 0
    fi
done < <(candidates)
exit 1
