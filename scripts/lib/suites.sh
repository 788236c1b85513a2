# Code shared by the scripts beside this folder: the sources of tests that others
# wrote, fetched once, in .venv/suites. Source it behind common.sh.

SUITES=.venv/suites

# keep_suite NAME FOLDER: makes a folder the source of a suite.
keep_suite() {
  mkdir -p "$SUITES"
  rm -rf "${SUITES:?}/$1"
  mv "$2" "$SUITES/$1"
}

# fetch_package NAME VERSION: the source distribution of a package of Python.
fetch_package() {
  [[ -d $SUITES/$1-$2 ]] && return
  local folder status=0
  folder=$(mktemp -d)
  mkdir "$folder/source"
  python -m pip download --quiet --no-deps --no-binary "$1" \
    --dest "$folder" "$1==$2" &&
    tar -xzf "$folder"/*.tar.gz --strip-components=1 -C "$folder/source" &&
    keep_suite "$1-$2" "$folder/source" || status=1
  rm -rf "$folder"
  return "$status"
}

# No package of Python has PyTorch's tests, but Debian 13 has the source of 2.6.
fetch_pytorch() {
  [[ -d $SUITES/pytorch ]] && return
  command -v apt-get >/dev/null || return 1
  local folder archive status=0
  archive=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' |
    grep -m 1 '/debian/$') || return 1
  folder=$(mktemp -d)
  mkdir -p "$folder/lists/partial" "$folder/source"
  printf 'deb-src [signed-by=%s] %s trixie main\n' \
    /usr/share/keyrings/debian-archive-keyring.gpg "$archive" >"$folder/sources"
  local options=(-qq -o "Dir::Etc::SourceList=$folder/sources"
    -o Dir::Etc::SourceParts=/dev/null -o "Dir::State::Lists=$folder/lists"
    -o "Dir::Cache=$folder/cache" -o APT::Sandbox::User=)
  apt-get "${options[@]}" update &&
    (cd "$folder" && apt-get "${options[@]}" --download-only source pytorch) &&
    tar -xJf "$folder"/pytorch_2.6.*.orig.tar.xz --strip-components=1 \
      -C "$folder/source" --wildcards '*/test/inductor/test_flex_*.py' &&
    keep_suite pytorch "$folder/source" || status=1
  rm -rf "$folder"
  return "$status"
}
