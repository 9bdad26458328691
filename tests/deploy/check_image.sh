#!/usr/bin/env bash
# Builds docs/deploy/Dockerfile without a registry of images and uses the result: see docs/deploy/README.md.
set -euo pipefail
cd "$(dirname "$0")/../.."
for tool in buildah debootstrap unshare curl; do
  command -v "$tool" >/dev/null || { echo "skipped: $tool is not installed (apt-get install buildah debootstrap)"; exit 0; }
done
[ "$(id -u)" -eq 0 ] || { echo "skipped: debootstrap and chroot need root"; exit 0; }
export STORAGE_DRIVER=vfs BUILDAH_ISOLATION=chroot
work=$(mktemp -d) port=${PORT:-18199} container='' server=''
cleanup() {
  [ -z "$server" ] || kill "$server" 2>/dev/null || true
  [ -z "$container" ] || buildah rm "$container" >/dev/null 2>&1 || true
  rm -rf "$work"
}
trap cleanup EXIT

echo "base: debootstrap bookworm"
debootstrap --variant=minbase --include=python3,python3-venv,ca-certificates bookworm "$work/root" >"$work/log" 2>&1 \
  || { tail -5 "$work/log"; exit 1; }
mkdir "$work/context"
tar -C "$work/root" -cf "$work/context/base.tar" . && rm -rf "$work/root"
printf 'FROM scratch\nADD base.tar /\n' >"$work/Dockerfile"
buildah bud -q -f "$work/Dockerfile" -t stepgate-base "$work/context" >/dev/null

echo "image: docs/deploy/Dockerfile"
# shellcheck disable=SC2086  # BUILD_OPTIONS holds several options, for example -v /etc/ssl/certs:/etc/ssl/certs:ro
buildah bud --network host ${BUILD_OPTIONS:-} -f docs/deploy/Dockerfile --ignorefile docs/deploy/Dockerfile.dockerignore \
  --build-arg BASE=localhost/stepgate-base -t stepgate . >"$work/log" 2>&1 || { tail -20 "$work/log"; exit 1; }
container=$(buildah from localhost/stepgate)
root=$(buildah mount "$container")
mkdir "$work/data" && chown 10001:10001 "$work/data"

cat >"$work/start.sh" <<START
set -e
mount --bind "$root" "$root"
mount -o remount,ro,bind "$root"
mount --bind "$work/data" "$root/data"
mount -t proc proc "$root/proc"
mount -t tmpfs tmpfs "$root/tmp"
exec chroot --userspec=10001:10001 "$root" env -i HOME=/data PATH=/opt/stepgate/bin:/usr/bin:/bin \
  PYTHONDONTWRITEBYTECODE=1 AGENT_DATA_DIR=/data AGENT_HOST=127.0.0.1 AGENT_PORT=$port "\$@"
START
unshare -m bash "$work/start.sh" stepgate doctor
unshare -m bash "$work/start.sh" stepgate serve >"$work/serve.log" 2>&1 &
server=$!
for _ in $(seq 60); do curl -fs "127.0.0.1:$port/health" >/dev/null && break || sleep 0.5; done
answer=$(curl -fsS "127.0.0.1:$port/v1/chat/completions" -H 'content-type: application/json' \
  -d '{"model": "stepgate", "messages": [{"role": "user", "content": "What is 17*3?"}]}') \
  || { cat "$work/serve.log"; exit 1; }
case $answer in
  *'17*3 = 51'*) echo "ok: the image serves as user 10001 on a read-only root" ;;
  *) echo "wrong answer: $answer"; exit 1 ;;
esac
kill "$server" && wait "$server" || { echo "it did not end cleanly"; cat "$work/serve.log"; exit 1; }
server=''
