#!/bin/sh
# Makes the secrets that deploy/compose.yaml needs, once, into deploy/secrets. What is there already stays as it is.
#
#   deploy/make-secrets.sh redis       or      deploy/make-secrets.sh postgres
#
# Files can be read by everybody inside the containers that get them; on this machine their directory keeps others out.
set -eu

storage=${1:-redis}
directory=${2:-$(dirname "$0")/secrets}
random() { openssl rand -hex 24; }

case $storage in
  redis) url='redis://:PASSWORD@redis:6379?strict=true' ;;
  postgres) url='postgres://impresario:PASSWORD@postgres:5432/impresario?strict=true' ;;
  *) echo "Name a storage: redis or postgres." >&2; exit 2 ;;
esac

umask 077
mkdir -p "$directory"
if [ -e "$directory/impresario.toml" ]; then
  echo "$directory/impresario.toml exists; nothing was changed." >&2
  exit 0
fi
password=$(random)
printf 'requirepass %s\n' "$password" > "$directory/redis-password.conf"
printf '%s' "$password" > "$directory/postgres-password"
cat > "$directory/impresario.toml" <<END
# The same for all instances. Keys are those of docs/reference/configuration.md, in lower case.
storage_url = "$(printf '%s' "$url" | sed "s/PASSWORD/$password/")"
secret_key = "$(random)"
client_token = "$(random)"
worker_token = "$(random)"
END
chmod 644 "$directory"/*
echo "Made $directory. The tokens of clients and workers are in impresario.toml."
