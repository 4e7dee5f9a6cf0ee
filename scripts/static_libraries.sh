#!/usr/bin/env bash
# Builds the libraries of which Debian has no static archive that stands alone, from Debian's own source packages:
#   libcurl   Debian's archive needs Kerberos, LDAP, SSH and RTMP; the program speaks HTTP over TLS alone
#   libxml2   Debian's archive needs ICU, 30 MB of tables; the program reads HTML alone
#   qrencode, fmt, spdlog   Debian has the shared libraries alone
# The versions are those of the headers that Debian installs, so that objects compiled for the shared ones fit.
# Sources come from wherever this machine's apt takes its packages, with apt's own checksums, and Debian's patches are
# applied. What is built is kept: to build again, remove the folder.
#   scripts/static_libraries.sh FOLDER [arm64]    FOLDER/lib/*.a and FOLDER/include; FOLDER/versions has what was built
# For arm64 they are cross-built (cmake/arm64.cmake), and the libraries that are linked as Debian made them are unpacked
# from its arm64 packages into FOLDER/usr: this machine's own packages stay as they are.
set -euo pipefail
repository=$(cd "$(dirname "$0")/.." && pwd)
. "$repository/scripts/setup.sh"  # ARM64_LIBRARIES

mkdir -p "$1"
folder=$(cd "$1" && pwd)
machine=${2:-}
[ -e "$folder/versions" ] && exit 0

sources=$folder/sources
mkdir -p "$sources" "$folder/apt/lists/partial"
# The sources of this machine, for source packages. A private list, so that nothing of the machine's own changes.
: >"$folder/apt/private.list"
cat /etc/apt/sources.list /etc/apt/sources.list.d/*.list 2>/dev/null | sed -n 's/^deb /deb-src /p' >"$folder/apt/private.list" || true
cat /etc/apt/sources.list.d/*.sources 2>/dev/null | sed 's/^Types:.*/Types: deb-src/' >"$folder/apt/private.sources" || true
for list in private.list private.sources; do [ -s "$folder/apt/$list" ] || rm "$folder/apt/$list"; done

# What Debian has for arm64, from where this machine's apt takes Debian's own packages; FOLDER/packages has their versions.
unpack_arm64_packages() {
  local state=$folder/arm64 options
  if [ -e "$folder/packages" ]; then return 0; fi
  echo "Unpacking Debian's libraries for arm64"
  rm -rf "$state" "$folder/usr"
  mkdir -p "$state/lists/partial" "$state/cache/archives/partial" "$state/debs"
  apt-get indextargets --format 'deb $(REPO_URI) $(RELEASE) $(COMPONENT) # $(ORIGIN)' 'Created-By: Packages' |
    sed -n 's/ # Debian$//p' | sort -u >"$state/sources.list"
  options=(-qq -o APT::Architecture=arm64 -o APT::Architectures=arm64 -o "Dir::Etc::sourcelist=$state/sources.list"
           -o Dir::Etc::sourceparts=- -o "Dir::State::lists=$state/lists" -o "Dir::Cache=$state/cache"
           -o Dir::State::status=/dev/null -o APT::Sandbox::User=root -o Acquire::Languages=none -o Acquire::Retries=3)
  apt-get "${options[@]}" update
  (cd "$state/debs" && apt-get "${options[@]}" download "${ARM64_LIBRARIES[@]}")
  for deb in "$state"/debs/*.deb; do
    dpkg-deb -x "$deb" "$folder"
    # Name, then the source and its version, as dpkg-query tells them of what is installed.
    dpkg-deb -W --showformat='${Package} ${source:Package} ${source:Version}\n' "$deb" >>"$state/packages"
  done
  LC_ALL=C sort "$state/packages" >"$folder/packages"
  rm -rf "$state"
}

fetch() {  # fetch PACKAGE: unpacked, with Debian's patches, in $sources/PACKAGE
  local options=(-qq -o "Dir::Etc::sourcelist=/dev/null" -o "Dir::Etc::sourceparts=$folder/apt"
                 -o "Dir::State::lists=$folder/apt/lists" -o APT::Sandbox::User=root -o Acquire::Retries=3)
  [ -e "$folder/apt/updated" ] || { apt-get "${options[@]}" update; touch "$folder/apt/updated"; }
  rm -rf "${sources:?}/$1"
  mkdir "$sources/$1"
  # Of this one the authors' archive is enough.
  local part=()
  [ "$1" != qrencode ] || part=(--tar-only)
  (cd "$sources/$1" && apt-get "${options[@]}" source "${part[@]}" "$1" >"$folder/fetch.log" 2>&1) ||
    { cat "$folder/fetch.log" >&2; return 1; }
  if [ ${#part[@]} -gt 0 ]; then (cd "$sources/$1" && tar xf ./*.tar.*); fi
  mv "$sources/$1"/*/ "$sources/$1/tree"
}

