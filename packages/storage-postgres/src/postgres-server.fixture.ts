export { freePort } from '../../../test/servers/free-port.ts'
export { missingPostgres, startPostgres, unprivileged, untilReady } from '../../../test/servers/postgres-server.ts'
export type { PostgresServer } from '../../../test/servers/postgres-server.ts'
