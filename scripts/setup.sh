# Shared by ./run, ./test and ./package: packages by name, configure, build. Sourced, not run.

BUILD_PACKAGES=(g++ cmake ninja-build ccache libboost1.81-dev nlohmann-json3-dev libcli11-dev libspdlog-dev libfmt-dev
                libutf8proc-dev libssl-dev libedit-dev libqrencode-dev libyaml-cpp-dev libcurl4-openssl-dev libxml2-dev
                libidn2-dev libsqlite3-dev poppler-utils)
TEST_PACKAGES=(clang libclang-rt-14-dev libgtest-dev python3-jinja2 python3-numpy python3-regex curl
               chromium tmux bubblewrap python3 python3-yaml haproxy procps postgresql libpq5)

# For ./package: static archives, and what makes and tries packages.
PACKAGE_PACKAGES=(libunistring-dev libbsd-dev libmd-dev libncurses-dev zlib1g-dev dpkg-dev make xz-utils zstd debootstrap
                  buildah haproxy python3-yaml ca-certificates curl git)

# For arm64 from another machine: a cross compiler, and an emulator that runs what it made.
ARM64_PACKAGES=(g++-aarch64-linux-gnu qemu-user-static libgtest-dev)
# What scripts/static_libraries.sh unpacks of Debian's arm64 packages and does not install: the program's headers and archives.
ARM64_LIBRARIES=(libboost1.81-dev nlohmann-json3-dev libcli11-dev libutf8proc-dev libssl-dev libedit-dev libbsd-dev libmd-dev
                 libncurses-dev libyaml-cpp-dev libyaml-cpp0.7 zlib1g-dev libidn2-dev libunistring-dev libsqlite3-dev)

# Installs what is not there yet, with sudo when we are not root.
install_packages() {
  local missing=()
  for package in "$@"; do
    dpkg-query -W -f='${Status}' "$package" 2>/dev/null | grep -q 'ok installed' || missing+=("$package")
  done
  [ ${#missing[@]} -eq 0 ] && return 0
  local as_root=()
  if [ "$(id -u)" -ne 0 ]; then
    command -v sudo >/dev/null || { echo "These packages are missing and sudo is not there: ${missing[*]}" >&2; exit 1; }
    as_root=(sudo)
  fi
  echo "Installing Debian packages: ${missing[*]}"
  "${as_root[@]}" apt-get update -qq
  DEBIAN_FRONTEND=noninteractive "${as_root[@]}" apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
}

# Prometheus' checker of alert rules, for the tests of deploy/, into build/tools: Debian has it in a package that would also
# start a server on this machine, so it is taken out of that and not installed. Tests say that they miss it where it can
# not be fetched.
ensure_promtool() {
  command -v promtool >/dev/null || [ -x build/tools/promtool ] && return 0
  local from=build/tools/prometheus
  rm -rf "$from"
  mkdir -p "$from"
  if (cd "$from" && apt-get download -qq prometheus && dpkg-deb -x ./*.deb .) >"$from/log" 2>&1; then
    mv "$from/usr/bin/promtool" build/tools/
    rm -rf "$from"
  else
    echo "promtool could not be fetched, so that alert rules are not checked: $(tail -n 1 "$from/log")"
  fi
}

# Node.js and npm, for the web page: what is there, or else Debian's. Debian's npm brings Debian's nodejs with it, which
# would replace a Node from elsewhere, so it is installed only where that is the Node we have.
ensure_node() {
  command -v npm >/dev/null && return 0
  local version
  version=$(dpkg-query -W -f='${Version}' nodejs 2>/dev/null || true)
  if command -v node >/dev/null && [[ "$version" != *dfsg* ]]; then
    echo "A Node.js that is not Debian's is here, but no npm beside it: install its npm, and the web page can be built."
    return 0
  fi
  install_packages nodejs npm
}

find_nvcc() { command -v nvcc || { [ -x /usr/local/cuda/bin/nvcc ] && echo /usr/local/cuda/bin/nvcc; }; }

# Says whether this build will compute on a card, and what to do when it could and does not.
tell_about_cuda() {
  if [ ! -e /proc/driver/nvidia/version ]; then
    if find_nvcc >/dev/null; then
      echo "There is no NVIDIA card here: kernels are not compiled, and the program computes on the CPU. To build it for"
      echo "cards of other machines: cmake --preset cuda && cmake --build build/cuda --target chimere"
    fi
  elif find_nvcc >/dev/null; then
    echo "An NVIDIA card and nvcc are present; the CUDA backend is built for this card."
  else
    echo "An NVIDIA card is present but nvcc is not: install NVIDIA's CUDA toolkit (12.8 or later), then remove"
    echo "build/release and start again, to compute on the card. This build computes on the CPU."
  fi
}

# build PRESET [targets]: configures build/PRESET when that was not done yet, then builds what changed.
build() {
  local preset=$1
  shift
  if [ ! -e "build/$preset/build.ninja" ]; then
    echo "Configuring build/$preset"
    mkdir -p build
    cmake --preset "$preset" >"build/$preset.log" 2>&1 || { cat "build/$preset.log" >&2; exit 1; }
  fi
  echo "Building build/$preset"
  cmake --build "build/$preset" ${1:+--target "$@"}
}