# build PACKAGE COMMAND...: runs the command in the package's folder, once.
build() {
  if [ -e "$folder/$1.version" ]; then return 0; fi
  echo "Building $1 as a static library"
  fetch "$1"
  (cd "$sources/$1/tree" && "${@:2}") >"$folder/$1.log" 2>&1 || { tail -n 40 "$folder/$1.log" >&2; return 1; }
  # Of one that was fetched without Debian's part there is no .dsc.
  find "$sources/$1" -maxdepth 1 \( -name '*.orig.tar.*' -o -name '*.dsc' \) -printf '%f\n' | LC_ALL=C sort | tail -n 1 |
    sed 's/\.dsc$//; s/\.orig\.tar.*//' >"$folder/$1.version"
}

# Position independent and without traces of this folder.
flags="-O2 -fPIC -ffile-prefix-map=$sources/="
for_machine=()
toolchain=()
if [ "$machine" = arm64 ]; then
  unpack_arm64_packages
  for_machine=(--host=aarch64-linux-gnu
               "CPPFLAGS=-isystem $folder/usr/include -isystem $folder/usr/include/aarch64-linux-gnu"
               "LDFLAGS=-L$folder/usr/lib/aarch64-linux-gnu")
  toolchain=("-DCMAKE_TOOLCHAIN_FILE=$repository/cmake/arm64.cmake" "-DCHIMERE_STATIC=$folder")
  export PKG_CONFIG_SYSROOT_DIR=$folder PKG_CONFIG_LIBDIR=$folder/usr/lib/aarch64-linux-gnu/pkgconfig
fi
by_configure() {
  ./configure "${for_machine[@]}" --prefix="$folder" --libdir="$folder/lib" --disable-shared --enable-static --with-pic CFLAGS="$flags" "$@"
  # Debian's patches are newer than what the authors generated, and change nothing of it that matters here.
  local generated=(AUTOMAKE=: ACLOCAL=: AUTOCONF=: AUTOHEADER=:)
  make -j "$(nproc)" "${generated[@]}"
  make install "${generated[@]}"
}
by_cmake() {
  cmake -S . -B build -G Ninja "${toolchain[@]}" -DCMAKE_BUILD_TYPE=Release -DCMAKE_INSTALL_PREFIX="$folder" -DCMAKE_INSTALL_LIBDIR=lib \
    -DCMAKE_CXX_FLAGS="$flags" -DBUILD_SHARED_LIBS=OFF "$@"
  cmake --build build
  cmake --install build
}

build libxml2 by_configure --without-python --without-icu --without-lzma --without-zlib --without-http --without-ftp \
  --without-readline --without-debug --without-xinclude --without-schemas --without-schematron --without-catalog
build curl by_configure --with-openssl --with-ca-path=/etc/ssl/certs --with-zlib --without-brotli --without-zstd \
  --without-libidn2 --without-libpsl --without-librtmp --without-libssh2 --without-nghttp2 --without-gssapi \
  --disable-ldap --disable-ldaps --disable-rtsp --disable-dict --disable-telnet --disable-tftp --disable-pop3 \
  --disable-imap --disable-smb --disable-smtp --disable-gopher --disable-mqtt --disable-ftp --disable-file \
  --disable-manual --disable-ntlm --disable-alt-svc
build qrencode by_configure --without-tools --without-png
build fmtlib by_cmake -DFMT_DOC=OFF -DFMT_TEST=OFF
build spdlog by_cmake -DSPDLOG_FMT_EXTERNAL=ON -DSPDLOG_BUILD_EXAMPLE=OFF -DSPDLOG_BUILD_TESTS=OFF
cat "$folder"/*.version >"$folder/versions"
