#!/usr/bin/env bash
# An image for containers without a daemon and without a network: the folder of the archive on the libraries of glibc, for
# an account of its own, to run with a read-only root. The base is what this machine has of glibc's own packages.
#   scripts/container.sh FOLDER IMAGE.oci.tar VERSION
set -euo pipefail
folder=$1 image=$2 version=$3
if ! command -v buildah >/dev/null; then
  echo "buildah is not there: no container image was made"
  exit 0
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
root=$work/root
mkdir -p "$root"/{etc/chimere,data,tmp,usr/share,lib64} "$root/usr/lib/x86_64-linux-gnu"
ln -s usr/lib "$root/lib"
cp -a "$folder/bin" "$root/usr/bin"
cp -a "$folder/share/chimere" "$root/usr/share/chimere"
# The loader and the libraries of glibc that the program, name look-ups and character sets need; certificates and zones.
for library in libc.so.6 libm.so.6 libresolv.so.2 libnss_dns.so.2 libnss_files.so.2 ld-linux-x86-64.so.2; do
  cp -L "/lib/x86_64-linux-gnu/$library" "$root/usr/lib/x86_64-linux-gnu/"
done
ln -s ../usr/lib/x86_64-linux-gnu/ld-linux-x86-64.so.2 "$root/lib64/ld-linux-x86-64.so.2"
for place in etc/ssl/certs/ca-certificates.crt usr/share/zoneinfo; do
  if [ -e "/$place" ]; then mkdir -p "$root/$(dirname $place)" && cp -aL "/$place" "$root/$place"; fi
done
echo 'chimere:x:10001:10001::/data:/' >"$root/etc/passwd"
echo 'chimere:x:10001:' >"$root/etc/group"
echo 'hosts: files dns' >"$root/etc/nsswitch.conf"
chmod 1777 "$root/tmp"
chown -R 10001:10001 "$root/data"
find "$root" -exec touch -h -d "@${SOURCE_DATE_EPOCH:-0}" {} +

build=(--storage-driver vfs --root "$work/store" --runroot "$work/run")
container=$(buildah "${build[@]}" from scratch)
buildah "${build[@]}" add --quiet "$container" "$root" / >/dev/null
buildah "${build[@]}" config --user 10001:10001 --workingdir /data --env CHIMERE_HOME=/data --env CHIMERE_HOST=0.0.0.0 \
  --port 8081 --volume /data --entrypoint '["/usr/bin/chimere"]' --cmd serve --stop-signal SIGTERM \
  --label org.opencontainers.image.title=chimere --label "org.opencontainers.image.version=$version" \
  --label org.opencontainers.image.licenses=Apache-2.0 "$container"
buildah "${build[@]}" commit --quiet --timestamp "${SOURCE_DATE_EPOCH:-0}" "$container" "oci:$work/image:chimere:$version" >/dev/null
# buildah's own archive would have the time at which it was written.
tar -C "$work/image" --sort=name --owner=0 --group=0 --numeric-owner --mtime="@${SOURCE_DATE_EPOCH:-0}" --mode=u+rwX,go+rX,go-w \
  -cf "$image" blobs index.json oci-layout
echo "Packed the container image"
