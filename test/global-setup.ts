import { ensure } from './system/debian-packages.ts'

/** Once, before the first test and outside every time limit of theirs: installing takes a minute on a fresh machine. */
export function setup(): void {
  ensure(['redis-server', 'postgresql', 'pgbouncer', 'python3', 'openssl'])
}
