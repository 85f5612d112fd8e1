export { OpenWorkflow } from 'openworkflow'
export { BackendPostgres } from 'openworkflow/postgres'
export { BackendSqlite } from 'openworkflow/sqlite'
export { default as postgres } from 'postgres'
