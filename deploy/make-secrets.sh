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
address=$(printf '%s' "$url" | sed "s/PASSWORD/$password/")
# With PostgreSQL all instances share one history; beside Redis each keeps what it has done itself, in its own volume.
case $storage in
  redis) history='sqlite:/var/lib/impresario/history.db' ;;
  postgres) history="postgres://impresario:$password@postgres:5432/impresario" ;;
esac
cat > "$directory/impresario.toml" <<END
# The same for all instances. Keys are those of docs/reference/configuration.md, in lower case.
storage_url = "$address"
secret_key = "$(random)"
history_database_uri = "$history"
clients_config_path = "/etc/impresario/clients.toml"
workers_config_path = "/etc/impresario/workers.toml"
schedules_config_path = "/etc/impresario/schedules.toml"
END
# These are yours to change. After a change: impresario admin reload, which reaches all instances.
mkdir "$directory/config"
cat > "$directory/config/clients.toml" <<END
# Who may start jobs: docs/guide/security.md. One table per client.
[operator]
token = "$(random)"
role = "admin"
END
cat > "$directory/config/workers.toml" <<END
# Who may work: docs/guide/security.md. One table per worker id, or per pattern of ids.
["*"]
token = "$(random)"
END
cat > "$directory/config/schedules.toml" <<END
# Jobs by the calendar: docs/guide/schedules.md. One table per schedule.
#[nightly_report]
#blueprint = "report"
#daily_at = "03:00"
END
chmod 755 "$directory/config"
chmod 644 "$directory"/*.* "$directory/postgres-password" "$directory"/config/*
echo "Made $directory. The token of the first client is in config/clients.toml, that of the workers in config/workers.toml."
