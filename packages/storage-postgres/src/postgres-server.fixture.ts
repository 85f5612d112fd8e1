export { missingPostgres, startPostgres } from '../../../test/servers/postgres-server.ts'
export type { PostgresServer } from '../../../test/servers/postgres-server.ts'
